import { invalidParams } from "../../model/index.ts";
import type { RestRoute, RestWire } from "../../wire/bindings.ts";

/** Finds the route of a path (A2A 1.0 §11.3). */

type Segment =
  | { readonly literal: string; readonly name?: never; readonly verb?: never }
  /** Takes a whole segment, or one that ends in `verb`. */
  | { readonly name: string; readonly verb: string; readonly literal?: never };

interface CompiledRoute {
  readonly route: RestRoute;
  readonly segments: readonly Segment[];
  readonly verb: boolean;
}

export interface RouteMatch {
  /** Absent: the path exists, but not for this method. */
  readonly route: RestRoute | undefined;
  /** Methods that the path takes. */
  readonly allow: readonly string[];
  /** What the path says, still encoded: by field name. */
  readonly raw: Readonly<Record<string, string>>;
  readonly tenant: string | undefined;
}

export type RouteTable = readonly CompiledRoute[];

function compileSegment(text: string): Segment {
  const parameter = /^\{([^}]+)\}(.*)$/.exec(text);
  if (parameter === null) return { literal: text };
  return { name: parameter[1] as string, verb: parameter[2] as string };
}

/** Routes with a verb come first: `/tasks/x:cancel` is never a task of the name `x:cancel`, which is sent as `x%3Acancel`. */
export function compileRoutes(routes: readonly RestRoute[]): RouteTable {
  return routes
    .map((route) => {
      const segments = route.path.slice(1).split("/").map(compileSegment);
      return { route, segments, verb: segments.some((segment) => Boolean(segment.verb)) };
    })
    .sort((one, other) => Number(other.verb) - Number(one.verb));
}

/** Those below the base, and those that are found elsewhere as well. */
export function allRoutes({ routes, elsewhere = [] }: RestWire): readonly RestRoute[] {
  return [...routes, ...elsewhere];
}

/** First segments that routes begin with: nothing else can stand below the same base under such a name. */
export function firstSegments(routes: readonly RestRoute[]): readonly string[] {
  return routes.map((route) => route.path.split("/")[1] ?? "");
}

/** Those of routes that have no other segment: no tenant can have such a name, since what follows could be either's. */
export function wholeSegments(routes: readonly RestRoute[]): readonly string[] {
  return firstSegments(routes.filter((route) => route.path.lastIndexOf("/") === 0));
}

/** `path` begins with a slash. A tenant segment may stand before every route. */
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
    const taken = (route.methods as readonly string[]).includes(method);
    match = { route: taken ? route : undefined, allow, raw, tenant };
    if (taken) break;
  }
  return match;
}

function readSegments(pattern: readonly Segment[], segments: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== segments.length) return undefined;
  const raw: Record<string, string> = {};
  for (const [at, { literal, name, verb }] of pattern.entries()) {
    const segment = segments[at] as string;
    if (name === undefined) {
      if (segment !== literal) return undefined;
    } else {
      if (!segment.endsWith(verb)) return undefined;
      raw[name] = segment.slice(0, segment.length - verb.length);
    }
  }
  return raw;
}

/** A path segment, decoded once: an id may hold any character, a slash and a colon too. */
export function decodeSegment(field: string, raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    throw invalidParams([{ field, description: "is not percent-encoded UTF-8" }]);
  }
}
