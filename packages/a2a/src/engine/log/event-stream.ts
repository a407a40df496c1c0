import type { TaskState } from "../../model/index.ts";
import type { StreamItem, StreamName } from "../../protocol/index.ts";
import { TaskEvents, type StreamPosition } from "./task-events.ts";

/** Where a stream of a task begins. */
export interface StreamFrom extends StreamPosition {
  /** Goes out first: the task as it stood at `after`. Its state is given beside it, so that a large task need not be parsed. */
  readonly first?: { readonly item: StreamItem; readonly state: TaskState };
}

/** Finds out what there is to stream: a task from somewhere on, one message, or nothing. */
export type OpenStream = () => Promise<StreamFrom | StreamItem | undefined>;

type Batch = readonly StreamItem[];

/**
 * The stream that an operation answers with, as its caller iterates it. Thousands of them stand idle, so they keep little:
 * what was needed to open one is released, and a reader that waits is one suspended function, at half a kilobyte each.
 */
export class EventStream implements AsyncIterableIterator<Batch, void, void> {
  readonly #operation: StreamName;
  #open: OpenStream;
  /** Absent while it is opened, and for a stream of one message. */
  #events: TaskEvents | undefined;
  #over = false;
  /** While it is opened: ends the wait of a caller who leaves. */
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

  /** Opens the stream; gives its first events. */
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

  /** `undefined` when there is nothing to stream, or the caller has left. */
  async #opened(): Promise<StreamFrom | StreamItem | undefined> {
    // A caller who leaves before the agent has yielded anything need not wait for it.
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
