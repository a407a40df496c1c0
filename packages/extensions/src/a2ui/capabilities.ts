import type { JsonObject, JsonValue } from "@parley/a2a/internal/model/index";
import { isJsonList, isJsonObject } from "../shared/values.ts";
import { versions, type A2uiVersion } from "./messages.ts";
import { anyObject, anything, flag, inside, list, object, objectThat, oneOf, text, type Check } from "./schemas.ts";

/*
 * Capabilities: `params` on the card of an agent, and `a2uiClientCapabilities` in the metadata of each message of a
 * client.
 */

/** A catalog that a client defines in its messages: an id and JSON Schema, which is not checked here. */
export interface A2uiCatalog extends JsonObject {
  /** Its id. */
  readonly catalogId: string;
}

/** `params` of the extension on a card. */
export interface A2uiParams {
  /** Ids of the catalogs that the agent writes for. */
  readonly supportedCatalogIds?: readonly string[];
  /** Whether clients may define catalogs in their messages. Default false. */
  readonly acceptsInlineCatalogs?: boolean;
}

/** Capabilities of a client. */
export interface A2uiClientCapabilities {
  /** Ids of its catalogs, in order of preference. */
  readonly supportedCatalogIds: readonly string[];
  /** Its own catalogs, if the agent accepts them. */
  readonly inlineCatalogs: readonly A2uiCatalog[];
}

/** Checks `params`. Allows unknown members, which later versions may add. */
export const checkParams: Check = object(
  {},
  { supportedCatalogIds: list(text), acceptsInlineCatalogs: flag },
  anything,
);

const checkOwn: Check = object(
  { supportedCatalogIds: list(text) },
  { inlineCatalogs: list(object({ catalogId: text }, {}, anything)) },
  anything,
);

/**
 * The key of a version in `a2uiClientCapabilities`; empty for 0.8, which is the object itself; `undefined` if absent.
 */
function keyOf(version: A2uiVersion, value: JsonObject): string | undefined {
  const keys = versions[version].versions;
  if (keys.length === 0) return Object.hasOwn(value, "supportedCatalogIds") ? "" : undefined;
  return keys.find((name) => Object.hasOwn(value, name));
}

/** Checks the part of `a2uiClientCapabilities` that belongs to this version. */
export function checkCapabilities(version: A2uiVersion): Check {
  return objectThat((value) => {
    const key = keyOf(version, value);
    if (key === undefined) return undefined;
    if (key === "") return checkOwn(value);
    const fault = checkOwn(value[key]);
    return fault && inside(key, fault);
  });
}

/** The capabilities of a version; `undefined` if the client declares none. */
export function readCapabilities(version: A2uiVersion, value: unknown): A2uiClientCapabilities | undefined {
  const key = isJsonObject(value) ? keyOf(version, value) : undefined;
  if (key === undefined || !isJsonObject(value)) return undefined;
  const own = key === "" ? value : value[key];
  if (!isJsonObject(own)) return undefined;
  const { supportedCatalogIds: ids, inlineCatalogs: catalogs } = own;
  return {
    supportedCatalogIds: isJsonList(ids) ? ids.filter((id) => typeof id === "string") : [],
    inlineCatalogs: isJsonList(catalogs) ? catalogs.filter(isCatalog) : [],
  };
}

function isCatalog(value: JsonValue): value is A2uiCatalog {
  return isJsonObject(value) && typeof value["catalogId"] === "string";
}

/** Sets the capabilities of this version in `a2uiClientCapabilities`, and keeps other versions' capabilities. */
export function writeCapabilities(
  version: A2uiVersion,
  { supportedCatalogIds, inlineCatalogs }: A2uiClientCapabilities,
  before: unknown,
): JsonObject {
  const others = isJsonObject(before) ? before : {};
  const own = { supportedCatalogIds, ...(inlineCatalogs.length > 0 && { inlineCatalogs }) };
  const [key] = versions[version].versions;
  return key === undefined ? { ...others, ...own } : { ...others, [key]: own };
}

/** A catalog that both sides support. */
export interface A2uiNegotiated {
  /** Its id. */
  readonly catalogId: string;
  /** Its definition, if the client sent it. */
  readonly inline?: A2uiCatalog;
}

/**
 * The catalogs that an agent may use for a client, best first: first the client's catalogs that the agent supports, in the
 * client's order, then catalogs that the client defines, if the agent accepts them. A client without capabilities is assumed
 * to have the catalog of the version.
 */
export function negotiate(
  version: A2uiVersion,
  agent: A2uiParams,
  client: A2uiClientCapabilities | undefined,
): readonly A2uiNegotiated[] {
  const { supportedCatalogIds = [], acceptsInlineCatalogs = false } = agent;
  const { supportedCatalogIds: wanted, inlineCatalogs } = client ?? {
    supportedCatalogIds: versions[version].basicCatalogs,
    inlineCatalogs: [],
  };
  const supported = new Set(supportedCatalogIds);
  const agreed = new Map<string, A2uiNegotiated>();
  for (const catalogId of wanted) if (supported.has(catalogId)) agreed.set(catalogId, { catalogId });
  for (const inline of acceptsInlineCatalogs ? inlineCatalogs : []) {
    const { catalogId } = inline;
    if (!agreed.has(catalogId)) agreed.set(catalogId, { catalogId, inline });
  }
  return [...agreed.values()];
}

/** Checks `a2uiClientDataModel` if it is of this version. */
export function checkDataModel(version: A2uiVersion): Check {
  const { versions: names } = versions[version];
  const own = object({ version: oneOf(names), surfaces: object({}, {}, anyObject) });
  return objectThat((value) => (names.some((name) => name === value["version"]) ? own(value) : undefined));
}

/** The data models that a client sent, by surface id. */
export function readDataModel(version: A2uiVersion, value: unknown): Readonly<Record<string, JsonObject>> {
  if (!isJsonObject(value) || !versions[version].versions.some((name) => name === value["version"])) return {};
  const { surfaces } = value;
  if (!isJsonObject(surfaces)) return {};
  return Object.fromEntries(Object.entries(surfaces).flatMap(([id, data]) => (isJsonObject(data) ? [[id, data]] : [])));
}
