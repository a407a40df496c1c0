import type { TaskState } from "@parley/a2a/internal/model/index";
import type { ContextKey, Owner, TaskHead } from "./append.ts";

/** What operators do with stored data: delete some of it, delete or export all data of an owner. */

/** Which tasks. What is absent excludes none. */
export interface TaskSelection {
  /** Only tasks of this agent. */
  readonly agent?: string;
  /** Only tasks of this owner. */
  readonly owner?: string;
  /** Only tasks in one of these states. */
  readonly states?: readonly TaskState[];
  /** Only tasks with an older status, in milliseconds since the Unix epoch. */
  readonly before?: number;
}

/** A page of owners. */
export interface OwnerQuery {
  /** Only owners of this agent. */
  readonly agent?: string;
  /** Only owners of this name, which several agents may have. */
  readonly owner?: string;
  /** Only owners after this one: the last of the page before. */
  readonly after?: Owner;
  /** Most owners. */
  readonly limit: number;
}

/** A conversation of an owner. */
export interface KnownContext {
  /** The conversation. */
  readonly contextId: string;
  /** Its state, as JSON text. */
  readonly state?: string;
}

/** A message of a conversation that belongs to no task. */
export interface KnownReply {
  /** Its place in the conversation. */
  readonly place: number;
  /** When it was sent, in milliseconds since the Unix epoch. */
  readonly time: number;
  /** JSON text of the `Message`. */
  readonly json: string;
}

/** What a call deleted. */
export interface RemovedTasks extends Removed {
  /** How many conversations without a task. */
  readonly conversations: number;
}

/** What a call deleted. */
export interface Removed {
  /** How many tasks, or conversations. */
  readonly deleted: number;
  /** Whether there is more to delete. */
  readonly more: boolean;
}

/**
 * A part of a store, for operators: retention, deletion and export. Each call that deletes is one short transaction, so servers go on
 * meanwhile. Every method rejects as those of `Store`.
 */
export interface Upkeep {
  /** Owners that have data, by agent and name, in an order of the store. */
  owners(query: OwnerQuery): Promise<readonly Owner[]>;

  /** How many tasks `remove` would delete in all. */
  count(selection: TaskSelection): Promise<number>;

  /** The tasks with the oldest status, also those that are being executed. At most `limit`. */
  find(selection: TaskSelection, limit: number): Promise<readonly TaskHead[]>;

  /**
   * Deletes tasks with all that belongs to them, those with the oldest status first, at most `limit`. Tasks with a run stay: some process
   * may be executing them. Then deletes conversations without a task, at most `limit`: each is selected like a completed task whose status
   * has the time at which the conversation was last used. One stays while an idempotency key of it has yet to expire.
   */
  remove(selection: TaskSelection, limit: number): Promise<RemovedTasks>;

  /** Conversations of an owner, in an order of the store. `after`: the last of the page before. */
  contexts(owner: Owner, page: { readonly after?: string; readonly limit: number }): Promise<readonly KnownContext[]>;

  /**
   * Messages of a conversation that belong to no task, the oldest first. `after`: the place of the last of the page before. A page has at
   * most `defaultPageBytes`, or one message.
   */
  replies(
    context: ContextKey,
    page: { readonly after?: number; readonly limit: number },
  ): Promise<readonly KnownReply[]>;

  /**
   * Deletes what an owner has beside tasks: conversations with their states and messages, keys, and at last its name. While it has tasks,
   * nothing is deleted, and there is `more`. An owner that comes back later begins anew. Deletes at most `limit` rows of a kind.
   */
  forget(owner: Owner, limit: number): Promise<Removed>;

  /**
   * Overwrites what the files of the database have left of deleted data. SQLite copies its file: it may take long, and other processes
   * cannot write meanwhile. Call it in a quiet hour. PostgreSQL does it by itself (`VACUUM`), so there it does nothing.
   */
  scrub(): Promise<void>;
}
