import { defined } from "@parley/a2a/internal/base/defined";
import type { Json } from "../acts/format.ts";
import { InvalidAnswer, LiveStream, parseJson, readEvents } from "./stream.ts";

/** What a server answered, as it came. */
export interface HttpAnswer {
  readonly status: number;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** The body, where it is JSON. */
  readonly json?: Json;
}

export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Limits of every request of a run. */
export interface Bounds {
  /** Longest answer or stream, in bytes. */
  readonly maxBytes: number;
  /** Ends the run. */
  readonly signal: AbortSignal;
}

/** The server could not be reached, or did not answer in time. */
export class NoAnswer extends Error {}

/**
 * Sends a request. An event stream is returned while it is still open, any other answer once it is whole.
 *
 * @param timeout - For the whole answer, or for the head of a stream, in milliseconds.
 * @throws NoAnswer if no answer comes in time, InvalidAnswer if it is too long.
 */
export async function send(request: HttpRequest, timeout: number, bounds: Bounds): Promise<HttpAnswer | LiveStream> {
  const deadline = new Deadline(timeout, bounds.signal);
  let streaming = false;
  try {
    const response = await fetch(request.url, {
      method: request.method,
      headers: request.headers,
      // As bytes: fetch adds a content type to text, and some tests send none.
      ...(request.body === undefined ? {} : { body: new TextEncoder().encode(request.body) }),
      redirect: "manual",
      signal: deadline.signal,
    });
    const headers = Object.fromEntries(response.headers);
    const head = { status: response.status, headers };
    if (/^\s*text\/event-stream\b/i.test(headers["content-type"] ?? "") && response.body !== null) {
      streaming = true;
      deadline.stopClock();
      return new LiveStream(head, readEvents(response.body, bounds.maxBytes), () => deadline.close());
    }
    const text = await readText(response.body, bounds.maxBytes);
    return { ...head, text, ...defined({ json: text === "" ? undefined : parseJson(text) }) };
  } catch (error) {
    if (error instanceof InvalidAnswer) throw error;
    throw unreachable(`${request.method} ${request.url}`, error, deadline.signal);
  } finally {
    if (!streaming) deadline.close();
  }
}

/** Why no answer came: the time limit, or what the connection failed with. */
function unreachable(request: string, error: unknown, signal: AbortSignal): NoAnswer {
  if (signal.reason instanceof Error) return new NoAnswer(signal.reason.message, { cause: error });
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  // Messages of TLS have line breaks.
  const reason = (cause instanceof Error ? cause.message : String(cause)).trim().replace(/\s+/g, " ");
  return new NoAnswer(`${request} got no answer: ${reason}`, { cause: error });
}

/** The body as text, of at most `maxBytes` after decompression. */
async function readText(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<string> {
  if (body === null) return "";
  const decoder = new TextDecoder();
  const pieces: string[] = [];
  let bytes = 0;
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new InvalidAnswer(`the answer is longer than ${maxBytes} bytes`);
    pieces.push(decoder.decode(chunk, { stream: true }));
  }
  return pieces.join("") + decoder.decode();
}

/** The time limit of one request. Ends the request when the time is up, and with the run. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #run: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  readonly #stop = (): void => this.#controller.abort(this.#run.reason);

  /**
   * @param timeout - In milliseconds.
   * @param run - The signal of the run. Throws its reason if it is already aborted.
   */
  constructor(timeout: number, run: AbortSignal) {
    run.throwIfAborted();
    this.#run = run;
    this.#timer = setTimeout(() => this.#controller.abort(new Error(`no answer within ${timeout} ms`)), timeout);
    run.addEventListener("abort", this.#stop, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The head of a stream has arrived: from here its reader sets the time limit. */
  stopClock(): void {
    clearTimeout(this.#timer);
  }

  /** The request is over. Closes its connection if that is still open. */
  close(): void {
    clearTimeout(this.#timer);
    this.#run.removeEventListener("abort", this.#stop);
    this.#controller.abort();
  }
}
