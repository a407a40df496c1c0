import type { Json } from "../acts/format.ts";

export interface StreamHead {
  /** Of HTTP. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** The wire broke a rule that no test has to name: what came is no event stream, or not what its binding sends. */
export class BrokenWire extends Error {}

/** An open stream: its events are taken in as they come, whoever waits for them. */
export class LiveStream {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** One value an event, as it stands on the wire. */
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

  /** Whether the server has closed it, or `close` has. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Resolves once there are so many events, or the stream has ended; true where the first came true in time. */
  async until(count: number, timeout: number): Promise<boolean> {
    const deadline = performance.now() + timeout;
    while (this.raw.length < count && !this.#ended && performance.now() < deadline)
      await this.#change(deadline - performance.now());
    if (this.#failure !== undefined) throw this.#failure;
    return this.raw.length >= count;
  }

  /** Waits for the end; false where it does not come in time. */
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
      this.#finish(error instanceof BrokenWire ? error : new BrokenWire(`the stream broke: ${reason}`));
      this.#stop();
    }
  }
}
