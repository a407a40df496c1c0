import type { Json } from "../acts/format.ts";

export interface StreamHead {
  /** The HTTP status. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** The answer broke a rule of its binding or format, which no test has to name. Fails the test. */
export class InvalidAnswer extends Error {}

/** An open event stream. Reads its events as they arrive, whether or not a test waits for them. */
export class LiveStream {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The events so far, with the envelopes of the binding. */
  readonly raw: Json[] = [];
  readonly #stop: () => void;
  readonly #waiting = new Set<() => void>();
  #ended = false;
  #failure: Error | undefined;

  /** @param stop - Closes the connection. */
  constructor(head: StreamHead, events: AsyncIterable<Json>, stop: () => void) {
    this.status = head.status;
    this.headers = head.headers;
    this.#stop = stop;
    void this.#read(events);
  }

  /** Whether it has ended: the server or `close` has closed it, or it broke. */
  get ended(): boolean {
    return this.#ended;
  }

  /**
   * Resolves once there are that many events, the stream has ended, or the time is up; with true where there are that many. Throws what
   * the stream broke with. `timeout`: in milliseconds.
   */
  async until(count: number, timeout: number): Promise<boolean> {
    const deadline = performance.now() + timeout;
    while (this.raw.length < count && !this.#ended && performance.now() < deadline)
      await this.#change(deadline - performance.now());
    if (this.#failure !== undefined) throw this.#failure;
    return this.raw.length >= count;
  }

  /** Waits for the end of the stream, at most `timeout` milliseconds. Resolves with false where it does not end in time. */
  async end(timeout: number): Promise<boolean> {
    await this.until(Infinity, timeout);
    return this.#ended;
  }

  close(): void {
    this.#finish();
    this.#stop();
  }

  #change(timeout: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, timeout);
      this.#waiting.add(wake);
    });
  }

  #finish(failure?: Error): void {
    if (this.#ended) return;
    this.#failure = failure;
    this.#ended = true;
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  async #read(events: AsyncIterable<Json>): Promise<void> {
    try {
      for await (const event of events) {
        if (this.#ended) return;
        this.raw.push(event);
        this.#wake();
      }
      this.#finish();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#finish(error instanceof InvalidAnswer ? error : new InvalidAnswer(`the stream broke: ${reason}`));
      this.#stop();
    }
  }
}
