import { NeedsRoom, roomless, unavailable, type Room } from "@parley/server/internal/store/index";

/** Tracks the calls of a store, and rejects them once it is closed. */
export class OpenCalls {
  #inProgress = 0;
  #isClosed = false;
  #onIdle: (() => void) | undefined;

  /**
   * `body` gets the number of bytes that it may read. If `body` throws `NeedsRoom`, it runs again once `room` has reserved the bytes. Like
   * `withRoom`, but creates one promise less.
   */
  async run<T>(body: (most: number) => Promise<T>, room?: Room): Promise<T> {
    this.checkOpen();
    this.#inProgress += 1;
    try {
      for (let most = room === undefined ? Infinity : roomless; ;) {
        try {
          return await body(most);
        } catch (thrown) {
          if (room === undefined || !(thrown instanceof NeedsRoom)) throw this.readable(thrown);
          most = thrown.bytes;
        }
        await room.reserve(most);
        this.checkOpen();
      }
    } finally {
      this.#inProgress -= 1;
      if (this.#inProgress === 0) this.#onIdle?.();
    }
  }

  /** Throws once the store is closed. */
  checkOpen(): void {
    if (this.#isClosed) throw unavailable("The store is closed");
  }

  /** Rejects every further call. Returns `false` if the store was already closed. */
  end(): boolean {
    const wasOpen = !this.#isClosed;
    this.#isClosed = true;
    return wasOpen;
  }

  /** Resolves when no call is in progress. */
  async ended(): Promise<void> {
    if (this.#inProgress > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
  }

  protected get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Converts an error to one that clients may see. */
  protected readable(thrown: unknown): unknown {
    return thrown;
  }
}
