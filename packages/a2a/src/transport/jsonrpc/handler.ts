import { A2AError } from "../../model/index.ts";
import type {
  OperationName,
  StreamItem,
  StreamReply,
  UnaryName,
  UniversalRequest,
  UniversalResponse,
} from "../../protocol/index.ts";
import { versionOfSilence } from "../../wire/codec.ts";
import type { JsonRpcCodec, JsonRpcWire } from "../../wire/bindings.ts";
import { answerCall, type AnyReply, type ServerCall } from "../server/answer-call.ts";
import type { HttpEndpoint } from "../server/binding.ts";
import type { ServerHost } from "../server/host.ts";
import { bodyOf } from "../server/pieces.ts";
import { bodyText, codecOf, parseJson, requestedVersion, type ServerContext } from "../server/request.ts";
import { failureOf, withExtensions, type WireError } from "../server/response.ts";
import { discard, streamHeaders, writeEvents, type EventFormat } from "../sse/write.ts";
import { idOf, readCall, type JsonRpcId } from "./envelope.ts";
import { errorResponse, errorText, jsonHeaders } from "./errors.ts";

const noContent: UniversalResponse = { status: 204, headers: { "cache-control": "no-store" } };

type Codecs = readonly [JsonRpcCodec, ...JsonRpcCodec[]];

export function jsonRpcEndpoint(host: ServerHost, codecs: Codecs): HttpEndpoint {
  return {
    answer: (request, { query }) => answerCall(host, new JsonRpcServerCall(host, codecs, request, query)),
    refuse: (error) => errorResponse(codecs[0].bindings.JSONRPC, null, error),
  };
}

/** A request, as far as it has been read: its answer, whatever it is, is put in these words. */
class JsonRpcServerCall implements ServerCall<string, UniversalResponse>, EventFormat {
  readonly request: UniversalRequest;
  codec: JsonRpcCodec;
  shapes: JsonRpcWire;
  operation: OperationName = "SendMessage";
  readonly #host: ServerHost;
  readonly #codecs: Codecs;
  readonly #query: string;
  /** To answer under; `undefined` for a notification, which nobody waits an answer for. */
  #id: JsonRpcId | undefined = null;
  #method: string | undefined;
  /** The beginning of a response that has a result. */
  #open = "";

  constructor(host: ServerHost, codecs: Codecs, request: UniversalRequest, query: string) {
    this.request = request;
    this.codec = codecs[0];
    this.shapes = this.codec.bindings.JSONRPC;
    this.#host = host;
    this.#codecs = codecs;
    this.#query = query;
  }

  accept(): void {
    if (this.request.method !== "POST") throw new A2AError("MethodNotAllowed", "JSON-RPC requests are sent by POST");
  }

  body(): Promise<string> {
    return bodyText(this.request, this.#host.limits);
  }

  read(text: string): unknown {
    const { limits } = this.#host;
    // The envelope and `params` are levels of their own, so that all bindings allow the same message.
    const value = parseJson(text, this.request, limits, limits.depth + 1);
    if (value === undefined) throw new A2AError("ParseError", "The request has no body");
    this.#id = idOf(value);
    const { id, method, params } = readCall(value);
    this.#id = id;
    this.#method = method;
    this.codec = this.#codecOf(method);
    this.shapes = this.codec.bindings.JSONRPC;
    this.operation = this.#operationOf(method);
    return params;
  }

  /**
   * The version that a call is to be read in. One that names none is read in the version that has its method: a plain
   * curl must work, the texts' own examples omit the header. `strictVersion` holds it to §3.6.2 instead.
   */
  #codecOf(method: string): JsonRpcCodec {
    const codecs = this.#codecs;
    const named = requestedVersion(this.request, this.#query);
    const version = named ?? (this.#host.strictVersion ? versionOfSilence : undefined);
    if (version !== undefined) return codecOf(codecs, version);
    return codecs.find(({ bindings }) => bindings.JSONRPC.operation(method) !== undefined) ?? codecs[0];
  }

  #operationOf(method: string): OperationName {
    const operation = this.shapes.operation(method);
    if (operation !== undefined && this.#host.operations[operation] !== undefined) return operation;
    const elsewhere = this.#codecs.some(({ bindings }) => bindings.JSONRPC.operation(method) !== undefined);
    const versions = this.#codecs.map(({ version }) => version).join(", ");
    throw new A2AError(
      "MethodNotFound",
      elsewhere
        ? `Protocol version ${this.codec.version} has no method of that name`
        : `No protocol version that is spoken here (${versions}) has a method of that name`,
    );
  }

  reply(reply: AnyReply, context: ServerContext): UniversalResponse {
    if (this.#id === undefined) {
      context.end();
      return noContent;
    }
    const headers = withExtensions(jsonHeaders, reply.extensions, this.request);
    const operation = this.operation as UnaryName;
    const open = this.#begin();
    const pieces = this.shapes.responsePieces?.<OperationName>(operation, reply);
    const text =
      pieces === undefined
        ? `${open}${this.shapes.encodeResponse<OperationName>(operation, reply)}}`
        : [open, ...pieces, "}"];
    return { status: 200, headers, body: bodyOf(text, context) };
  }

  stream({ batches, extensions }: StreamReply, context: ServerContext): UniversalResponse | Promise<UniversalResponse> {
    if (this.#id === undefined) return dropped(batches, context);
    this.#open = this.#begin();
    return {
      status: 200,
      headers: withExtensions(streamHeaders, extensions, this.request),
      body: writeEvents(batches, this, this.#host, context, this.operation),
    };
  }

  #begin(): string {
    return `{"jsonrpc":"2.0","id":${JSON.stringify(this.#id)},"result":`;
  }

  event(item: StreamItem): string {
    return `${this.#open}${this.shapes.encodeEvent(item)}}`;
  }

  pieces(item: StreamItem): readonly string[] | undefined {
    const pieces = this.shapes.eventPieces?.(item);
    return pieces && [this.#open, ...pieces, "}"];
  }

  error(error: WireError): string {
    return `data: ${errorText(this.shapes, this.#id ?? null, error)}`;
  }

  fail(thrown: unknown): UniversalResponse {
    const { request } = this;
    const told = { binding: "JSONRPC", method: this.#method };
    const error = failureOf(thrown, this.#host.logger, told, () => request.signal.aborted);
    // Without an id too, where JSON-RPC 2.0 §4.1 wants silence: nobody sends A2A notifications on purpose, and who
    // forgets the id must hear what is wrong.
    const response = errorResponse(this.shapes, this.#id ?? null, error);
    return this.#readsEvents() ? inStream(response) : response;
  }

  /** Whether the caller reads the answer as events, whatever it is: it asks for them, and not for JSON. Python's SDK sends a wildcard as well. */
  #readsEvents(): boolean {
    if (this.#method === undefined || this.shapes.streamsErrors !== true) return false;
    const operation = this.shapes.operation(this.#method);
    const accepted = this.request.header("accept") ?? "";
    const isStream = operation !== undefined && this.#host.operations[operation]?.stream === true;
    return isStream && accepted.includes("text/event-stream") && !accepted.includes("json");
  }
}

/** A stream that nobody waits for. */
async function dropped(batches: StreamReply["batches"], context: ServerContext): Promise<UniversalResponse> {
  await discard(batches);
  context.end();
  return noContent;
}

/** An error as the one event of a stream. What never reached JSON-RPC stays as it is. */
function inStream({ status, headers, body }: UniversalResponse): UniversalResponse {
  if (status !== 200 || typeof body !== "string") return { status, headers, ...(body !== undefined && { body }) };
  return { status, headers: streamHeaders, body: `data: ${body}\n\n` };
}
