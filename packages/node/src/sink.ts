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
  readonly #leaving: (() => void)[] = [];
  #waiting: (() => void)[] = [];

  constructor(incoming: IncomingMessage, response: ServerResponse) {
    this.#response = response;
    // Who asks for the head only has no use for the body, and its writer lets go at once.
    if (incoming.method === "HEAD") {
      this.closed = true;
      return;
    }
    response.on("drain", () => this.#wake());
    onGone(incoming, response, () => {
      this.closed = true;
      this.#wake();
      for (const run of this.#leaving.splice(0)) run();
    });
  }

  write(chunk: string): boolean {
    return !this.closed && this.#response.write(chunk);
  }

  ready(): Promise<void> {
    if (this.closed || !this.#response.writableNeedDrain) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  onClose(run: () => void): void {
    if (this.closed) run();
    else this.#leaving.push(run);
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/**
 * Closes the socket when it takes nothing for `timeout` milliseconds while something waits to go out (D10). Node looks
 * at partial progress of a large write as well, and keeps all timeouts of one length in one list behind one timer.
 */
export function closeWhenStalled(response: ServerResponse, timeout: number): void {
  response.setTimeout(timeout, () => {
    if (response.writableLength > 0) response.destroy();
  });
}
