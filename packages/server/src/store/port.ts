import type { Clock } from "@parley/a2a/internal/base/index";
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
import type { StoreNodes } from "./nodes-port.ts";
import type { StoreNotes } from "./notes-port.ts";
import type { StoreRates } from "./rates-port.ts";
import type { TaskSearch } from "./search-port.ts";
import type { Upkeep } from "./upkeep-port.ts";

export type * from "./append.ts";
export * from "./queries.ts";
export type * from "./nodes-port.ts";
export type * from "./notes-port.ts";
export type * from "./rates-port.ts";
export type * from "./search-port.ts";
export type * from "./upkeep-port.ts";

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
   * Whether only this process can have the data open. A run that another process began is then lost, and is taken over without waiting
   * for its lease to end. Default false.
   */
  readonly exclusive?: boolean;
  /**
   * The most bytes of JSON that a record can have, and a checkpoint or the state of a context. A server lowers its limits to that.
   * Absent: as many as its limits allow.
   */
  readonly recordBytes?: number;

  /**
   * The clock of the database, for what is stored there: leases, times of status, rows that are due. So the wall clocks of the nodes have no
   * effect. A clock that a server is given comes first. Absent: the clock of the process.
   */
  readonly clock?: Clock;

  /**
   * Applies the items in order, in one transaction. An item whose conditions do not hold changes nothing, and only this item
   * fails. Where several conditions do not hold, the reason is `duplicate` before all others, then the first in the order of
   * the members of `TaskAppend`, and those of features last. Resolves after the commit: the data then survives a crash of the process, and every read
   * that begins later sees it. Calls take effect in the order in which they are made.
   *
   * @throws TypeError where an item is malformed, or has an effect that the store does not know.
   */
  append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]>;

  /** What is needed to change a task, without its messages and artifacts. `undefined`: the scope has no such task. */
  head(scope: Scope, taskId: string): Promise<TaskHead | undefined>;

  /**
   * The task as the fold of its log. The cost depends on what is asked for: without history no message is read.
   *
   * @throws A2AError `UnsupportedOperation` where the answer is larger than the store allows (`StoreBounds.text`).
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

  /** Tasks with a run that no process holds, oldest lease first. Another process takes them over. The cost depends only on the page. */
  claimable(query: ClaimQuery): Promise<ClaimPage>;

  /** Counts the runs that no process holds at `now`, of agents that are not in `agents`: this process cannot take them over. At most `limit` agents. */
  stranded(query: Pick<ClaimQuery, "now" | "agents" | "limit">): Promise<readonly StrandedRuns[]>;

  /** The rows that a feature keeps with a task, in the order in which their keys were stored. Empty where the scope has no such task. */
  features(scope: Scope, taskId: string, feature: string): Promise<readonly FeatureRow[]>;

  /**
   * Rows of a feature that are due, in the order of `due`, then in the order in which their keys were stored. Several processes
   * may read the same row. A process claims a row before it acts on it: it sets the row with a later `due`, `if` the row is
   * what was read. One process succeeds. The others get `changed`. The cost depends only on the page, and on the number of agents.
   */
  dueFeatures(query: FeatureQuery): Promise<readonly DueFeature[]>;

  /** Full text search. Absent: the store has none. */
  readonly search?: TaskSearch;

  /** The processes that use the store, which say all the time that they are alive. Absent: each task has a lease that is renewed. */
  readonly nodes?: StoreNodes;

  /** Budgets of callers that the processes share. Absent: each process counts by itself. */
  readonly rates?: StoreRates;

  /** What the processes know and tell each other. Absent: each process learns by itself. */
  readonly notes?: StoreNotes;

  /** Deletion and export for operators. Absent: the store has none, and retention does not know agents and states. */
  readonly upkeep?: Upkeep;

  /** Deletes and compacts old tasks, at most `limit` in one call. */
  sweep(options: SweepOptions): Promise<SweepReport>;

  /**
   * Calls `listener` when another process has appended, where the store can tell. Without a `taskId` any task may have changed.
   * It is only a hint, which may be late, missing or repeated. The returned function stops it.
   */
  watch?(listener: (taskId?: string) => void): () => void;

  /**
   * What can be done with the store now. Probes ask it, about once a second: it is cheap, changes nothing that anybody reads, and
   * repeats nothing that fails. Where the last write has failed, it may find out by a write of its own whether the store can be written.
   * Rejects where the store cannot be read. `signal`: nobody waits for the answer any more. Absent: a server reads the head of a task that
   * nobody has.
   */
  check?(signal?: AbortSignal): Promise<StoreCondition>;

  /** Waits for running calls, and releases everything. Later calls reject. */
  close(): Promise<void>;
}

/** What can be done with a store that can be read. */
export interface StoreCondition {
  /** Whether it can be written, as far as that shows without writing. */
  readonly writable: boolean;
  /** Why it cannot, in a sentence for the log of the server. Nobody else reads it. */
  readonly reason?: string;
  /**
   * How this process hears of what others append. `told`: by wake-ups. `polled`: it looks from time to time, so it hears of it later.
   * `unseen`: neither works now. Absent: it hears of it, or there are no others.
   */
  readonly changes?: "told" | "polled" | "unseen";
}
