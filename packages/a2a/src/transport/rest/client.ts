import { type Clock, withoutSlashes } from "../../base/index.ts";
import type { A2AError, AgentInterface } from "../../model/index.ts";
import { isObject } from "../../model/schema.ts";
import type { AgentService, CallContext, OperationName } from "../../protocol/index.ts";
import { routeOfMethod, type RestClientCodec, type RestRoute, byVersion, codecFor } from "../../wire/codec.ts";
import type { ClientBinding, ClientHost } from "../client/binding.ts";
import { chunkDecoder } from "../client/events.ts";
import { type ClientResponse, requestHeaders, sendRequest } from "../client/request.ts";
import {
  activatedExtensions,
  eventJson,
  parseJson,
  refusal,
  strangeAnswer,
  streamItems,
  clientService,
  type EncodedCall,
} from "../client/service.ts";

/** HTTP+JSON at a client (A2A 1.0 §11). */
export function restBinding(codecs: readonly RestClientCodec[]): ClientBinding {
  const known = byVersion(codecs);
  return {
    name: "HTTP+JSON",
    versions: [...known.keys()],
    open(target, version, host) {
      return restService(codecFor(known, version), target, host);
    },
  };
}

/** The path of a request with its fields filled in, and the fields that are not in the path. */
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

/** Fields as a query (A2A 1.0 §11.5). */
function query(fields: Readonly<Record<string, unknown>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) search.append(name, String(one));
  }
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}

/** The error in an event: the member `error`, or the whole event from older servers. */
function errorIn(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (!isObject(value)) return undefined;
  if (isObject(value["error"])) return value["error"];
  return typeof value["message"] === "string" ? value : undefined;
}

type RestClientWire = RestClientCodec["bindings"]["HTTP+JSON"];

function refused(wire: RestClientWire, clock: Clock, answer: ClientResponse, url: string, text: string): A2AError {
  const value = parseJson(answer, text);
  // A proxy or another server at this URL may also return errors as JSON. Older servers send no member `error`.
  const known = isObject(value) && (isObject(value["error"]) || "message" in value || "title" in value);
  return refusal(answer, clock, url, text, known ? wire.decodeError(answer.status, value) : undefined);
}

/** The JSON of an event. Throws if the event is an error. */
function eventIn(wire: RestClientWire, data: string): unknown {
  const value = eventJson(data);
  const error = errorIn(value);
  if (error === undefined) return value;
  throw wire.decodeError(typeof error["code"] === "number" ? error["code"] : 500, value);
}

/** The page of a list that is sent as an array. Headers contain the link to the next page and the number of tasks (RFC 8288). */
function pageOf(tasks: readonly unknown[], answer: ClientResponse): object {
  const links = (answer.header("link") ?? "").split("<").map((link) => link.split(">"));
  const [target] = links.find(([, parameters = ""]) => /;\s*rel="?next\b/.test(parameters)) ?? [];
  const query = target?.split("#")[0]?.split("?")[1];
  const total = answer.header("x-total-count");
  return {
    tasks,
    nextPageToken: new URLSearchParams(query).get("pageToken") ?? "",
    ...(total !== undefined && /^\d{1,15}$/.test(total) && { totalSize: Number(total) }),
  };
}

function restService(codec: RestClientCodec, target: AgentInterface, host: ClientHost): AgentService {
  const wire = codec.bindings["HTTP+JSON"];
  const base = withoutSlashes(target.url);
  /** Operations for which the server accepts only the second method of their route. */
  const switched = new Set<OperationName>();
  const routeOf = (operation: OperationName, { outgoing }: CallContext): RestRoute =>
    outgoing?.method === undefined
      ? (wire.routes.find((one) => one.operation === operation) as RestRoute)
      : routeOfMethod(outgoing.method);

  async function send(
    { operation, params, context, timeout }: EncodedCall,
    accept: string,
  ): Promise<{ url: string; answer: ClientResponse }> {
    const route = routeOf(operation, context);
    const { path, rest } = fill(route, isObject(params) ? params : {});
    const url = route.body ? base + path : base + path + query(rest);
    const [first, second = first] = route.methods;
    const method = switched.has(operation) ? second : first;
    const headers = await requestHeaders(host, { url, operation }, context, codec);
    headers["accept"] = accept;
    if (route.body) headers["content-type"] = wire.mediaType;
    const body = route.body ? { body: JSON.stringify(rest) } : {};
    return { url, answer: await sendRequest(host, { method, url, headers, timeout, ...body }, context) };
  }

  async function openStream(call: EncodedCall): Promise<{ url: string; answer: ClientResponse }> {
    const opened = await send(call, "text/event-stream");
    const { status, mediaType } = opened.answer;
    // The proto and the text of the specification name different methods for a subscription, and servers differ accordingly.
    const unrouted = status === 405 || (status === 404 && !/[/+]json$/.test(mediaType));
    const { operation, context } = call;
    if (!unrouted || routeOf(operation, context).methods.length < 2 || switched.has(operation)) return opened;
    opened.answer.close();
    switched.add(operation);
    return send(call, "text/event-stream");
  }

  return clientService(wire, host, {
    async call(call) {
      const { url, answer } = await send(call, `${wire.mediaType}, application/json`);
      const text = await answer.text();
      if (answer.status < 200 || answer.status > 299) throw refused(wire, host.clock, answer, url, text);
      const result = text === "" ? {} : parseJson(answer, text);
      if (result === undefined) throw strangeAnswer(answer, url, text);
      const isPage = wire.listsAreArrays === true && call.operation === "ListTasks" && Array.isArray(result);
      return { result: isPage ? pageOf(result, answer) : result, ...activatedExtensions(answer) };
    },
    async stream(call) {
      const { url, answer } = await openStream(call);
      if (answer.status !== 200) throw refused(wire, host.clock, answer, url, await answer.text());
      if (answer.mediaType !== "text/event-stream") throw strangeAnswer(answer, url, await answer.text());
      return {
        batches: streamItems(answer, call.operation, wire, (data) => eventIn(wire, data), chunkDecoder),
        ...activatedExtensions(answer),
      };
    },
  });
}
