import { A2AError } from "../../model/index.ts";

/** One event of an event stream (HTML Living Standard §9.2). */
export interface ServerSentEvent {
  /** The `event` field; absent or empty means `message`. */
  readonly event?: string;
  /** The `id` field of this very event. The standard lets later events inherit it; who wants that keeps the last one. */
  readonly id?: string;
  readonly data: string;
}

const CR = 13;
const LF = 10;
const SPACE = 32;

/**
 * Parses an event stream that arrives in pieces cut anywhere (HTML Living Standard §9.2.6). Takes text: a streaming
 * `TextDecoder` before it joins split characters and drops the byte order mark. What stands after the last blank line
 * when the stream ends is no event.
 */
export class SseParser {
  readonly #limit: number;
  /** The beginning of a line whose end has not come. Never searched again, so that a long line costs what it is long. */
  #line = "";
  #skipLineFeed = false;
  #data: string | undefined;
  #event: string | undefined;
  #id: string | undefined;
  /** The server's last `retry` field: how long to wait before coming back, in milliseconds. */
  retry: number | undefined;

  /** @param limit - Longest event, in characters. */
  constructor(limit: number = Infinity) {
    this.#limit = limit;
  }

  /** The events that this piece completes. Throws `InvalidResponse` when an event grows over the limit. */
  push(chunk: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    let start = 0;
    if (this.#skipLineFeed && chunk.length > 0) {
      if (chunk.charCodeAt(0) === LF) start = 1;
      this.#skipLineFeed = false;
    }
    let cr = chunk.indexOf("\r", start);
    while (start < chunk.length) {
      const lf = chunk.indexOf("\n", start);
      if (cr !== -1 && cr < start) cr = chunk.indexOf("\r", start);
      const end = cr !== -1 && (lf === -1 || cr < lf) ? cr : lf;
      if (end === -1) break;
      const line = this.#line === "" ? chunk.slice(start, end) : this.#line + chunk.slice(start, end);
      this.#line = "";
      start = end + 1;
      if (chunk.charCodeAt(end) === CR) {
        if (start === chunk.length) this.#skipLineFeed = true;
        else if (chunk.charCodeAt(start) === LF) start++;
      }
      this.#take(line, events);
    }
    if (start < chunk.length) this.#line += chunk.slice(start);
    this.#check(this.#line.length);
    return events;
  }

  #check(more: number): void {
    if (more + (this.#data?.length ?? 0) > this.#limit) {
      throw new A2AError(
        "InvalidResponse",
        `An event of the stream is longer than the limit of ${this.#limit} characters`,
      );
    }
  }

  #take(line: string, events: ServerSentEvent[]): void {
    if (line === "") return this.#dispatch(events);
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon === -1 ? line : line.slice(0, colon);
    const from = line.charCodeAt(colon + 1) === SPACE ? colon + 2 : colon + 1;
    const value = colon === -1 ? "" : line.slice(from);
    switch (field) {
      case "data":
        this.#check(value.length);
        this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
        break;
      case "event":
        this.#event = value;
        break;
      case "id":
        if (!value.includes("\0")) this.#id = value;
        break;
      case "retry":
        if (/^\d+$/.test(value)) this.retry = Number(value);
        break;
    }
  }

  #dispatch(events: ServerSentEvent[]): void {
    if (this.#data !== undefined) {
      events.push({
        data: this.#data,
        ...(this.#event === undefined ? undefined : { event: this.#event }),
        ...(this.#id === undefined ? undefined : { id: this.#id }),
      });
    }
    this.#data = this.#event = this.#id = undefined;
  }
}
