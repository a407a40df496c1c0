import { once } from "../../base/index.ts";
import { A2AError, type AgentInterface } from "../../model/index.ts";
import {
  Payload,
  type AgentService,
  type CallContext,
  type OperationName,
  type Operations,
  type StreamName,
  type StreamOperations,
  type UnaryName,
  type UnaryOperations,
} from "../../protocol/index.ts";
import { byVersion } from "../../wire/codec.ts";
import type { JsonRpcClientCodec } from "../../wire/bindings.ts";
import { activatedExtensions, eventJson, isObject, parseJson, refusal, streamItems } from "../http/answer.ts";
import type { ClientBinding } from "../http/binding.ts";
import { type ClientHost, sendRequest, type ClientResponse, requestHeaders, waits } from "../http/request.ts";

/** JSON-RPC as a client speaks it (A2A 1.0 §9). */
export function jsonRpcBinding(codecs: readonly JsonRpcClientCodec[]): ClientBinding {
  const known = byVersion(codecs);
  return {
    name: "JSONRPC",
    versions: [...known.keys()],
    open(target, version, host) {
      return jsonRpcService(known.get(version) as JsonRpcClientCodec, target, host);
    },
  };
}

function jsonRpcService(codec: JsonRpcClientCodec, { url }: AgentInterface, host: ClientHost): AgentService {
  const wire = codec.bindings.JSONRPC;
  let last = 0;

  async function send<Name extends OperationName>(
    operation: Name,
    request: Operations[Name]["request"],
    context: CallContext,
    accept: string,
  ): Promise<{ id: number; answer: ClientResponse }> {
    const id = ++last;
    const headers = await requestHeaders(host, { url, operation }, context, codec);
    const params = wire.encodeRequest(operation, request);
    const body = JSON.stringify({ jsonrpc: "2.0", id, method: wire.method(operation), params });
    headers["content-type"] = "application/json";
    headers["accept"] = accept;
    const sent = { method: "POST", url, headers, body, waits: waits(operation, request) };
    return { id, answer: await sendRequest(host, sent, context) };
  }

  /** The result of a JSON-RPC response; throws its error. */
  function resultOf(value: unknown, id: number): unknown {
    const { error, result, id: answered }: Readonly<Record<string, unknown>> = isObject(value) ? value : {};
    if (isObject(error)) throw wire.decodeError(error);
    if (result === undefined) throw new A2AError("InvalidResponse", `${url} gave no JSON-RPC response`);
    if (answered === id) return result;
    const what = `${url} answered request ${JSON.stringify(answered)} where ${id} was asked`;
    throw new A2AError("InvalidResponse", what);
  }

  async function wholeResult(answer: ClientResponse, id: number): Promise<unknown> {
    const text = await answer.text();
    const value = parseJson(answer, text);
    // Whoever else is at that address has errors in JSON too.
    const known = isObject(value) && "jsonrpc" in value;
    if (known && answer.status === 200) return resultOf(value, id);
    const decoded = known && isObject(value["error"]) ? wire.decodeError(value["error"]) : undefined;
    throw refusal(answer, host.clock, url, text, decoded);
  }

  return {
    async call<Name extends UnaryName>(
      operation: Name,
      request: UnaryOperations[Name]["request"],
      context: CallContext,
    ) {
      const { id, answer } = await send(operation, request, context, "application/json");
      const payload = new Payload(wire.decodeResponse<Name>(operation, await wholeResult(answer, id)));
      return { payload, ...activatedExtensions(answer) };
    },
    async stream<Name extends StreamName>(
      operation: Name,
      request: StreamOperations[Name]["request"],
      context: CallContext,
    ) {
      const { id, answer } = await send(operation, request, context, "text/event-stream, application/json");
      if (answer.status === 200 && answer.mediaType === "text/event-stream") {
        const batches = streamItems(answer, operation, wire, (data) => resultOf(eventJson(data), id));
        return { batches, ...activatedExtensions(answer) };
      }
      // An error; or the one event of a server that saw no need for a stream.
      const event = wire.decodeEvent(await wholeResult(answer, id));
      return { batches: once([{ payload: new Payload(event) }]), ...activatedExtensions(answer) };
    },
  };
}
