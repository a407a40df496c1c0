import type { IncomingMessage, ServerResponse } from "node:http";
import type { Sink } from "@parley/a2a/protocol";
import { onGone } from "./gone.ts";

/**
 * A streamed answer written to the socket as it comes. Memory is bounded by back-pressure: Node takes little beyond its
 * high-water mark, and a writer that heeds `ready()` waits.
 */
export class ResponseSink implements Sink {
  closed = false;
  readonly #response: ServerResponse;
  /** Whom to tell that the peer is gone, and who waits for room: seldom more than one, mostly nobody. */
  #leaving: (() => void)[] | undefined;
  #waiting: (() => void)[] | undefined;

  constructor(incoming: IncomingMessage, response: ServerResponse) {
    this.#response = response;
    // Who asks for the head only has no use for the body, and its writer lets go at once.
    if (incoming.method === "HEAD") this.closed = true;
    else onGone(incoming, response, () => this.#close());
  }

  write(chunk: string): boolean {
    return !this.closed && this.#response.write(chunk);
  }

  ready(): Promise<void> {
    if (this.closed || !this.#response.writableNeedDrain) return Promise.resolve();
    return new Promise((resolve) => {
      if (this.#waiting === undefined) this.#response.once("drain", () => this.#wake());
      (this.#waiting ??= []).push(resolve);
    });
  }

  onClose(run: () => void): void {
    if (this.closed) run();
    else (this.#leaving ??= []).push(run);
  }

  #close(): void {
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

/**
 * Closes the socket when it takes nothing for `timeout` milliseconds while something waits to go out (D10). Node looks
 * at partial progress of a large write as well, and keeps all timeouts of one length in one list behind one timer.
 */
export function closeWhenStalled(response: ServerResponse, timeout: number): void {
  response.setTimeout(timeout, breakOff);
}

/** One function for all: streams are many. */
function breakOff(this: ServerResponse): void {
  if (this.writableLength > 0) this.destroy();
}
