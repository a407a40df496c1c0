import type { Json } from "../acts/format.ts";

export interface StreamHead {
  /** The HTTP status. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** The response violates its binding or format, so the test fails. */
export class InvalidAnswer extends Error {}

/** Lets callers wait for a condition. */
export class Changes {
  readonly #waiting = new Set<() => void>();

  /** Checks the conditions again. */
  happened(): void {
    for (const wake of this.#waiting) wake();
  }

  /** Resolves with true once `done()` is true, and with false after `timeout` milliseconds. */
  async until(done: () => boolean, timeout: number): Promise<boolean> {
    const deadline = performance.now() + timeout;
    for (let left = timeout; !done(); left = deadline - performance.now()) {
      if (left <= 0) return false;
      await this.#next(left);
    }
    return true;
  }

  #next(timeout: number): Promise<void> {
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
}

/** An open event stream. Reads events as they arrive, even if no test waits for them. */
export class LiveStream {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The events so far, with the envelopes of the binding. */
  readonly raw: Json[] = [];
  readonly #stop: () => void;
  readonly #changes = new Changes();
  #ended = false;
  #failure: Error | undefined;

  /** @param stop - Closes the connection. */
  constructor(head: StreamHead, events: AsyncIterable<Json>, stop: () => void) {
    this.status = head.status;
    this.headers = head.headers;
    this.#stop = stop;
    void this.#read(events);
  }

  /** Whether the server or `close()` has closed the stream, or it failed. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Waits for `count` events, at most `timeout` milliseconds. Resolves with false if there are fewer. Throws if the stream failed. */
  async until(count: number, timeout: number): Promise<boolean> {
    await this.#changes.until(() => this.raw.length >= count || this.#ended, timeout);
    if (this.#failure !== undefined) throw this.#failure;
    return this.raw.length >= count;
  }

  /** Waits for the end of the stream, at most `timeout` milliseconds. Resolves with false if it is still open. */
  async end(timeout: number): Promise<boolean> {
    await this.until(Infinity, timeout);
    return this.#ended;
  }

  close(): void {
    this.#finish();
    this.#stop();
  }

  #finish(failure?: Error): void {
    if (this.#ended) return;
    this.#failure = failure;
    this.#ended = true;
    this.#changes.happened();
  }

  async #read(events: AsyncIterable<Json>): Promise<void> {
    try {
      for await (const event of events) {
        if (this.#ended) return;
        this.raw.push(event);
        this.#changes.happened();
      }
      this.#finish();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#finish(error instanceof InvalidAnswer ? error : new InvalidAnswer(`the stream failed: ${reason}`));
      this.#stop();
    }
  }
}

/**
 * The `data` of an event stream (HTML Living Standard §9.2), parsed as JSON. Throws InvalidAnswer if it is invalid or larger than
 * `maxBytes`.
 */
export async function* readEvents(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number = Infinity,
): AsyncGenerator<Json, void, void> {
  let data: string[] = [];
  let count = 0;
  for await (const line of readLines(body, maxBytes)) {
    if (line !== "") data.push(...dataOf(line));
    else if (data.length > 0) {
      yield parseEvent(data.join("\n"), count++);
      data = [];
    }
  }
  // The standard tells clients to discard an event without a final blank line.
  if (data.length > 0) throw new InvalidAnswer("the stream ends inside an event");
}

/** The lines of the stream. Throws if the last one is incomplete. */
async function* readLines(body: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  // Pieces of the current line. Joining them once keeps the time for a long line linear.
  let pieces: string[] = [];
  // A carriage return at the end of a chunk may be half of a line end.
  let held = "";
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new InvalidAnswer(`the stream is larger than ${maxBytes} bytes`);
    const text = held + decoder.decode(chunk, { stream: true });
    held = text.endsWith("\r") ? "\r" : "";
    const [first = "", ...others] = (held === "" ? text : text.slice(0, -1)).split(/\r\n|\n|\r/);
    pieces.push(first);
    for (const next of others) {
      yield pieces.join("");
      pieces = [next];
    }
  }
  if (held !== "") yield pieces.join("");
  else if (pieces.join("").trim() !== "") throw new InvalidAnswer("the stream ends inside an event");
}

function dataOf(line: string): readonly string[] {
  const colon = line.indexOf(":");
  const field = colon === -1 ? line : line.slice(0, colon);
  if (field === "data") return [colon === -1 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1)];
  if (["", "event", "id", "retry"].includes(field)) return [];
  throw new InvalidAnswer(
    `the stream contains a line that is not an event field: ${JSON.stringify(line.slice(0, 80))}`,
  );
}

function parseEvent(data: string, at: number): Json {
  const value = parseJson(data);
  if (value !== undefined) return value;
  throw new InvalidAnswer(`event ${at} of the stream is not JSON: ${JSON.stringify(data.slice(0, 80))}`);
}

/** Deeper than any response of the protocol, and shallow enough for recursive functions. */
const maxDepth = 200;

/** Parses JSON. Returns undefined for invalid JSON. Throws InvalidAnswer for JSON that is nested too deeply. */
export function parseJson(text: string): Json | undefined {
  if (depthOf(text) > maxDepth) throw new InvalidAnswer(`the JSON has more than ${maxDepth} levels`);
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** The maximum number of nested arrays and objects. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (quoted) {
      if (code === backslash) at += 1;
      else if (code === quote) quoted = false;
    } else if (code === quote) quoted = true;
    else if (code === openArray || code === openObject) deepest = Math.max(deepest, (depth += 1));
    else if (code === closeArray || code === closeObject) depth -= 1;
  }
  return deepest;
}

const [quote, backslash, openArray, closeArray, openObject, closeObject] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];
