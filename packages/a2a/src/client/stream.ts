import type { StreamResponse } from "../model/index.ts";
import type { StreamItem, StreamReply } from "../protocol/index.ts";

type Result = IteratorResult<StreamResponse, void>;

/**
 * The events of a task as they come, or the one message of an agent that made no task. Read it once, with `for await`;
 * leaving the loop lets go of the connection. It reconnects by itself; a `task` event that is not the first replaces
 * everything before it. It ends when the protocol says so and throws an `A2AError` in every other case.
 */
export class EventStream implements AsyncIterable<StreamResponse>, AsyncIterator<StreamResponse, void, void> {
  readonly #open: () => Promise<StreamReply>;
  readonly #observe: ((event: StreamResponse) => void) | undefined;
  #opened: Promise<StreamReply> | undefined;
  #batches: AsyncIterator<readonly StreamItem[]> | undefined;
  /** What came together and is not read yet, from `#at` on. */
  #batch: readonly StreamItem[] = [];
  #at = 0;
  /** Reads that wait, and the last of them. */
  #waiting = 0;
  #last: Promise<Result> | undefined;
  #seq: number | undefined;
  #over = false;

  /** @param observe - Sees each event just before the reader does. */
  constructor(open: () => Promise<StreamReply>, observe?: (event: StreamResponse) => void) {
    this.#open = open;
    this.#observe = observe;
  }

  /**
   * The place of the latest event in the log of its task, where the agent's card promises such places: give it to
   * `subscribeToTask` as `after` to go on from there at another time.
   */
  get seq(): number | undefined {
    return this.#seq;
  }

  /** Sends the request, if reading has not done so yet, and waits until the agent has accepted it. */
  async opened(): Promise<{ readonly extensions: readonly string[] }> {
    const reply = await (this.#opened ??= this.#open());
    return { extensions: reply.extensions ?? [] };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** What is there already is given at once: a generator would take three turns of the queue for each event. */
  next(): Promise<Result> {
    const item = this.#waiting === 0 ? this.#take() : undefined;
    if (item !== undefined) return Promise.resolve(item);
    this.#waiting += 1;
    const read = (): Promise<Result> => this.#read();
    // One after the other: who asked first gets the first event.
    return (this.#last = this.#last === undefined ? read() : this.#last.then(read, read));
  }

  #take(): Result | undefined {
    const item = this.#batch[this.#at];
    if (item === undefined) return undefined;
    this.#at += 1;
    this.#seq = item.seq;
    this.#observe?.(item.event);
    return { done: false, value: item.event };
  }

  async #read(): Promise<Result> {
    try {
      for (;;) {
        const item = this.#take();
        if (item !== undefined) return item;
        if (this.#over) return { done: true, value: undefined };
        const { batches } = await (this.#opened ??= this.#open());
        const result = await (this.#batches ??= batches[Symbol.asyncIterator]()).next();
        this.#over ||= result.done === true;
        if (this.#over) continue;
        this.#batch = result.value as readonly StreamItem[];
        this.#at = 0;
      }
    } catch (thrown) {
      if (this.#over) return { done: true, value: undefined };
      this.#over = true;
      throw thrown;
    } finally {
      this.#waiting -= 1;
    }
  }

  async return(): Promise<Result> {
    await this.close();
    return { done: true, value: undefined };
  }

  /** Lets go of the stream, opened or not: who waits for its next event is told that there is none. */
  async close(): Promise<void> {
    this.#over = true;
    this.#batch = [];
    const reply = await this.#opened?.catch(() => undefined);
    if (reply !== undefined) await (this.#batches ??= reply.batches[Symbol.asyncIterator]()).return?.();
  }
}
