import type { Writable } from "node:stream";
import type { Sink } from "@parley/a2a/protocol";

/**
 * A streamed answer written to the socket as it comes. Memory is bounded by back-pressure: Node takes little beyond its
 * high-water mark, and a writer that heeds `ready()` waits.
 */
export class WritableSink implements Sink {
  closed = false;
  readonly #writable: Writable;
  /** Whom to tell that the peer is gone, and who waits for room: seldom more than one, mostly nobody. */
  #leaving: (() => void)[] | undefined;
  #waiting: (() => void)[] | undefined;

  constructor(writable: Writable) {
    this.#writable = writable;
  }

  write(chunk: string | Uint8Array): boolean {
    return !this.closed && this.#writable.write(chunk);
  }

  ready(): Promise<void> {
    if (this.closed || !this.#writable.writableNeedDrain) return Promise.resolve();
    return new Promise((resolve) => {
      if (this.#waiting === undefined) this.#writable.once("drain", () => this.#wake());
      (this.#waiting ??= []).push(resolve);
    });
  }

  onClose(run: () => void): void {
    if (this.closed) run();
    else (this.#leaving ??= []).push(run);
  }

  /** To be called when the peer is gone, or when nothing that is written has a use. */
  close(): void {
    this.closed = true;
    this.#wake();
    const leaving = this.#leaving ?? [];
    this.#leaving = undefined;
    for (const run of leaving) run();
  }

  #wake(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const resolve of waiting) resolve();
  }
}
