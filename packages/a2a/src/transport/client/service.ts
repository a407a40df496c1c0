import {
  A2AError,
  stateKinds,
  type TaskState,
  type A2AErrorOptions,
  codeOfStatus,
  hasCode,
  type WireErrorCode,
} from "../../model/index.ts";
import {
  type AgentService,
  type CallContext,
  closesAfter,
  finishing,
  type OperationName,
  type Operations,
  Payload,
  stateOf,
  type StreamItem,
  type StreamName,
  type StreamReply,
  type UnaryName,
  type UnaryOperations,
} from "../../protocol/index.ts";
import type { Shapes } from "../../wire/codec.ts";
import type { ClientHost } from "./binding.ts";
import type { Clock } from "../../base/index.ts";
import { nestsDeeper } from "../../base/json-text.ts";
import { retryAfterOf } from "../../base/http.ts";
import type { chunkDecoder } from "./events.ts";
import type { ClientResponse } from "./request.ts";

/** Shared by the bindings of a client. */

/** A call whose request is encoded in the shapes of a version. */
export interface EncodedCall<Name extends OperationName = OperationName> {
  /** The operation. */
  readonly operation: Name;
  /** The request, as a JSON value that is not serialized yet. */
  readonly params: unknown;
  /** The context of the call. */
  readonly context: CallContext;
  /**
   * Maximum wait for the answer to begin, in milliseconds. `false` means no limit, which is the default for a send that waits for its task
   * (A2A 1.0 §3.2.2).
   */
  readonly timeout: number | false;
}

/** Sends the calls of a client. Both methods throw the error with which the server rejects a call. */
export interface ClientTransport {
  /** Sends a call. Returns its result as parsed JSON, and the URIs of the extensions that the server activated. */
  call(call: EncodedCall<UnaryName>): Promise<{ readonly result: unknown; readonly extensions?: readonly string[] }>;
  /** Sends a call that is answered with events. `readEvents()` creates the `batches` of the reply. */
  stream(call: EncodedCall<StreamName>): Promise<StreamReply>;
}

/** Makes the service of a binding: encodes requests in the shapes of a version, and decodes the results of `transport`. */
export function clientService(
  shapes: Pick<Shapes, "encodeRequest" | "decodeResponse">,
  host: ClientHost,
  transport: ClientTransport,
): AgentService {
  function encoded<Name extends OperationName>(
    operation: Name,
    request: Operations[Name]["request"],
    context: CallContext,
  ): EncodedCall<Name> {
    const { configuration } = request as Operations["SendMessage"]["request"];
    const waits = operation === "SendMessage" && !configuration?.returnImmediately;
    const timeout = context.outgoing?.connectTimeout ?? (!waits && host.limits.connectTimeout);
    // Requests and responses of extension methods are JSON on every wire.
    const params = context.outgoing?.method ? request : shapes.encodeRequest(operation, request);
    return { operation, params, context, timeout };
  }
  return {
    async call<Name extends UnaryName>(
      operation: Name,
      request: UnaryOperations[Name]["request"],
      context: CallContext,
    ) {
      const { result, ...reply } = await transport.call(encoded<UnaryName>(operation, request, context));
      const response = context.outgoing?.method ? (result as never) : shapes.decodeResponse<Name>(operation, result);
      return { ...reply, payload: new Payload(response) };
    },
    stream: async (operation, request, context) => transport.stream(encoded<StreamName>(operation, request, context)),
  };
}

/** The events of a stream as they arrive. */
export interface EventSource<Raw> {
  /** The events, in batches as they arrive. Throws the error that ends the stream early. */
  readonly batches: AsyncIterable<readonly Raw[]>;
  /** Reads one event: its JSON, and its number in the log of the task if the server sends a number. Throws if the event is an error. */
  read(raw: Raw): { readonly event: unknown; readonly seq?: number | undefined };
  /** Ends the request. Called when the stream is over, and when the reader stops, even before the first read. */
  close(): void;
}

/** Decodes the events of a stream, up to the event that ends it. Throws `ConnectionLost` if the source ends earlier. */
export function readEvents<Raw>(
  shapes: Pick<Shapes, "decodeEvent" | "endsStream">,
  operation: StreamName,
  source: EventSource<Raw>,
): StreamReply["batches"] {
  let ends: boolean | undefined;
  const itemOf = (raw: Raw): StreamItem => {
    const { event, seq } = source.read(raw);
    ends = shapes.endsStream?.(event);
    return { payload: new Payload(shapes.decodeEvent(event)), ...(seq !== undefined && { seq }) };
  };
  const batches = untilOver(source.batches, operation, itemOf, () => ends);
  return finishing(batches, () => source.close());
}

/**
 * The items of a stream, until the protocol ends it. Throws `ConnectionLost` if the source ends earlier.
 *
 * @param itemOf - Reads one event. If this throws, earlier events are delivered first.
 * @param ends - Whether the event read last is marked as the end of the stream. Default: the state decides.
 * @param retryAfter - Seconds after which a reader may reconnect if the stream breaks.
 */
export async function* untilOver<Raw>(
  source: AsyncIterable<readonly Raw[]>,
  operation: StreamName,
  itemOf: (raw: Raw) => StreamItem,
  ends: () => boolean | undefined,
  retryAfter?: () => number | undefined,
): AsyncGenerator<readonly StreamItem[], void, void> {
  let state: TaskState | undefined;
  let first = true;
  for await (const raws of source) {
    const batch: StreamItem[] = [];
    let over = false;
    let broken: { readonly error: unknown } | undefined;
    try {
      for (const raw of raws) {
        const item = itemOf(raw);
        batch.push(item);
        const event = item.payload.value;
        state = stateOf(event) ?? state;
        // For a message to an interrupted task, some servers start the stream with the old task. More events follow.
        const opening = first && event.task !== undefined && state !== undefined && stateKinds[state] === "interrupted";
        first = false;
        over = ends() || (!opening && closesAfter(event, operation));
        if (over) break;
      }
    } catch (thrown) {
      broken = { error: thrown };
    }
    if (batch.length > 0) yield batch;
    if (broken !== undefined) throw broken.error;
    if (over) return;
  }
  // Some servers end a stream while its task is interrupted (§11.7). In any other state, events are missing.
  if (state === undefined || stateKinds[state] === "active") {
    throw new A2AError("ConnectionLost", "The stream ended before its task did", { retryAfter: retryAfter?.() });
  }
}

/** Functions for HTTP responses, for JSON-RPC and REST. */

/** The URIs that the server activated (A2A 1.0 §4.6.1), from the header `A2A-Extensions`, or before 1.0 `X-A2A-Extensions`. */
export function activatedExtensions(response: ClientResponse): { extensions?: readonly string[] } {
  const uris = response.header("a2a-extensions") ?? response.header("x-a2a-extensions");
  return uris === undefined ? {} : { extensions: uris.match(/[^\s,]+/g) ?? [] };
}

/** The body as JSON; `undefined` if the body is not JSON. Accepts `text/plain`, Go's default, because some servers in Go set no media type. */
export function parseJson(response: ClientResponse, text: string): unknown {
  return /^$|[/+]json$|^text\/plain$/.test(response.mediaType) ? readJson(text) : undefined;
}

/** Maximum nesting of a response. Code that walks a deeper value could exceed the stack. */
const maxDepth = 512;

/** Parses JSON; `undefined` if it is not JSON. Throws `InvalidResponse` if it nests too deeply. */
function readJson(text: string): unknown {
  if (nestsDeeper(text, maxDepth)) {
    throw new A2AError("InvalidResponse", `The answer nests deeper than ${maxDepth} levels`);
  }
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}

/** Parses the text of an event. Throws `InvalidResponse`. */
export function eventJson(data: string): unknown {
  const value = readJson(data);
  if (value !== undefined) return value;
  throw new A2AError("InvalidResponse", `An event of the stream is not JSON: ${excerpt(data)}`);
}

/** The error of a rejected request, from its body, its status (a proxy's answer), `WWW-Authenticate` and `Retry-After`. */
export function refusal(
  response: ClientResponse,
  clock: Clock,
  url: string,
  text: string,
  decoded: A2AError | undefined,
): A2AError {
  const byStatus = codeOfStatus(response.status);
  const retryAfter = retryAfterOf(response.header("retry-after"), clock.now()) ?? decoded?.retryAfter;
  const challenge = response.header("www-authenticate") ?? decoded?.challenge;
  if (!decoded && !byStatus) return strangeAnswer(response, url, text);
  // An HTTP status is more specific than these codes.
  const vague = hasCode(decoded, "InternalError", "InvalidRequest", "MethodNotFound", "ParseError");
  const own = vague ? undefined : decoded?.code;
  const options: A2AErrorOptions | undefined = decoded;
  const code = (own ?? byStatus ?? decoded?.code) as WireErrorCode;
  const message = response.status === 431 ? `${url} does not accept headers of this size (HTTP 431)` : decoded?.message;
  return new A2AError(code, message, { ...options, retryAfter, challenge });
}

/** The error of a response that does not follow the protocol. `metadata.httpStatus` is its status. */
export function strangeAnswer(response: ClientResponse, url: string, text: string): A2AError {
  const { status } = response;
  const shown = excerpt(text);
  const location = response.header("location");
  const what =
    // A browser reports a redirect as status 0.
    status === 0 || (status >= 300 && status < 400)
      ? `a redirect${location === undefined ? "" : ` to ${location}`}, which is not followed`
      : `HTTP ${status}, ${response.mediaType || "no media type"}${shown === "" ? "" : `: ${shown}`}`;
  return new A2AError("InvalidResponse", `${url} does not answer in the protocol: ${what}`, {
    metadata: { httpStatus: String(status) },
  });
}

/** The beginning of an error page as plain text. The pattern takes linear time. */
function excerpt(text: string): string {
  const plain = text
    .slice(0, 50_000)
    .replace(/<(style|script)[^]*?(<\/\1>|$)|<[^<>]*>/gi, " ")
    .replace(/\s+/g, " ")
    .trim();
  return plain.length > 200 ? `${plain.slice(0, 200)}…` : plain;
}

/**
 * The items of an event stream up to its end. Throws `ConnectionLost` if the stream ends early. `parse` returns the JSON of an event, or
 * throws if the event is an error. `decoder` may decode some events faster.
 */
export function streamItems(
  response: ClientResponse,
  operation: StreamName,
  shapes: Pick<Shapes, "decodeEvent" | "endsStream">,
  parse: (data: string) => unknown,
  decoder: typeof chunkDecoder,
): StreamReply["batches"] {
  let ends: boolean | undefined;
  const decode = decoder((data) => {
    const value = parse(data);
    ends = shapes.endsStream?.(value);
    return shapes.decodeEvent(value);
  });
  const items = untilOver(
    response.events(),
    operation,
    ({ id, data }) => ({ seq: seqOf(id), payload: new Payload(decode(data)) }),
    () => ends,
    () => response.retryAfter(),
  );
  return finishing(items, () => response.close());
}

/** The number of an event in the log of its task, if its id is such a number. */
function seqOf(id: string | undefined): number | undefined {
  return id !== undefined && /^\d{1,15}$/.test(id) ? Number(id) : undefined;
}
