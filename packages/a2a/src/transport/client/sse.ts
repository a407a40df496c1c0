import { Pieces } from "../../base/text-pieces.ts";
import { A2AError } from "../../model/index.ts";

/** One event of an event stream (HTML Living Standard §9.2). */
export interface ServerSentEvent {
  /** The `event` field. Absent or empty means `message`. */
  readonly event?: string | undefined;
  /** The `id` field of this event. In the standard, later events inherit it; here they do not. */
  readonly id?: string | undefined;
  readonly data: string;
}

const CR = 13;
const LF = 10;
const SPACE = 32;

/**
 * Parses an event stream that arrives in pieces (HTML Living Standard §9.2.6). The pieces are text without a byte order mark:
 * see `Utf8Pieces`. Text after the last blank line is not an event.
 */
export class SseParser {
  readonly #limit: number;
  /** Bytes of the current event, its field names and comments included. */
  #size = 0;
  /** The beginning of an unfinished line. It is not searched again, so that a long line takes linear time. */
  #line: Pieces | undefined;
  #skipLineFeed = false;
  #data: string | undefined;
  /** The lines of data after the first one. */
  #more: Pieces | undefined;
  #event: string | undefined;
  #id: string | undefined;
  /** The last `retry` field of the server: how long to wait before a reconnection, in milliseconds. */
  retry: number | undefined;

  /** @param limit - Largest event in bytes, its field names and comments included. */
  constructor(limit: number = Infinity) {
    this.#limit = limit;
  }

  /**
   * Returns the events that this piece completes. Throws `InvalidResponse` where an event exceeds the limit.
   *
   * @param bytes - Size of the piece in bytes. Where a piece has several events, their characters are counted instead.
   */
  push(chunk: string, bytes: number = chunk.length): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    /** Where the current event begins. */
    let from = 0;
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
      const rest = chunk.slice(start, end);
      const line = this.#line === undefined ? rest : this.#line.take() + rest;
      this.#line = undefined;
      start = end + 1;
      if (chunk.charCodeAt(end) === CR) {
        if (start === chunk.length) this.#skipLineFeed = true;
        else if (chunk.charCodeAt(start) === LF) start++;
      }
      if (line !== "") this.#take(line);
      else {
        this.#grow(start - from);
        this.#size = 0;
        from = start;
        this.#dispatch(events);
      }
    }
    if (start < chunk.length) (this.#line ??= new Pieces()).push(chunk.slice(start));
    this.#grow(from === 0 ? bytes : chunk.length - from);
    return events;
  }

  #grow(bytes: number): void {
    this.#size += bytes;
    if (this.#size > this.#limit) {
      throw new A2AError("InvalidResponse", `An event of the stream is longer than the limit of ${this.#limit} bytes`);
    }
  }

  #take(line: string): void {
    const found = line.indexOf(":");
    // A line without a colon is a field with an empty value.
    const colon = found < 0 ? line.length : found;
    const field = line.slice(0, colon);
    const value = line.slice(line.charCodeAt(colon + 1) === SPACE ? colon + 2 : colon + 1);
    if (field === "data") {
      if (this.#data === undefined) this.#data = value;
      else (this.#more ??= new Pieces()).push(`\n${value}`);
    } else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.retry = Number(value);
  }

  #dispatch(events: ServerSentEvent[]): void {
    if (this.#data !== undefined) {
      events.push({
        data: this.#more === undefined ? this.#data : this.#data + this.#more.take(),
        event: this.#event,
        id: this.#id,
      });
    }
    this.#data = this.#more = this.#event = this.#id = undefined;
  }
}
