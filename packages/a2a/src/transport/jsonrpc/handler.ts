import { type LogFields, deferred } from "../../base/index.ts";
import {
  speaksJsonRpc,
  type JsonRpcCodec,
  type JsonRpcWire,
  methodShapes,
  versionOfSilence,
} from "../../wire/codec.ts";
import { answerCall, type AnyReply, type ServerCall } from "../server/answer-call.ts";
import {
  interfaceAt,
  speakers,
  tenantPath,
  type ClaimedPath,
  type HttpEndpoint,
  type ServerBinding,
  type ServerHost,
} from "../server/binding.ts";
import type { ServerContext } from "../server/context.ts";
import { codecOf, messageText, parseJson, requestedVersion, bodyText } from "../server/request.ts";
import { discard, streamHeaders, writeEvents, type EventFormat } from "../server/event-stream.ts";
import { bodyOf, errorHeaders, failureOf, withExtensions, type Headers, type WireError } from "../server/response.ts";
import { A2AError, wireErrors } from "../../model/index.ts";
import {
  isMethod,
  type IncomingFiles,
  type OperationName,
  type Principal,
  type StreamItem,
  type StreamReply,
  type UnaryName,
  type UniversalRequest,
  type UniversalResponse,
} from "../../protocol/index.ts";
import { isObject } from "../../model/schema.ts";

const name = "JSONRPC";

/**
 * JSON-RPC at a server (A2A 1.0 §9). Every method is a POST to one URL. Versions whose requests cannot name a tenant have a URL per tenant
 * below that URL.
 */
export function jsonRpcBinding(): ServerBinding {
  return {
    name,
    interfaces: (agent, codec) => (speaksJsonRpc(codec) ? [interfaceAt(agent, codec)] : []),
    http: {
      claim({ path, tenants }, codecs) {
        const paths: ClaimedPath[] = [{ path, page: true }];
        if (codecs.some((codec) => codec.tenantInPath === true && speaksJsonRpc(codec))) {
          for (const tenant of tenants)
            if (tenant !== undefined) paths.push({ path: tenantPath(path, tenant), tenant, page: true });
        }
        return { paths };
      },
      open: (host) => jsonRpcEndpoint(host, speakers(name, host.codecs, speaksJsonRpc)),
    },
  };
}

/** The answer to a notification. */
const noContent: UniversalResponse = { status: 204, headers: { "cache-control": "no-store" } };

type Codecs = readonly [JsonRpcCodec, ...JsonRpcCodec[]];

function jsonRpcEndpoint(host: ServerHost, codecs: Codecs): HttpEndpoint {
  return {
    answer: (request, { query }) => answerCall(host, new JsonRpcServerCall(host, codecs, request, query)),
    refuse: async (error, request) =>
      errorResponse(codecs[0].bindings.JSONRPC, await idOfRefused(host, request), error),
  };
}

/** One request. Its members are set while the request is read, and its answer or its error is written with them. */
class JsonRpcServerCall implements ServerCall<string, UniversalResponse>, EventFormat {
  readonly request: UniversalRequest;
  readonly streamsFiles = true;
  files?: IncomingFiles;
  codec: JsonRpcCodec;
  shapes: JsonRpcWire;
  operation: OperationName = "SendMessage";
  readonly #host: ServerHost;
  readonly #codecs: Codecs;
  readonly #query: string;
  /** The id of the request; `undefined` for a notification, which gets no answer. */
  #id: JsonRpcId | undefined = null;
  #method: string | undefined;
  /** Whether reading the body has started. */
  #reads = false;
  /** The text before the result of a response. */
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
    if (this.request.method !== "POST") throw new A2AError("MethodNotAllowed", "JSON-RPC requests must use POST");
  }

  body(principal: Principal): Promise<string> {
    this.#reads = true;
    return messageText(this.#host, this, principal);
  }

  read(text: string): unknown {
    const { limits } = this.#host;
    // The JSON-RPC envelope adds a level of nesting to the request of the operation.
    const value = parseJson(text, this.request, limits, limits.depth + 1);
    if (value === undefined) throw new A2AError("ParseError", "The request has no body");
    this.#id = idOf(value);
    const { id, method, params } = readCall(value);
    this.#id = id;
    this.#method = method;
    this.codec = this.#codecOf(method);
    this.shapes = this.codec.bindings.JSONRPC;
    this.operation = this.#operationOf(method);
    if (isMethod(this.operation)) this.shapes = { ...this.shapes, ...methodShapes };
    return params;
  }

  /**
   * The version of the request. A request without a version (examples of the specification omit the header) gets the first version that has its
   * method; with `strictVersion`, the version that A2A 1.0 §3.6.2 defines.
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
    const own = this.#host.methods?.find(({ jsonrpc }) => jsonrpc === method);
    if (own !== undefined) return own.name;
    const elsewhere = this.#codecs.some(({ bindings }) => bindings.JSONRPC.operation(method) !== undefined);
    const versions = this.#codecs.map(({ version }) => version).join(", ");
    throw new A2AError(
      "MethodNotFound",
      elsewhere
        ? `Protocol version ${this.codec.version} has no method of that name`
        : `No protocol version of this server (${versions}) has a method of that name`,
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
    return { status: 200, headers, body: bodyOf(text, context, reply.inline) };
  }

  async stream({ batches, extensions, inline }: StreamReply, context: ServerContext): Promise<UniversalResponse> {
    if (this.#id === undefined) {
      await discard(batches);
      context.end();
      return noContent;
    }
    this.#open = this.#begin();
    return {
      status: 200,
      headers: withExtensions(streamHeaders, extensions, this.request),
      body: writeEvents(batches, this, this.#host, context, this.operation, inline),
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

  async fail(thrown: unknown, fields?: LogFields): Promise<UniversalResponse> {
    const { request } = this;
    const told = { binding: "JSONRPC", method: this.#method, ...fields };
    const error = failureOf(thrown, this.#host.logger, told, () => request.signal.aborted);
    const { http } = wireErrors[error.code];
    if (!this.#reads && (http === 401 || http === 403)) this.#id = await idOfRefused(this.#host, request);
    // Answers notifications too, contrary to JSON-RPC 2.0 §4.1, because A2A has no notifications, and a client that forgot the id needs the error.
    const response = errorResponse(this.shapes, this.#id ?? null, error);
    return this.#readsEvents() ? inStream(response) : response;
  }

  /**
   * Whether to send an error as an event, because clients in Go and .NET treat an error in JSON as a stream without events. True if the
   * caller accepts events but not JSON. Unary calls always get JSON.
   */
  #readsEvents(): boolean {
    const accepted = this.request.header("accept");
    if (accepted === undefined || !accepted.includes("text/event-stream") || accepted.includes("json")) return false;
    const operation = isMethod(this.operation) ? this.operation : this.shapes.operation(this.#method ?? "");
    // If the method is not known yet or is wrong, the error is an event whenever the client waits for events.
    return operation === undefined || this.#host.operations[operation]?.stream === true;
  }
}

/** An error as the only event of a stream. An error of HTTP itself stays unchanged, because every client reads the HTTP status. */
function inStream(response: UniversalResponse): UniversalResponse {
  const { status, headers, body } = response;
  if (status !== 200 || typeof body !== "string") return response;
  return { status, headers: { ...headers, ...streamHeaders }, body: `data: ${body}\n\n` };
}

/** The request object of JSON-RPC 2.0 (A2A 1.0 §9.3). */
interface JsonRpcCall {
  /** `undefined` for a notification, which gets no answer. */
  readonly id: JsonRpcId | undefined;
  readonly method: string;
  readonly params: unknown;
}

function readCall(value: unknown): JsonRpcCall {
  if (Array.isArray(value)) throw invalid("", "is a batch, which A2A does not support: send one request at a time");
  if (!isObject(value)) throw invalid("", "must be a JSON object");
  const { jsonrpc, id, method, params } = value;
  if (jsonrpc !== "2.0") throw invalid("jsonrpc", 'must be "2.0"');
  if (id !== undefined && id !== null && typeof id !== "string" && !Number.isSafeInteger(id)) {
    throw invalid("id", "must be a string, an integer or null");
  }
  if (typeof method !== "string" || method === "") throw invalid("method", "must name a method");
  return { id: id as JsonRpcId | undefined, method, params: params ?? {} };
}

function invalid(field: string, description: string): A2AError {
  return new A2AError("InvalidRequest", `Not a JSON-RPC 2.0 request: ${field === "" ? "it" : field} ${description}`, {
    fields: field === "" ? [] : [{ field, description }],
  });
}

const jsonHeaders: Headers = { "content-type": "application/json", "cache-control": "no-store" };

/** An error as a JSON-RPC response (A2A 1.0 §9.5). */
function errorText(wire: JsonRpcWire, id: JsonRpcId, error: WireError): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":${JSON.stringify(wire.encodeError(error))}}`;
}

/** The HTTP status is 200, except for errors of HTTP itself: credentials, sizes, media types, load. */
function errorResponse(wire: JsonRpcWire, id: JsonRpcId, error: WireError): UniversalResponse {
  const { http, outside } = wireErrors[error.code];
  return {
    // An error with its own JSON-RPC code is an error of JSON-RPC, not of HTTP.
    status: outside === true && error.sentAs?.jsonrpc === undefined ? http : 200,
    headers: errorHeaders(jsonHeaders, error, error.code === "MethodNotAllowed" ? "POST" : undefined),
    body: errorText(wire, id, error),
  };
}

/** The id of a request, which its answer repeats (JSON-RPC 2.0 §5). */
export type JsonRpcId = string | number | null;

/** The id for the answer; `null` if the request has no valid id. */
export function idOf(value: unknown): JsonRpcId {
  const id = isObject(value) ? value["id"] : undefined;
  return typeof id === "string" || Number.isSafeInteger(id) ? (id as JsonRpcId) : null;
}

/** Maximum bytes of a rejected request that are read to find its id. */
const refusedBytes = 64 * 1024;
/** Maximum wait for these bytes, in milliseconds. */
const refusedTime = 5_000;

/** The id of a request with a rejected caller (JSON-RPC 2.0 §5); `null` if it cannot be read quickly within a small memory limit. */
export async function idOfRefused({ clock, limits }: ServerHost, request: UniversalRequest): Promise<JsonRpcId> {
  // The client sends its body only after a `100 Continue` (RFC 9110 §10.1.1), which a rejection does not send.
  if (request.header("expect") !== undefined) return null;
  const late = deferred<string>();
  const stop = clock.after(refusedTime, () => late.resolve(""));
  const bodyBytes = Math.min(refusedBytes, limits.bodyBytes);
  try {
    const text = await Promise.race([late.promise, bodyText(request, { ...limits, bodyBytes })]);
    return idOf(parseJson(text, request, limits, limits.depth + 1));
  } catch {
    return null;
  } finally {
    stop();
  }
}
