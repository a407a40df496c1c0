import type { StreamResponse } from "../model/index.ts";
import type { StreamReply } from "../protocol/index.ts";

/**
 * The events of a task as they come, or the one message of an agent that made no task. Read it once, with `for await`;
 * leaving the loop lets go of the connection. It reconnects by itself; a `task` event that is not the first replaces
 * everything before it. It ends when the protocol says so and throws an `A2AError` in every other case.
 */
export class EventStream implements AsyncIterable<StreamResponse> {
  readonly #open: () => Promise<StreamReply>;
  readonly #observe: ((event: StreamResponse) => void) | undefined;
  #opened: Promise<StreamReply> | undefined;
  #events: AsyncGenerator<StreamResponse, void, void> | undefined;
  #seq: number | undefined;
  #closed = false;

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

  [Symbol.asyncIterator](): AsyncGenerator<StreamResponse, void, void> {
    return (this.#events ??= this.#read());
  }

  async *#read(): AsyncGenerator<StreamResponse, void, void> {
    try {
      const { batches } = await (this.#opened ??= this.#open());
      for await (const batch of batches) {
        for (const { seq, event } of batch) {
          this.#seq = seq;
          this.#observe?.(event);
          yield event;
        }
      }
    } catch (thrown) {
      if (!this.#closed) throw thrown;
    }
  }

  /** Lets go of the stream, opened or not: who waits for its next event is told that there is none. */
  async close(): Promise<void> {
    this.#closed = true;
    const reply = await this.#opened?.catch(() => undefined);
    await reply?.batches[Symbol.asyncIterator]().return?.();
    await this.#events?.return();
  }
}
