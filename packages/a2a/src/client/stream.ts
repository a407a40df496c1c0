import type { StreamResponse } from "../model/index.ts";
import type { StreamItem, StreamReply } from "../protocol/index.ts";

type Result = IteratorResult<StreamResponse, void>;

const over: Result = { done: true, value: undefined };

/**
 * The events of a task, or the one message of an agent that made no task. Read it once, with `for await`; leaving the loop
 * closes the connection. It reconnects by itself. A `task` event that is not the first event replaces everything before
 * it. The stream ends where the protocol says so (A2A 1.0 §3.1.2, §3.1.6), and throws an `A2AError` in every other case.
 */
export class EventStream implements AsyncIterable<StreamResponse>, AsyncIterator<StreamResponse, void, void> {
  readonly #open: () => Promise<StreamReply>;
  readonly #observe: ((event: StreamResponse) => void) | undefined;
  #opened: Promise<StreamReply> | undefined;
  #batches: AsyncIterator<readonly StreamItem[]> | undefined;
  /** Events that came together. Those from `#at` on have not been read. */
  #batch: readonly StreamItem[] = [];
  #at = 0;
  /** How many reads wait, and the last of them. */
  #waiting = 0;
  #last: Promise<Result> | undefined;
  #seq: number | undefined;
  #over = false;

  /**
   * @param open - Sends the request.
   * @param observe - Called with each event just before the reader gets it.
   */
  constructor(open: () => Promise<StreamReply>, observe?: (event: StreamResponse) => void) {
    this.#open = open;
    this.#observe = observe;
  }

  /**
   * Number of the latest event in the log of its task; `undefined` where the agent's card does not promise such numbers.
   * Pass it to `subscribeToTask()` as `after` to continue later.
   */
  get seq(): number | undefined {
    return this.#seq;
  }

  /**
   * Sends the request, unless a read has done so, and waits until the agent has accepted it. Returns the URIs of the
   * extensions that the agent activated.
   *
   * @throws A2AError what the agent refuses the request with.
   */
  async opened(): Promise<{ readonly extensions: readonly string[] }> {
    const reply = await (this.#opened ??= this.#open());
    return { extensions: reply.extensions ?? [] };
  }

  /** The stream itself, for `for await`. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Returns the next event. An event that is there already costs one microtask, where a generator would need three. */
  next(): Promise<Result> {
    const item = this.#waiting === 0 ? this.#take() : undefined;
    if (item !== undefined) return Promise.resolve(item);
    this.#waiting += 1;
    const read = (): Promise<Result> => this.#read();
    // One after the other, so that the first read gets the first event.
    return (this.#last = this.#last === undefined ? read() : this.#last.then(read, read));
  }

  #take(): Result | undefined {
    const item = this.#batch[this.#at];
    if (item === undefined) return undefined;
    this.#at += 1;
    this.#seq = item.seq;
    const { value } = item.payload;
    this.#observe?.(value);
    return { done: false, value };
  }

  async #read(): Promise<Result> {
    try {
      for (;;) {
        const item = this.#take();
        if (item !== undefined) return item;
        if (this.#over) return over;
        const { batches } = await (this.#opened ??= this.#open());
        const result = await (this.#batches ??= batches[Symbol.asyncIterator]()).next();
        this.#over ||= result.done === true;
        if (this.#over) continue;
        this.#batch = result.value as readonly StreamItem[];
        this.#at = 0;
      }
    } catch (thrown) {
      if (this.#over) return over;
      this.#over = true;
      throw thrown;
    } finally {
      this.#waiting -= 1;
    }
  }

  /** Closes the stream: `for await` calls it when the loop is left. */
  async return(): Promise<Result> {
    await this.close();
    return over;
  }

  /** Closes the stream, also before it was opened. Reads that wait then get the end of the stream. */
  async close(): Promise<void> {
    this.#over = true;
    this.#batch = [];
    const reply = await this.#opened?.catch(() => undefined);
    if (reply !== undefined) await (this.#batches ??= reply.batches[Symbol.asyncIterator]()).return?.();
  }
}
