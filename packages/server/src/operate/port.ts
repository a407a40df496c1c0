import type { TaskState } from "@parley/a2a/internal/model/index";
import type { Principal } from "@parley/a2a/internal/protocol/index";

/* What an operator reads and does. Everything is JSON: the same in a program, over HTTP and in the terminal. Times are ISO 8601 in UTC. */

/** A task as operators see it: without its messages and artifacts. */
export interface OperatedTask {
  /** Its agent, by `id`. */
  readonly agent: string;
  /** Its owner, by the stored name. */
  readonly owner: string;
  /** Its id, unique for the agent. */
  readonly taskId: string;
  /** Its conversation. */
  readonly contextId: string;
  /** Its state. */
  readonly state: TaskState;
  /** When it got this state. */
  readonly statusTime: string;
  /** The number of its last record: an act with another `seq` is rejected. */
  readonly seq: number;
  /** Bytes of its records. */
  readonly bytes: number;
  /** The node that holds it. Absent: none does. */
  readonly node?: string;
  /** The turn that is being executed. Absent: none is. */
  readonly run?: {
    /** From 1. */
    readonly turn: number;
    /** From 1. */
    readonly attempt: number;
    /** How many processes died with it in a row. */
    readonly deaths: number;
    /** Whether no process takes it over until an operator resumes it. */
    readonly suspended: boolean;
  };
}

/** Why a task waits, or that it does not. `text` says it in a sentence, `help` is the command that helps. */
export type Explanation = { readonly text: string; readonly help?: string } & (
  | {
      /** It is over. */
      readonly kind: "done";
      readonly state: TaskState;
      readonly since: string;
    }
  | {
      /** A node executes a turn. */
      readonly kind: "running";
      readonly node: string;
      readonly since: string;
      /** Names of the steps that have begun, and have no result yet. */
      readonly steps: readonly string[];
    }
  | {
      /** Its node has been silent for `silentMs`, and another one takes it over. */
      readonly kind: "nodeSilent";
      readonly node: string;
      readonly silentMs: number;
    }
  | {
      /** Its run is free, and a node takes it over. */
      readonly kind: "lost";
    }
  | {
      /** Its process died on every attempt. */
      readonly kind: "suspended";
      readonly deaths: number;
    }
  | {
      /** An operator has paused its agent. */
      readonly kind: "agentPaused";
      readonly agent: string;
      readonly since: string;
      readonly by?: string;
      readonly reason?: string;
    }
  | {
      /** It is due, and no node runs its agent, or none is known that does. */
      readonly kind: "agentNotServed";
      readonly agent: string;
    }
  | {
      /** It is in the queue for a node with room (`limits.runs`). */
      readonly kind: "queued";
      readonly since: string;
      /** How many tasks of the agent come first. */
      readonly ahead: number;
      /** Whether there are more than `ahead`. */
      readonly more: boolean;
    }
  | {
      /** It waits for a time (`turn.sleep()`). */
      readonly kind: "time";
      readonly wait: string;
      readonly until: string;
    }
  | {
      /** It waits for an event (`turn.waitFor()`), such as that of a webhook. */
      readonly kind: "event";
      readonly wait: string;
      readonly event: string;
      readonly until?: string;
    }
  | {
      /** It waits for a task of another agent. */
      readonly kind: "delegation";
      readonly agent: string;
      readonly taskId?: string;
    }
  | {
      /** It waits for an authorization. */
      readonly kind: "authorization";
      readonly since: string;
      readonly expires?: string;
    }
  | {
      /** It waits for a message of its user. */
      readonly kind: "input";
      readonly since: string;
    }
);

/** A task with all that an operator may have to know. */
export interface ShownTask {
  readonly task: OperatedTask;
  /** Why it waits: the first reason. */
  readonly why: Explanation;
  /** All that it waits for. */
  readonly waits: readonly Explanation[];
  /** Its steps: those with a stored result, and those that have begun. */
  readonly steps: readonly {
    readonly name: string;
    /** Of its turn, or of the whole task. */
    readonly scope: "turn" | "task";
    readonly state: "done" | "begun";
  }[];
  /** Its webhooks, without their secrets. */
  readonly webhooks: readonly {
    readonly id: string;
    readonly url: string;
    readonly state: "idle" | "due" | "delivering" | "parked";
    readonly delivered: number;
    readonly attempts: number;
    /** Why the last delivery failed. */
    readonly problem?: string;
  }[];
  /** Its newest records, oldest first, without their content. */
  readonly log: readonly {
    readonly seq: number;
    readonly kind: string;
    readonly time: string;
    readonly actor: string;
    readonly turn: number;
    readonly attempt: number;
    readonly state?: TaskState;
  }[];
  /** The newest acts of operators on it, newest first. */
  readonly acts: readonly Act[];
}

/** What operators can do. */
export type ActName = "cancel" | "resume" | "retry-step" | "drop-wait" | "pause" | "unpause" | "drain" | "undrain";

/** An act in the audit: done, or refused. */
export interface Act {
  /** Its number: a later act has a higher one. */
  readonly number: number;
  readonly act: ActName;
  readonly time: string;
  /** Who did it: subject of the operator. Absent: the server has no authenticator, and anyone on this machine is an operator. */
  readonly by?: string;
  /** Organization of the operator. */
  readonly organization?: string;
  /** Why, as the operator said. */
  readonly reason?: string;
  readonly outcome: "done" | "refused";
  /** The agent. Absent: of a node. */
  readonly agent?: string;
  readonly taskId?: string;
  readonly node?: string;
  /** Name of the step or wait. */
  readonly name?: string;
  /** What it was before. */
  readonly before?: string;
  /** What it was afterwards; of a refused act: why. */
  readonly after?: string;
}

/** Which tasks to list. */
export interface TaskFilter {
  readonly agent?: string;
  /** By its stored name. */
  readonly owner?: string;
  readonly states?: readonly TaskState[];
  /** Only tasks with a run that this node holds. */
  readonly node?: string;
  /** Only suspended tasks. */
  readonly suspended?: boolean;
  /** Only tasks whose status is of this time or later, in milliseconds since the Unix epoch. */
  readonly since?: number;
  /** Only tasks whose status is older, in milliseconds since the Unix epoch. */
  readonly before?: number;
  /** Default `newest`. Of runs (`node`, `suspended`) there is one order: the oldest lease first. */
  readonly order?: "oldest" | "newest";
  /** 1 to 500. Default 50. A page has fewer tasks only where it is the last one. */
  readonly limit?: number;
  /** The `next` of the page before, of the same filter. */
  readonly cursor?: string;
}

/** A page of tasks. */
export interface TaskList {
  readonly tasks: readonly OperatedTask[];
  /** Where the next page begins. Absent on the last page. */
  readonly next?: string;
}

/** Exact counts. */
export interface Counts {
  /** Of all agents, by state. */
  readonly states: Readonly<Partial<Record<TaskState, number>>>;
  readonly agents: readonly {
    readonly agent: string;
    readonly states: Readonly<Partial<Record<TaskState, number>>>;
    readonly paused: boolean;
  }[];
  /** Tasks in the queue, and how long the first has waited. */
  readonly queue: CappedCount & { readonly oldestMs: number };
  /** Runs: those that a node holds, and those that none does. */
  readonly runs: CappedCount & { readonly suspended: number; readonly free: number };
}

/** A number that was counted up to a limit. */
export interface CappedCount {
  readonly count: number;
  /** Whether there are more. */
  readonly more: boolean;
}

/** A node. */
export interface OperatedNode {
  readonly name: string;
  /** Whether it is the node that answers. */
  readonly self: boolean;
  /** How long it has been silent, in milliseconds. Absent: the store does not count nodes. */
  readonly silentMs?: number;
  readonly draining: boolean;
  /** It has been silent for longer than a lease, and holds no run: it has most likely stopped. `undrain` withdraws an order to it. */
  readonly gone?: true;
  /** The agents that it runs. Absent: they are not known. */
  readonly agents?: readonly string[];
  /** How many runs it holds. */
  readonly runs: number;
}

/** A paused agent. */
export interface PausedAgent {
  readonly agent: string;
  readonly since: string;
  readonly by?: string;
  readonly reason?: string;
}

/** Who acts, and why. */
export interface ActContext {
  /** The operator. Absent: it is not known. */
  readonly principal?: Principal;
  /** At most 1,000 characters. */
  readonly reason?: string;
}

/** A task to act on. */
export interface TaskTarget {
  readonly agent: string;
  readonly taskId: string;
  /** Only while this is the number of its last record. Absent: as it is. */
  readonly seq?: number;
}

/** Why an act was refused. */
export type RefusalReason = "notFound" | "changed" | "notPossible";

/** What came of an act. */
export type ActResult<Done = { readonly task: OperatedTask }> =
  | ({ readonly ok: true } & Done)
  | {
      readonly ok: false;
      readonly reason: RefusalReason;
      readonly message: string;
      /** The task as it is now. */
      readonly task?: OperatedTask;
    };

/** What came of resuming a task. */
export interface Resumed {
  /** The task that works now: of a failed task a new one, in the same conversation. */
  readonly task: OperatedTask;
  /** The failed task that it continues. */
  readonly continues?: string;
}

/** What operators can read and do, across all owners. It checks no permissions: its user may do everything. */
export interface Operator {
  /** @throws A2AError `InvalidParams` for a filter or cursor that is not valid. */
  list(filter: TaskFilter): Promise<TaskList>;
  show(agent: string, taskId: string): Promise<ShownTask | undefined>;
  counts(): Promise<Counts>;
  nodes(): Promise<readonly OperatedNode[]>;
  paused(): Promise<readonly PausedAgent[]>;
  acts(query: { readonly limit?: number; readonly before?: number }): Promise<readonly Act[]>;
  /** Cancels a task, in whatever process it runs. */
  cancel(target: TaskTarget, context: ActContext): Promise<ActResult>;
  /**
   * Resumes a suspended task. For a failed one, which cannot change any more, begins a new task of the same owner with its last message, its
   * state and the results of its steps.
   */
  resume(target: TaskTarget, context: ActContext): Promise<ActResult<Resumed>>;
  /** Forgets the result of a step of a suspended, waiting or failed task, and resumes it: the step is done again. */
  retryStep(target: TaskTarget & { readonly step: string }, context: ActContext): Promise<ActResult<Resumed>>;
  /** Ends a wait for a time or an event as its timeout does. */
  dropWait(target: TaskTarget & { readonly wait: string }, context: ActContext): Promise<ActResult>;
  /**
   * No process begins or resumes a turn of the agent until `unpause`. Turns that run end. Messages are accepted, and wait in the queue, also
   * those that come to a task while its turn runs.
   */
  pause(agent: string, context: ActContext): Promise<ActResult<{ readonly paused: PausedAgent }>>;
  unpause(agent: string, context: ActContext): Promise<ActResult<{ readonly agent: string }>>;
  /** A node begins and resumes no turn until `undrain`, and its probe of readiness fails. Turns that run end there; the next ones run elsewhere. */
  drain(node: string, context: ActContext): Promise<ActResult<{ readonly node: string }>>;
  undrain(node: string, context: ActContext): Promise<ActResult<{ readonly node: string }>>;
}
