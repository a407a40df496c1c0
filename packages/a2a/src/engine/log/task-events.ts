import { isTerminal, type LogRecord, type TaskState } from "../../model/index.ts";
import type { StreamItem, StreamName } from "../../protocol/index.ts";
import { answers } from "./answer.ts";
import { LogReader, pageSize, type Position } from "./reader.ts";
import { recordItem } from "./stream-items.ts";

/** Where the events of a task begin for a reader. */
export interface StreamPosition extends Position {
  /** For the stream of a send: `seq` of its message. */
  readonly input: number;
  /** The task's generation at `after`, where events are to tell theirs. */
  readonly generation?: number;
}

/** The events of a task from a position on, until the protocol says that the stream is over. */
export class TaskEvents {
  readonly #operation: StreamName;
  readonly #from: StreamPosition;
  readonly #reader: LogReader;
  /** Of the last event, where they tell theirs. */
  #generation: number | undefined;
  #over = false;

  constructor(operation: StreamName, from: StreamPosition) {
    this.#operation = operation;
    this.#from = from;
    this.#generation = from.generation;
    this.#reader = new LogReader(from);
  }

  /** No event comes any more. */
  get over(): boolean {
    return this.#over;
  }

  /** The next events, none where there are none yet. A promise only where something has to be read: chunks need none. */
  poll(): readonly StreamItem[] | Promise<readonly StreamItem[]> {
    if (this.#over) return [];
    const records = this.#reader.poll();
    const mayClose = records instanceof Promise || records.some(({ state }) => state !== undefined);
    return mayClose ? this.#untilClosed(records) : this.#itemsOf(records);
  }

  /** Resolves when there may be more than at the last `poll`, or the stream was closed. */
  wait(): Promise<void> {
    return this.#reader.wait();
  }

  close(): void {
    this.#over = true;
    this.#reader.close();
  }

  /** Closes the stream if a task in this state is its last event: the task is over, or waits for the sender (§11.7). */
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
    // Only messages can have come after the status.
    let after = Math.max(input, end - pageSize);
    for (let last: LogRecord | undefined; ;) {
      const page = await store.read(scope, task.taskId, { after, limit: pageSize, kinds: ["statusUpdate"] });
      const next = page?.records.at(-1);
      if (next === undefined) return last;
      last = next;
      after = next.seq;
    }
  }

  /** The events up to the one that closes the stream. */
  async #untilClosed(polled: ReturnType<LogReader["poll"]>): Promise<readonly StreamItem[]> {
    const records = await polled;
    for (const [at, record] of records.entries()) {
      if (record.state === undefined || !(await this.#closes(record))) continue;
      this.close();
      return this.#itemsOf(records.slice(0, at + 1));
    }
    return this.#itemsOf(records);
  }

  /** User messages are records of the log, but no events of a stream (§3.1.2). */
  #itemsOf(records: readonly LogRecord[]): readonly StreamItem[] {
    const items: StreamItem[] = [];
    for (const record of records) {
      if (record.kind === "message") continue;
      if (this.#generation !== undefined) this.#generation += 1;
      items.push(recordItem(record, this.#generation));
    }
    return items;
  }

  /** `closesAfter` for a record, without parsing it, and for a send only where the record answers its message. */
  async #closes(record: LogRecord): Promise<boolean> {
    if (record.state === undefined) return false;
    if (isTerminal(record.state)) return true;
    return this.#mayAsk(record.state) && answers(record, this.#from.input, this.#from);
  }

  #mayAsk(state: TaskState): boolean {
    return this.#operation === "SendStreamingMessage" && state === "TASK_STATE_INPUT_REQUIRED";
  }
}
