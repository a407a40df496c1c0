import { A2AError } from "./model/index.ts";
import type { Sink, UniversalHandler, UniversalRequest } from "./protocol/index.ts";

/** A host on the Fetch API: Node, Bun, Deno, Workers, and every framework that speaks it. */

/** Bytes that may wait for the peer before writers are told to wait. */
const highWaterMark = 64 * 1024;

/** Answers `Request`s by a universal handler. */
export function toFetch(handler: UniversalHandler): (request: Request) => Promise<Response> {
  return async (request) => {
    const incoming = new FetchRequest(request);
    const { status, headers, body } = await handler(incoming);
    if (body === undefined || typeof body === "string") {
      return new Response(request.method === "HEAD" ? null : (body ?? null), { status, headers });
    }
    const sink = new StreamSink(incoming);
    return new Response(sink.open(body), { status, headers });
  };
}

class FetchRequest implements UniversalRequest {
  readonly method: string;
  readonly url: string;
  readonly #request: Request;
  #leaving: AbortController | undefined;

  constructor(request: Request) {
    this.#request = request;
    this.method = request.method;
    const { url } = request;
    const path = url.indexOf("/", url.indexOf("//") + 2);
    const fragment = url.indexOf("#");
    this.url = path < 0 ? "/" : url.slice(path, fragment < 0 ? undefined : fragment);
  }

  header(name: string): string | undefined {
    return this.#request.headers.get(name) ?? undefined;
  }

  get signal(): AbortSignal {
    if (this.#leaving === undefined) {
      this.#leaving = new AbortController();
      this.onAbort(() => this.left());
    }
    return this.#leaving.signal;
  }

  /** Calls `run` when the runtime tells that the peer is gone. Some only cancel the body of the answer. */
  onAbort(run: () => void): void {
    if (this.#request.signal.aborted) run();
    else this.#request.signal.addEventListener("abort", run, { once: true });
  }

  left(): void {
    this.#leaving?.abort();
  }

  async text(limit: number): Promise<string> {
    const { body } = this.#request;
    if (body === null) return "";
    const length = this.header("content-length");
    if (length !== undefined && Number(length) > limit) throw tooLarge(limit);
    // A byte order mark is no part of JSON text (RFC 8259 §8.1): the decoder drops it.
    const decoder = new TextDecoder("utf-8", { fatal: true });
    const reader = body.getReader();
    let text = "";
    let size = 0;
    for (;;) {
      const { done, value } = await reader.read().catch((cause: unknown) => {
        throw new A2AError("InvalidRequest", "The request body broke off", { cause });
      });
      if (done) break;
      size += value.byteLength;
      if (size > limit) {
        // The rest is of no interest, and so is whether the peer could be told.
        reader.cancel().catch(() => undefined);
        throw tooLarge(limit);
      }
      text += utf8(() => decoder.decode(value, { stream: true }));
    }
    return text + utf8(() => decoder.decode());
  }
}

function utf8(decode: () => string): string {
  try {
    return decode();
  } catch {
    throw new A2AError("ParseError", "The request body is not UTF-8");
  }
}

function tooLarge(limit: number): A2AError {
  return new A2AError("RequestTooLarge", `The request body is larger than ${limit} bytes`);
}

const encoder = new TextEncoder();

/** A sink whose peer reads a `ReadableStream`. */
class StreamSink implements Sink {
  closed = false;
  readonly #request: FetchRequest;
  readonly #listeners: (() => void)[] = [];
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #waiting: (() => void)[] = [];

  constructor(request: FetchRequest) {
    this.#request = request;
  }

  open(writer: (sink: Sink) => Promise<void>): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
          this.#request.onAbort(() => {
            this.#close();
            controller.error(new DOMException("The peer is gone", "AbortError"));
          });
          // Not awaited here: a stream that has not started is never pulled from.
          void writer(this).then(
            () => this.#end((each) => each.close()),
            (error: unknown) => this.#end((each) => each.error(error)),
          );
        },
        pull: () => this.#release(),
        cancel: () => this.#close(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark }),
    );
  }

  write(chunk: string): boolean {
    if (this.closed || this.#controller === undefined) return false;
    this.#controller.enqueue(encoder.encode(chunk));
    return (this.#controller.desiredSize ?? 0) > 0;
  }

  ready(): Promise<void> {
    if (this.closed || (this.#controller?.desiredSize ?? 0) > 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  onClose(run: () => void): void {
    if (this.closed) run();
    else this.#listeners.push(run);
  }

  #release(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  #end(finish: (controller: ReadableStreamDefaultController<Uint8Array>) => void): void {
    if (this.closed || this.#controller === undefined) return;
    this.closed = true;
    finish(this.#controller);
  }

  #close(): void {
    if (this.closed) return;
    this.closed = true;
    this.#request.left();
    this.#release();
    for (const run of this.#listeners) run();
  }
}
