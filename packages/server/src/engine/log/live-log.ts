import { utf8Length } from "@parley/a2a/internal/base/index";
import { placed, type LogRecord, type NewRecord, type TaskState } from "@parley/a2a/internal/model/index";
import type { StoredRun, TaskKey } from "../../store/index.ts";
import { ChurnMap } from "../shared/collections.ts";

/** The current head of a task, known without a query. */
export interface LiveHead {
  readonly seq: number;
  readonly state: TaskState;
  readonly run: StoredRun | undefined;
}

/** Limits for the records that are kept in memory for readers. */
export interface LiveLimits {
  readonly liveRecords: number;
  /** Maximum UTF-8 bytes of their JSON. */
  readonly liveBytes: number;
}

/** A reader that waits for the next notification. */
export interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  /** Whether the reader can continue in another process, as the reader of a stream can. */
  readonly moves: boolean;
}

/**
 * Keeps the newest records of one task in memory for all of its readers, and notifies them of new records. This is only a cache: if
 * the next record is not in memory, a reader reads the store.
 */
export class LiveLog {
  readonly task: TaskKey;
  readonly contextId: string;
  readonly #limits: LiveLimits;
  #records: LogRecord[] = [];
  #sizes: number[] = [];
  #bytes = 0;
  #head: LiveHead | undefined;
  #waiters = new Set<Waiter>();
  /** Number of notifications so far, so that a reader can detect a notification that arrived while it was reading. */
  notifications = 0;
  #closed: { readonly error: unknown } | undefined;
  #draining: { readonly error: unknown } | undefined;
  /** How many readers and runs use this log. At zero, `LiveLogs` drops the log. */
  users = 0;

  constructor(task: TaskKey, contextId: string, limits: LiveLimits) {
    this.task = task;
    this.contextId = contextId;
    this.#limits = limits;
  }

  /** The head of the task while this process runs the task, and so knows all changes. Otherwise `undefined`. */
  get head(): LiveHead | undefined {
    return this.#head;
  }

  attach(head: LiveHead): void {
    this.#head = head;
    this.#clear();
    this.notify();
  }

  /** Called when this process no longer runs the task. Readers then use the store again. */
  detach(): void {
    this.#head = undefined;
    this.#clear();
    this.notify();
  }

  /** Adds a record that this process stored outside of the run: a message, or a cancel. */
  add(record: NewRecord, seq: number): void {
    const head = this.#head;
    if (head === undefined) this.notify();
    else this.push([record], [utf8Length(record.json)], { seq, state: record.state ?? head.state, run: head.run });
  }

  /**
   * Adds the records of a commit of this process. Called in the order of the commits. `records` are the last records up to
   * `head.seq`; `sizes` has the bytes of each.
   */
  push(records: readonly NewRecord[], sizes: readonly number[], head: LiveHead): void {
    if (this.#head !== undefined) {
      let seq = head.seq - records.length;
      const last = this.#records.at(-1);
      if (last !== undefined && last.seq !== seq) this.#clear();
      for (const [at, record] of records.entries()) {
        seq += 1;
        const size = sizes[at] ?? 0;
        this.#records.push(placed(record, seq));
        this.#sizes.push(size);
        this.#bytes += size;
      }
      this.#trim();
      this.#head = head;
    }
    this.notify();
  }

  /**
   * The next records after `seq`, up to `bytes` together, but at least one. Empty if no record is newer; `undefined` if the
   * records are not in memory, so the reader must read the store.
   */
  after(seq: number, bytes: number): readonly LogRecord[] | undefined {
    if (this.#head === undefined) return undefined;
    if (seq === this.#head.seq) return [];
    const first = this.#records[0];
    if (first === undefined || seq > this.#head.seq || seq + 1 < first.seq) return undefined;
    const from = seq + 1 - first.seq;
    if (this.#bytes <= bytes) return this.#records.slice(from);
    let to = from + 1;
    for (let sum = this.#sizes[from] ?? 0; to < this.#records.length; to += 1) {
      sum += this.#sizes[to] ?? 0;
      if (sum > bytes) break;
    }
    return this.#records.slice(from, to);
  }

  /**
   * Calls a function of `waiter` at the next notification, or `resolve` immediately if there were more than `seen`
   * notifications.
   */
  subscribe(seen: number, waiter: Waiter): void {
    if (this.#closed !== undefined) waiter.reject(this.#closed.error);
    else if (seen === this.notifications) this.#add(waiter);
    else waiter.resolve();
  }

  unsubscribe(waiter: Waiter): void {
    this.#waiters.delete(waiter);
  }

  notify(): void {
    for (const { resolve } of this.#takeWaiters()) resolve();
  }

  #add(waiter: Waiter): void {
    if (this.#draining !== undefined && this.#head === undefined && waiter.moves) waiter.reject(this.#draining.error);
    else this.#waiters.add(waiter);
  }

  /**
   * Called when the process stops. Readers that can continue in another process leave after the available records. While this
   * process runs the task, they stay, because most streams end with the run.
   */
  drain(error: unknown): void {
    this.#draining = { error };
    for (const waiter of this.#takeWaiters()) this.#add(waiter);
  }

  fail(error: unknown): void {
    for (const { reject } of this.#takeWaiters()) reject(error);
  }

  /** Ends waiting and later readers with an error, because no more records will follow. */
  close(error: unknown): void {
    this.#closed = { error };
    this.fail(error);
  }

  #takeWaiters(): Iterable<Waiter> {
    const waiters = this.#waiters;
    if (waiters.size > 0) this.#waiters = new Set();
    this.notifications += 1;
    return waiters;
  }

  #clear(): void {
    this.#records = [];
    this.#sizes = [];
    this.#bytes = 0;
  }

  #trim(): void {
    const { liveRecords, liveBytes } = this.#limits;
    if (this.#records.length <= liveRecords && this.#bytes <= liveBytes) return;
    // Drop half, so that the cost of copying the rest is spread over many commits.
    let from = 0;
    while (this.#records.length - from > liveRecords / 2 || this.#bytes > liveBytes / 2) {
      this.#bytes -= this.#sizes[from] ?? 0;
      from += 1;
      if (from === this.#records.length) break;
    }
    this.#records = this.#records.slice(from);
    this.#sizes = this.#sizes.slice(from);
  }
}

/** The live logs of an engine, by task. Each task with a run or a reader in this process has a live log. */
export class LiveLogs {
  readonly #logs = new ChurnMap<string, LiveLog>();
  readonly #limits: LiveLimits;
  #closed: { readonly error: unknown } | undefined;
  #draining: { readonly error: unknown } | undefined;

  constructor(limits: LiveLimits) {
    this.#limits = limits;
  }

  /** The live log of a task, created on demand. Each call needs one call of `release`. */
  acquire(task: TaskKey, contextId: string): LiveLog {
    let log = this.#logs.get(task.taskId);
    if (log === undefined) {
      log = new LiveLog(task, contextId, this.#limits);
      this.#logs.set(task.taskId, log);
      if (this.#closed !== undefined) log.close(this.#closed.error);
      else if (this.#draining !== undefined) log.drain(this.#draining.error);
    }
    log.users += 1;
    return log;
  }

  release(log: LiveLog): void {
    log.users -= 1;
    if (log.users === 0) this.#logs.delete(log.task.taskId);
  }

  find(taskId: string): LiveLog | undefined {
    return this.#logs.get(taskId);
  }

  /** Called when another process may have appended to this task or, without `taskId`, to any task that this process does not run. */
  notifyRemote(taskId?: string): void {
    if (taskId !== undefined) this.#logs.get(taskId)?.notify();
    else for (const log of this.#logs.values()) if (log.head === undefined) log.notify();
  }

  /** Called when the server stops. Readers of tasks that this process does not run leave, if they can continue in another process. */
  drain(error: unknown): void {
    this.#draining = { error };
    for (const log of this.#logs.values()) log.drain(error);
  }

  close(error: unknown): void {
    this.#closed = { error };
    for (const log of this.#logs.values()) log.close(error);
  }
}
