import { A2AError } from "../../model/index.ts";
import { Pieces } from "../../base/text-pieces.ts";

/** One event of an event stream (HTML Living Standard §9.2). */
export interface ServerSentEvent {
  /** The `event` field; absent or empty means `message`. */
  readonly event?: string | undefined;
  /** The `id` field of this very event. The standard lets later events inherit it; who wants that keeps the last one. */
  readonly id?: string | undefined;
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
  /** Bytes of the event that has begun, with all that its lines are made of. */
  #size = 0;
  /** The beginning of a line whose end has not come. Never searched again, so that a long line costs what it is long. */
  #line: Pieces | undefined;
  #skipLineFeed = false;
  #data: string | undefined;
  /** Its lines after the first. */
  #more: Pieces | undefined;
  #event: string | undefined;
  #id: string | undefined;
  /** The server's last `retry` field: how long to wait before coming back, in milliseconds. */
  retry: number | undefined;

  /** @param limit - Longest event, in bytes, names of fields and comments included. */
  constructor(limit: number = Infinity) {
    this.#limit = limit;
  }

  /**
   * The events that this piece completes. Throws `InvalidResponse` when an event grows over the limit.
   *
   * @param bytes - How many bytes the piece has. Of several events in one piece the characters are counted.
   */
  push(chunk: string, bytes: number = chunk.length): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    /** Where the event begins that is being read. */
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
    // A line without a colon is a name whose value is empty.
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
