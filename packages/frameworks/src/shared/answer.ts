import type { EventStream } from "@parley/a2a";
import type { StreamResponse } from "@parley/a2a/model";
import type { AnswerChunks } from "./chunks.ts";
import type { A2AChunk } from "./types.ts";

/** The stream of one answer. Reads an event only when the page requests more. */
export class Answer {
  readonly chunks: AnswerChunks;
  readonly #events: AsyncIterator<StreamResponse, void, void>;
  readonly #pieces: A2AChunk[];
  /** Called after each event. */
  readonly #noted: (answer: Answer) => void;
  #ended = false;

  /** @param pieces - The array that `chunks` writes to. */
  constructor(events: EventStream, chunks: AnswerChunks, pieces: A2AChunk[], noted: (answer: Answer) => void) {
    this.chunks = chunks;
    this.#events = events[Symbol.asyncIterator]();
    this.#pieces = pieces;
    this.#noted = noted;
  }

  get ended(): boolean {
    return this.#ended;
  }

  stream(): ReadableStream<A2AChunk> {
    return new ReadableStream<A2AChunk>(
      {
        pull: async (controller) => {
          while (this.#pieces.length === 0 && !this.#ended) await this.#read();
          for (const piece of this.#pieces.splice(0)) controller.enqueue(piece);
          if (this.#ended) controller.close();
        },
        cancel: () => this.close(),
      },
      { highWaterMark: 0 },
    );
  }

  /** Sends the request, and reads the first event. Rejects if the request fails. */
  async begin(): Promise<this> {
    await this.#read();
    return this;
  }

  /** Resolves to the task once an event names it; to `undefined` after a direct reply. */
  async task(): Promise<string | undefined> {
    while (this.chunks.metadata.taskId === undefined && !this.#ended) await this.#read();
    return this.chunks.metadata.taskId;
  }

  async close(): Promise<void> {
    this.#ended = true;
    await this.#events.return?.();
  }

  async #read(): Promise<void> {
    const next = await this.#events.next();
    if (this.#ended) return;
    if (next.done === true) {
      this.#ended = true;
      this.chunks.finish();
    } else this.chunks.apply(next.value);
    this.#noted(this);
  }
}
