import { A2AError, invalidParams, jsonName } from "../../model/index.ts";
import type { UniversalRequest } from "../../protocol/index.ts";
import type { RestRoute } from "../../wire/bindings.ts";
import type { RequestLimits } from "../server/host.ts";
import { parseJson } from "../server/request.ts";
import { decodeSegment, type RouteMatch } from "./routes.ts";

/** The request of an operation as the codec reads it, from the body's text or the query, and the path. */
export function readInput(
  request: UniversalRequest,
  text: string,
  match: RouteMatch,
  route: RestRoute,
  query: string,
  limits: RequestLimits,
): unknown {
  // No body, an empty one and `null` are an empty request: peers send all three where nothing is to be said.
  const input =
    request.method === "POST" ? (parseJson(text, request, limits, limits.depth) ?? {}) : readQuery(route, query);
  // What is no object has no fields to set: the codec refuses it in its own words.
  if (typeof input !== "object" || input === null || Array.isArray(input)) return input;
  const fields = input as Record<string, unknown>;
  for (const name in match.raw) setField(fields, name, match.raw[name] as string);
  if (match.tenant !== undefined) setField(fields, "tenant", match.tenant);
  return fields;
}

/**
 * Query parameters in the types of their fields (A2A 1.0 §11.5). Text that does not stand for its type stays text, for
 * the codec to refuse by name.
 */
function readQuery(route: RestRoute, query: string): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  if (query === "") return fields;
  // Every request has a tenant (§8.3.2); where the path has no segment for it, the query may say it.
  const types: NonNullable<RestRoute["query"]> = { ...route.query, tenant: "string" };
  for (const [given, text] of new URLSearchParams(query)) {
    const name = jsonName(given);
    if (!Object.hasOwn(types, name)) continue;
    if (Object.hasOwn(fields, name)) throw invalidParams([{ field: name, description: "is given more than once" }]);
    fields[name] = typed(text, types[name]);
  }
  return fields;
}

function typed(text: string, type: "string" | "integer" | "boolean" | undefined): unknown {
  if (type === "integer" && /^-?\d+$/.test(text)) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}

/** The path decides; a body or query that says otherwise is an error. */
function setField(fields: Record<string, unknown>, name: string, raw: string): void {
  const value = decodeSegment(name, raw);
  const other = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (other !== undefined && other !== null && other !== "" && other !== value) {
    throw invalidParams([{ field: name, description: "is not the one that the path names" }]);
  }
  fields[name] = value;
}

export function unknownPath(): A2AError {
  return new A2AError("MethodNotFound", "There is nothing at this path");
}
