import { deferred, silentLogger, Waiters, withoutQuery, type Bytes, type Logger } from "../../base/index.ts";
import { A2AError } from "../../model/index.ts";
import {
  BodyBytes,
  type BodyBudget,
  type ByteFlow,
  type ByteReader,
  type RequestFacts,
  type Sink,
  type UniversalHandler,
  type UniversalRequest,
  type UniversalResponse,
  type BodyReader,
} from "../../protocol/index.ts";

/* The host for the Fetch API: Bun, Deno, Workers, Node, and frameworks that use it. */

/** Buffered bytes beyond which writers must wait for the client. */
const highWaterMark = 64 * 1024;

/**
 * Returns what the runtime or the framework knows about the sender of a request. `platform` has the further arguments of the runtime, such
 * as the connection in Deno.
 *
 * @example
 * ```ts
 * const facts: FetchFacts = (_request, info) => ({ remoteAddress: (info as Deno.ServeHandlerInfo).remoteAddr.hostname });
 * ```
 */
export type FetchFacts = (request: Request, ...platform: readonly unknown[]) => RequestFacts;

/** Answers a `Request`. Further arguments of the runtime go to `FetchFacts` only. */
export type FetchHandler = (this: void, request: Request, ...platform: readonly unknown[]) => Promise<Response>;

/** Called for each request with the runtime's further arguments. `ended` resolves when the answer is written or the client has disconnected. */
export type Attend = (ended: Promise<void>, platform: readonly unknown[]) => void;

/**
 * A fetch handler that answers through a universal handler. Never rejects. Errors, and answers that are not valid HTTP, are logged and
 * become 500.
 */
export function toFetch(
  handler: UniversalHandler,
  facts?: FetchFacts,
  logger: Logger = silentLogger,
  attend?: Attend,
): FetchHandler {
  return async (request, ...platform) => {
    const incoming = new FetchRequest(request, facts && (() => facts(request, ...platform)));
    const ended = attend && deferred<void>();
    if (ended !== undefined) attend?.(ended.promise, platform);
    try {
      return responseOf(incoming, await handler(incoming), ended?.resolve);
    } catch (cause) {
      ended?.resolve();
      logger.error("Failed to answer request", {
        method: incoming.method,
        url: withoutQuery(incoming.url),
        cause,
      });
      return new Response(internalError, { status: 500, headers: { "content-type": "application/json" } });
    }
  };
}

const internalError = '{"error":{"code":500,"status":"INTERNAL","message":"Internal error"}}';

/** `onEnd` is called when writing the answer has ended. */
function responseOf(
  request: FetchRequest,
  { status, headers, body }: UniversalResponse,
  onEnd: () => void = () => {},
): Response {
  if (typeof body !== "function") {
    onEnd();
    return new Response(request.method === "HEAD" ? null : ((body as string | Bytes | undefined) ?? null), {
      status,
      headers,
    });
  }
  const sink = new StreamSink(request);
  const written = (to: Sink): Promise<void> => body(to).finally(onEnd);
  return new Response(sink.open(written), { status, headers });
}

class FetchRequest implements UniversalRequest {
  readonly method: string;
  readonly url: string;
  readonly #request: Request;
  readonly #tell: (() => RequestFacts) | undefined;
  #facts: RequestFacts | undefined;
  #leaving: AbortController | undefined;

  constructor(request: Request, tell: (() => RequestFacts) | undefined) {
    this.#request = request;
    this.#tell = tell;
    this.method = request.method;
    const { url } = request;
    const path = url.indexOf("/", url.indexOf("//") + 2);
    const fragment = url.indexOf("#");
    this.url = path < 0 ? "/" : url.slice(path, fragment < 0 ? undefined : fragment);
  }

  header(name: string): string | undefined {
    const value = this.#request.headers.get(name);
    if (value !== null) return value;
    // Over HTTP/2, the host is not in a header (RFC 9113 §8.3.1), so read it from the URL.
    return name === "host" ? new URL(this.#request.url).host : undefined;
  }

  fields(): Iterable<readonly [string, string]> {
    return this.#request.headers;
  }

  get facts(): RequestFacts | undefined {
    return (this.#facts ??= this.#tell?.());
  }

  get signal(): AbortSignal {
    if (this.#leaving === undefined) {
      this.#leaving = new AbortController();
      this.onAbort(() => this.left());
    }
    return this.#leaving.signal;
  }

  /** Calls `run` when the runtime reports a disconnect. Some runtimes only cancel the body of the answer. */
  onAbort(run: () => void): void {
    if (this.#request.signal.aborted) run();
    else this.#request.signal.addEventListener("abort", run, { once: true });
  }

  left(): void {
    this.#leaving?.abort();
  }

  /** The body, or `null`. Throws if other code has read it. */
  get #body(): ReadableStream<Uint8Array> | null {
    const { body } = this.#request;
    if (body === null || !(this.#request.bodyUsed || body.locked)) return body;
    const cause = new Error("A parser has read the body before this handler. Mount the handler before parsers");
    throw new A2AError("InternalError", undefined, { cause });
  }

  read(reader: ByteReader): ByteFlow {
    const body = this.#body;
    return new PieceFlow(body === null ? undefined : new BodySource(body), reader);
  }

  async text(limit: number, budget?: BodyBudget): Promise<string> {
    const body = this.#body;
    if (body === null) return "";
    const length = this.header("content-length");
    const announced = length === undefined || !/^\d+$/.test(length) ? undefined : Number(length);
    const source = new BodySource(body);
    const bytes = new BodyBytes(limit, announced, budget?.enter(source));
    try {
      if (!bytes.begin()) await source.room();
      for (let piece = await source.read(); piece !== undefined; piece = await source.read()) {
        if (!bytes.push(piece)) await source.room();
      }
    } catch (error) {
      bytes.leave();
      source.close();
      throw error;
    }
    // The decoder removes a byte order mark, which is not part of JSON text (RFC 8259 §8.1).
    const decoder = new TextDecoder("utf-8", { fatal: true });
    try {
      return decoder.decode(bytes.take());
    } catch {
      throw new A2AError("ParseError", "The request body is not UTF-8");
    }
  }
}

const encoder = new TextEncoder();

/** A sink that writes to a `ReadableStream`. */
class StreamSink implements Sink {
  closed = false;
  readonly #request: FetchRequest;
  readonly #listeners: (() => void)[] = [];
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  readonly #waiting = new Waiters();

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
            controller.error(new DOMException("The client disconnected", "AbortError"));
          });
          // Not awaited, because `pull` is not called before `start` has returned.
          void writer(this).then(
            () => this.#end((each) => each.close()),
            (error: unknown) => this.#end((each) => each.error(error)),
          );
        },
        pull: () => this.#waiting.wake(),
        cancel: () => this.#close(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark }),
    );
  }

  write(chunk: string | Uint8Array): boolean {
    if (this.closed || this.#controller === undefined) return false;
    this.#controller.enqueue(typeof chunk === "string" ? encoder.encode(chunk) : chunk);
    return (this.#controller.desiredSize ?? 0) > 0;
  }

  ready(): Promise<void> {
    if (this.closed || (this.#controller?.desiredSize ?? 0) > 0) return Promise.resolve();
    return this.#waiting.wait();
  }

  onClose(run: () => void): void {
    if (this.closed) run();
    else this.#listeners.push(run);
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
    this.#waiting.wake();
    for (const run of this.#listeners) run();
  }
}

/* The body of a request of the Fetch API. */

/** Reads the pieces of a body, as fast as the budget allows. */
export class BodySource implements BodyReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #room = deferred<void>();
  #refusal: A2AError | undefined;

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }

  /** The next piece; `undefined` after the last piece. */
  async read(): Promise<Uint8Array | undefined> {
    const { done, value } = await this.#reader.read().catch((cause: unknown) => {
      throw new A2AError("InvalidRequest", "The request body broke off", { cause });
    });
    if (this.#refusal !== undefined) throw this.#refusal;
    return done ? undefined : value;
  }

  async room(): Promise<void> {
    await this.#room.promise;
    this.#room = deferred();
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  resume(): void {
    this.#room.resolve();
  }

  refuse(error: A2AError): void {
    this.#refusal = error;
    this.#room.resolve();
    // Also ends a pending read from a slow sender.
    this.close();
  }

  /** Discards the rest of the body, and ignores errors. */
  close(): void {
    this.#reader.cancel().catch(() => undefined);
  }
}

/** Forwards the pieces of a body while a reader needs them. */
export class PieceFlow implements ByteFlow {
  readonly #source: BodySource | undefined;
  readonly #reader: ByteReader;
  #wanted = false;
  #reading = false;
  #over = false;

  constructor(source: BodySource | undefined, reader: ByteReader) {
    this.#source = source;
    this.#reader = reader;
  }

  pause(): void {
    this.#wanted = false;
  }

  resume(): void {
    this.#wanted = true;
    if (!this.#reading && !this.#over) void this.#read();
  }

  /** Cancels an unread body, which the runtime would otherwise continue to receive. */
  close(): void {
    this.#over = true;
    this.#source?.close();
  }

  async #read(): Promise<void> {
    this.#reading = true;
    try {
      while (this.#wanted) {
        const piece = await this.#source?.read();
        this.#over = piece === undefined;
        if (piece !== undefined) this.#reader.chunk(piece);
        else {
          this.#reader.end();
          return;
        }
      }
    } catch {
      this.#over = true;
      this.#reader.gone();
    } finally {
      this.#reading = false;
    }
  }
}
