import type { Bytes, Clock } from "../../base/index.ts";
import { A2AError, type A2AErrorCode } from "../../model/index.ts";
import type { CallContext, OperationName, Operations } from "../../protocol/index.ts";
import type { ClientCodec } from "../../wire/codec.ts";
import { SseParser, type ServerSentEvent } from "../sse/read.ts";
import { aborted, abortError, onAbort } from "./abort.ts";
import { Pieces, Utf8Pieces } from "../../base/text-pieces.ts";

/** One HTTP request of a client and its response: limits, abort, and errors as `A2AError`. */

/** What a request may ask of `fetch`: small enough that a guarded fetch or a test double satisfies it too. */
export interface FetchInit {
  /** HTTP method. */
  readonly method: string;
  /** Headers by their lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** Bytes for gRPC-Web alone. */
  readonly body?: string | Bytes;
  /** Ends the request when it is aborted. */
  readonly signal: AbortSignal;
  /** Never followed: a redirect would carry credentials and messages to an address that nobody chose. */
  readonly redirect: "manual" | "follow";
}

/** Sends a request, as the `fetch` of the runtime does. */
export type FetchLike = (url: string, init: FetchInit) => Promise<Response>;

/** What credentials are asked for: the operation, or the card itself. */
export interface HeadersRequest {
  /** Address of the request. */
  readonly url: string;
  /** The operation that is called, or `AgentCard` for the card. */
  readonly operation: OperationName | "AgentCard";
}

/** Headers of every request, or a function that is asked before each one, so that a token can be renewed. */
export type HeadersSource =
  | Readonly<Record<string, string>>
  | ((request: HeadersRequest) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>);

/** Limits of a client. */
export interface ClientLimits {
  /** Longest wait for the head of an answer, in milliseconds. A send that waits for its task has none. */
  readonly connectTimeout: number | false;
  /** Longest silence within an answer, in milliseconds. */
  readonly idleTimeout: number | false;
  /** Longest answer, in bytes. */
  readonly maxResponseBytes: number;
  /** Longest event of a stream, in bytes. */
  readonly maxEventBytes: number;
}

/** What the bindings of a client are given. */
export interface ClientHost {
  /** Sends the requests. */
  readonly fetch: FetchLike;
  /** Headers of every request. */
  readonly headers: HeadersSource;
  /** Measures the limits. */
  readonly clock: Clock;
  /** The limits. */
  readonly limits: ClientLimits;
}

/** A request of a client. */
export interface ClientRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Bytes;
  /** Default: `manual`. */
  readonly redirect?: FetchInit["redirect"];
  /** Whether the head of the answer may take as long as the task does. */
  readonly waits?: boolean;
}

/** The response to a request of a client, with its limits. */
export interface ClientResponse {
  /** HTTP status. */
  readonly status: number;
  /** A header by its lower-case name; `undefined` where it is absent. */
  header(name: string): string | undefined;
  /** Media type in lower case, without parameters; `""` when there is none. */
  readonly mediaType: string;
  /** The body as it comes. */
  bytes(): AsyncGenerator<Uint8Array, void, void>;
  /** The whole body. `limit`: longest one, in bytes; default `maxResponseBytes`. */
  text(limit?: number): Promise<string>;
  /** The events of an event stream, those of one piece together. */
  events(): AsyncGenerator<readonly ServerSentEvent[], void, void>;
  /** When the event stream wants its reader back after a break, in seconds. */
  retryAfter(): number | undefined;
  /** Lets go of the connection. May be called at any time, and more than once. */
  close(): void;
}

/** Service parameters as headers (A2A 1.0 §9.2, §11.2), under whatever the caller adds. */
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

/** Whether the head of the answer may take as long as the task does: a send waits for it, unless told otherwise (A2A 1.0 §3.2.2). */
export function waits(operation: OperationName, request: object): boolean {
  const { configuration } = request as Operations["SendMessage"]["request"];
  return operation === "SendMessage" && configuration?.returnImmediately !== true;
}

/** Sends a request and waits for the head of its answer. Throws `ConnectionFailed`, `Timeout` or `Aborted`. */
export async function sendRequest(
  host: ClientHost,
  request: ClientRequest,
  context: Pick<CallContext, "signal" | "outgoing">,
): Promise<ClientResponse> {
  const { clock, limits } = host;
  const outer = context.signal;
  if (outer?.aborted) throw abortError(outer);
  const controller = new AbortController();
  const signal = controller.signal;
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  // Some fetches ignore their signal, so the wait for the head races it, and an abort cancels the reader.
  const abort = (error: A2AError): void => {
    controller.abort(error);
    reader?.cancel().catch(() => undefined);
  };
  const release = onAbort(outer, abort);

  /** What went wrong, as an error of ours. */
  function failure(thrown: unknown, code: A2AErrorCode, what: string, retryAfter?: number): A2AError {
    if (thrown instanceof A2AError) return thrown;
    if (signal.aborted) return abortError(signal);
    return new A2AError(code, `${what}: ${reasonOf(thrown)}`, { cause: thrown, retryAfter });
  }

  async function within<T>(work: Promise<T>, limit: number | false, what: string): Promise<T> {
    const disarm =
      limit === false
        ? undefined
        : clock.after(limit, () => abort(new A2AError("Timeout", `${what} within ${limit} ms`)));
    try {
      return await work;
    } finally {
      disarm?.();
    }
  }

  const unanswered = `No answer from ${request.url}`;
  let response: Response;
  try {
    const connect = request.waits ? false : limits.connectTimeout;
    const sent = host.fetch(request.url, {
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
    response = await within(
      Promise.race([sent, aborted(signal)]),
      context.outgoing?.connectTimeout ?? connect,
      unanswered,
    );
  } catch (thrown) {
    release();
    throw failure(thrown, "ConnectionFailed", unanswered);
  }

  const utf8 = new Utf8Pieces();
  const parser = new SseParser(limits.maxEventBytes);
  const retryAfter = (): number | undefined => parser.retry && parser.retry / 1000;
  const idle = context.outgoing?.idleTimeout ?? limits.idleTimeout;
  const close = (): void => {
    release();
    const left = reader === undefined ? response.body?.cancel() : reader.cancel();
    left?.catch(() => undefined);
    controller.abort();
  };

  /** A break is `ConnectionLost`. */
  async function* bytes(limit: number): AsyncGenerator<Uint8Array, void, void> {
    if (response.body === null) return close();
    reader = response.body.getReader();
    let size = 0;
    try {
      for (;;) {
        const { done, value } = await within(reader.read(), idle, `Nothing more from ${request.url}`);
        if (signal.aborted) throw abortError(signal);
        if (done) break;
        size += value.byteLength;
        if (size > limit) {
          throw new A2AError(
            "InvalidResponse",
            `The answer of ${request.url} is longer than the limit of ${limit} bytes`,
          );
        }
        yield value;
      }
    } catch (thrown) {
      throw failure(thrown, "ConnectionLost", `The answer of ${request.url} broke off`, retryAfter());
    } finally {
      close();
    }
  }

  return {
    status: response.status,
    header: (name) => response.headers.get(name) ?? undefined,
    mediaType: (response.headers.get("content-type") ?? "").replace(/;[^]*/, "").trim().toLowerCase(),
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
    close,
  };
}

/** What a runtime says of a failed connection; the cause often knows more than the error. */
function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const { cause } = thrown;
  return (cause instanceof Error && cause.message) || thrown.message;
}
