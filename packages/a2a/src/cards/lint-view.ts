import { isObject, itemsOf } from "../model/schema.ts";

/* A common view of cards of 1.0 and 0.3 for the rules of `lintCard`: each value with the path of its member. */

/** A value at a path of the card. */
export interface Found<T> {
  readonly field: string;
  readonly value: T;
}

/** One alternative of a list of requirements, as scopes by scheme name. */
type Requirement = Readonly<Record<string, readonly unknown[]>>;

/** The view of a card. Omits members of a wrong type, because the schema reports them. */
export interface CardView {
  readonly interfaces: readonly Found<Interface>[];
  /** Texts for people. */
  readonly texts: readonly Found<string>[];
  /** URLs of documents, token endpoints and the like. */
  readonly urls: readonly Found<string>[];
  readonly mediaTypes: readonly Found<string>[];
  readonly requirements: readonly Found<Requirement>[];
  readonly schemes: ReadonlyMap<string, Found<Readonly<Record<string, unknown>>>>;
  readonly skills: readonly Found<Readonly<Record<string, unknown>>>[];
  readonly extensions: readonly Found<Readonly<Record<string, unknown>>>[];
  readonly signatures: readonly Found<unknown>[];
  readonly hasExtendedCard: boolean;
}

interface Interface {
  readonly url: string;
  readonly binding: string;
  readonly version: string;
  readonly tenant: string;
}

type Json = Readonly<Record<string, unknown>>;

const maxElements = 1_000;

function listOf(value: unknown, field: string): readonly Found<unknown>[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, maxElements).map((each: unknown, at) => ({ field: `${field}[${at}]`, value: each }));
}

function objectsOf(value: unknown, field: string): readonly Found<Json>[] {
  return listOf(value, field).filter((each): each is Found<Json> => isObject(each.value));
}

function entriesOf(value: unknown): readonly (readonly [string, unknown])[] {
  return isObject(value) ? Object.entries(value).slice(0, maxElements) : [];
}

function textsAt(object: unknown, field: string, names: readonly string[]): readonly Found<string>[] {
  if (!isObject(object)) return [];
  return names.flatMap((name) => {
    const value = object[name];
    return typeof value === "string" ? [{ field: field === "" ? name : `${field}.${name}`, value }] : [];
  });
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

function interfacesOf(card: Json): readonly Found<Interface>[] {
  const listed = objectsOf(card["supportedInterfaces"], "supportedInterfaces").map(({ field, value }) => ({
    field,
    value: {
      url: text(value["url"]),
      binding: text(value["protocolBinding"]),
      version: text(value["protocolVersion"]),
      tenant: text(value["tenant"]),
    },
  }));
  if (typeof card["url"] !== "string") return listed;
  const version = typeof card["protocolVersion"] === "string" ? card["protocolVersion"] : "0.3.0";
  const main = { url: card["url"], binding: text(card["preferredTransport"]) || "JSONRPC", version, tenant: "" };
  const others = objectsOf(card["additionalInterfaces"], "additionalInterfaces")
    .map(({ field, value }) => ({
      field,
      value: { url: text(value["url"]), binding: text(value["transport"]), version, tenant: "" },
    }))
    // `additionalInterfaces` may list the main interface again (0.3 §5.6).
    .filter(({ value }) => value.url !== main.url || value.binding !== main.binding);
  return [...listed, { field: "url", value: main }, ...others];
}

/** Requirements in either form, `{ schemes: { name: { list } } }` of 1.0 or `{ name: [] }` of 0.3. */
function requirementsOf(holder: Json, field: string): readonly Found<Requirement>[] {
  const path = (name: string): string => (field === "" ? name : `${field}.${name}`);
  const listOfScopes = (value: unknown): readonly unknown[] => itemsOf(value);
  const found = (each: Found<Json>, schemes: unknown, read: (value: unknown) => readonly unknown[]) => ({
    field: each.field,
    value: Object.fromEntries(entriesOf(schemes).map(([name, value]) => [name, read(value)] as const)),
  });
  return [
    ...objectsOf(holder["securityRequirements"], path("securityRequirements")).map((each) =>
      found(each, each.value["schemes"], (value) => (isObject(value) ? listOfScopes(value["list"]) : [])),
    ),
    ...objectsOf(holder["security"], path("security")).map((each) => found(each, each.value, listOfScopes)),
  ];
}

const urlMembers = [
  "oauth2MetadataUrl",
  "openIdConnectUrl",
  "authorizationUrl",
  "tokenUrl",
  "refreshUrl",
  "deviceAuthorizationUrl",
];

/** The URLs in a scheme and its members. */
function urlsIn(value: unknown, field: string, depth = 0): readonly Found<string>[] {
  if (!isObject(value) || depth > 4) return [];
  const inner = entriesOf(value).flatMap(([name, each]) => urlsIn(each, `${field}.${name}`, depth + 1));
  return [...textsAt(value, field, urlMembers), ...inner];
}

/** The view of a card. */
export function viewOf(card: Json): CardView {
  const skills = objectsOf(card["skills"], "skills");
  const { capabilities } = card;
  const extensions = isObject(capabilities) ? objectsOf(capabilities["extensions"], "capabilities.extensions") : [];
  const schemes = new Map(
    entriesOf(card["securitySchemes"]).flatMap(([name, value]) =>
      isObject(value) ? [[name, { field: `securitySchemes.${name}`, value }] as const] : [],
    ),
  );
  const media = (holder: Json, field: string, names: readonly string[]): readonly Found<string>[] =>
    names
      .flatMap((name) => listOf(holder[name], field === "" ? name : `${field}.${name}`))
      .filter((each): each is Found<string> => typeof each.value === "string");
  return {
    interfaces: interfacesOf(card),
    texts: [
      ...textsAt(card, "", ["name", "description", "version"]),
      ...textsAt(card["provider"], "provider", ["organization"]),
      ...skills.flatMap(({ field, value }) => [
        ...textsAt(value, field, ["id", "name", "description"]),
        ...media(value, field, ["tags", "examples"]),
      ]),
      ...extensions.flatMap(({ field, value }) => textsAt(value, field, ["description"])),
      ...[...schemes.values()].flatMap(({ field, value }) => textsAt(value, field, ["description"])),
    ],
    urls: [
      ...textsAt(card, "", ["documentationUrl", "iconUrl"]),
      ...textsAt(card["provider"], "provider", ["url"]),
      ...[...schemes.values()].flatMap(({ field, value }) => urlsIn(value, field)),
    ],
    mediaTypes: [
      ...media(card, "", ["defaultInputModes", "defaultOutputModes"]),
      ...skills.flatMap(({ field, value }) => media(value, field, ["inputModes", "outputModes"])),
    ],
    requirements: [card, ...skills.map(({ value }) => value)].flatMap((holder, at) =>
      requirementsOf(holder, at === 0 ? "" : `skills[${at - 1}]`),
    ),
    schemes,
    skills,
    extensions,
    signatures: listOf(card["signatures"], "signatures"),
    hasExtendedCard:
      (isObject(capabilities) && capabilities["extendedAgentCard"] === true) ||
      card["supportsAuthenticatedExtendedCard"] === true,
  };
}
