import type { TaskState } from "../model/index.ts";

/** The keys of everything that is stored, and how a task stands. */

/** Who owns stored data. It is part of the key of everything that is stored. */
export interface Owner {
  /** The agent, by its `id`. */
  readonly agent: string;
  /** The caller, by the name that the engine gives it. */
  readonly owner: string;
}

/** What a reader may see. A task outside of the scope does not exist for it. */
export interface Scope {
  /** The agent. */
  readonly agent: string;
  /** The caller. Absent: every owner, for operators. */
  readonly owner?: string;
}

/** Key of a task. */
export interface TaskKey extends Owner {
  /** The task. Its id is unique for the agent. */
  readonly taskId: string;
}

/** Key of a conversation. */
export interface ContextKey extends Owner {
  /** The conversation. */
  readonly contextId: string;
}

/** The execution of one turn. */
export interface StoredRun {
  /** Which turn of the task, from 1. */
  readonly turn: number;
  /** Which attempt of that turn, from 1. */
  readonly attempt: number;
  /** The `seq` of the user message that the turn answers. Later user messages wait for the next turns. */
  readonly input: number;
  /** How often in a row a process took the run over and died before it stored anything of it. Absent: never. */
  readonly deaths?: number;
  /** Set where the run was taken over alone, to find out whether it crashes the process. */
  readonly alone?: true;
}

/** What is known about a task without its messages and artifacts. */
export interface TaskHead {
  /** The task. */
  readonly task: TaskKey;
  /** Its conversation. */
  readonly contextId: string;
  /** Its state. */
  readonly state: TaskState;
  /** Time of its last status, in milliseconds since the Unix epoch. */
  readonly statusTime: number;
  /** The `seq` of its last record. */
  readonly seq: number;
  /** The lowest `seq` that `read` returns. It is more than 1 after the log was compacted. */
  readonly firstSeq: number;
  /** The counter of the 1.1 draft: creation, status and artifact records. */
  readonly generation: number;
  /** Size of all records in bytes (`recordBytes`). No snapshot and no page of the log is larger. */
  readonly bytes: number;
  /** Number that rises with each new holder. An append with an older one fails as `fenced`. */
  readonly fence: number;
  /** The process that holds the lease. The lease may have expired. Absent: it was never taken, or released. */
  readonly holder?: string;
  /** When the lease expires, in milliseconds since the Unix epoch. */
  readonly leaseUntil?: number;
  /** The turn that is being executed. */
  readonly run?: StoredRun;
  /** The checkpoint as JSON text. Only `head` returns it, because it may be large. */
  readonly checkpoint?: string;
}
