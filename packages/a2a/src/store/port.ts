import type { AppendItem, AppendOutcome, OnceRecord } from "./append.ts";
import type {
  ClaimPage,
  ClaimQuery,
  ConversationOptions,
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
import type { ContextKey, Owner, Scope, TaskHead } from "./task-head.ts";

export type * from "./append.ts";
export * from "./queries.ts";
export type * from "./task-head.ts";

/**
 * What a store is. A task is an append-only log. Everything that changes goes through `append`: a batch in one transaction,
 * with one outcome for each item.
 *
 * Every method rejects with an `A2AError` of code `Unavailable` when the store cannot do its work now (a full disk, a
 * lost connection). Nothing of that call is then stored.
 */
export interface Store {
  /** Whether what was stored is still there after the process was restarted. */
  readonly durable: boolean;

  /**
   * Applies the items in order, in one transaction. An item whose conditions do not hold changes nothing and fails
   * alone; where several do not hold, `duplicate` comes first, then the others in the order of `TaskAppend`. Resolves after
   * the commit: what it stored survives a crash of the process, and every read that begins later sees it. Calls take
   * effect in the order in which they are made. A malformed item rejects the call with a `TypeError`.
   */
  append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]>;

  /** How a task stands; `undefined` where the scope has no such task. */
  head(scope: Scope, taskId: string): Promise<TaskHead | undefined>;

  /**
   * The task as a fold of its log; `undefined` where the scope has no such task. The work grows with what is asked for:
   * without history no message is read. Rejects with an `A2AError` of code `UnsupportedOperation` where that is more than
   * the store gives at once (`StoreBounds.text`).
   */
  load(scope: Scope, taskId: string, options: LoadOptions): Promise<Snapshot | undefined>;

  /** The log after a position, in order; `undefined` where the scope has no such task. */
  read(scope: Scope, taskId: string, options: ReadOptions): Promise<LogPage | undefined>;

  /**
   * Tasks, newest status first; of one time the newest task first. Reading on from `next` never repeats or skips a task that
   * did not change.
   */
  list(scope: Scope, query: ListQuery): Promise<TaskPage>;

  /**
   * What is stored under an idempotency key that has not run out at `now`. It gives no promise where it can answer at once,
   * since every message asks.
   */
  once(owner: Owner, key: string, now: number): Promise<OnceRecord | undefined> | OnceRecord | undefined;

  /**
   * A conversation: its state, and what was said in it last, the oldest of that first. Entries are the messages in the
   * histories of its tasks, direct replies with what they answer, and artifacts, in order of their time. An artifact is one
   * entry, at the place of its first chunk. Artifacts are given of tasks that have one of the newest messages. The work grows
   * with what is given, and not with what else there is.
   */
  conversation(context: ContextKey, options: ConversationOptions): Promise<StoredConversation>;

  /**
   * Tasks with a run that has no holder, oldest lease first: what a process takes over. The work grows with the page, and
   * not with what other agents have.
   */
  claimable(query: ClaimQuery): Promise<ClaimPage>;

  /**
   * Counts the runs without a holder at `now` that belong to other agents than these, so that this process cannot take them
   * over. At most `limit` agents.
   */
  stranded(query: Pick<ClaimQuery, "now" | "agents" | "limit">): Promise<readonly StrandedRuns[]>;

  /** Deletes and compacts what is old, at most `limit` tasks a call. */
  sweep(options: SweepOptions): Promise<SweepReport>;

  /**
   * Calls the listener when something was appended elsewhere (by another process on the same file, by another node), where
   * the store can tell. Without a `taskId` it knows only that something changed. It is a hint: it may come late, twice or
   * not at all. The returned function ends it.
   */
  watch?(listener: (taskId?: string) => void): () => void;

  /** Waits for what is under way and releases everything. Later calls reject. */
  close(): Promise<void>;
}
