import type { Artifact, LogRecord, Message, NewRecord, RecordKind, Task, TaskState } from "../model/index.ts";

/**
 * What a store is (D2, D3, D6, D7). A task is an append-only log; everything that changes goes through `append`, a batch in
 * one transaction, one outcome an item. What a later feature has to store with an event becomes an effect, not a method.
 *
 * Every method rejects with an `A2AError` of code `Unavailable` when the store cannot do its work now (a full disk, a
 * lost connection); nothing of that call is then stored.
 */
export interface Store {
  /** Whether what was stored is there again after a restart of the process. */
  readonly durable: boolean;

  /**
   * Applies the items in order, in one transaction. An item whose conditions do not hold changes nothing and fails
   * alone; where several do not, `duplicate` comes first, then the others in the order of `AppendItem`. Resolves after
   * the commit; what it stored then survives a crash of the process, and every read that begins later sees it. Calls take
   * effect in the order in which they are made. A malformed item rejects the call with a `TypeError`.
   */
  append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]>;

  /** What must be known of a task to act on it, without its messages and artifacts. */
  head(scope: Scope, taskId: string): Promise<TaskHead | undefined>;

  /**
   * The task as a fold of its log. Work in the size of what is asked for: no history, no reading of messages. Rejects
   * with an `A2AError` of code `UnsupportedOperation` where that is more than the store gives at once (`StoreBounds.text`).
   */
  load(scope: Scope, taskId: string, options: LoadOptions): Promise<Snapshot | undefined>;

  /** The log after a position, in order. */
  read(scope: Scope, taskId: string, options: ReadOptions): Promise<LogPage | undefined>;

  /** Newest status first; ties in the order of creation, newest first. Reading on from `next` never repeats or skips a task that did not change. */
  list(scope: Scope, query: ListQuery): Promise<TaskPage>;

  /** What is known under an idempotency key that has not run out at `now`. No promise where it is at hand: every message asks. */
  once(owner: Owner, key: string, now: number): Promise<OnceRecord | undefined> | OnceRecord | undefined;

  /**
   * A conversation: its state, and what was said in it last, oldest of that first: the messages of its tasks' histories, direct
   * replies and what they answer, and artifacts, in order of their time. An artifact is one entry, where its first chunk came.
   * Work in the size of what is given, whatever else there is; artifacts are those of tasks with one of the newest messages.
   */
  conversation(context: ContextKey, options: ConversationOptions): Promise<StoredConversation>;

  /**
   * Tasks with a run that has no holder, oldest lease first: what a node takes over (D6). Work in the size of the page,
   * whatever other agents have.
   */
  claimable(query: ClaimQuery): Promise<ClaimPage>;

  /** Counts the runs without a holder at `now` of agents other than these, which this process cannot take over. At most `limit` agents. */
  stranded(query: Pick<ClaimQuery, "now" | "agents" | "limit">): Promise<readonly StrandedRuns[]>;

  /** Deletes and compacts what is old, at most `limit` tasks a call. */
  sweep(options: SweepOptions): Promise<SweepReport>;

  /**
   * Tells of appends made elsewhere (another process on the same file, another node), where the store can; without a
   * `taskId` it knows only that something changed. A hint: it may be late, missing or doubled. The returned function ends it.
   */
  watch?(listener: (taskId?: string) => void): () => void;

  /** Waits for what is under way and lets go of everything. Later calls reject. */
  close(): Promise<void>;
}

/** To whom something belongs: keys of everything that is stored (D7). */
export interface Owner {
  readonly agent: string;
  readonly owner: string;
}

/** What a reader may see: the rows of one owner, or, without `owner`, all of an agent's (operators). To anything else a task does not exist. */
export interface Scope {
  readonly agent: string;
  readonly owner?: string;
}

export interface TaskKey extends Owner {
  readonly taskId: string;
}

export interface ContextKey extends Owner {
  readonly contextId: string;
}

/** One change: to a task, or to a context that has no task in it. */
export type AppendItem = TaskAppend | ContextAppend;

export interface TaskAppend {
  readonly task: TaskKey;
  /**
   * The task is new and belongs to this context; its first record is of kind `task`, without artifacts. A task id is
   * unique for its agent. Fails as `exists`; an item without it as `missing`, where its owner has no such task.
   */
  readonly create?: { readonly contextId: string };
  /** `seq` that the last record of the task must have. Fails as `stale`. */
  readonly expect?: number;
  /** Fence that the task must have. Fails as `fenced`. */
  readonly fence?: number;
  /**
   * May be empty (a heartbeat). Records after a terminal status fail as `terminal`, in whatever item. The store takes
   * state, status time, counters and generation from them.
   */
  readonly records: readonly NewRecord[];
  /** Bytes that the task may have with the records (`TaskHead.bytes`). Fails as `full`; without records never. */
  readonly maxBytes?: number;
  readonly effects?: readonly TaskEffect[];
}

export interface ContextAppend {
  readonly context: ContextKey;
  readonly effects: readonly ContextEffect[];
}

export type TaskEffect = LeaseEffect | RunEffect | CheckpointEffect | OnceEffect | ContextStateEffect;
export type ContextEffect = ContextStateEffect | ContextMessageEffect | OnceEffect;

/**
 * Who executes a task. `acquire` takes a lease that is free or has run out at `now` (`until` ≤ `now`), else fails as `leased`,
 * and raises the fence by one; `renew` and `release` go with `fence`, and renewing what was given back fails as `fenced`;
 * `revoke` takes the lease from whoever has it and raises the fence.
 */
export type LeaseEffect =
  | {
      readonly effect: "lease";
      readonly op: "acquire";
      readonly holder: string;
      readonly now: number;
      readonly until: number;
    }
  | { readonly effect: "lease"; readonly op: "renew"; readonly until: number }
  | { readonly effect: "lease"; readonly op: "release" }
  | { readonly effect: "lease"; readonly op: "revoke" };

/** The turn that is being executed, or `null`: none. A run without a live lease is `claimable`. */
export interface RunEffect {
  readonly effect: "run";
  readonly run: Run | null;
}

export interface Run {
  readonly turn: number;
  readonly attempt: number;
  /** `seq` of the user message that the turn answers; user messages after it wait for the next turns. */
  readonly input: number;
  /** How often in a row a process took the run over and ended before anything of it was stored. Absent: never. */
  readonly deaths?: number;
  /** Whether it was taken over alone, to see if the process ends of it. */
  readonly alone?: true;
}

/** Where a resumed run goes on from: JSON text, or `null` to forget it. */
export interface CheckpointEffect {
  readonly effect: "checkpoint";
  readonly value: string | null;
}

/**
 * An idempotency key (D8), unique for its owner. Fails as `duplicate` where the key stands and has not run out at `now`. Goes with
 * its task, or with its context.
 */
export interface OnceEffect {
  readonly effect: "once";
  readonly key: string;
  /** Of the content under the key, to tell a retry from another use. */
  readonly hash: string;
  readonly now: number;
  /** When it runs out; absent: with its task, or its context. */
  readonly until?: number;
  /** For a direct reply: the answer, as JSON text of a Message. */
  readonly answer?: string;
}

/** The small value that the turns of a context share: JSON text, or `null` to forget it. */
export interface ContextStateEffect {
  readonly effect: "contextState";
  readonly value: string | null;
}

/** A message of a conversation that belongs to no task: a direct reply, and what it answers. JSON text of a Message. */
export interface ContextMessageEffect {
  readonly effect: "contextMessage";
  readonly json: string;
  readonly time: number;
}

export type AppendOutcome =
  | {
      readonly ok: true;
      /** `seq` of the task's last record now, 0 for a context. The records of the item are the last ones before it. */
      readonly seq: number;
      /** The fence now. */
      readonly fence: number;
    }
  | {
      readonly ok: false;
      readonly reason: "missing" | "exists" | "stale" | "fenced" | "leased" | "terminal" | "full" | "duplicate";
      /** The task as it stands, where it exists and belongs to the item's owner. */
      readonly head?: TaskHead;
      /** For `duplicate`. */
      readonly once?: OnceRecord;
    };

export interface TaskHead {
  readonly task: TaskKey;
  readonly contextId: string;
  readonly state: TaskState;
  /** Time of the last status, milliseconds since the Unix epoch. */
  readonly statusTime: number;
  /** `seq` of the last record. */
  readonly seq: number;
  /** Lowest `seq` that `read` still gives; more than 1 once the log was compacted. */
  readonly firstSeq: number;
  /** The 1.1 draft's counter: creation, status and artifact records. */
  readonly generation: number;
  /** UTF-8 bytes of the JSON text of all records, `call` included (`recordBytes`). No snapshot and no page of the log is larger. */
  readonly bytes: number;
  readonly fence: number;
  /** Who holds the lease, if anyone took it and did not give it back; it may have run out. */
  readonly holder?: string;
  readonly leaseUntil?: number;
  readonly run?: Run;
  /** JSON text; given by `head` alone, since it may be large. */
  readonly checkpoint?: string;
}

/** Who reads something large holds it, and says so before it is read. A server's call is one (`CallContext`). */
export interface Room {
  /** Resolves when there is room for so many bytes of JSON in all; what it rejects with, reading rejects with. */
  reserve(bytes: number): Promise<void>;
}

/** What is no larger is read without a word. */
export const roomless: number = 256 << 10;

export interface LoadOptions {
  /** Asked before a task of more bytes (`TaskHead.bytes`) than `roomless` is read. */
  readonly room?: Room;
  /** The newest so many messages; absent: all; 0: `history` is absent. */
  readonly history?: number;
  readonly artifacts: boolean;
}

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

export interface LogPage {
  /** May be fewer than the limit though there are more. Empty only where there are none. */
  readonly records: readonly LogRecord[];
  /** As it stood when the page was read: a consistent view with `records`. */
  readonly head: TaskHead;
}

export interface ListQuery {
  readonly contextId?: string;
  readonly state?: TaskState;
  /** Status times at or after, milliseconds. */
  readonly since?: number;
  readonly limit: number;
  /** The page ends before its tasks would take more bytes of JSON, and has one where it alone is larger. Default `defaultPageBytes`. */
  readonly bytes?: number;
  /** Read on after this place. */
  readonly after?: ListPosition;
  readonly history?: number;
  readonly artifacts: boolean;
  /** Asked before the tasks of a page are read, where they may have more bytes together than `roomless`. */
  readonly room?: Room;
}

/** A place in a list, not a task: it stays good when the task that was there moves. */
export interface ListPosition {
  readonly statusTime: number;
  /** The store's own number of a task, rising in the order of creation. */
  readonly number: number;
}

export interface TaskPage {
  readonly tasks: readonly ListedTask[];
  /** Absent on the last page. */
  readonly next?: ListPosition;
  /** How many tasks the query matches in all, exactly. From counters: work that does not grow with the number of tasks. */
  readonly total: number;
}

export interface OnceRecord {
  readonly key: string;
  readonly hash: string;
  /** The task that the first one made or went to. */
  readonly taskId?: string;
  /** `seq` of the last record that was stored with the key. */
  readonly seq: number;
  readonly answer?: string;
}

export interface ConversationOptions {
  /** The newest so many entries; 0: none. */
  readonly limit: number;
  /**
   * Of these the newest whose records take no more bytes of JSON together, and one where it alone takes more. An artifact
   * that goes beyond it is cut down to its newest chunks. Default `defaultPageBytes`.
   */
  readonly bytes?: number;
  /** Leaves out what belongs to this turn of a task or comes after it: the user's messages from `seq` on, and what was said in turns from `turn` on. */
  readonly before?: { readonly taskId: string; readonly turn: number; readonly seq: number };
}

export interface StoredConversation {
  /** JSON text. */
  readonly state?: string;
  readonly entries: readonly (SaidMessage | SaidArtifact)[];
}

export interface SaidMessage {
  /** When it was stored, milliseconds since the Unix epoch. */
  readonly time: number;
  readonly message: Message;
}

export interface SaidArtifact {
  /** When the first chunk that is given was stored. */
  readonly time: number;
  readonly taskId: string;
  readonly artifact: Artifact;
  /** There is more of it, before what is given. */
  readonly cut?: true;
}

export interface ClaimQuery {
  /** A lease that ran out by then holds nothing; milliseconds. */
  readonly now: number;
  /** Tasks of these agents alone: those that the asker can run. */
  readonly agents: readonly string[];
  readonly limit: number;
  /** Read on after this place. */
  readonly after?: ClaimPosition;
}

/** A place among the runs, not a task: it stays good when the task that was there is taken over. */
export interface ClaimPosition {
  /** Absent: the tasks without a lease, which come first. */
  readonly leaseUntil?: number;
  /** As in `ListPosition`. */
  readonly number: number;
}

export interface ClaimPage {
  readonly heads: readonly TaskHead[];
  /** Absent on the last page. */
  readonly next?: ClaimPosition;
}

export interface StrandedRuns {
  readonly agent: string;
  readonly tasks: number;
}

export interface SweepOptions {
  /** Terminal tasks with an older status time are deleted, with their keys; contexts left without a task and untouched since then too. Absent: none. */
  readonly deleteBefore?: number;
  /** Terminal tasks with an older status time are compacted: `load` gives what it gave, `read` begins at `firstSeq`. Absent: none. */
  readonly compactBefore?: number;
  /** Keys that ran out by then are deleted. */
  readonly now: number;
  readonly limit: number;
}

export interface SweepReport {
  readonly deleted: number;
  readonly compacted: number;
  /** Whether there is more to do at once. */
  readonly more: boolean;
}
