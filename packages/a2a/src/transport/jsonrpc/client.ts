import { once } from "../../base/index.ts";
import { A2AError, type AgentInterface } from "../../model/index.ts";
import { isObject } from "../../model/schema.ts";
import { type AgentService, Payload } from "../../protocol/index.ts";
import { type JsonRpcClientCodec, byVersion } from "../../wire/codec.ts";
import type { ClientBinding, ClientHost } from "../client/binding.ts";
import { chunkDecoder } from "../client/events.ts";
import { type ClientResponse, requestHeaders, sendRequest } from "../client/request.ts";
import {
  activatedExtensions,
  eventJson,
  parseJson,
  refusal,
  streamItems,
  clientService,
  type EncodedCall,
} from "../client/service.ts";

/** JSON-RPC at a client (A2A 1.0 §9). */
export function jsonRpcBinding(codecs: readonly JsonRpcClientCodec[]): ClientBinding {
  return bindingWith(codecs, chunkDecoder);
}

/** Like `jsonRpcBinding`, without the fast decoder of chunks, for a smaller bundle. */
export function smallJsonRpcBinding(codecs: readonly JsonRpcClientCodec[]): ClientBinding {
  return bindingWith(codecs, (decode) => decode);
}

function bindingWith(codecs: readonly JsonRpcClientCodec[], decoder: typeof chunkDecoder): ClientBinding {
  const known = byVersion(codecs);
  return {
    name: "JSONRPC",
    versions: [...known.keys()],
    open(target, version, host) {
      return jsonRpcService(known.get(version) as JsonRpcClientCodec, target, host, decoder);
    },
  };
}

function jsonRpcService(
  codec: JsonRpcClientCodec,
  { url }: AgentInterface,
  host: ClientHost,
  decoder: typeof chunkDecoder,
): AgentService {
  const wire = codec.bindings.JSONRPC;
  let last = 0;

  async function send(
    { operation, params, context, timeout }: EncodedCall,
    accept: string,
  ): Promise<{ id: number; answer: ClientResponse }> {
    const id = ++last;
    const headers = await requestHeaders(host, { url, operation }, context, codec);
    headers["content-type"] = "application/json";
    headers["accept"] = accept;
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id,
      method: context.outgoing?.method?.jsonrpc ?? wire.method(operation),
      params,
    });
    return { id, answer: await sendRequest(host, { method: "POST", url, headers, body, timeout }, context) };
  }

  /** The result of a JSON-RPC response. Throws if the response is an error. */
  function resultOf(value: unknown, id: number): unknown {
    const { error, result, id: answered }: Readonly<Record<string, unknown>> = isObject(value) ? value : {};
    if (isObject(error)) throw wire.decodeError(error);
    if (result === undefined) throw new A2AError("InvalidResponse", `${url} did not return a JSON-RPC response`);
    if (answered === id) return result;
    const what = `${url} answered request ${JSON.stringify(answered)}, not ${id}`;
    throw new A2AError("InvalidResponse", what);
  }

  async function wholeResult(answer: ClientResponse, id: number): Promise<unknown> {
    const text = await answer.text();
    const value = parseJson(answer, text);
    // A proxy or another server at this URL may also return errors as JSON.
    const known = isObject(value) && "jsonrpc" in value;
    if (known && answer.status === 200) return resultOf(value, id);
    const decoded = known && isObject(value["error"]) ? wire.decodeError(value["error"]) : undefined;
    throw refusal(answer, host.clock, url, text, decoded);
  }

  return clientService(wire, host, {
    async call(call) {
      const { id, answer } = await send(call, "application/json");
      return { result: await wholeResult(answer, id), ...activatedExtensions(answer) };
    },
    async stream(call) {
      const { id, answer } = await send(call, "text/event-stream, application/json");
      const extensions = activatedExtensions(answer);
      if (answer.status === 200 && answer.mediaType === "text/event-stream") {
        const batches = streamItems(answer, call.operation, wire, (data) => resultOf(eventJson(data), id), decoder);
        return { batches, ...extensions };
      }
      // The answer is an error, or the only event of a server that opened no stream.
      const event = wire.decodeEvent(await wholeResult(answer, id));
      return { batches: once([{ payload: new Payload(event) }]), ...extensions };
    },
  });
}
