import type { TaskState } from "@parley/a2a/internal/model/index";
import type { Principal } from "@parley/a2a/internal/protocol/index";
import type { safeSentences } from "../engine/run/phase.ts";

/* The interface for operators. All data is JSON, with the same form in a program, over HTTP and in the terminal. Times are ISO 8601 in UTC. */

/** A task as operators see it, without its messages and artifacts. */
export interface OperatedTask {
  /** Its agent, by `id`. */
  readonly agent: string;
  /** Its owner, by the stored name. */
  readonly owner: string;
  /** Its id, unique within the agent. */
  readonly taskId: string;
  /** Its conversation. */
  readonly contextId: string;
  /** Its state. */
  readonly state: TaskState;
  /** When the task got this state. */
  readonly statusTime: string;
  /** The `seq` of the task's last record. An act with another `seq` is rejected. */
  readonly seq: number;
  /** Bytes of the task's records. */
  readonly bytes: number;
  /** The node that holds the task. Absent: no node does. */
  readonly node?: string;
  /** The turn in progress. Absent: no turn. */
  readonly run?: {
    /** The number of the turn, from 1. */
    readonly turn: number;
    /** The number of the attempt, from 1. */
    readonly attempt: number;
    /** How many processes in a row died while they ran the task. */
    readonly deaths: number;
    /** Whether no process takes the task over until an operator resumes it. */
    readonly suspended: boolean;
  };
  /**
   * What the task waits for, as far as the list knows: a node with room (`queue`), a time or an event (`wait`), or another agent (`delegate`;
   * not in lists by `node` or `suspended`). `state` shows whether the task waits for its user.
   */
  readonly waits?: "queue" | "wait" | "delegate";
}

/** Why a task failed, or who canceled it. */
export type EndCause = keyof typeof safeSentences | "delegation" | "reported" | "operator";

/** Why a task waits, or that the task does not wait. */
export type Explanation = {
  /** The explanation as a sentence. */
  readonly text: string;
  /** The command that helps. */
  readonly help?: string;
  /** When the wait, or other situation, began. */
  readonly since: string;
} &
  /** The task is over. `cause`: why it failed, or who canceled it. */
  (
    | { readonly kind: "done"; readonly state: TaskState; readonly cause?: EndCause }
    /** A node executes a turn. `steps`: names of the steps that have begun and have no result yet. */
    | { readonly kind: "running"; readonly node: string; readonly steps: readonly string[] }
    /** The task's node has been silent for `silentMs`. Another node will take the task over. */
    | { readonly kind: "nodeSilent"; readonly node: string; readonly silentMs: number }
    /** No node holds the run. A node will take it over. */
    | { readonly kind: "lost" }
    /** The task is suspended, because its process died on every attempt. */
    | { readonly kind: "suspended"; readonly deaths: number }
    /** An operator has paused the task's agent. */
    | { readonly kind: "agentPaused"; readonly agent: string; readonly by?: string; readonly reason?: string }
    /** The task is due, but no node is known to run its agent. */
    | { readonly kind: "agentNotServed"; readonly agent: string }
    /** The task is in the queue for a node with room (`limits.runs`). `ahead`: how many tasks of the agent are first. `more`: or even more. */
    | { readonly kind: "queued"; readonly ahead: number; readonly more: boolean }
    /** The task waits for a time (`turn.sleep()`). */
    | { readonly kind: "time"; readonly wait: string; readonly until: string }
    /** The task waits for an event (`turn.waitFor()`), such as the call of a webhook. */
    | { readonly kind: "event"; readonly wait: string; readonly event: string; readonly until?: string }
    /** The task waits for a task of another agent. */
    | { readonly kind: "delegation"; readonly agent: string; readonly taskId?: string }
    /** The task waits for an authorization. */
    | { readonly kind: "authorization"; readonly expires?: string }
    /** The task waits for a message of its user. */
    | { readonly kind: "input" }
  );

/** A task in detail. */
export interface ShownTask {
  readonly task: OperatedTask;
  /** The most immediate reason why the task waits. */
  readonly why: Explanation;
  /** All reasons. */
  readonly waits: readonly Explanation[];
  /** The steps that have begun, or have a stored result. */
  readonly steps: readonly {
    readonly name: string;
    /** Whether the step belongs to the turn or to the whole task. */
    readonly scope: "turn" | "task";
    readonly state: "done" | "begun";
    /** When the step began. Absent: unknown. The same applies to `ended`. */
    readonly begun?: string;
    readonly ended?: string;
  }[];
  /** Finished waits of the turn, by their names. */
  readonly waited: readonly { readonly name: string; readonly begun: string; readonly ended: string }[];
  /**
   * Takeovers of lost runs: at most 16, of which newer ones replace older ones. `from`: the process that died or hung. Absent: the process
   * released the run.
   */
  readonly takeovers: readonly {
    readonly turn: number;
    readonly attempt: number;
    readonly time: string;
    readonly node: string;
    readonly from?: string;
  }[];
  /** The task's delegations. `agent`: name of the other agent. `taskId`: the other agent's task, once known. */
  readonly delegations: readonly {
    readonly number: number;
    readonly agent: string;
    readonly taskId?: string;
    readonly state: "open" | "done";
  }[];
  /** Its webhooks, without their secrets. */
  readonly webhooks: readonly {
    readonly id: string;
    readonly url: string;
    readonly state: "idle" | "due" | "delivering" | "parked";
    readonly delivered: number;
    /** The last record whose event was delivered or given up. */
    readonly seq: number;
    /** Failed attempts at the next event. */
    readonly attempts: number;
    /** When the next attempt is due. */
    readonly next?: string;
    /** Why the last delivery failed. */
    readonly problem?: string;
    readonly problemTime?: string;
    /** Events that the receiver rejected. */
    readonly refused: readonly { readonly seq: number; readonly time: string; readonly problem: string }[];
  }[];
  /** Its newest records, oldest first. */
  readonly log: readonly LogEntry[];
  /** The newest acts of operators on the task, newest first. */
  readonly acts: readonly Act[];
}

/** A record in the log of a task, without its content. */
export interface LogEntry {
  readonly seq: number;
  readonly kind: string;
  readonly time: string;
  readonly actor: string;
  readonly turn: number;
  readonly attempt: number;
  readonly state?: TaskState;
  /** Bytes of the record's event. */
  readonly bytes: number;
  /** ID of the record's artifact. */
  readonly artifactId?: string;
  /** W3C `traceparent` of the call that caused the record. */
  readonly trace?: string;
}

/** A page of the log of a task. */
export interface TaskLog {
  readonly task: OperatedTask;
  /** Oldest first. Records before the first page were deleted (`retention`). */
  readonly entries: readonly LogEntry[];
  /** The `after` of the next page. Absent on the last page. */
  readonly next?: number;
}

/** Which records to read. */
export interface LogQuery {
  /** Only records with a greater `seq`. */
  readonly after?: number;
  /** 1 to 5,000. Default 1,000. A page of large records has fewer. */
  readonly limit?: number;
}

/** The acts of operators. */
export type ActName = "cancel" | "resume" | "retry-step" | "drop-wait" | "pause" | "unpause" | "drain" | "undrain";

/** An act in the audit, performed or rejected. */
export interface Act {
  /** The number of the act. Later acts have higher numbers. */
  readonly number: number;
  readonly act: ActName;
  readonly time: string;
  /** Subject of the operator. Absent: the server has no authenticator, and anyone on this machine is an operator. */
  readonly by?: string;
  /** Organization of the operator. */
  readonly organization?: string;
  /** The operator's reason. */
  readonly reason?: string;
  readonly outcome: "done" | "refused";
  /** The agent. Absent for acts on a node. */
  readonly agent?: string;
  readonly taskId?: string;
  readonly node?: string;
  /** Name of the step or wait. */
  readonly name?: string;
  /** The state before the act. */
  readonly before?: string;
  /** The state after the act. For a rejected act, the reason. */
  readonly after?: string;
}

/** Which tasks to list. */
export interface TaskFilter {
  readonly agent?: string;
  /** Only the tasks with this id, whichever agents have them. */
  readonly taskId?: string;
  /** Only tasks of the owner with this stored name. */
  readonly owner?: string;
  readonly states?: readonly TaskState[];
  /** Only tasks with a run that this node holds. */
  readonly node?: string;
  /** Only suspended tasks. */
  readonly suspended?: boolean;
  /** Only tasks with a status from this time or later, in milliseconds since the Unix epoch. */
  readonly since?: number;
  /** Only tasks with an older status, in milliseconds since the Unix epoch. */
  readonly before?: number;
  /** Order by status time. Default `newest`. Runs (`node`, `suspended`) are always listed by lease, oldest first. */
  readonly order?: "oldest" | "newest";
  /** 1 to 500. Default 50. Only the last page has fewer tasks. */
  readonly limit?: number;
  /** The `next` of the previous page, with the same filter. */
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
  /** Tasks of all agents, by state. */
  readonly states: Readonly<Partial<Record<TaskState, number>>>;
  readonly agents: readonly {
    readonly agent: string;
    readonly states: Readonly<Partial<Record<TaskState, number>>>;
    readonly paused: boolean;
  }[];
  /** Tasks in the queue, and how long the first has waited. */
  readonly queue: CappedCount & { readonly oldestMs: number };
  /** Runs, with and without a node that holds them. */
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
  /** Whether this is the node that answers. */
  readonly self: boolean;
  /** How long the node has been silent, in milliseconds. Absent: the store does not count nodes. */
  readonly silentMs?: number;
  readonly draining: boolean;
  /** Set if the node has been silent for longer than a lease and holds no run, so it has most likely stopped. `undrain` withdraws its order. */
  readonly gone?: true;
  /** The agents that the node runs. Absent: unknown. */
  readonly agents?: readonly string[];
  /** How many runs the node holds. */
  readonly runs: number;
}

/** A paused agent. */
export interface PausedAgent {
  readonly agent: string;
  readonly since: string;
  readonly by?: string;
  readonly reason?: string;
}

/** The operator, and the reason. */
export interface ActContext {
  /** The operator. Absent: unknown. */
  readonly principal?: Principal;
  /** At most 1,000 characters. */
  readonly reason?: string;
}

/** A task to act on. */
export interface TaskTarget {
  readonly agent: string;
  readonly taskId: string;
  /** The `seq` that the task's last record must have, else the act is rejected. Absent: any. */
  readonly seq?: number;
}

/** Why an act was rejected. */
export type RefusalReason = "notFound" | "changed" | "notPossible";

/** The result of an act. */
export type ActResult<Done = { readonly task: OperatedTask }> =
  | ({ readonly ok: true } & Done)
  | {
      readonly ok: false;
      readonly reason: RefusalReason;
      readonly message: string;
      /** The current task. */
      readonly task?: OperatedTask;
    };

/** The result of resuming a task. */
export interface Resumed {
  /** The resumed task. For a failed task, a new task in the same conversation. */
  readonly task: OperatedTask;
  /** The failed task that the new task continues. */
  readonly continues?: string;
}

/** The result of draining a node. */
export interface DrainedNode {
  readonly node: string;
  /** Set if the name could not be checked, because the nodes are not known here. If a node has this name, it obeys the order. */
  readonly unchecked?: true;
}

/** The operations of operators, across all owners. They do not check permissions. */
export interface Operator {
  /** @throws A2AError `InvalidParams` for a filter or cursor that is not valid. */
  list(filter: TaskFilter): Promise<TaskList>;
  show(agent: string, taskId: string): Promise<ShownTask | undefined>;
  log(agent: string, taskId: string, query: LogQuery): Promise<TaskLog | undefined>;
  counts(): Promise<Counts>;
  nodes(): Promise<readonly OperatedNode[]>;
  paused(): Promise<readonly PausedAgent[]>;
  acts(query: { readonly limit?: number; readonly before?: number }): Promise<readonly Act[]>;
  /** Cancels a task, whichever process runs the task. */
  cancel(target: TaskTarget, context: ActContext): Promise<ActResult>;
  /**
   * Resumes a suspended task. For a failed task, which can no longer change, begins a new task of the same owner with its last message, its
   * state and the results of its steps.
   */
  resume(target: TaskTarget, context: ActContext): Promise<ActResult<Resumed>>;
  /** Deletes the result of a step of a suspended, waiting or failed task, and resumes the task, which runs the step again. */
  retryStep(target: TaskTarget & { readonly step: string }, context: ActContext): Promise<ActResult<Resumed>>;
  /** Ends a wait for a time or an event, as if it had timed out. */
  dropWait(target: TaskTarget & { readonly wait: string }, context: ActContext): Promise<ActResult>;
  /**
   * Pauses an agent: until `unpause`, no process begins or resumes a turn of the agent. Running turns end normally. Messages are accepted, and
   * wait in the queue, even for a task with a running turn.
   */
  pause(agent: string, context: ActContext): Promise<ActResult<{ readonly paused: PausedAgent }>>;
  unpause(agent: string, context: ActContext): Promise<ActResult<{ readonly agent: string }>>;
  /** Drains a node: until `undrain`, the node begins and resumes no turns, and its readiness probe fails. Running turns end normally. */
  drain(node: string, context: ActContext): Promise<ActResult<DrainedNode>>;
  undrain(node: string, context: ActContext): Promise<ActResult<{ readonly node: string }>>;
}

const waitWords = { queue: "a node", wait: "a time or an event", delegate: "a delegate" } as const;

/** What a task waits for, in words, such as `waits for a delegate`. */
export function waitWord({ waits }: OperatedTask): string | undefined {
  return waits && `waits for ${waitWords[waits]}`;
}

/** A state in words, with what the task waits for. `state`: the name of the state. */
export function stateWord(state: string, task: OperatedTask): string {
  return task.run?.suspended === true ? "suspended" : [state, waitWord(task)].filter(Boolean).join(", ");
}

/** How long ago a time is, in the largest unit that fits. */
export function ageOf(time: string): string {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(time)) / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/** Shortens the default name of a node to host, process and random id: `web-1/4711/3f2a`. Does not change names from `lease.holder`. */
export function nodeWord(name: string): string {
  const parts = listIn(name).map(String);
  const [place = "", process = "", , id = ""] = parts;
  return parts.length < 4 ? name : `${place.split(" ", 1)[0]}/${process}/${id.slice(0, 4)}`;
}

/** An owner as `tenant/subject` or `subject`. Does not change names from `ownerOf`. */
export function ownerWord(owner: string): string {
  const [organization, subject, ...more] = listIn(owner);
  if (typeof subject !== "string" || more.length > 0) return owner;
  return typeof organization === "string" ? `${organization}/${subject}` : subject;
}

function listIn(json: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(json);
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}
