import { defined } from "@parley/a2a/internal/base/defined";
import { methods, streams, type Caller, type OpenStream, type Outcome, type Place } from "./caller.ts";
import { readError, hasError, type WireError } from "../judge/errors.ts";
import type { Json, JsonMap, Operation } from "../acts/format.ts";
import { send, type HttpAnswer, type HttpRequest } from "./http.ts";
import { isMap, member, textOf } from "../acts/values.ts";
import { InvalidAnswer, LiveStream, parseJson } from "./stream.ts";

/** Fetches the card over HTTP, which every binding does (§8.2). */
export async function fetchCard(
  place: Place,
  headers: Readonly<Record<string, string>>,
  timeout: number,
): Promise<Outcome> {
  const request = { method: "GET", url: place.cardUrl, headers: { accept: "application/json", ...headers } };
  return plainOutcome(await send(request, timeout, place.bounds));
}

/** Calls over JSON-RPC (§9). */
export function jsonRpcCaller(place: Place): Caller {
  let ids = 0;
  return {
    transport: "jsonrpc",
    errors: "jsonrpc",
    headers: true,
    sendsAnyVersion: true,
    async call(operation, params, headers, timeout) {
      const method = methods[operation]?.name;
      if (method === undefined) return fetchCard(place, headers, timeout);
      const body = {
        jsonrpc: "2.0",
        id: `conform-${(ids += 1)}`,
        method,
        params: place.tenant === undefined ? params : { tenant: place.tenant, ...params },
      };
      const request = {
        method: "POST",
        url: place.url,
        headers: { "content-type": "application/json", accept: acceptHeader(operation), ...headers },
        body: JSON.stringify(body),
      };
      return rpcOutcome(await send(request, timeout, place.bounds));
    },
    async raw({ path, ...request }, timeout) {
      // `/` means the interface's URL, which may lack the trailing slash.
      const url = path === "/" ? place.url : serverUrl(place, path);
      const body = request.body && withTenant(request.body, place.tenant);
      return rawOutcome(await send({ ...request, ...defined({ body }), url }, timeout, place.bounds));
    },
  };
}

/** Adds the interface's tenant to the `params` of a raw request (A2A 1.0 §8.3.2), if `params` is an object. */
function withTenant(body: string, tenant: string | undefined): string {
  const request = tenant === undefined ? undefined : parseJson(body);
  const params = member(request, "params");
  if (tenant === undefined || !isMap(request) || !isMap(params)) return body;
  return JSON.stringify({ ...request, params: { tenant, ...params } });
}

/** Calls over HTTP+JSON (§11). */
export function restCaller(place: Place): Caller {
  const tenant = place.tenant === undefined ? "" : `/${encodeURIComponent(place.tenant)}`;
  const base = place.url.replace(/(?<!\/)\/+$/, "") + tenant;
  return {
    transport: "rest",
    errors: "rest",
    headers: true,
    sendsAnyVersion: true,
    async call(operation, params, headers, timeout) {
      if (operation === "get_agent_card") return fetchCard(place, headers, timeout);
      const [method, path, rest] = route(operation, params);
      const request = (verb: string): HttpRequest => {
        const body = verb === "POST" ? JSON.stringify(rest) : undefined;
        return {
          method: verb,
          url: `${base}${path}${verb === "POST" ? "" : query(rest)}`,
          headers: {
            accept: acceptHeader(operation),
            ...defined({ "content-type": body && "application/a2a+json" }),
            ...headers,
          },
          ...defined({ body }),
        };
      };
      const answer = await send(request(method), timeout, place.bounds);
      // The specification says POST in its text (§11.3.2) and GET in its proto, so a server may support either.
      const other = operation === "subscribe_to_task" && answer.status === 405;
      return restOutcome(other ? await send(request("GET"), timeout, place.bounds) : answer, operation);
    },
    async raw({ path, ...request }, timeout) {
      const url = path.startsWith("/.well-known/") ? serverUrl(place, path) : base + path;
      return rawOutcome(await send({ ...request, url }, timeout, place.bounds));
    },
  };
}

/** The URL of a path at the server's origin. For the card, the URL where it was found. */
function serverUrl(place: Place, path: string): string {
  return path === "/.well-known/agent-card.json" ? place.cardUrl : new URL(path, place.url).href;
}

function acceptHeader(operation: Operation): string {
  return streams(operation) ? "text/event-stream" : "application/a2a+json, application/json";
}

/** Routes (§11.3). `{name}` is a parameter that is in neither the query nor the body. */
const routes: Readonly<Record<Operation, readonly [method: string, path: string]>> = {
  send_message: ["POST", "/message:send"],
  send_streaming_message: ["POST", "/message:stream"],
  get_task: ["GET", "/tasks/{id}"],
  list_tasks: ["GET", "/tasks"],
  cancel_task: ["POST", "/tasks/{id}:cancel"],
  subscribe_to_task: ["POST", "/tasks/{id}:subscribe"],
  create_push_config: ["POST", "/tasks/{taskId}/pushNotificationConfigs"],
  get_push_config: ["GET", "/tasks/{taskId}/pushNotificationConfigs/{id}"],
  list_push_configs: ["GET", "/tasks/{taskId}/pushNotificationConfigs"],
  delete_push_config: ["DELETE", "/tasks/{taskId}/pushNotificationConfigs/{id}"],
  get_agent_card: ["GET", "/extendedAgentCard"],
  get_extended_agent_card: ["GET", "/extendedAgentCard"],
};

function route(operation: Operation, params: JsonMap): readonly [method: string, path: string, rest: JsonMap] {
  const [method, template] = routes[operation];
  const rest: Record<string, Json> = { ...params };
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    delete rest[name];
    return encodeURIComponent(textOf(params[name] ?? ""));
  });
  return [method, path, rest];
}

function query(params: JsonMap): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) search.append(name, textOf(value));
  return search.size === 0 ? "" : `?${search.toString()}`;
}

/** The outcome of a raw request. Its value is the whole body, including any envelope. */
function rawOutcome(answer: HttpAnswer | LiveStream): Outcome {
  if (answer instanceof LiveStream) return streamOutcome(answer, (raw) => ({ value: raw }));
  const outcome = plainOutcome(answer);
  return { ...outcome, ...defined({ value: outcome.body }) };
}

function plainOutcome(answer: HttpAnswer | LiveStream): Outcome {
  const { status, headers } = answer;
  if (answer instanceof LiveStream) {
    answer.close();
    throw new InvalidAnswer("the response is a stream, but the operation does not stream");
  }
  const body = defined({ body: answer.json });
  if (status >= 400) return { status, headers, ...body, error: readError(answer.json, status) };
  return { status, headers, ...body, ...defined({ value: answer.json }) };
}

function streamOutcome(live: LiveStream, payload: OpenStream["payload"]): Outcome {
  return { status: live.status, headers: live.headers, stream: { live, payload } };
}

/** The result or the error of a JSON-RPC response (JSON-RPC 2.0 §5). */
function rpcContent(raw: Json | undefined, what: string): { readonly value: Json } | { readonly error: WireError } {
  const both = isMap(raw) && Object.hasOwn(raw, "result") && Object.hasOwn(raw, "error");
  if (member(raw, "jsonrpc") !== "2.0" || both) {
    throw new InvalidAnswer(`${what} is not a JSON-RPC response: ${(JSON.stringify(raw) ?? "not JSON").slice(0, 200)}`);
  }
  if (hasError(raw)) return { error: readError(raw, 200) };
  const value = member(raw, "result");
  if (value === undefined) throw new InvalidAnswer(`${what} has neither a result nor an error`);
  return { value };
}

function rpcOutcome(answer: HttpAnswer | LiveStream): Outcome {
  if (answer instanceof LiveStream) return streamOutcome(answer, (raw) => rpcContent(raw, "the event"));
  const { status, headers, json } = answer;
  // A request that is rejected before JSON-RPC, such as with 401, 413 or 429, gets a plain HTTP response.
  if (status >= 400 && member(json, "jsonrpc") === undefined) return plainOutcome(answer);
  return { status, headers, ...defined({ body: json }), ...rpcContent(json, "the response") };
}

function restOutcome(answer: HttpAnswer | LiveStream, operation: Operation): Outcome {
  if (answer instanceof LiveStream) {
    return streamOutcome(answer, (raw) => (hasError(raw) ? { error: readError(raw, answer.status) } : { value: raw }));
  }
  const outcome = plainOutcome(answer);
  if (outcome.error === undefined && outcome.value === undefined && operation !== "delete_push_config") {
    throw new InvalidAnswer(`the response is not JSON: ${JSON.stringify(answer.text.slice(0, 80))}`);
  }
  return outcome;
}
