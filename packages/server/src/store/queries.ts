import type { Artifact, LogRecord, Message, RecordKind, Task, TaskState } from "@parley/a2a/internal/model/index";
import type { FeatureState, TaskHead, TaskKey } from "./append.ts";

/* Queries of a store, and their results. */

/** Memory for large results, which a reader reserves before it reads. Implemented by `CallContext`. */
export interface Room {
  /** Resolves when there is room for this many bytes of JSON in all. If it rejects, the read rejects with the same error. */
  reserve(bytes: number): Promise<void>;
}

/** A read of up to this many bytes needs no reservation. */
export const roomless: number = 256 << 10;

/** How much of a task to load. */
export interface LoadOptions {
  /** Reserved before a task of more than `roomless` bytes is read. */
  readonly room?: Room;
  /** How many of the newest messages. 0: no `history`. Default: all. */
  readonly history?: number;
  /** Whether to load the artifacts. */
  readonly artifacts: boolean;
  /** Whether adjacent texts of an artifact are one part, as `TaskFold` merges them. Default: parts are not merged. */
  readonly mergeTextParts?: boolean;
}

/** A task as the fold of its log. */
export interface Snapshot extends ListedTask {
  /** The state of the task at the same moment. */
  readonly head: TaskHead;
}

/** A task as a value and, if the store has it, as JSON text. */
export interface ListedTask {
  /** The task. */
  readonly task: Task;
  /** `task` as JSON text, if the store could build it without parsing. `task` is then parsed only on access. */
  readonly json?: string;
  /** For a large task: `json` in pieces, which can be written without joining. Each read of `json` or `task` joins the pieces again. */
  readonly pieces?: readonly string[];
}

/** Which records of a log to read. */
export interface ReadOptions {
  /** Only records with a greater `seq`. */
  readonly after: number;
  /** Maximum records. */
  readonly limit: number;
  /** Maximum bytes of JSON (`recordBytes`). A larger record is returned alone. Default `defaultPageBytes`. */
  readonly bytes?: number;
  /** Only records of these kinds. Default: all. */
  readonly kinds?: readonly RecordKind[];
  /** Reserved before a page of more than `roomless` bytes is read. */
  readonly room?: Room;
}

/** Default size of a page in bytes: 8 MiB. */
export const defaultPageBytes: number = 8 << 20;

/** Records of a log. */
export interface LogPage {
  /** The records. May be fewer than the limit, although the log has more. Empty only at the end of the log. */
  readonly records: readonly LogRecord[];
  /** The head when `records` were read. */
  readonly head: TaskHead;
}

/** Filters for a list of tasks. An absent filter matches everything. */
export interface ListQuery {
  /** Only tasks of this conversation. */
  readonly contextId?: string;
  /** Only tasks in this state. */
  readonly state?: TaskState;
  /** Only tasks with a status of this time or later, in milliseconds since the Unix epoch. */
  readonly since?: number;
  /** Maximum tasks on the page. */
  readonly limit: number;
  /** Maximum bytes of JSON on the page. A larger task is returned alone. Default `defaultPageBytes`. */
  readonly bytes?: number;
  /** Only tasks after this position: the `next` of the page before. */
  readonly after?: ListPosition;
  /** How many of the newest messages of each task. 0: no `history`. Default: all. */
  readonly history?: number;
  /** Whether the tasks have their artifacts. */
  readonly artifacts: boolean;
  /** Whether adjacent texts of an artifact are one part: see `LoadOptions`. */
  readonly mergeTextParts?: boolean;
  /** Reserved before reading a page whose tasks may have more than `roomless` bytes together. */
  readonly room?: Room;
}

/**
 * A position in a list: the last task of a page with its place. The position stays valid when that task gets a new status. It contains only
 * data of the page, because an internal number would reveal how many tasks other owners create.
 */
export interface ListPosition {
  /** The task's status time on that page, in milliseconds since the Unix epoch. */
  readonly statusTime: number;
  /** The task's id. If the task was deleted since then, the next page begins with the first task with that status time. */
  readonly taskId: string;
}

/** A page of a list. */
export interface TaskPage {
  /** The tasks. */
  readonly tasks: readonly ListedTask[];
  /** Where the next page begins. Absent on the last page. */
  readonly next?: ListPosition;
  /** The exact number of matching tasks on all pages, from counters, so the cost does not grow with the number of tasks. */
  readonly total: number;
}

/** How much of a conversation to read. */
export interface ConversationOptions {
  /** Maximum entries, the newest ones. 0: none. */
  readonly limit: number;
  /**
   * Maximum size of these entries as JSON, in bytes. The newest entry is always returned. An artifact that does not fit is cut to its
   * newest chunks. Default `defaultPageBytes`.
   */
  readonly bytes?: number;
  /** Leaves out a turn of a task and everything after it: user messages from `seq` on, and messages of the agent from `turn` on. */
  readonly before?: { readonly taskId: string; readonly turn: number; readonly seq: number };
}

/** A stored conversation. */
export interface StoredConversation {
  /** The state of the conversation, as JSON text. */
  readonly state?: string;
  /** The newest entries, oldest first. */
  readonly entries: readonly (SaidMessage | SaidArtifact)[];
}

/** A message of a conversation. */
export interface SaidMessage {
  /** When the message was stored, in milliseconds since the Unix epoch. */
  readonly time: number;
  /** The message. */
  readonly message: Message;
}

/** An artifact of a conversation. */
export interface SaidArtifact {
  /** When the first returned chunk was stored, in milliseconds since the Unix epoch. */
  readonly time: number;
  /** The task that it belongs to. */
  readonly taskId: string;
  /** The artifact. */
  readonly artifact: Artifact;
  /** Set if the beginning of the artifact was left out. */
  readonly cut?: true;
}

/** Selects runs to take over. */
export interface ClaimQuery {
  /** The time now, in milliseconds since the Unix epoch. An expired lease does not count. `Infinity`: no lease counts. */
  readonly now: number;
  /** Only tasks of these agents, which this process can run. */
  readonly agents: readonly string[];
  /** Only tasks that these processes hold. Absent: all tasks. */
  readonly holders?: readonly string[];
  /** Maximum tasks on the page. */
  readonly limit: number;
  /** Only tasks after this position: the `next` of the page before. */
  readonly after?: ClaimPosition;
}

/** A position among the runs. It does not name a task, so it stays valid when the task at this position is taken over. */
export interface ClaimPosition {
  /** When the lease expires, in milliseconds since the Unix epoch. Absent for tasks without a lease, which come first. */
  readonly leaseUntil?: number;
  /** Number that the store gives to tasks in the order of their creation. */
  readonly number: number;
}

/** A page of runs that no process holds. */
export interface ClaimPage {
  /** Their tasks. */
  readonly heads: readonly TaskHead[];
  /** Where the next page begins. Absent on the last page. */
  readonly next?: ClaimPosition;
}

/** How many runs of an agent no process holds. */
export interface StrandedRuns {
  /** The agent. */
  readonly agent: string;
  /** How many tasks. */
  readonly tasks: number;
}

/** A row that a feature stores with a task. */
export interface FeatureRow extends FeatureState {
  /** Its key, unique in its task and feature. */
  readonly key: string;
}

/** Selects rows of a feature. */
export interface FeatureQuery {
  /** The feature. */
  readonly feature: string;
  /** Only rows with tasks of these agents, which this process hosts. Absent: of every agent, for operators. */
  readonly agents?: readonly string[];
  /** Only rows with a `due` of this time or earlier, in milliseconds since the Unix epoch. `Infinity`: all rows with a `due`. */
  readonly now: number;
  /** Only rows with a later `due`. Absent: all. */
  readonly after?: number;
  /** Maximum rows. */
  readonly limit: number;
}

/** A row that is due. */
export interface DueFeature extends FeatureRow {
  /** The task that it belongs to. */
  readonly task: TaskKey;
  /** When the row was due. */
  readonly due: number;
}

/** The data to delete and compact. Times are in milliseconds since the Unix epoch. */
export interface SweepOptions {
  /**
   * Deletes terminal tasks with an older status, with their keys, and conversations that have no task and were not changed since. A
   * conversation without a task stays until its own keys have expired. Default: none.
   */
  readonly deleteBefore?: number;
  /** Other times for some tasks. The first matching rule takes precedence over `deleteBefore`. Only for stores with `upkeep`. */
  readonly rules?: readonly SweepRule[];
  /** Compacts logs of terminal tasks with an older status: `load` returns the same, and `read` begins at `firstSeq`. Default: none. */
  readonly compactBefore?: number;
  /** Deletes keys that have expired by then. */
  readonly now: number;
  /** Maximum tasks in one call. */
  readonly limit: number;
}

/** Another deletion time for tasks of an agent, or in a state. */
export interface SweepRule {
  /** Only tasks of this agent. Absent: every agent. */
  readonly agent?: string;
  /** Only tasks in this terminal state. Absent: every terminal state, and conversations without a task. */
  readonly state?: TaskState;
  /** Deletes tasks with an older status. `-Infinity`: none. */
  readonly deleteBefore: number;
}

/** The result of a sweep. */
export interface SweepReport {
  /** How many tasks were deleted. */
  readonly deleted: number;
  /** How many logs were compacted. */
  readonly compacted: number;
  /** Whether the sweep stopped at the limit. */
  readonly more: boolean;
}
