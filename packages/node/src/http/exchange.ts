import type { Writable } from "node:stream";
import type { Sink, UniversalRequest, UniversalResponse } from "@parley/a2a/internal/protocol/index";
import type { ConnectionFacts, FrameworkFacts } from "./facts.ts";
import type { Proxies } from "./proxies.ts";

/* Shared by both versions of HTTP: a request with its answer, and the sink of a streamed answer. */

export type Headers = UniversalResponse["headers"];

/** The body of an answer that is not streamed. */
export type WholeBody = Exclude<UniversalResponse["body"], (...args: never) => unknown>;

export type Head = Pick<UniversalResponse, "status" | "headers" | "trailers">;

/** A request, and the functions that send its answer, in one object. */
export interface Exchange extends UniversalRequest {
  /** The framework's facts about the caller, for `facts`. */
  framework?: FrameworkFacts | undefined;
  /** The proxies whose headers are used for `facts`. */
  proxies?: Proxies | undefined;
  /** Facts about the client. */
  readonly facts: ConnectionFacts;
  /** The headers of the request as received, with their names. */
  fields(): Iterable<readonly [name: string, value: string]>;
  /** Set if a parser of a framework has read the body. */
  rewritten?: boolean;
  /**
   * Sends a whole answer.
   *
   * @param last - Whether the connection closes after it, over HTTP/1.1.
   * @param stallTimeout - Aborts the answer if the client reads nothing for this time, in milliseconds, while data waits.
   */
  send(head: Head, body: WholeBody, last: boolean, stallTimeout: number): void;
  /** Begins a streamed answer, and returns the sink for its body. `last` and `stallTimeout` are the same as for `send`. */
  open(head: Head, last: boolean, stallTimeout: number): Sink;
  /** Sends the head of a streamed answer, if it waits for the first bytes of the body. */
  flush(): void;
  /** Ends a streamed answer. */
  end(): void;
  /** Whether the head of an answer was sent, so that no other answer is possible. */
  readonly begun: boolean;
  /** Aborts an answer, so that the client sees that it is incomplete. */
  breakOff(): void;
}

/** Whether answers of this status have no body (RFC 9110 §6.4.1). */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 304;
}

/** Path and query of a request target. Proxies may send an absolute URL (RFC 9112 §3.2.2), and `OPTIONS *` has no path. */
export function originForm(url: string): string {
  if (url.startsWith("/")) return url;
  if (!URL.canParse(url)) return "/";
  const { pathname, search } = new URL(url);
  return pathname.startsWith("/") ? pathname + search : "/";
}

/** The sink of a streamed answer. Node buffers little beyond its high-water mark, and a writer that awaits `ready()` waits there. */
export class WritableSink implements Sink {
  closed = false;
  readonly #writable: Writable;
  /** Functions to call when the client disconnects. Created on demand, because most streams have none or one. */
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

  /** Called by the exchange when the client disconnects, or needs no body. */
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
