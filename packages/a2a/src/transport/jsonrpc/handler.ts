import { A2AError } from "../../model/index.ts";
import type {
  OperationName,
  Principal,
  Reply,
  StreamName,
  StreamReply,
  UnaryName,
  UnaryOperations,
  UniversalRequest,
  UniversalResponse,
} from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import type { Binding, Endpoint, HttpBinding, Target } from "../server/binding.ts";
import { invoke, type Invoked } from "../server/invoke.ts";
import {
  bodyText,
  codecOf,
  parseJson,
  requestedVersion,
  versionOfSilence,
  type ServerContext,
} from "../server/request.ts";
import { bodyOf } from "../server/pieces.ts";
import { failureOf, withExtensions } from "../server/response.ts";
import { discard, streamHeaders, writeEvents } from "../sse/write.ts";
import { idOf, readCall, type JsonRpcCall, type JsonRpcId } from "./envelope.ts";
import { errorResponse, errorText, jsonHeaders } from "./errors.ts";

const noContent: UniversalResponse = { status: 204, headers: { "cache-control": "no-store" } };

/** The JSON-RPC binding (A2A 1.0 §9): every method is a POST to the base itself. */
export function jsonrpcEndpoint(binding: HttpBinding): Endpoint {
  const { limits } = binding;
  return async (request, target) => {
    const asked: Asked = { id: null, codec: binding.codecs[0], call: undefined, context: undefined };
    try {
      if (request.method !== "POST") throw new A2AError("MethodNotAllowed", "JSON-RPC requests are sent by POST");
      const known = binding.authenticate(request);
      const principal = known instanceof Promise ? await known : known;
      // Neither the text nor what it says stands in a variable here: those live until the answer, which may be hours away.
      const invoked = invokeText(binding, asked, request, target, principal, await bodyText(request, limits));
      const { codec } = asked;
      const call = asked.call as NamedCall;
      asked.context = invoked.context;
      return invoked.stream
        ? await streamed(binding, codec, call, request, invoked.context, invoked.operation, await invoked.reply)
        : answered(codec, call, request, invoked.context, invoked.operation, await invoked.reply);
    } catch (thrown) {
      asked.context?.end();
      const { id, codec, call } = asked;
      const error = failureOf(
        thrown,
        binding.logger,
        { binding: "JSONRPC", method: call?.method },
        () => request.signal.aborted,
      );
      // Without an id too, where JSON-RPC 2.0 §4.1 wants silence: nobody sends A2A notifications on purpose, and who
      // forgets the id must hear what is wrong.
      return call !== undefined && readsEvents(binding, codec, call, request)
        ? inStream(errorResponse(codec, id, error))
        : errorResponse(codec, id, error);
    }
  };
}

/** A call without its parameters. */
type NamedCall = Omit<JsonRpcCall, "params">;

/** What a request has turned out to be so far: its answer, whatever it is, is put in these words. */
interface Asked {
  id: JsonRpcId;
  codec: Codec;
  call: NamedCall | undefined;
  context: ServerContext | undefined;
}

function invokeText(
  binding: HttpBinding,
  asked: Asked,
  request: UniversalRequest,
  target: Target,
  principal: Principal,
  text: string,
): Invoked {
  const { limits } = binding;
  // The envelope and `params` are levels of their own, so that both bindings allow the same message.
  const value = parseJson(text, request, limits, limits.depth + 1);
  if (value === undefined) throw new A2AError("ParseError", "The request has no body");
  asked.id = idOf(value);
  const { id, method, params } = readCall(value);
  asked.call = { id, method };
  const codec = (asked.codec = codecOfCall(binding, request, target, method));
  const operation = operationOf(binding, codec, method);
  return invoke(binding, codec, codec.jsonrpc, operation, params, request, principal);
}

/** Whether the caller reads the answer as events, whatever it is: it asks for them, and not for JSON. Python's SDK sends a wildcard as well. */
function readsEvents(binding: Binding, codec: Codec, { method }: NamedCall, request: UniversalRequest): boolean {
  if (codec.jsonrpc.streamsErrors !== true) return false;
  const operation = codec.jsonrpc.operation(method);
  const accepted = request.header("accept") ?? "";
  const isStream = operation !== undefined && binding.operations[operation]?.stream === true;
  return isStream && accepted.includes("text/event-stream") && !accepted.includes("json");
}

/** An error as the one event of a stream. What never reached JSON-RPC stays as it is. */
function inStream({ status, headers, body }: UniversalResponse): UniversalResponse {
  if (status !== 200 || typeof body !== "string") return { status, headers, ...(body !== undefined && { body }) };
  return { status, headers: streamHeaders, body: `data: ${body}\n\n` };
}

/**
 * The version that a call is to be read in. One that names none is read in the version that has its method: a plain
 * curl must work, the texts' own examples omit the header. `strictVersion` holds it to §3.6.2 instead.
 */
function codecOfCall(binding: Binding, request: UniversalRequest, target: Target, method: string): Codec {
  const version = requestedVersion(request, target.query) ?? (binding.strictVersion ? versionOfSilence : undefined);
  if (version !== undefined) return codecOf(binding.codecs, version);
  return binding.codecs.find((codec) => codec.jsonrpc.operation(method) !== undefined) ?? binding.codecs[0];
}

function operationOf(binding: Binding, codec: Codec, method: string): OperationName {
  const operation = codec.jsonrpc.operation(method);
  if (operation !== undefined && binding.operations[operation] !== undefined) return operation;
  const elsewhere = binding.codecs.some((other) => other.jsonrpc.operation(method) !== undefined);
  const versions = binding.codecs.map(({ version }) => version).join(", ");
  throw new A2AError(
    "MethodNotFound",
    elsewhere
      ? `Protocol version ${codec.version} has no method of that name`
      : `No protocol version that is spoken here (${versions}) has a method of that name`,
  );
}

function answered(
  codec: Codec,
  { id }: NamedCall,
  request: UniversalRequest,
  context: ServerContext,
  operation: UnaryName,
  reply: Reply<UnaryOperations[UnaryName]["response"]>,
): UniversalResponse {
  if (id === undefined) {
    context.end();
    return noContent;
  }
  const headers = withExtensions(jsonHeaders, reply.extensions, request);
  const open = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`;
  const pieces = codec.jsonrpc.responsePieces?.<OperationName>(operation, reply);
  const text =
    pieces === undefined
      ? `${open}${codec.jsonrpc.encodeResponse<OperationName>(operation, reply)}}`
      : [open, ...pieces, "}"];
  return { status: 200, headers, body: bodyOf(text, context) };
}

async function streamed(
  binding: HttpBinding,
  codec: Codec,
  { id }: NamedCall,
  request: UniversalRequest,
  context: ServerContext,
  operation: StreamName,
  reply: StreamReply,
): Promise<UniversalResponse> {
  if (id === undefined) {
    await discard(reply.batches);
    context.end();
    return noContent;
  }
  const open = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`;
  return {
    status: 200,
    headers: withExtensions(streamHeaders, reply.extensions, request),
    body: writeEvents(
      reply.batches,
      {
        event: (item) => `${open}${codec.jsonrpc.encodeEvent(item)}}`,
        pieces: (item) => {
          const pieces = codec.jsonrpc.eventPieces?.(item);
          return pieces && [open, ...pieces, "}"];
        },
        error: (error) => `data: ${errorText(codec, id, error)}`,
      },
      binding,
      context,
      operation,
    ),
  };
}
