import { wrapped } from "@parley/a2a/internal/base/json-text";
import { isTerminal, type LogRecord, type StreamResponse, type TaskState } from "@parley/a2a/internal/model/index";
import { TextPayload, type StreamItem, type StreamName } from "@parley/a2a/internal/protocol/index";
import { taskJson, type Snapshot } from "../../store/index.ts";
import { answers, LogReader, pageSize, type Position } from "./reader.ts";

/** The start of a stream in the log of a task. */
export interface StreamPosition extends Position {
  /** For the stream of a send: `seq` of the sent message. */
  readonly input: number;
  /** The generation of the task at `after`, if the version of the protocol has generations. */
  readonly generation?: number;
}

export interface StreamFrom extends StreamPosition {
  /** The first event: the task at `after`. `state` is the task's state, so that a large task need not be parsed. */
  readonly first?: { readonly item: StreamItem; readonly state: TaskState };
}

/** Resolves to the content of the stream: the events of a task, one message, or nothing. */
export type OpenStream = () => Promise<StreamFrom | StreamItem | undefined>;

type Batch = readonly StreamItem[];

/**
 * The stream of an operation. Thousands may be idle (row `subscribers` of the benchmarks), so each uses little memory. It
 * releases the closure that opened it, and waits in a single suspended function of half a kilobyte.
 */
export class EventStream implements AsyncIterableIterator<Batch> {
  readonly #operation: StreamName;
  #open: OpenStream;
  /** Absent while the stream is opened, and for a stream of one message. */
  #events: TaskEvents | undefined;
  #over = false;
  /** Ends the wait for the stream to open, if the caller leaves before. */
  #leave: () => void = nothing;

  constructor(operation: StreamName, open: OpenStream) {
    this.#operation = operation;
    this.#open = open;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Batch, void>> {
    try {
      for (;;) {
        if (this.#over) return over;
        const polled = this.#events === undefined ? this.#begin() : this.#events.poll();
        const batch = polled instanceof Promise ? await polled : polled;
        if (this.#events?.over === true) this.#end();
        if (batch.length > 0) return { done: false, value: batch };
        if (!this.#over) await this.#events?.wait();
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

  async #begin(): Promise<Batch> {
    const opened = await this.#opened();
    if (opened === undefined || this.#over) {
      this.#end();
      return [];
    }
    if ("payload" in opened) {
      this.#end();
      return [opened];
    }
    const { first, ...from } = opened;
    const events = new TaskEvents(this.#operation, from);
    this.#events = events;
    if (first === undefined) return events.poll();
    await events.closeAt(first.state);
    return [first.item];
  }

  /** `undefined`: the stream is empty, or the caller has left. */
  async #opened(): Promise<StreamFrom | StreamItem | undefined> {
    // A caller that leaves before the first event need not wait for the agent.
    const left = new Promise<undefined>((resolve) => (this.#leave = () => resolve(undefined)));
    const opened = await Promise.race([this.#open(), left]);
    this.#open = nothingToOpen;
    this.#leave = nothing;
    return opened;
  }

  #end(): void {
    this.#over = true;
    this.#events?.close();
    this.#leave();
  }
}

const over: IteratorReturnResult<void> = { done: true, value: undefined };
const nothing = (): void => {};
const nothingToOpen: OpenStream = () => Promise.resolve(undefined);

/** The events of a task after a position, up to the event that ends the stream (A2A 1.0 §3.1.2, §3.1.6). */
class TaskEvents {
  readonly #operation: StreamName;
  readonly #from: StreamPosition;
  readonly #reader: LogReader;
  /** The generation of the last event, if the version has generations. */
  #generation: number | undefined;
  #over = false;

  constructor(operation: StreamName, from: StreamPosition) {
    this.#operation = operation;
    this.#from = from;
    this.#generation = from.generation;
    this.#reader = new LogReader(from, true);
  }

  get over(): boolean {
    return this.#over;
  }

  /** The next events; empty if none are available yet. Returns a promise only if it must read the store. Chunks are always in memory. */
  poll(): readonly StreamItem[] | Promise<readonly StreamItem[]> {
    if (this.#over) return [];
    const records = this.#reader.poll();
    const mayClose = records instanceof Promise || records.some(({ state }) => state !== undefined);
    return mayClose ? this.#untilClosed(records) : this.#itemsOf(records);
  }

  /** Resolves when there may be more events than at the last `poll`, or when the stream is closed. */
  wait(): Promise<void> {
    return this.#reader.wait();
  }

  close(): void {
    this.#over = true;
    this.#reader.close();
  }

  /** Closes the stream if this state ends it, because the task is terminal or waits for the sender (§11.7). */
  async closeAt(state: TaskState): Promise<void> {
    if (isTerminal(state) || (await this.#asksSender(state))) this.close();
  }

  async #asksSender(state: TaskState): Promise<boolean> {
    if (!this.#mayAsk(state)) return false;
    const status = await this.#lastStatus();
    return status !== undefined && this.#closes(status);
  }

  async #lastStatus(): Promise<LogRecord | undefined> {
    const { store, scope, task, input, after: end } = this.#from;
    // Only messages can follow the status in the log.
    let after = Math.max(input, end - pageSize);
    for (let last: LogRecord | undefined; ;) {
      const page = await store.read(scope, task.taskId, { after, limit: pageSize, kinds: ["statusUpdate"] });
      const next = page?.records.at(-1);
      if (next === undefined) return last;
      last = next;
      after = next.seq;
    }
  }

  async #untilClosed(polled: ReturnType<LogReader["poll"]>): Promise<readonly StreamItem[]> {
    const records = await polled;
    for (const [at, record] of records.entries()) {
      if (record.state === undefined || !(await this.#closes(record))) continue;
      this.close();
      return this.#itemsOf(records.slice(0, at + 1));
    }
    return this.#itemsOf(records);
  }

  /** The user's messages are records of the log, but not events of a stream (§3.1.2). */
  #itemsOf(records: readonly LogRecord[]): readonly StreamItem[] {
    const items: StreamItem[] = [];
    for (const record of records) {
      if (record.kind === "message") continue;
      if (this.#generation !== undefined) this.#generation += 1;
      items.push(recordItem(record, this.#generation));
    }
    return items;
  }

  /** Whether the stream ends with this record. The stream of a send ends only with a record that answers the sent message. */
  async #closes(record: LogRecord): Promise<boolean> {
    if (record.state === undefined) return false;
    if (isTerminal(record.state)) return true;
    return this.#mayAsk(record.state) && answers(record, this.#from.input, this.#from);
  }

  #mayAsk(state: TaskState): boolean {
    return this.#operation === "SendStreamingMessage" && state === "TASK_STATE_INPUT_REQUIRED";
  }
}

/** A task as the first event of a stream (A2A 1.0 §3.1.6). */
export function snapshotItem(snapshot: Snapshot): StreamItem {
  const { seq, generation } = snapshot.head;
  return { payload: new TextPayload(wrapped("task", taskJson(snapshot))), seq, generation };
}

function recordItem({ kind, seq, json }: LogRecord, generation: number | undefined): StreamItem {
  const payload = new TextPayload<StreamResponse>(wrapped(kind, json));
  return generation === undefined ? { payload, seq } : { payload, seq, generation };
}
