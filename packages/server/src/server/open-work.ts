import type { Deferred } from "@parley/a2a/internal/base/async";
import { deferred, type Clock } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import { finishing, type Interceptor, type StreamReply } from "@parley/a2a/internal/protocol/index";
import { endsWithin } from "@parley/a2a/internal/base/async";

/* Open work of a host that closes: requests to routes, and calls of services without an engine. */

/** Counts open work, so that a closing host can wait for it. */
export class OpenWork {
  readonly #clock: Clock;
  #count = 0;
  #idle: Deferred<void> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(): void {
    this.#count += 1;
  }

  end(): void {
    this.#count -= 1;
    if (this.#count === 0) this.#idle?.resolve();
  }

  /** Resolves when no work is open, or after `ms` milliseconds. */
  async ended(ms: number): Promise<void> {
    if (this.#count === 0 || ms <= 0) return;
    this.#idle ??= deferred();
    await endsWithin(this.#clock, ms, this.#idle.promise);
  }
}

/** The calls of services without an engine. A closing host rejects further calls, and ends their streams. */
export class ForeignCalls {
  readonly #streams = new Set<(error: A2AError) => void>();
  readonly #closing: AbortSignal;
  readonly #open: OpenWork;

  constructor(closing: AbortSignal, open: OpenWork) {
    this.#closing = closing;
    this.#open = open;
  }

  /** Wraps a service so that its open calls are counted. It rejects calls once the host closes, and `cut` ends its streams. */
  readonly of: Interceptor = (service) => ({
    call: (operation, request, context) => this.#counted(() => service.call(operation, request, context)),
    stream: (operation, request, context) =>
      this.#counted(async () => {
        const reply = await service.stream(operation, request, context);
        return { ...reply, batches: { [Symbol.asyncIterator]: () => this.#opened(reply.batches) } };
      }),
  });

  /** Ends the streams, so that their clients resubscribe elsewhere. */
  cut(): void {
    for (const end of this.#streams) end(stopping());
  }

  async #counted<T>(call: () => Promise<T>): Promise<T> {
    if (this.#closing.aborted) throw stopping();
    this.#open.begin();
    try {
      return await call();
    } finally {
      this.#open.end();
    }
  }

  #opened(batches: StreamReply["batches"]): AsyncIterator<Batch, void, void> {
    let ended: A2AError | undefined;
    let reject: (error: A2AError) => void = () => {};
    const leave = (): void => {
      if (this.#streams.delete(end)) this.#open.end();
    };
    const end = (error: A2AError): void => {
      ended = error;
      leave();
      reject(error);
      void source.return?.().catch(() => {});
    };
    const source = finishing(batches, leave)[Symbol.asyncIterator]();
    this.#streams.add(end);
    this.#open.begin();
    return {
      next: () =>
        // Not `Promise.race`, which would keep each batch in memory until the stream ends.
        new Promise((yes, no) => {
          reject = no;
          if (ended === undefined) source.next().then(yes, no);
          else no(ended);
        }),
      async return() {
        await source.return?.();
        return { done: true, value: undefined };
      },
    };
  }
}

type Batch = StreamReply["batches"] extends AsyncIterable<infer Item> ? Item : never;

function stopping(): A2AError {
  return new A2AError("Unavailable", "The server is stopping", { retryAfter: 1 });
}
