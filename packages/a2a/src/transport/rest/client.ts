import type { AgentInterface } from "../../model/index.ts";
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
import type { RestClientCodec, RestRoute } from "../../wire/bindings.ts";
import {
  activatedExtensions,
  eventJson,
  isObject,
  parseJson,
  refusal,
  strangeAnswer,
  streamItems,
} from "../http/answer.ts";
import { withoutSlashes } from "../../base/index.ts";
import type { ClientBinding } from "../http/binding.ts";
import { type ClientHost, sendRequest, type ClientResponse, requestHeaders, waits } from "../http/request.ts";

/** HTTP+JSON as a client speaks it (A2A 1.0 §11). */
export function restBinding(codecs: readonly RestClientCodec[]): ClientBinding {
  const known = byVersion(codecs);
  return {
    name: "HTTP+JSON",
    versions: [...known.keys()],
    open(target, version, host) {
      return restService(known.get(version) as RestClientCodec, target, host);
    },
  };
}

/** A request as a path, its query, and what is left for a body. */
function fill(
  route: RestRoute,
  value: Readonly<Record<string, unknown>>,
): { path: string; rest: Record<string, unknown> } {
  const { tenant, ...fields } = value;
  const rest: Record<string, unknown> = fields;
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const field = rest[name];
    delete rest[name];
    return encodeURIComponent(String(field));
  });
  return { path: typeof tenant === "string" ? `/${encodeURIComponent(tenant)}${path}` : path, rest };
}

/** A2A 1.0 §11.5. */
function query(fields: Readonly<Record<string, unknown>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) search.append(name, String(one));
  }
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}

/** What an event says went wrong: in a member of that name, or as older servers have it, all by itself. */
function errorIn(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (!isObject(value)) return undefined;
  if (isObject(value["error"])) return value["error"];
  return typeof value["message"] === "string" ? value : undefined;
}

function restService(codec: RestClientCodec, target: AgentInterface, host: ClientHost): AgentService {
  const wire = codec.bindings["HTTP+JSON"];
  const base = withoutSlashes(target.url);
  /** The second method of a route, once a server has shown that it wants that one. */
  const switched = new Set<OperationName>();

  async function send<Name extends OperationName>(
    operation: Name,
    request: Operations[Name]["request"],
    context: CallContext,
    accept: string,
  ): Promise<{ url: string; answer: ClientResponse }> {
    const route = wire.routes.find((one) => one.operation === operation) as RestRoute;
    const { path, rest } = fill(route, wire.encodeRequest(operation, request) as Record<string, unknown>);
    const url = route.body ? base + path : base + path + query(rest);
    const method = route.methods[switched.has(operation) ? 1 : 0] as string;
    const headers = await requestHeaders(host, { url, operation }, context, codec);
    headers["accept"] = accept;
    if (route.body) headers["content-type"] = wire.mediaType;
    const body = route.body ? { body: JSON.stringify(rest) } : {};
    const sent = { method, url, headers, waits: waits(operation, request), ...body };
    const answer = await sendRequest(host, sent, context);
    return { url, answer };
  }

  async function refused(answer: ClientResponse, url: string, text: string): Promise<Error> {
    const value = parseJson(answer, text);
    // Whoever else is at that address may have errors in JSON too; older peers send theirs without the wrapper.
    const known = isObject(value) && (isObject(value["error"]) || "message" in value || "title" in value);
    return refusal(answer, host.clock, url, text, known ? wire.decodeError(answer.status, value) : undefined);
  }

  return {
    async call<Name extends UnaryName>(
      operation: Name,
      request: UnaryOperations[Name]["request"],
      context: CallContext,
    ) {
      const { url, answer } = await send(operation, request, context, `${wire.mediaType}, application/json`);
      const text = await answer.text();
      if (answer.status < 200 || answer.status > 299) throw await refused(answer, url, text);
      const json = text === "" ? {} : parseJson(answer, text);
      if (json === undefined) throw strangeAnswer(answer, url, text);
      const payload = new Payload(wire.decodeResponse<Name>(operation, json));
      return { payload, ...activatedExtensions(answer) };
    },
    async stream<Name extends StreamName>(
      operation: Name,
      request: StreamOperations[Name]["request"],
      context: CallContext,
    ) {
      const open = async () => send(operation, request, context, "text/event-stream");
      let { url, answer } = await open();
      const route = wire.routes.find((one) => one.operation === operation) as RestRoute;
      // The proto and the text disagree on the method of a subscription, and peers on which of them they serve.
      const unrouted = answer.status === 405 || (answer.status === 404 && !/[/+]json$/.test(answer.mediaType));
      if (unrouted && route.methods.length > 1 && !switched.has(operation)) {
        answer.close();
        switched.add(operation);
        ({ url, answer } = await open());
      }
      if (answer.status !== 200) throw await refused(answer, url, await answer.text());
      if (answer.mediaType !== "text/event-stream") throw strangeAnswer(answer, url, await answer.text());
      const batches = streamItems(answer, operation, wire, (data) => {
        const value = eventJson(data);
        const error = errorIn(value);
        if (error === undefined) return value;
        throw wire.decodeError(typeof error["code"] === "number" ? error["code"] : 500, value);
      });
      return { batches, ...activatedExtensions(answer) };
    },
  };
}
