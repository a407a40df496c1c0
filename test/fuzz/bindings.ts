import type { OperationName } from "@parley/a2a/protocol";
import type { RestRoute } from "../../packages/a2a/src/wire/codec.ts";
import { codecV1 } from "../../packages/a2a/src/wire/v1/index.ts";
import type { Request } from "./client.ts";

/** The same request on each binding. */

export const routes: ReadonlyMap<OperationName, RestRoute> = new Map(
  codecV1.bindings["HTTP+JSON"].routes.map((route) => [route.operation, route]),
);

/** Below Node's limit: Node rejects a request whose head exceeds 16 KiB before the server gets it. */
const longestUrl = 8_000;

/** The headers of a valid request. */
export const headers: Readonly<Record<string, string>> = { "content-type": "application/json", "a2a-version": "1.0" };

export function jsonrpcRequest(operation: OperationName, params: string): Request {
  return {
    method: "POST",
    path: "/",
    headers,
    body: `{"jsonrpc":"2.0","id":7,"method":"${operation}","params":${params}}`,
  };
}

/** The names of the fields in a route's path. */
export function pathFields(route: RestRoute): readonly string[] {
  return [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
}

/**
 * The request on REST, or `undefined` if REST cannot express it: a number as a path segment, an object as a query
 * parameter, or text in a query that would be parsed as a valid value.
 */
export function restRequest(operation: OperationName, params: string): Request | undefined {
  const route = routes.get(operation) as RestRoute;
  const inPath = pathFields(route);
  const [method] = route.methods as readonly [string];
  const value = parse(params);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    // An empty body is an empty request on REST, but invalid JSON on JSON-RPC.
    return route.body && inPath.length === 0 && params !== ""
      ? { method, path: route.path, headers, body: params }
      : undefined;
  }

  // A map, so that the name `__proto__` is a normal key.
  const fields = new Map<string, unknown>(Object.entries(value));
  let path = route.path;
  for (const name of inPath) {
    const segment = encode(fields.get(name));
    if (segment === undefined) return undefined;
    path = path.replace(`{${name}}`, () => segment);
    fields.delete(name);
  }
  const tenant = fields.get("tenant");
  if (typeof tenant === "string" && tenant !== "") {
    const segment = encode(tenant);
    if (segment === undefined) return undefined;
    path = `/${segment}${path}`;
    fields.delete("tenant");
  }
  if (path.length > longestUrl) return undefined;
  if (route.body) {
    const names = [...inPath, ...(fields.has("tenant") ? [] : ["tenant"])];
    const body = without(params, value, names);
    return body === undefined ? undefined : { method, path, headers, body };
  }

  const query: string[] = [];
  for (const [name, field] of fields) {
    if (field === null) continue;
    const key = encode(name);
    const text = queryText(
      field,
      { ...(route.query !== "texts" && route.query), tenant: "string" as const }[name] ?? "string",
    );
    if (key === undefined || text === undefined) return undefined;
    query.push(`${key}=${text}`);
  }
  if (query.length > 0) path += `?${query.join("&")}`;
  return path.length > longestUrl ? undefined : { method, path, headers };
}

function queryText(value: unknown, type: "string" | "integer" | "boolean"): string | undefined {
  if (typeof value === "string") {
    const readsAsType = type === "integer" ? /^-?\d+$/.test(value) : type === "boolean" && /^(true|false)$/.test(value);
    return readsAsType ? undefined : encode(value);
  }
  if (type === "string" || (typeof value !== "number" && typeof value !== "boolean")) return undefined;
  return encodeURIComponent(String(value));
}

function encode(value: unknown): string | undefined {
  if (typeof value !== "string" || /[\ud800-\udfff]/u.test(value)) return undefined;
  return encodeURIComponent(value);
}

/**
 * The text without these members. A text that has none of them is returned unchanged, with its duplicate members. Otherwise it is
 * serialized again. `undefined` if that is impossible, as for `1e400`.
 */
function without(text: string, value: object, names: readonly string[]): string | undefined {
  if (!names.some((name) => Object.hasOwn(value, name))) return text;
  const rest = Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)));
  try {
    return JSON.stringify(rest, (_name, member: unknown) => {
      if (typeof member === "number" && !Number.isFinite(member)) throw new RangeError("not a number of JSON");
      return member;
    });
  } catch {
    return undefined;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
