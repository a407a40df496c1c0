import type { Bytes, Clock } from "../../base/index.ts";
import { Pieces, Utf8Pieces } from "../../base/bytes.ts";
import { A2AError, type A2AErrorCode } from "../../model/index.ts";
import type { CallContext } from "../../protocol/index.ts";
import type { ClientCodec } from "../../wire/codec.ts";
import { SseParser, type ServerSentEvent } from "./events.ts";
import type { ClientHost, FetchInit, HeadersRequest } from "./binding.ts";
import { aborted, abortError, onAbort } from "./signals.ts";

/** One HTTP request of a client and its response, with limits. Every failure is an `A2AError`. */

/** A request of a client. */
export interface ClientRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Bytes;
  /** Default: `manual`. */
  readonly redirect?: FetchInit["redirect"];
  /** Maximum wait for the headers of the response, in milliseconds. Default: the limit of the call, or else of the client. */
  readonly timeout?: number | false;
}

/** The response to a request of a client, with its limits. */
export interface ClientResponse {
  /** HTTP status. */
  readonly status: number;
  /** A header by its lower-case name; `undefined` if it is absent. */
  header(name: string): string | undefined;
  /** Media type in lower case, without parameters, or `""`. */
  readonly mediaType: string;
  /** The body as it arrives. */
  bytes(): AsyncGenerator<Uint8Array, void, void>;
  /** The whole body. `limit` is its maximum size in bytes, by default `maxResponseBytes`. */
  text(limit?: number): Promise<string>;
  /** The events of an event stream, in batches as they arrive. */
  events(): AsyncGenerator<readonly ServerSentEvent[], void, void>;
  /** The delay before a reconnection, in seconds, as requested by the server in the `retry` field of the event stream. */
  retryAfter(): number | undefined;
  /** Closes the connection. May be called at any time, and more than once. */
  close(): void;
}

/** The headers of a request: the caller's headers, overridden by the service parameters (A2A 1.0 §9.2, §11.2). */
export async function requestHeaders(
  host: ClientHost,
  request: HeadersRequest,
  context: Pick<CallContext, "version" | "extensions" | "after" | "trace" | "outgoing">,
  { version, extensionsHeader = "a2a-extensions" }: ClientCodec = context,
): Promise<Record<string, string>> {
  const source = typeof host.headers === "function" ? await host.headers(request) : host.headers;
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries({ ...source, ...context.outgoing?.headers })) {
    headers[name.toLowerCase()] = value;
  }
  headers["a2a-version"] = version;
  const extensions = [headers[extensionsHeader] ?? [], context.extensions].flat();
  if (extensions.length > 0) headers[extensionsHeader] = extensions.join(",");
  if (context.after !== undefined) headers["last-event-id"] = String(context.after);
  if (context.trace !== undefined) headers["traceparent"] = context.trace;
  return headers;
}

/**
 * Sends a request and waits for the headers of the response.
 *
 * @throws A2AError `ConnectionFailed`, `Timeout` or `Aborted`. Reading the body can also throw `ConnectionLost`, and
 * `InvalidResponse` if the body is too large.
 */
export async function sendRequest(
  host: ClientHost,
  request: ClientRequest,
  { signal, outgoing }: Pick<CallContext, "signal" | "outgoing">,
): Promise<ClientResponse> {
  if (signal?.aborted) throw abortError(signal);
  const { clock, limits, credentials } = host;
  const sent = (await credentials?.add(request, signal)) ?? request;
  // The connection gets the URL without credentials, because errors contain the URL, and a key may be in the query.
  const connection = new Connection(request.url, clock, signal);
  const timeout = request.timeout ?? outgoing?.connectTimeout ?? limits.connectTimeout;
  const { status, headers } = await connection.open(host.fetch, sent, timeout);
  credentials?.answered(headers);
  const utf8 = new Utf8Pieces();
  const parser = new SseParser(limits.maxEventBytes);
  const retryAfter = (): number | undefined => parser.retry && parser.retry / 1000;
  const bytes = (limit: number): AsyncGenerator<Uint8Array, void, void> =>
    connection.bytes(limit, outgoing?.idleTimeout ?? limits.idleTimeout, retryAfter);
  return {
    status,
    header: (name) => headers.get(name) ?? undefined,
    mediaType: (headers.get("content-type") ?? "").replace(/;[^]*/, "").trim().toLowerCase(),
    bytes: () => bytes(Infinity),
    async text(limit = limits.maxResponseBytes) {
      const text = new Pieces();
      for await (const piece of bytes(limit)) text.push(utf8.push(piece));
      return text.take();
    },
    async *events() {
      for await (const piece of bytes(Infinity)) {
        const events = parser.push(utf8.push(piece), piece.length);
        if (events.length > 0) yield events;
      }
    },
    retryAfter,
    close: () => connection.close(),
  };
}

/** The connection of one request, which ends with the caller's signal, at a timeout, at the end of the body, or by `close`. */
class Connection {
  readonly #url: string;
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  readonly #release: () => void;
  #body: Response["body"] | undefined;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  constructor(url: string, clock: Clock, signal: AbortSignal | undefined) {
    this.#url = url;
    this.#clock = clock;
    this.#release = onAbort(signal, (error) => this.#abort(error));
  }

  /** Sends the request. Throws `ConnectionFailed` if no response arrives. */
  async open(fetch: ClientHost["fetch"], request: ClientRequest, timeout: number | false): Promise<Response> {
    const { signal } = this.#controller;
    const what = `No answer from ${this.#url}`;
    try {
      const sent = fetch(request.url, {
        method: request.method,
        headers: request.headers,
        ...(request.body !== undefined && { body: request.body }),
        signal,
        redirect: request.redirect ?? "manual",
      });
      sent.then(
        (late) => signal.aborted && void late.body?.cancel().catch(() => undefined),
        () => undefined,
      );
      const response = await this.#within(Promise.race([sent, aborted(signal)]), timeout, what);
      this.#body = response.body;
      return response;
    } catch (thrown) {
      this.#release();
      throw this.#failure(thrown, "ConnectionFailed", what);
    }
  }

  /** The body, up to `limit` bytes. Throws `ConnectionLost` if the body breaks off. */
  async *bytes(
    limit: number,
    idleTimeout: number | false,
    retryAfter: () => number | undefined,
  ): AsyncGenerator<Uint8Array, void, void> {
    if (!this.#body) return this.close();
    const reader = (this.#reader = this.#body.getReader());
    const { signal } = this.#controller;
    let size = 0;
    try {
      for (;;) {
        const { done, value } = await this.#within(reader.read(), idleTimeout, `Nothing more from ${this.#url}`);
        if (signal.aborted) throw abortError(signal);
        if (done) break;
        size += value.byteLength;
        if (size > limit) {
          throw new A2AError(
            "InvalidResponse",
            `The answer of ${this.#url} is longer than the limit of ${limit} bytes`,
          );
        }
        yield value;
      }
    } catch (thrown) {
      throw this.#failure(thrown, "ConnectionLost", `The answer of ${this.#url} broke off`, retryAfter());
    } finally {
      this.close();
    }
  }

  close(): void {
    this.#release();
    (this.#reader ?? this.#body)?.cancel().catch(() => undefined);
    this.#controller.abort();
  }

  /** Some `fetch` implementations ignore their signal, so the reader is canceled as well. */
  #abort(error: A2AError): void {
    this.#controller.abort(error);
    this.#reader?.cancel().catch(() => undefined);
  }

  async #within<T>(work: Promise<T>, timeout: number | false, what: string): Promise<T> {
    const stop =
      timeout !== false &&
      this.#clock.after(timeout, () => this.#abort(new A2AError("Timeout", `${what} within ${timeout} ms`)));
    try {
      return await work;
    } finally {
      if (stop) stop();
    }
  }

  #failure(thrown: unknown, code: A2AErrorCode, what: string, retryAfter?: number): A2AError {
    if (thrown instanceof A2AError) return thrown;
    if (this.#controller.signal.aborted) return abortError(this.#controller.signal);
    const hint = code === "ConnectionFailed" ? corsHint(this.#url, thrown) : "";
    return new A2AError(code, `${what}: ${reasonOf(thrown)}${hint}`, { cause: thrown, retryAfter });
  }
}

/**
 * Browsers report a CORS failure as a bare `TypeError`, like a server that is down, so the client retries it. A `no-cors` probe could not
 * distinguish the two cases, because a proxy that answers 502 without CORS headers is also reachable.
 */
function corsHint(url: string, thrown: unknown): string {
  const page = (globalThis as { location?: { origin?: string } }).location?.origin;
  if (page === undefined || !(thrown instanceof TypeError) || thrown.cause || new URL(url).origin === page) return "";
  return `. If the server runs, CORS may refuse this page: set its option cors: { origins: ["${page}"] }`;
}

/** A runtime's description of a failed connection. Often the cause has more details than the error. */
function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const { cause } = thrown;
  return (cause instanceof Error && cause.message) || thrown.message;
}
