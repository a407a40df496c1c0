import { invalidParams, jsonName } from "../../model/index.ts";
import type { RestRoute, RestWire } from "../../wire/codec.ts";
import type { UniversalRequest } from "../../protocol/index.ts";
import type { RequestLimits } from "../server/binding.ts";
import { parseJson } from "../server/request.ts";
import { isObject } from "../../model/schema.ts";

/* The routes of REST (A2A 1.0 §11.3): finds the route of a path, and reads the request from path, query and body. */

type Segment =
  | { readonly literal: string; readonly name?: never; readonly verb?: never }
  /** Matches a whole segment, or a segment that ends in `verb`. */
  | { readonly name: string; readonly verb: string; readonly literal?: never };

interface CompiledRoute {
  readonly route: RestRoute;
  readonly segments: readonly Segment[];
  readonly verb: boolean;
}

export interface RouteMatch {
  /** `undefined` if the path exists, but not for this method. */
  readonly route: RestRoute | undefined;
  /** HTTP methods of the path. */
  readonly allow: readonly string[];
  /** Fields in the path by name, still percent-encoded. */
  readonly raw: Readonly<Record<string, string>>;
  readonly tenant: string | undefined;
}

export type RouteTable = readonly CompiledRoute[];

function compileSegment(text: string): Segment {
  const parameter = /^\{([^}]+)\}(.*)$/.exec(text);
  if (parameter === null) return { literal: text };
  const [, name = "", verb = ""] = parameter;
  return { name, verb };
}

/** Routes with a verb come first, because `/tasks/x:cancel` is never the task `x:cancel`, whose path is `/tasks/x%3Acancel`. */
export function compileRoutes(routes: readonly RestRoute[]): RouteTable {
  return routes
    .map((route) => {
      const segments = route.path.slice(1).split("/").map(compileSegment);
      return { route, segments, verb: segments.some((segment) => Boolean(segment.verb)) };
    })
    .sort((one, other) => Number(other.verb) - Number(one.verb));
}

/** All routes of a version, including those outside the base. */
export function allRoutes({ routes, elsewhere = [] }: RestWire): readonly RestRoute[] {
  return [...routes, ...elsewhere];
}

/** The first segments of routes. No other base can begin with such a segment below the same base. */
export function firstSegments(routes: readonly RestRoute[]): readonly string[] {
  return routes.map((route) => route.path.split("/")[1] ?? "");
}

/** The segments of one-segment routes. A tenant must not have such a name, because the tenant's paths would be ambiguous. */
export function wholeSegments(routes: readonly RestRoute[]): readonly string[] {
  return firstSegments(routes.filter((route) => route.path.lastIndexOf("/") === 0));
}

/** Finds the route of a path, which begins with a slash. A tenant segment may precede every route. */
export function matchRoute(table: RouteTable, method: string, path: string): RouteMatch | undefined {
  const segments = path.slice(1).split("/");
  const match = matchSegments(table, method, segments, undefined);
  if (match !== undefined || segments.length < 2 || segments[0] === "") return match;
  return matchSegments(table, method, segments.slice(1), segments[0]);
}

function matchSegments(
  table: RouteTable,
  method: string,
  segments: readonly string[],
  tenant: string | undefined,
): RouteMatch | undefined {
  let match: RouteMatch | undefined;
  let verb = false;
  for (const compiled of table) {
    if (verb && !compiled.verb) break;
    const raw = readSegments(compiled.segments, segments);
    if (raw === undefined) continue;
    verb ||= compiled.verb;
    const { route } = compiled;
    const allow: readonly string[] = match === undefined ? route.methods : [...match.allow, ...route.methods];
    const taken = route.methods.some((one) => one === method);
    match = { route: taken ? route : undefined, allow, raw, tenant };
    if (taken) break;
  }
  return match;
}

function readSegments(pattern: readonly Segment[], segments: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== segments.length) return undefined;
  const raw: Record<string, string> = {};
  for (const [at, { literal, name, verb }] of pattern.entries()) {
    const segment = segments[at] ?? "";
    if (name === undefined) {
      if (segment !== literal) return undefined;
    } else {
      if (!segment.endsWith(verb)) return undefined;
      raw[name] = segment.slice(0, segment.length - verb.length);
    }
  }
  return raw;
}

/** A path segment, decoded once. An id may contain any character, slashes and colons included. */
export function decodeSegment(field: string, raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    throw invalidParams([{ field, description: "is not percent-encoded UTF-8" }]);
  }
}

/** The request of an operation for the codec to decode, from the text of the body or the query, and from the path. */
export function readInput(
  request: UniversalRequest,
  text: string,
  match: RouteMatch,
  route: RestRoute,
  query: string,
  limits: RequestLimits,
): unknown {
  // No body, an empty body and `null` are empty requests, because clients send all three.
  const input =
    request.method === "POST" ? (parseJson(text, request, limits, limits.depth) ?? {}) : readQuery(route, query);
  // The codec rejects anything but an object.
  if (!isObject(input)) return input;
  for (const [name, raw] of Object.entries(match.raw)) setField(input, name, raw);
  if (match.tenant !== undefined) setField(input, "tenant", match.tenant);
  return input;
}

/** Query parameters of every request, in addition to its fields (A2A 1.0 §3.2.6). */
const serviceParameter = /^(?:a2a-|__proto__$)/i;

/** Query parameters in the types of their fields (A2A 1.0 §11.5). Keeps invalid text, so that the codec names the field. */
function readQuery(route: RestRoute, query: string): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  if (query === "") return fields;
  const takesAll = route.query === "texts";
  // Every request may name a tenant (A2A 1.0 §8.3.2). If the path has no segment for the tenant, it is in the query.
  const types: Readonly<Record<string, "string" | "integer" | "boolean">> = {
    ...(route.query !== "texts" && route.query),
    tenant: "string",
  };
  for (const [given, text] of new URLSearchParams(query)) {
    const name = takesAll ? given : jsonName(given);
    if (takesAll ? serviceParameter.test(name) : !Object.hasOwn(types, name)) continue;
    if (Object.hasOwn(fields, name)) throw invalidParams([{ field: name, description: "must not be repeated" }]);
    fields[name] = typed(text, types[name]);
  }
  return fields;
}

function typed(text: string, type: "string" | "integer" | "boolean" | undefined): unknown {
  if (type === "integer" && /^-?\d+$/.test(text)) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}

/** Sets a field from the path. A different value in the body or the query is an error. */
function setField(fields: Record<string, unknown>, name: string, raw: string): void {
  const value = decodeSegment(name, raw);
  const other = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (other !== undefined && other !== null && other !== "" && other !== value) {
    throw invalidParams([{ field: name, description: "must be the same as in the path" }]);
  }
  fields[name] = value;
}
