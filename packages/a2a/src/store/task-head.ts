import type { TaskState } from "../model/index.ts";

/** The keys of everything that is stored, and how a task stands. */

/** To whom a thing belongs. To anybody else it does not exist. */
export interface Owner {
  /** Id of the agent that is hosted. */
  readonly agent: string;
  /** Name of the caller's organisation and subject, as the engine makes it. */
  readonly owner: string;
}

/** What a reader may see: the things of one owner, or, without `owner`, those of all owners of an agent (for operators). */
export interface Scope {
  readonly agent: string;
  readonly owner?: string;
}

/** A task. Its id is unique within its agent. */
export interface TaskKey extends Owner {
  readonly taskId: string;
}

/** A context: the conversation that tasks and direct replies belong to. Its id is unique within its owner. */
export interface ContextKey extends Owner {
  readonly contextId: string;
}

/** The turn that a process executes, or has to execute. */
export interface Run {
  /** Which turn of the task, from 1. */
  readonly turn: number;
  /** Which try of that turn, from 1: a second one resumes a run that was lost. */
  readonly attempt: number;
  /** `seq` of the user message that the turn answers. User messages after it wait for the next turns. */
  readonly input: number;
  /** How often in a row a process took the run over and ended before anything of it was stored. Absent: never. */
  readonly deaths?: number;
  /** Whether it was taken over while nothing else was, to see whether the process ends because of it. */
  readonly alone?: true;
}

/** How a task stands: what must be known to act on it, without its messages and artifacts. */
export interface TaskHead {
  readonly task: TaskKey;
  readonly contextId: string;
  readonly state: TaskState;
  /** Time of the last status, in milliseconds since the Unix epoch. */
  readonly statusTime: number;
  /** `seq` of the last record. */
  readonly seq: number;
  /** Lowest `seq` that `read` still gives; more than 1 once the log was compacted. */
  readonly firstSeq: number;
  /** The counter of the 1.1 draft: how many records made the task, set a status or changed an artifact. */
  readonly generation: number;
  /** UTF-8 bytes of the JSON text of all records, `call` included (`recordBytes`). No snapshot and no page of the log is larger. */
  readonly bytes: number;
  /** Rises each time that the lease changes hands. An append under an older fence is refused. */
  readonly fence: number;
  /** Who holds the lease, if anyone took it and did not give it back. It may have run out. */
  readonly holder?: string;
  /** When the lease runs out, in milliseconds since the Unix epoch. */
  readonly leaseUntil?: number;
  /** The turn that is under way; absent: the task is over, or waits for its user. */
  readonly run?: Run;
  /** What the agent saved in order to resume, as JSON text. Given by `head` alone, since it may be large. */
  readonly checkpoint?: string;
}
