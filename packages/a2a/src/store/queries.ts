import type { Artifact, LogRecord, Message, RecordKind, Task, TaskState } from "../model/index.ts";
import type { TaskHead } from "./task-head.ts";

/** What a store is asked for, and what it gives. */

/** Memory that a reader reserves before something large is read for it. The context of a call at a server is one (`CallContext`). */
export interface Room {
  /** Resolves when there is room for so many bytes of JSON in all. Where it rejects, reading rejects with the same error. */
  reserve(bytes: number): Promise<void>;
}

/** Up to so many bytes nothing is reserved: 256 KiB. */
export const roomless: number = 256 << 10;

/** How much of a task is read. */
export interface LoadOptions {
  /** Asked before a task of more bytes (`TaskHead.bytes`) than `roomless` is read. */
  readonly room?: Room;
  /** How many of the newest messages; absent: all; 0: `history` is absent. */
  readonly history?: number;
  /** Whether its artifacts are read. */
  readonly artifacts: boolean;
}

/** A task, with how it stood when it was read. */
export interface Snapshot extends ListedTask {
  readonly head: TaskHead;
}

/** A task as text or as a value. */
export interface ListedTask {
  readonly task: Task;
  /** `task` as JSON text, where the store could make it without parsing; `task` is then parsed only when asked for. */
  readonly json?: string;
  /**
   * Of a large task: the same text in pieces, so that it can be written without being joined. Reading `json` or `task`
   * then joins it, each time anew.
   */
  readonly pieces?: readonly string[];
}

/** Which part of a log is read. */
export interface ReadOptions {
  /** Records with a greater `seq`. */
  readonly after: number;
  /** At most so many. */
  readonly limit: number;
  /** At most so many bytes of JSON (`recordBytes`), and one record where it alone is larger. Default `defaultPageBytes`. */
  readonly bytes?: number;
  /** Only of these kinds. */
  readonly kinds?: readonly RecordKind[];
  /** Asked before a page of more bytes than `roomless` is read. */
  readonly room?: Room;
}

/** What a page holds at most where its reader does not say: 8 MiB. */
export const defaultPageBytes: number = 8 << 20;

/** Records of a log, in order. */
export interface LogPage {
  /** May be fewer than the limit though there are more. Empty only where there are none. */
  readonly records: readonly LogRecord[];
  /** As it stood when the page was read: a consistent view with `records`. */
  readonly head: TaskHead;
}

/** Which tasks are listed, and how much of each. */
export interface ListQuery {
  readonly contextId?: string;
  readonly state?: TaskState;
  /** Only tasks with a status time at or after it, in milliseconds since the Unix epoch. */
  readonly since?: number;
  /** At most so many tasks. */
  readonly limit: number;
  /** The page ends before its tasks would take more bytes of JSON, and has one where it alone is larger. Default `defaultPageBytes`. */
  readonly bytes?: number;
  /** Read on after this place. */
  readonly after?: ListPosition;
  /** As in `LoadOptions`. */
  readonly history?: number;
  /** As in `LoadOptions`. */
  readonly artifacts: boolean;
  /** Asked before the tasks of a page are read, where they may have more bytes together than `roomless`. */
  readonly room?: Room;
}

/** A place in a list, and not a task: it stays good when the task that was there moves. */
export interface ListPosition {
  readonly statusTime: number;
  /** The store's own number of a task, rising in the order of creation. */
  readonly number: number;
}

/** Tasks of a list, newest status first. */
export interface TaskPage {
  readonly tasks: readonly ListedTask[];
  /** Absent on the last page. */
  readonly next?: ListPosition;
  /** Exactly how many tasks the query matches in all. It comes from counters: the work does not grow with the number of tasks. */
  readonly total: number;
}

/** How much of a conversation is read. */
export interface ConversationOptions {
  /** How many of the newest entries; 0: none. */
  readonly limit: number;
  /**
   * Of these the newest whose records take no more bytes of JSON together, and one where it alone takes more. An artifact
   * that goes beyond it is cut down to its newest chunks. Default `defaultPageBytes`.
   */
  readonly bytes?: number;
  /** Leaves out what belongs to this turn of a task or comes after it: the user's messages from `seq` on, and what was said in turns from `turn` on. */
  readonly before?: { readonly taskId: string; readonly turn: number; readonly seq: number };
}

/** What was said in a context, and what its turns keep there. */
export interface StoredConversation {
  /** The state that the turns of the context share, as JSON text. */
  readonly state?: string;
  readonly entries: readonly (SaidMessage | SaidArtifact)[];
}

/** A message of a conversation. */
export interface SaidMessage {
  /** When it was stored, in milliseconds since the Unix epoch. */
  readonly time: number;
  readonly message: Message;
}

/** An artifact of a conversation. */
export interface SaidArtifact {
  /** When the first chunk that is given was stored, in milliseconds since the Unix epoch. */
  readonly time: number;
  readonly taskId: string;
  readonly artifact: Artifact;
  /** There is more of it, before what is given. */
  readonly cut?: true;
}

/** Which tasks a process could take over. */
export interface ClaimQuery {
  /** Leases that ran out by then count as free; milliseconds since the Unix epoch. */
  readonly now: number;
  /** Tasks of these agents alone: those that the process can run. */
  readonly agents: readonly string[];
  /** At most so many tasks. */
  readonly limit: number;
  /** Read on after this place. */
  readonly after?: ClaimPosition;
}

/** A place among the runs, and not a task: it stays good when the task that was there is taken over. */
export interface ClaimPosition {
  /** Absent: the tasks without a lease, which come first. */
  readonly leaseUntil?: number;
  /** As in `ListPosition`. */
  readonly number: number;
}

/** Tasks that can be taken over, those that have waited longest first. */
export interface ClaimPage {
  readonly heads: readonly TaskHead[];
  /** Absent on the last page. */
  readonly next?: ClaimPosition;
}

/** Tasks that wait for an agent. */
export interface StrandedRuns {
  readonly agent: string;
  /** How many. */
  readonly tasks: number;
}

/** What is old enough to go. Times are milliseconds since the Unix epoch. */
export interface SweepOptions {
  /** Terminal tasks with an older status time are deleted with their keys, and so are contexts without a task that nothing has touched since then. Absent: none. */
  readonly deleteBefore?: number;
  /** Terminal tasks with an older status time are compacted: `load` gives what it gave, `read` begins at `firstSeq`. Absent: none. */
  readonly compactBefore?: number;
  /** Keys that ran out by then are deleted. */
  readonly now: number;
  /** At most so many tasks are deleted or compacted, and at most so many keys deleted. */
  readonly limit: number;
}

/** What a sweep has done. */
export interface SweepReport {
  /** Tasks. */
  readonly deleted: number;
  /** Tasks. */
  readonly compacted: number;
  /** Whether there is more to do now. */
  readonly more: boolean;
}
