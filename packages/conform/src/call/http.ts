import { defined } from "@parley/a2a/internal/base/defined";
import type { Json } from "../acts/format.ts";
import { InvalidAnswer, LiveStream, parseJson, readEvents } from "./stream.ts";

/** An HTTP response. */
export interface HttpAnswer {
  readonly status: number;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** The body, if it is JSON. */
  readonly json?: Json;
}

export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Limits of each request. */
export interface Bounds {
  /** Maximum size of a response or stream, in bytes. */
  readonly maxBytes: number;
  /** Aborted when the run ends. */
  readonly signal: AbortSignal;
}

/** The server is unreachable, or did not respond in time. */
export class NoAnswer extends Error {}

/**
 * Sends a request. Returns an event stream while it is open, and any other response when it is complete.
 *
 * @param timeout - Limit for the complete response, or for the headers of a stream, in milliseconds.
 * @throws NoAnswer if there is no response in time, InvalidAnswer if it is too large.
 */
export async function send(request: HttpRequest, timeout: number, bounds: Bounds): Promise<HttpAnswer | LiveStream> {
  const deadline = new Deadline(timeout, bounds.signal);
  let streaming = false;
  try {
    const response = await fetch(request.url, {
      method: request.method,
      headers: request.headers,
      // fetch would add a content type to a string, and some tests send none.
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

/** Why there is no response: the time limit, or the error of the connection. */
function unreachable(request: string, error: unknown, signal: AbortSignal): NoAnswer {
  if (signal.reason instanceof Error) return new NoAnswer(signal.reason.message, { cause: error });
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  // TLS errors contain line breaks.
  const reason = (cause instanceof Error ? cause.message : String(cause)).trim().replace(/\s+/g, " ");
  return new NoAnswer(`${request} failed: ${reason}`, { cause: error });
}

/** The body as text, limited to `maxBytes` after decompression. */
async function readText(body: AsyncIterable<Uint8Array> | null, maxBytes: number): Promise<string> {
  if (body === null) return "";
  const decoder = new TextDecoder();
  const pieces: string[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new InvalidAnswer(`the response is larger than ${maxBytes} bytes`);
    pieces.push(decoder.decode(chunk, { stream: true }));
  }
  return pieces.join("") + decoder.decode();
}

/** The time limit of one request. Aborts the request when time is up or the run ends. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #run: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  readonly #stop = (): void => this.#controller.abort(this.#run.reason);

  /**
   * @param timeout - In milliseconds.
   * @param run - The signal of the run. If already aborted, the constructor throws its reason.
   */
  constructor(timeout: number, run: AbortSignal) {
    run.throwIfAborted();
    this.#run = run;
    this.#timer = setTimeout(() => this.#controller.abort(new Error(`no response within ${timeout} ms`)), timeout);
    run.addEventListener("abort", this.#stop, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Call when the headers of a stream have arrived: its reader has a separate time limit. */
  stopClock(): void {
    clearTimeout(this.#timer);
  }

  /** Call when the request is over. Closes its connection. */
  close(): void {
    clearTimeout(this.#timer);
    this.#run.removeEventListener("abort", this.#stop);
    this.#controller.abort();
  }
}
