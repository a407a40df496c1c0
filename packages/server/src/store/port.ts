import type { Clock } from "@parley/a2a/internal/base/index";
import type { TaskState } from "@parley/a2a/internal/model/index";
import type { StoreOperators } from "./operators.ts";
import type { AppendItem, AppendOutcome, ContextKey, OnceRecord, Owner, Scope, TaskHead } from "./append.ts";
import type {
  ClaimPage,
  ClaimQuery,
  ConversationOptions,
  DueFeature,
  FeatureQuery,
  FeatureRow,
  ListQuery,
  LoadOptions,
  LogPage,
  ReadOptions,
  Snapshot,
  StoredConversation,
  StrandedRuns,
  SweepOptions,
  SweepReport,
  TaskPage,
} from "./queries.ts";
import type { TaskSearch } from "./search.ts";

export type * from "./append.ts";
export * from "./operators.ts";
export * from "./queries.ts";
export type { SearchHit, SearchPage, SearchQuery, SearchSnippet, SearchTerm, TaskSearch } from "./search.ts";

/**
 * Stores tasks and conversations. A task is an append-only log of records. Every change goes through `append`, which stores a batch
 * in one transaction, with one outcome for each item. Data that must be stored with an event is an effect of the event's item.
 *
 * Every method rejects with an `A2AError` of code `Unavailable` if the store cannot work now, such as with a full disk or a
 * lost connection. That call then stores nothing.
 *
 * `storeContract()` of `@parley/testing` tests a store.
 */
export interface Store {
  /** Whether the data survives a restart of the process. */
  readonly durable: boolean;
  /**
   * Whether only this process can have the data open. If so, all runs of other processes are lost, and are taken over before their
   * leases expire. Default false.
   */
  readonly exclusive?: boolean;
  /** Maximum bytes of JSON of a record, a checkpoint and the state of a context. A server lowers its limits to this. Absent: no maximum. */
  readonly recordBytes?: number;

  /**
   * The clock of the database, for stored times: leases, status times, due rows. The wall clocks of the nodes then have no
   * effect. A clock in the server's options takes precedence. Absent: the clock of the process.
   */
  readonly clock?: Clock;

  /** The connection pool: how many connections are open, how many of these are idle, and how many callers wait. Absent: no pool. */
  connections?(): { readonly total: number; readonly idle: number; readonly waiting: number };

  /**
   * Applies the items in order, in one transaction. An item whose conditions fail changes nothing, and only this item fails. If
   * several conditions fail, `duplicate` takes precedence, then the conditions in the order of `TaskAppend`, then features. Resolves
   * after the commit: the data then survives a crash of the process, and every later read sees it. Calls take effect in call order.
   *
   * @throws TypeError if an item is malformed, or has an effect that the store does not know.
   */
  append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]>;

  /** The head of a task. `undefined`: the scope has no such task. */
  head(scope: Scope, taskId: string): Promise<TaskHead | undefined>;

  /**
   * The task as the fold of its log. The cost depends on the options. For example, no message is read without history.
   *
   * @throws A2AError `UnsupportedOperation` if the answer is larger than the store allows (`StoreBounds.text`).
   */
  load(scope: Scope, taskId: string, options: LoadOptions): Promise<Snapshot | undefined>;

  /** Records of the log after a position, in order. */
  read(scope: Scope, taskId: string, options: ReadOptions): Promise<LogPage | undefined>;

  /**
   * Lists tasks, newest status first. Of tasks with the same status time the newest task comes first. The pages after `next`
   * never repeat or skip a task that did not change.
   */
  list(scope: Scope, query: ListQuery): Promise<TaskPage>;

  /**
   * The record of an idempotency key that has not expired at `now`. Called for every message, so a store that has the
   * answer in memory returns it without a promise.
   */
  once(owner: Owner, key: string, now: number): Promise<OnceRecord | undefined> | OnceRecord | undefined;

  /**
   * The state of a conversation and its newest entries, oldest first: the messages of the histories of its tasks, direct
   * replies with the messages that they answer, and artifacts, by time. An artifact is one entry, at the time of its first
   * chunk. Only tasks with one of the newest messages contribute artifacts. The cost depends only on the size of the result.
   */
  conversation(context: ContextKey, options: ConversationOptions): Promise<StoredConversation>;

  /** Tasks that can be taken over, because their run has no valid lease, oldest lease first. The cost depends only on the page. */
  claimable(query: ClaimQuery): Promise<ClaimPage>;

  /** Counts the runs that no process holds at `now`, of agents that are not in `agents`. At most `limit` agents. */
  stranded(query: Pick<ClaimQuery, "now" | "agents" | "limit">): Promise<readonly StrandedRuns[]>;

  /** The rows of a feature for a task, in the order in which their keys were first stored. Empty if the scope has no such task. */
  features(scope: Scope, taskId: string, feature: string): Promise<readonly FeatureRow[]>;

  /**
   * Rows of a feature that are due, by `due`, then in the order in which their keys were first stored. Several processes may read the same
   * row. Before a process acts on a row, it claims the row: it sets a later `due`, with the row that it read as `if`. One process succeeds,
   * the others get `changed`. The cost depends only on the page and the number of agents.
   */
  dueFeatures(query: FeatureQuery): Promise<readonly DueFeature[]>;

  /** Full text search. Absent: not supported. */
  readonly search?: TaskSearch;

  /** The processes that use the store, with heartbeats. Absent: each task has a lease that is renewed. */
  readonly nodes?: StoreNodes;

  /** Budgets of callers, shared by all processes. Absent: each process counts separately. */
  readonly rates?: StoreRates;

  /** Notes that processes share. Absent: processes share no notes. */
  readonly notes?: StoreNotes;

  /** Deletion and export for operators. Absent: not supported, and no retention by agent and state. */
  readonly upkeep?: Upkeep;

  /** Queries, orders and the audit of operators. Absent: not supported, and no option `operators`. */
  readonly operators?: StoreOperators;

  /** Deletes and compacts old tasks, at most `limit` in one call. */
  sweep(options: SweepOptions): Promise<SweepReport>;

  /**
   * Calls `listener` when another process has appended, if the store can detect this. Without a `taskId`, any task may have changed. Calls
   * are hints: they may be late, missing or repeated. The returned function stops the calls.
   */
  watch?(listener: (taskId?: string) => void): () => void;

  /**
   * Checks the condition of the store. Probes call it about once a second, so it must be cheap, must not change data, and must not
   * retry. After a failed write it may test whether the store is writable. Rejects if the store cannot be read. `signal`: fires when
   * the answer is no longer needed. If a store has no `check`, a server reads the head of an unknown task instead.
   */
  check?(signal?: AbortSignal): Promise<StoreCondition>;

  /** Waits for running calls, and releases everything. Later calls reject. */
  close(): Promise<void>;
}

/** The condition of a readable store. */
export interface StoreCondition {
  /** Whether the store can be written, as far as it knows without a write. */
  readonly writable: boolean;
  /** Why the store cannot be written, in a sentence for the log of the server. */
  readonly reason?: string;
  /**
   * How this process learns of appends of other processes. `told`: by wake-ups. `polled`: later, by polling. `unseen`:
   * neither works now. Absent: immediately, or no other process exists.
   */
  readonly changes?: "told" | "polled" | "unseen";
}

/**
 * The processes that use a store, by their names in leases. One short statement per process and heartbeat replaces the renewal of each lease,
 * so a process with a thousand tasks costs no more than an idle one.
 */
export interface StoreNodes {
  /**
   * Records a heartbeat. Resolves to all known processes, including this one. Heartbeats need not survive a crash of the store.
   *
   * @param within - Time limit in milliseconds. If the connection does not answer, a store tries its second connection with
   * the same limit, and rejects if that fails, too. Default: no limit.
   */
  beat(node: string, within?: number): Promise<readonly StoreNode[]>;
  /** Removes processes that are stopping or long dead. */
  forget(nodes: readonly string[]): Promise<void>;
}

/** A known process. */
export interface StoreNode {
  /** Its name. */
  readonly name: string;
  /** A number that changes with each heartbeat of the process. */
  readonly beats: number;
  /** How long ago the last heartbeat was, in milliseconds on the clock of the store. */
  readonly silent: number;
}

/**
 * Short notes that the processes on a store share, such as the health of a webhook receiver. Notes are hints, which a store may lose in
 * a crash.
 */
export interface StoreNotes {
  /**
   * The notes under these keys that have not expired at `now`. Omits keys without a note.
   *
   * @param keys - At most 1,000.
   */
  read(keys: readonly string[], now: number): Promise<ReadonlyMap<string, string>>;
  /**
   * Stores notes, each replacing the previous one, and deletes expired ones.
   *
   * @param notes - At most 1,000, under different keys.
   */
  write(notes: readonly StoreNote[], now: number): Promise<void>;
}

/** A note under a key. */
export interface StoreNote {
  /** At most 128 characters of printable ASCII. A key must not identify a person, so names are hashed. */
  readonly key: string;
  /** At most 1,024 characters of printable ASCII. */
  readonly value: string;
  /** When the note expires, in milliseconds since the Unix epoch. */
  readonly until: number;
}

/**
 * Budgets that the processes on a store share, such as the requests of a caller. A budget refills evenly: 600 per minute means one every
 * 100 ms, by the store's clock. A process calls `take` rarely, and decides locally between calls (docs/decisions/rate-limits.md).
 */
export interface StoreRates {
  /**
   * Reports usage of budgets, and requests more. Returns one answer for each budget, in the same order. An unused budget is full.
   * Budgets need not survive a crash of the store, which refills them.
   *
   * Usage counts even if it exceeds the remaining budget. The debt is repaid as the budget refills, and never exceeds one
   * budget, so a caller waits at most twice `per`.
   *
   * @param uses - At most 1,000, of different budgets.
   */
  take(uses: readonly RateUse[]): Promise<readonly RateTaken[]>;
}

/** The usage of a budget by a process, and its request. */
export interface RateUse {
  /** The name of the budget: any text. */
  readonly key: string;
  /** The whole budget. At least 1. */
  readonly requests: number;
  /** Time in which the whole budget refills, in milliseconds. At least 1. */
  readonly per: number;
  /** Usage that was not requested before. An integer. */
  readonly used: number;
  /** Requested amount. An integer. The store grants as much as the budget allows after `used`. */
  readonly wanted: number;
}

/** The granted part of a budget. */
export interface RateTaken {
  /** The granted part of `wanted`. */
  readonly taken: number;
  /** Time until the budget is full again, in milliseconds. At most twice `per`. */
  readonly back: number;
}

/* Operations on stored data: delete tasks, delete or export all data of an owner. */

/** Selects tasks. An absent member excludes no task. */
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
  /** Only owners after this one: the last owner of the previous page. */
  readonly after?: Owner;
  /** Maximum owners. */
  readonly limit: number;
}

/** A conversation of an owner. */
export interface KnownContext {
  /** The conversation. */
  readonly contextId: string;
  /** Its state, as JSON text. */
  readonly state?: string;
}

/** A message of a conversation without a task. */
export interface KnownReply {
  /** Its place in the conversation. */
  readonly place: number;
  /** When the message was sent, in milliseconds since the Unix epoch. */
  readonly time: number;
  /** JSON text of the `Message`. */
  readonly json: string;
}

/** The number of deleted rows. */
export interface RemovedTasks extends Removed {
  /** How many conversations without a task were deleted. */
  readonly conversations: number;
}

/** The number of deleted rows. */
export interface Removed {
  /** How many tasks, or conversations, were deleted. */
  readonly deleted: number;
  /** Whether there is more to delete. */
  readonly more: boolean;
}

/**
 * Retention, deletion and export, for operators. Each call that deletes is one short transaction, so servers keep working.
 * Methods reject like the methods of `Store`.
 */
export interface Upkeep {
  /** Owners that have data, by agent and name, in an order of the store. */
  owners(query: OwnerQuery): Promise<readonly Owner[]>;

  /** How many tasks `remove` would delete in all. */
  count(selection: TaskSelection): Promise<number>;

  /** The tasks with the oldest status, including running ones. At most `limit`. */
  find(selection: TaskSelection, limit: number): Promise<readonly TaskHead[]>;

  /**
   * Deletes tasks with all their data, oldest status first, at most `limit`. Keeps tasks with a run, because a process may be executing them.
   * Then deletes conversations without a task, at most `limit`, which are selected like completed tasks, by the time of their last use. A
   * conversation stays until its idempotency keys have expired.
   */
  remove(selection: TaskSelection, limit: number): Promise<RemovedTasks>;

  /** Conversations of an owner, in an order of the store. `after`: the last conversation of the previous page. */
  contexts(owner: Owner, page: { readonly after?: string; readonly limit: number }): Promise<readonly KnownContext[]>;

  /**
   * Messages of a conversation without a task, oldest first. `after`: the place of the last message of the previous page. A page has at
   * most `defaultPageBytes`, or one message.
   */
  replies(
    context: ContextKey,
    page: { readonly after?: number; readonly limit: number },
  ): Promise<readonly KnownReply[]>;

  /**
   * Deletes an owner's data except tasks: conversations with their states and messages, keys, and finally the owner's name. While the owner
   * has tasks, nothing is deleted, and `more` is true. Deletes at most `limit` rows of a kind.
   */
  forget(owner: Owner, limit: number): Promise<Removed>;

  /**
   * Overwrites deleted data in the files of the database. SQLite copies its file, which may take long and blocks writes of other
   * processes. Does nothing in PostgreSQL, which uses `VACUUM`.
   */
  scrub(): Promise<void>;
}
