import { utf8Length } from "../../base/index.ts";
import { ChurnMap } from "../churn-map.ts";
import { placed, type LogRecord, type NewRecord, type TaskState } from "../../model/index.ts";
import type { Run, TaskKey } from "../../store/index.ts";

/** What is known of a task without asking the store. */
export interface LiveHead {
  readonly seq: number;
  readonly state: TaskState;
  readonly run: Run | undefined;
}

interface LiveLimits {
  readonly liveRecords: number;
  readonly liveBytes: number;
}

/** Someone who waits for the bell. */
export interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The live side of a task (D4): its newest records, shared by all its readers, and a bell. It is a cache and a wake-up,
 * no more: a reader that finds a gap reads the store.
 */
export class Channel {
  readonly task: TaskKey;
  readonly contextId: string;
  readonly #limits: LiveLimits;
  #records: LogRecord[] = [];
  /** Bytes of each record, and of all. */
  #sizes: number[] = [];
  #bytes = 0;
  #head: LiveHead | undefined;
  #waiting = new Set<Waiting>();
  /** Counts wake-ups, so that a reader sees whether one came while it was reading. */
  version = 0;
  #closed: { readonly error: unknown } | undefined;
  /** How many hold on to it: readers, and the run. The board drops it at zero. */
  holders = 0;

  constructor(task: TaskKey, contextId: string, limits: LiveLimits) {
    this.task = task;
    this.contextId = contextId;
    this.#limits = limits;
  }

  /** The task as it stands, while this process runs it and so hears of everything that happens to it; else `undefined`. */
  get head(): LiveHead | undefined {
    return this.#head;
  }

  /** This process begins to run the task. */
  attach(head: LiveHead): void {
    this.#head = head;
    this.#drop();
    this.wake();
  }

  /** This process runs it no longer: readers look into the store again. */
  detach(): void {
    this.#head = undefined;
    this.#drop();
    this.wake();
  }

  /** Takes a record that this process stored beside the run: a message, a cancel. */
  add(record: NewRecord, seq: number): void {
    const head = this.#head;
    if (head === undefined) this.wake();
    else this.push([record], [utf8Length(record.json)], { seq, state: record.state ?? head.state, run: head.run });
  }

  /**
   * Takes what a commit of this process stored, in the order of the commits: `records` are the last ones up to `head.seq`,
   * `sizes` the bytes of each.
   */
  push(records: readonly NewRecord[], sizes: readonly number[], head: LiveHead): void {
    if (this.#head !== undefined) {
      let place = head.seq - records.length;
      const last = this.#records.at(-1);
      if (last !== undefined && last.seq !== place) this.#drop();
      for (const [at, record] of records.entries()) {
        place += 1;
        const size = sizes[at] ?? 0;
        this.#records.push(placed(record, place));
        this.#sizes.push(size);
        this.#bytes += size;
      }
      this.#trim();
      this.#head = head;
    }
    this.wake();
  }

  /** The next records after `seq`, as many as `bytes` holds and at least one, when they are at hand; `undefined` sends the reader to the store. */
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

  /** Calls one of the two at the next wake-up; `resolve` at once when one came since `version`. `forget` takes it back. */
  wait(version: number, waiting: Waiting): void {
    if (this.#closed !== undefined) waiting.reject(this.#closed.error);
    else if (version === this.version) this.#waiting.add(waiting);
    else waiting.resolve();
  }

  forget(waiting: Waiting): void {
    this.#waiting.delete(waiting);
  }

  wake(): void {
    for (const { resolve } of this.#take()) resolve();
  }

  /** Tells those who wait now that nothing will come, because the store failed or the server stops. */
  fail(error: unknown): void {
    for (const { reject } of this.#take()) reject(error);
  }

  /** Tells those who wait now, and whoever would wait later. */
  close(error: unknown): void {
    this.#closed = { error };
    this.fail(error);
  }

  #take(): Iterable<Waiting> {
    const waiting = this.#waiting;
    if (waiting.size > 0) this.#waiting = new Set();
    this.version += 1;
    return waiting;
  }

  #drop(): void {
    this.#records = [];
    this.#sizes = [];
    this.#bytes = 0;
  }

  #trim(): void {
    const { liveRecords, liveBytes } = this.#limits;
    if (this.#records.length <= liveRecords && this.#bytes <= liveBytes) return;
    // Down to half, so that the cost of moving the rest is spread over as many pushes.
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

/** All channels of an engine, by task. */
export class Board {
  readonly #channels = new ChurnMap<string, Channel>();
  readonly #limits: LiveLimits;
  #closed: { readonly error: unknown } | undefined;

  constructor(limits: LiveLimits) {
    this.#limits = limits;
  }

  /** The channel of a task, made when there is none; give it back with `release`. */
  hold(task: TaskKey, contextId: string): Channel {
    let channel = this.#channels.get(task.taskId);
    if (channel === undefined) {
      channel = new Channel(task, contextId, this.#limits);
      this.#channels.set(task.taskId, channel);
      if (this.#closed !== undefined) channel.close(this.#closed.error);
    }
    channel.holders += 1;
    return channel;
  }

  release(channel: Channel): void {
    channel.holders -= 1;
    if (channel.holders === 0) this.#channels.delete(channel.task.taskId);
  }

  find(taskId: string): Channel | undefined {
    return this.#channels.get(taskId);
  }

  /** Rings for what another process may have appended: to one task, or to any that this process does not run. */
  wakeRemote(taskId?: string): void {
    if (taskId !== undefined) this.#channels.get(taskId)?.wake();
    else for (const channel of this.#channels.values()) if (channel.head === undefined) channel.wake();
  }

  /** The server stops: nobody is to wait for anything any more. */
  close(error: unknown): void {
    this.#closed = { error };
    for (const channel of this.#channels.values()) channel.close(error);
  }
}
