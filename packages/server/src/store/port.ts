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

/** What a pool of connections to a database does. */
export interface StoreConnections {
  /** How many are open. */
  readonly total: number;
  /** How many of them are idle. */
  readonly idle: number;
  /** How many callers wait for one. */
  readonly waiting: number;
}

/**
 * Stores tasks and conversations. A task is an append-only log of records. Every change goes through `append`: a batch in
 * one transaction, with one outcome for each item. What has to be stored together with an event is an effect of its item.
 *
 * Every method rejects with an `A2AError` of code `Unavailable` when the store cannot work now, as with a full disk or a
 * lost connection. Nothing of that call is then stored.
 *
 * `storeContract()` of `@parley/testing` tests a store.
 */
export interface Store {
  /** Whether the data survives a restart of the process. */
  readonly durable: boolean;
  /**
   * Whether only this process can have the data open. A run that another process began is then lost, and is taken over before its lease
   * expires. Default false.
   */
  readonly exclusive?: boolean;
  /** Maximum bytes of JSON of a record, a checkpoint and the state of a context. A server lowers its limits to it. Absent: no maximum. */
  readonly recordBytes?: number;

  /**
   * The clock of the database, for what is stored there: leases, times of status, rows that are due. The wall clocks of the nodes then have no
   * effect. A clock in the options of a server takes precedence. Absent: the clock of the process.
   */
  readonly clock?: Clock;

  /** What its pool of connections does, for metrics. Absent: it has none. */
  connections?(): StoreConnections;

  /**
   * Applies the items in order, in one transaction. An item whose conditions do not hold changes nothing, and only this item fails. If several
   * conditions do not hold, the reason is `duplicate` before all others, then the first in the order of the members of `TaskAppend`, and those
   * of features last. Resolves after the commit: the data then survives a crash of the process, and every later read sees it. Calls take
   * effect in the order in which they are made.
   *
   * @throws TypeError if an item is malformed, or has an effect that the store does not know.
   */
  append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]>;

  /** The head of a task. `undefined`: the scope has no such task. */
  head(scope: Scope, taskId: string): Promise<TaskHead | undefined>;

  /**
   * The task as the fold of its log. The cost depends on what is asked for: without history no message is read.
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
   * What is stored under an idempotency key that has not expired at `now`. Every message asks for it, so a store that has the
   * answer in memory returns it without a promise.
   */
  once(owner: Owner, key: string, now: number): Promise<OnceRecord | undefined> | OnceRecord | undefined;

  /**
   * The state of a conversation and its newest entries, oldest first: the messages of the histories of its tasks, direct replies
   * with the messages that they answer, and artifacts, by time. An artifact is one entry, at the time of its first chunk. Only
   * tasks with one of the newest messages contribute artifacts. The cost depends only on what is returned.
   */
  conversation(context: ContextKey, options: ConversationOptions): Promise<StoredConversation>;

  /** Tasks with a run that no process holds, oldest lease first, to take them over. The cost depends only on the page. */
  claimable(query: ClaimQuery): Promise<ClaimPage>;

  /** Counts the runs that no process holds at `now`, of agents that are not in `agents`. At most `limit` agents. */
  stranded(query: Pick<ClaimQuery, "now" | "agents" | "limit">): Promise<readonly StrandedRuns[]>;

  /** The rows that a feature keeps with a task, in the order in which their keys were first stored. Empty if the scope has no such task. */
  features(scope: Scope, taskId: string, feature: string): Promise<readonly FeatureRow[]>;

  /**
   * Rows of a feature that are due, by `due`, then in the order in which their keys were first stored. Several processes may read the same
   * row. A process claims a row before it acts on it: it sets the row with a later `due`, `if` the row is what was read. One process succeeds,
   * the others get `changed`. The cost depends only on the page, and on the number of agents.
   */
  dueFeatures(query: FeatureQuery): Promise<readonly DueFeature[]>;

  /** Full text search. Absent: the store has none. */
  readonly search?: TaskSearch;

  /** The processes that use the store, with heartbeats. Absent: each task has a lease that is renewed. */
  readonly nodes?: StoreNodes;

  /** Budgets of callers that the processes share. Absent: each process counts alone. */
  readonly rates?: StoreRates;

  /** What the processes know and tell each other. Absent: each process learns alone. */
  readonly notes?: StoreNotes;

  /** Deletion and export for operators. Absent: the store has none, and retention does not know agents and states. */
  readonly upkeep?: Upkeep;

  /** Reads, orders and the audit of operators. Absent: the store has none, and a server has no `operators`. */
  readonly operators?: StoreOperators;

  /** Deletes and compacts old tasks, at most `limit` in one call. */
  sweep(options: SweepOptions): Promise<SweepReport>;

  /**
   * Calls `listener` when another process has appended, if the store can tell. Without a `taskId` any task may have changed. It is a hint:
   * late, missing or repeated. The returned function stops it.
   */
  watch?(listener: (taskId?: string) => void): () => void;

  /**
   * What can be done with the store now. Probes ask about once a second: it is cheap, changes nothing that is read, and repeats nothing that
   * fails. After a failed write it may test with a write whether the store can be written. Rejects if the store cannot be read. `signal`: the
   * answer is not needed any more. Absent: a server reads the head of a task that does not exist.
   */
  check?(signal?: AbortSignal): Promise<StoreCondition>;

  /** Waits for running calls, and releases everything. Later calls reject. */
  close(): Promise<void>;
}

/** What can be done with a store that can be read. */
export interface StoreCondition {
  /** Whether it can be written, as far as that shows without writing. */
  readonly writable: boolean;
  /** Why it cannot, in a sentence for the log of the server. */
  readonly reason?: string;
  /**
   * How this process learns of appends of others. `told`: by wake-ups. `polled`: later, because it polls. `unseen`: neither works now. Absent:
   * it learns of them, or there are no others.
   */
  readonly changes?: "told" | "polled" | "unseen";
}

/**
 * The processes that use a store, by their names in leases. One short statement per process and heartbeat replaces the renewal of each lease:
 * a process that runs a thousand tasks costs what an idle one costs.
 */
export interface StoreNodes {
  /**
   * Notes that a process is alive. Resolves to all known processes, with this one. It need not survive a crash of the store.
   *
   * @param within - Milliseconds until it must answer. A store with another connection to its database then tries that, for as long again, and
   * rejects if that does not answer either. Default: no limit.
   */
  beat(node: string, within?: number): Promise<readonly StoreNode[]>;
  /** Forgets processes: one that stops, and those that have been dead for long. */
  forget(nodes: readonly string[]): Promise<void>;
}

/** What is known of a process. */
export interface StoreNode {
  /** Its name. */
  readonly name: string;
  /** A number that changes with each of its heartbeats. */
  readonly beats: number;
  /** How long ago the last one was, in milliseconds on the clock of the store. */
  readonly silent: number;
}

/**
 * Short notes that processes on one store leave for each other, such as what one has learned about a receiver of webhooks. They are hints: a
 * store may lose them when it crashes.
 */
export interface StoreNotes {
  /**
   * The notes under these keys that have not expired at `now`. Keys without a note are left out.
   *
   * @param keys - At most 1,000.
   */
  read(keys: readonly string[], now: number): Promise<ReadonlyMap<string, string>>;
  /**
   * Stores notes, each in place of the one before it, and deletes expired ones.
   *
   * @param notes - At most 1,000, under different keys.
   */
  write(notes: readonly StoreNote[], now: number): Promise<void>;
}

/** A note under a key. */
export interface StoreNote {
  /** At most 128 characters of printable ASCII. It identifies nobody: names of persons are hashed. */
  readonly key: string;
  /** At most 1,024 characters of printable ASCII. */
  readonly value: string;
  /** When it expires, in milliseconds since the Unix epoch. */
  readonly until: number;
}

/**
 * Budgets that the processes on one store share, such as the requests of a caller. A budget comes back evenly: of 600 in a minute one every
 * 100 ms. Time is that of the store. A process asks rarely, and answers its callers alone meanwhile (docs/decisions/rate-limits.md).
 */
export interface StoreRates {
  /**
   * Counts what was used of budgets, and takes more of them. One answer each, in the same order. An unused budget is whole. It need not survive
   * a crash of the store: then it is whole again.
   *
   * What was used counts even if it was not left. Such a debt is paid back by what comes back, and never exceeds the budget, so nobody waits
   * for longer than twice `per`.
   *
   * @param uses - At most 1,000, of different budgets.
   */
  take(uses: readonly RateUse[]): Promise<readonly RateTaken[]>;
}

/** What a process has used of a budget, and what it wants. */
export interface RateUse {
  /** Names the budget: any text. */
  readonly key: string;
  /** The whole budget. At least 1. */
  readonly requests: number;
  /** In how many milliseconds the whole budget comes back. At least 1. */
  readonly per: number;
  /** What was used without being asked for. A whole number. */
  readonly used: number;
  /** What is asked for. A whole number. As much of it is taken as is left after `used`. */
  readonly wanted: number;
}

/** What a process got of a budget. */
export interface RateTaken {
  /** How much of `wanted` it was. */
  readonly taken: number;
  /** In how many milliseconds the whole budget is back. 0: it is. At most twice `per`. */
  readonly back: number;
}

/* What operators do with stored data: delete some of it, delete or export all data of an owner. */

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
 * Retention, deletion and export, for operators. Each call that deletes is one short transaction, so servers continue meanwhile. Every method
 * rejects as those of `Store`.
 */
export interface Upkeep {
  /** Owners that have data, by agent and name, in an order of the store. */
  owners(query: OwnerQuery): Promise<readonly Owner[]>;

  /** How many tasks `remove` would delete in all. */
  count(selection: TaskSelection): Promise<number>;

  /** The tasks with the oldest status, also those that are being executed. At most `limit`. */
  find(selection: TaskSelection, limit: number): Promise<readonly TaskHead[]>;

  /**
   * Deletes tasks with all that belongs to them, oldest status first, at most `limit`. Tasks with a run stay: a process may be executing them.
   * Then deletes conversations without a task, at most `limit`: each is selected like a completed task whose status has the time of its last
   * use. One stays until its idempotency keys have expired.
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
   * nothing is deleted, and there is `more`. Deletes at most `limit` rows of a kind.
   */
  forget(owner: Owner, limit: number): Promise<Removed>;

  /**
   * Overwrites what the files of the database have left of deleted data. SQLite copies its file: it may take long, and blocks writes of other
   * processes. Does nothing in PostgreSQL, which does it with `VACUUM`.
   */
  scrub(): Promise<void>;
}
