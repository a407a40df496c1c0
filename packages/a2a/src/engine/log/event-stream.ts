import { isTerminal, type LogRecord, type Message, type StreamResponse, type TaskState } from "../../model/index.ts";
import { Payload, TextPayload, type StreamItem, type StreamName } from "../../protocol/index.ts";
import type { Snapshot } from "../../store/index.ts";
import { answers, LogReader, pageSize, type Position } from "./reader.ts";

/** The task as it stood, as the first event of a stream (§3.1.6). */
export function snapshotItem(snapshot: Snapshot): StreamItem {
  const { head, pieces } = snapshot;
  const { seq, generation } = head;
  if (pieces !== undefined) return { payload: new TextPayload(['{"task":', ...pieces, "}"]), seq, generation };
  // Where its text is known, the task is not read: that would parse it.
  const json = snapshot.json ?? JSON.stringify(snapshot.task);
  return { payload: new TextPayload(`{"task":${json}}`), seq, generation };
}

/** A direct answer as the only event of a stream (§3.1.2). */
export function messageItem(message: Message): StreamItem {
  return { payload: new Payload({ message }) };
}

/** Where a stream of a task begins. */
export interface StreamFrom extends Position {
  /** Goes out first: the task as it stood at `after`. Its state is said beside it, since a large task is not parsed to be told. */
  readonly first?: { readonly item: StreamItem; readonly state: TaskState };
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
    if ("payload" in opened) {
      this.#end();
      return [opened];
    }
    const { first, generation, ...from } = opened;
    this.#from = from;
    this.#generation = generation;
    this.#reader = new LogReader(from);
    if (first === undefined) return this.#read(this.#reader);
    if (isTerminal(first.state) || (await this.#isAsked(from, first.state))) this.#end();
    return [first.item];
  }

  /** Whether the task stands at a question to this very sender: one who sends again, and was asked meanwhile (§11.7). */
  async #isAsked(from: Omit<StreamFrom, "first">, state: TaskState): Promise<boolean> {
    const stands = state === "TASK_STATE_INPUT_REQUIRED";
    if (this.#operation !== "SendStreamingMessage" || !stands) return false;
    // Only messages can have come after the status.
    let after = Math.max(from.input, from.after - pageSize);
    let last: LogRecord | undefined;
    for (;;) {
      const page = await from.store.read(from.scope, from.task.taskId, {
        after,
        limit: pageSize,
        kinds: ["statusUpdate"],
      });
      const next = page?.records.at(-1);
      if (next === undefined) return last !== undefined && this.#closes(last);
      last = next;
      after = next.seq;
    }
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
      const payload = new TextPayload<StreamResponse>(`{"${kind}":${json}}`);
      if (this.#generation === undefined) items.push({ payload, seq });
      else items.push({ payload, seq, generation: (this.#generation += 1) });
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
