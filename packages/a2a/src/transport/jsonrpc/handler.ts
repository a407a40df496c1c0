import { A2AError, wireErrors } from "../../model/index.ts";
import type {
  OperationName,
  Principal,
  StreamName,
  UnaryName,
  UniversalRequest,
  UniversalResponse,
} from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import { serviceOf, type Binding, type Endpoint, type Target } from "../server/binding.ts";
import { callContext, codecOf, readJson, requestedVersion, versionOfSilence } from "../server/request.ts";
import { failureOf, withExtensions } from "../server/response.ts";
import { discard, streamHeaders, writeEvents } from "../sse/write.ts";
import { idOf, readCall, type JsonRpcCall, type JsonRpcId } from "./envelope.ts";
import { errorResponse, errorText, jsonHeaders } from "./errors.ts";

const noContent: UniversalResponse = { status: 204, headers: { "cache-control": "no-store" } };

/** The JSON-RPC binding (A2A 1.0 §9): every method is a POST to the base itself. */
export function jsonrpcEndpoint(binding: Binding): Endpoint {
  return async (request, target) => {
    let id: JsonRpcId = null;
    let codec: Codec = binding.codecs[0];
    let call: JsonRpcCall | undefined;
    try {
      if (request.method !== "POST") throw new A2AError("MethodNotAllowed", "JSON-RPC requests are sent by POST");
      const principal = await binding.authenticate(request);
      // The envelope and `params` are levels of their own, so that both bindings allow the same message.
      const value = await readJson(request, binding.limits, binding.limits.depth + 1);
      if (value === undefined) throw new A2AError("ParseError", "The request has no body");
      id = idOf(value);
      call = readCall(value);
      codec = codecOfCall(binding, request, target, call.method);
      return await answer(binding, codec, call, request, principal);
    } catch (thrown) {
      const error = failureOf(thrown, binding.logger, { binding: "JSONRPC", method: call?.method });
      if (call !== undefined && call.id === undefined && !wireErrors[error.code].outside) return noContent;
      return errorResponse(codec, id, error);
    }
  };
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

async function answer(
  binding: Binding,
  codec: Codec,
  call: JsonRpcCall,
  request: UniversalRequest,
  principal: Principal,
): Promise<UniversalResponse> {
  const operation = codec.jsonrpc.operation(call.method);
  const info = operation === undefined ? undefined : binding.operations[operation];
  if (operation === undefined || info === undefined) {
    throw new A2AError("MethodNotFound", `Protocol version ${codec.version} has no method of that name`);
  }
  const params = codec.decodeRequest(operation, call.params);
  const service = serviceOf(binding, params.tenant);
  const context = callContext(request, principal, codec.version, info.stream);
  if (info.stream) {
    const reply = await service.stream(operation as StreamName, params as never, context);
    if (call.id === undefined) {
      await discard(reply.batches);
      return noContent;
    }
    const { id } = call;
    const open = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`;
    return {
      status: 200,
      headers: withExtensions(streamHeaders, reply.extensions),
      body: writeEvents(
        reply.batches,
        {
          event: (item) => `${open}${codec.encodeEvent(item)}}`,
          error: (error) => `data: ${errorText(codec, id, error)}`,
        },
        binding,
        operation,
      ),
    };
  }
  const reply = await service.call(operation as UnaryName, params, context);
  if (call.id === undefined) return noContent;
  return {
    status: 200,
    headers: withExtensions(jsonHeaders, reply.extensions),
    body: `{"jsonrpc":"2.0","id":${JSON.stringify(call.id)},"result":${codec.encodeResponse<OperationName>(operation, reply)}}`,
  };
}
