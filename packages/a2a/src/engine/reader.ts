import type { Clock } from "../base/index.ts";
import {
  A2AError,
  countsInGeneration,
  isInterrupted,
  isTerminal,
  type LogRecord,
  type Message,
} from "../model/index.ts";
import { closesAfter, type StreamItem, type StreamName } from "../protocol/index.ts";
import type { Scope, Snapshot, Store, TaskHead, TaskKey } from "../store/index.ts";
import type { Board, Channel, Waiting } from "./live.ts";

/** Records of one reading of the store: enough to keep a fast reader busy, little enough to hold many readers. */
const pageSize = 256;

/** Which log to read, for whom, and from where. */
export interface Position {
  readonly store: Store;
  readonly board: Board;
  readonly scope: Scope;
  readonly task: TaskKey;
  readonly contextId: string;
  /** Begin after this `seq`. */
  readonly after: number;
}

/**
 * The log of a task from a position on, for ever: first what is stored, then what comes (D4). Everything that waits for
 * a task, a stream or a send, has one of these. A class and not a generator, since a generator that waits cannot be
 * told to let go.
 */
export class LogReader {
  readonly #from: Position;
  #after: number;
  #channel: Channel | undefined;
  /** Of the channel, at the last look. */
  #version = 0;
  #waiting: Waiting | undefined;
  #closed = false;

  constructor(from: Position) {
    this.#from = from;
    this.#after = from.after;
  }

  /** What has gathered, at least one record; waits when there is nothing. `undefined` once closed. */
  async read(): Promise<readonly LogRecord[] | undefined> {
    while (!this.#closed) {
      const looked = this.look();
      const records = looked instanceof Promise ? await looked : looked;
      if (records.length > 0) return records;
      await this.wait();
    }
    return undefined;
  }

  /** What has gathered; empty when there is nothing, and once closed. Without a promise where it is at hand. */
  look(): readonly LogRecord[] | Promise<readonly LogRecord[]> {
    if (this.#closed) return [];
    const channel = (this.#channel ??= this.#from.board.hold(this.#from.task, this.#from.contextId));
    this.#version = channel.version;
    const records = channel.after(this.#after);
    return records === undefined ? this.#page() : this.#pass(records);
  }

  async #page(): Promise<readonly LogRecord[]> {
    const records = this.#pass(await readPage(this.#from, this.#after));
    // Closed while the store was read.
    return this.#closed ? [] : records;
  }

  #pass(records: readonly LogRecord[]): readonly LogRecord[] {
    this.#after = records.at(-1)?.seq ?? this.#after;
    return records;
  }

  /** Until something came since the last look, or the reader is closed. */
  wait(): Promise<void> {
    const channel = this.#channel;
    if (this.#closed || channel === undefined) return Promise.resolve();
    return new Promise<void>((resolve, reject) => {
      this.#waiting = { resolve, reject };
      channel.wait(this.#version, this.#waiting);
    });
  }

  /** Lets go of everything; a `read` that waits gives `undefined`. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#channel === undefined) return;
    if (this.#waiting !== undefined) {
      this.#channel.forget(this.#waiting);
      this.#waiting.resolve();
    }
    this.#from.board.release(this.#channel);
  }
}

async function readPage({ store, scope, task: { taskId } }: Position, after: number): Promise<readonly LogRecord[]> {
  const page = await store.read(scope, taskId, { after, limit: pageSize });
  if (page === undefined) throw new A2AError("TaskNotFound", undefined, { metadata: { taskId } });
  // What was compacted meanwhile cannot be read on from here; whoever asks again gets the Task first.
  if (after + 1 < page.head.firstSeq) throw new A2AError("Unavailable", "This stream must be opened anew");
  return page.records;
}

/**
 * Whether a send that waits for the answer to the message at `input` may stop at this record (A2A 1.0 §3.2.2). A terminal
 * state always ends the wait. An interrupted one only when it belongs to the turn that answers the message: the turn
 * before it may well ask something while the message is waiting for its own.
 */
async function answers(record: LogRecord, input: number, { board, store, scope, task }: Position): Promise<boolean> {
  if (record.state === undefined) return false;
  if (isTerminal(record.state)) return true;
  if (!isInterrupted(record.state)) return false;
  const head = board.find(task.taskId)?.head ?? (await store.head(scope, task.taskId));
  // No run: every message had its turn, and the task waits for the next one.
  return head?.run === undefined || (head.run.input >= input && head.run.turn === record.turn);
}

/** Waits until the message at `input` has been answered: the task stands still for it, or is over. */
export async function waitForAnswer(from: Position, input: number, signal: AbortSignal | undefined): Promise<void> {
  const reader = new LogReader(from);
  const close = (): void => reader.close();
  signal?.addEventListener("abort", close, { once: true });
  try {
    for (;;) {
      if (signal?.aborted === true) throw new A2AError("Aborted", "The caller is gone");
      const records = (await reader.read()) ?? [];
      for (const record of records) if (await answers(record, input, from)) return;
    }
  } finally {
    signal?.removeEventListener("abort", close);
    reader.close();
  }
}

/** A stored event, parsed when somebody asks for it, and once. */
class StoredItem implements StreamItem {
  readonly seq: number;
  readonly json: string;
  declare generation?: number;
  #event: StreamItem["event"] | undefined;

  constructor(seq: number, json: string, generation: number | undefined) {
    this.seq = seq;
    this.json = json;
    if (generation !== undefined) this.generation = generation;
  }

  get event(): StreamItem["event"] {
    this.#event ??= deepFreeze(JSON.parse(this.json) as StreamItem["event"]);
    return this.#event;
  }
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) deepFreeze(member);
  }
  return value;
}

/** The task as it stood, as the first event of a stream (§3.1.6). */
export function snapshotItem(snapshot: Snapshot): StreamItem {
  // The task is not to be looked at where its text is known: it would be parsed.
  const { head, json = JSON.stringify(snapshot.task) } = snapshot;
  return new StoredItem(head.seq, `{"task":${json}}`, head.generation);
}

/** A direct answer as the only event of a stream (§3.1.2). */
export function messageItem(message: Message): StreamItem {
  return { event: { message } };
}

/**
 * Waits until a task is beyond a generation, is over, or `patience` milliseconds have passed. Of a task that is over nothing
 * more can come.
 */
export async function waitForGeneration(
  from: Position,
  head: TaskHead,
  beyond: number,
  patience: number,
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<void> {
  let { generation, state } = head;
  if (generation > beyond || isTerminal(state)) return;
  const reader = new LogReader(from);
  const close = (): void => reader.close();
  const stop = clock.after(patience, close);
  signal?.addEventListener("abort", close, { once: true });
  try {
    while (generation <= beyond && !isTerminal(state)) {
      const records = await reader.read();
      if (records === undefined) return;
      for (const record of records) {
        if (countsInGeneration(record.kind)) generation += 1;
        state = record.state ?? state;
      }
    }
  } finally {
    stop();
    signal?.removeEventListener("abort", close);
    reader.close();
  }
}

/** The generation of a task at a place in its log: that of its head, less what came since, the user's messages apart. */
export async function generationAt({ store, scope, task: { taskId } }: Position, after: number): Promise<number> {
  let messages = 0;
  for (let at = after; ;) {
    const page = await store.read(scope, taskId, { after: at, limit: pageSize, kinds: ["message"] });
    if (page === undefined) throw new A2AError("TaskNotFound", undefined, { metadata: { taskId } });
    messages += page.records.length;
    if (page.records.length < pageSize) return page.head.generation - (page.head.seq - after - messages);
    at = page.records.at(-1)?.seq ?? at;
  }
}

/** Where a stream of a task begins. */
export interface StreamFrom extends Position {
  /** Goes out first: the task as it stood at `after`. */
  readonly first?: StreamItem;
  /** For the stream of a send: `seq` of its message. */
  readonly input: number;
  /** The task's generation at `after`, where events are to tell theirs. */
  readonly generation?: number;
}

type Batch = readonly StreamItem[];

/**
 * The events of a stream until the protocol says that it is over. `open` tells, once it is known, what there is to
 * stream: a task from somewhere on, one message, or nothing.
 *
 * Thousands of them stand idle, so they keep little: what was needed to begin is let go of, and a reader that waits is
 * one suspended function and no chain of them, at half a kilobyte each.
 */
export class EventStream implements AsyncIterableIterator<Batch, void, void> {
  readonly #operation: StreamName;
  #open: (() => Promise<StreamFrom | StreamItem | undefined>) | undefined;
  #from: Omit<StreamFrom, "first"> | undefined;
  #reader: LogReader | undefined;
  /** Of the last event, where they tell theirs. */
  #generation: number | undefined;
  #over = false;
  #leave: (() => void) | undefined;

  constructor(operation: StreamName, open: () => Promise<StreamFrom | StreamItem | undefined>) {
    this.#operation = operation;
    this.#open = open;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Batch, void>> {
    try {
      for (;;) {
        const gathered = this.#gathered();
        const batch = gathered instanceof Promise ? await gathered : gathered;
        if (batch.length > 0) return { done: false, value: batch };
        if (this.#over) return over;
        await this.#reader?.wait();
      }
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  return(): Promise<IteratorResult<Batch, void>> {
    this.#end();
    return Promise.resolve(over);
  }

  #gathered(): Batch | Promise<Batch> {
    if (this.#over) return [];
    return this.#reader === undefined ? this.#begin() : this.#read(this.#reader);
  }

  async #begin(): Promise<Batch> {
    // Whoever leaves before the agent has said a word need not wait for it.
    const left = new Promise<undefined>((resolve) => (this.#leave = () => resolve(undefined)));
    const opened = await Promise.race([this.#open?.(), left]);
    this.#open = this.#leave = undefined;
    if (opened === undefined || this.#over) {
      this.#end();
      return [];
    }
    if ("event" in opened) {
      this.#end();
      return [opened];
    }
    const { first, generation, ...from } = opened;
    this.#from = from;
    this.#generation = generation;
    this.#reader = new LogReader(from);
    if (first === undefined) return this.#read(this.#reader);
    if (closesAfter(first.event, "SubscribeToTask") || (await this.#isAsked(from, first))) this.#end();
    return [first];
  }

  /** Whether the task stands at a question to this very sender: one who sends again, and was asked meanwhile (§11.7). */
  async #isAsked(from: Omit<StreamFrom, "first">, { event }: StreamItem): Promise<boolean> {
    const stands = event.task?.status.state === "TASK_STATE_INPUT_REQUIRED";
    if (this.#operation !== "SendStreamingMessage" || !stands) return false;
    // Only messages can have come after the status.
    const after = Math.max(from.input, from.after - pageSize);
    const page = await from.store.read(from.scope, from.task.taskId, {
      after,
      limit: pageSize,
      kinds: ["statusUpdate"],
    });
    const last = page?.records.at(-1);
    return last !== undefined && this.#closes(last);
  }

  #read(reader: LogReader): Batch | Promise<Batch> {
    const records = reader.look();
    // Chunks need nobody to be asked, and no promise.
    const asks = records instanceof Promise || records.some(({ state }) => state !== undefined);
    return asks ? this.#readTo(records) : this.#itemsOf(records);
  }

  /** Up to the record that closes the stream. */
  async #readTo(looked: ReturnType<LogReader["look"]>): Promise<Batch> {
    const records = await looked;
    for (const [at, record] of records.entries()) {
      if (record.state === undefined || !(await this.#closes(record))) continue;
      this.#end();
      return this.#itemsOf(records.slice(0, at + 1));
    }
    return this.#itemsOf(records);
  }

  /** User messages are rows of the log, but no events of a stream (§3.1.2). */
  #itemsOf(records: readonly LogRecord[]): Batch {
    const items: StreamItem[] = [];
    for (const { kind, seq, json } of records) {
      if (kind === "message") continue;
      if (this.#generation !== undefined) this.#generation += 1;
      items.push(new StoredItem(seq, `{"${kind}":${json}}`, this.#generation));
    }
    return items;
  }

  /** `closesAfter` for a record, without parsing it, and with `answers` where the sender's own turn decides. */
  async #closes(record: LogRecord): Promise<boolean> {
    if (record.state !== undefined && isTerminal(record.state)) return true;
    const mayClose = this.#operation === "SendStreamingMessage" && record.state === "TASK_STATE_INPUT_REQUIRED";
    return mayClose && this.#from !== undefined && answers(record, this.#from.input, this.#from);
  }

  #end(): void {
    this.#over = true;
    this.#reader?.close();
    this.#leave?.();
  }
}

const over: IteratorReturnResult<void> = { done: true, value: undefined };
