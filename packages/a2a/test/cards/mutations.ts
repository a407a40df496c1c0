import fc from "fast-check";
import { isObject } from "../../src/model/schema.ts";
import type { AgentCard, AgentInterface, OAuthFlows, SecurityScheme } from "../../src/model/index.ts";
import { codecV03 } from "../../src/wire/v03/index.ts";
import { cardV03, cardV1, type Members } from "../../src/cards/fields.ts";
import { membersIn } from "../../src/cards/canonical.ts";

/* Generates random valid cards of each version, and single changes of their JSON text. */

const word = fc.oneof(fc.constantFrom("a", "weather", "ünï", "\u{1f326}"), fc.string({ minLength: 1, maxLength: 8 }));
const url = fc.constantFrom("https://a.example.com/agent", "https://id.example.com/token", "https://b.example.com/");
const some = <T>(value: fc.Arbitrary<T>) => fc.array(value, { minLength: 1, maxLength: 2 });
const map = <T>(value: fc.Arbitrary<T>) => fc.dictionary(fc.constantFrom("one", "two", "three"), value, { maxKeys: 2 });
const record = <T>(required: { [K in keyof T]: fc.Arbitrary<T[K]> }, keys: readonly (keyof T & string)[]) =>
  fc.record(required, { requiredKeys: [...keys] });

const flows: fc.Arbitrary<OAuthFlows> = fc.oneof(
  record({ tokenUrl: url, refreshUrl: url, scopes: map(word) }, ["tokenUrl", "scopes"]).map((one) => ({
    clientCredentials: one,
  })),
  record({ authorizationUrl: url, tokenUrl: url, scopes: map(word), pkceRequired: fc.boolean() }, [
    "authorizationUrl",
    "tokenUrl",
    "scopes",
  ]).map((one) => ({ authorizationCode: one })),
) as fc.Arbitrary<OAuthFlows>;

const scheme: fc.Arbitrary<SecurityScheme> = fc.oneof(
  record({ location: fc.constantFrom("header", "query", "cookie"), name: word, description: word }, [
    "location",
    "name",
  ]).map((apiKeySecurityScheme) => ({ apiKeySecurityScheme })),
  record({ scheme: fc.constantFrom("Bearer", "Basic"), bearerFormat: word }, ["scheme"]).map(
    (httpAuthSecurityScheme) => ({ httpAuthSecurityScheme }),
  ),
  record({ flows, oauth2MetadataUrl: url, description: word }, ["flows"]).map((oauth2SecurityScheme) => ({
    oauth2SecurityScheme,
  })),
  url.map((openIdConnectUrl) => ({ openIdConnectSecurityScheme: { openIdConnectUrl } })),
  fc.constant({ mtlsSecurityScheme: {} }),
) as fc.Arbitrary<SecurityScheme>;

const requirements = some(fc.record({ schemes: map(some(word).map((list) => ({ list }))) }));

function withInterfaces(versions: readonly string[]): fc.Arbitrary<AgentCard> {
  const target: fc.Arbitrary<AgentInterface> = fc.record({
    url,
    protocolBinding: fc.constantFrom("JSONRPC", "HTTP+JSON"),
    protocolVersion: fc.constantFrom(...versions),
  });
  const extension = record(
    { uri: url, description: word, required: fc.boolean(), params: fc.dictionary(word, fc.jsonValue()) },
    ["uri"],
  );
  const card = {
    name: word,
    description: word,
    supportedInterfaces: some(target),
    provider: fc.record({ url, organization: word }),
    version: word,
    documentationUrl: url,
    iconUrl: url,
    capabilities: record(
      {
        streaming: fc.boolean(),
        pushNotifications: fc.boolean(),
        extensions: some(extension),
        extendedAgentCard: fc.boolean(),
      },
      [],
    ),
    securitySchemes: map(scheme),
    securityRequirements: requirements,
    defaultInputModes: some(word),
    defaultOutputModes: some(word),
    skills: some(
      record(
        {
          id: word,
          name: word,
          description: word,
          tags: some(word),
          examples: some(word),
          securityRequirements: requirements,
        },
        ["id", "name", "description", "tags"],
      ),
    ),
  };
  return record(card, [
    "name",
    "description",
    "supportedInterfaces",
    "version",
    "capabilities",
    "defaultInputModes",
    "defaultOutputModes",
    "skills",
  ]) as unknown as fc.Arbitrary<AgentCard>;
}

/** Valid cards of 1.0, of 0.3, and of both versions, as a server publishes them. */
export const cards: Readonly<Record<"1.0" | "0.3" | "both", fc.Arbitrary<object>>> = {
  "1.0": withInterfaces(["1.0"]),
  "0.3": withInterfaces(["0.3"]).map((card) => codecV03.encodeCard(card)),
  both: withInterfaces(["1.0", "0.3"]).map((card) => merged(card, codecV03.encodeCard(card)) as object),
};

/** Returns the single-version cards in a card of both versions. */
export function partsOf(card: object): readonly object[] {
  return [
    [cardV1, cardV03],
    [cardV03, cardV1],
  ].map(([own = {}, other = {}]) => only(card, own, other) as object);
}

/** Returns a value without the other version's members. */
function only(value: unknown, own: Members, other: Members): unknown {
  if (!isObject(value)) return value;
  const members = Object.entries(value).flatMap(([name, member]) => {
    if (!Object.hasOwn(own, name)) return Object.hasOwn(other, name) ? [] : [[name, member] as const];
    const shape = own[name]?.[1];
    const inner = membersIn(shape);
    if (inner === undefined || typeof shape !== "object") return [[name, member] as const];
    const reach = (item: unknown): unknown => only(item, inner, membersIn(other[name]?.[1]) ?? {});
    if (Array.isArray(member)) return [[name, member.map(reach)] as const];
    if (!("map" in shape) || !isObject(member)) return [[name, reach(member)] as const];
    return [[name, Object.fromEntries(Object.entries(member).map(([key, item]) => [key, reach(item)]))] as const];
  });
  return Object.fromEntries(members);
}

function merged(one: unknown, other: unknown): unknown {
  if (Array.isArray(one) && Array.isArray(other)) return one.map((item, at) => merged(item, other[at]));
  if (!isObject(one) || !isObject(other)) return one;
  const added = Object.entries(other).map(([name, value]) => [name, name in one ? merged(one[name], value) : value]);
  return { ...one, ...(Object.fromEntries(added) as object) };
}

/** JSON whose objects may have duplicate members. */
type Tree = { members: [string, Tree][] } | { items: Tree[] } | { value: unknown };

function treeOf(value: unknown): Tree {
  if (Array.isArray(value)) return { items: value.map(treeOf) };
  if (!isObject(value)) return { value };
  return { members: Object.entries(value).map(([name, member]) => [name, treeOf(member)]) };
}

function textOf(tree: Tree): string {
  if ("items" in tree) return `[${tree.items.map(textOf).join(",")}]`;
  if ("value" in tree) return JSON.stringify(tree.value);
  return `{${tree.members.map(([name, member]) => `${JSON.stringify(name)}:${textOf(member)}`).join(",")}}`;
}

/** Returns every object of a tree, except for objects in its signatures. */
function objectsIn(tree: Tree): { members: [string, Tree][] }[] {
  if ("items" in tree) return tree.items.flatMap(objectsIn);
  if ("value" in tree) return [];
  return [tree, ...tree.members.flatMap(([name, member]) => (name === "signatures" ? [] : objectsIn(member)))];
}

/** Every member name that exists in any version. */
const names = [...new Set([...namesIn(cardV1), ...namesIn(cardV03), "location", "supportsExtendedAgentCard"])];

function namesIn(members: Members): readonly string[] {
  return Object.entries(members).flatMap(([name, [, shape]]) => [name, ...namesIn(membersIn(shape) ?? {})]);
}

/** Returns alternative spellings of a name. */
export function respellings(name: string): readonly string[] {
  const snake = name.replace(/[A-Z]|(?<=\D)\d/g, (found) => `_${found.toLowerCase()}`);
  return [
    snake,
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    name.toUpperCase(),
    name.charAt(0).toUpperCase() + name.slice(1),
    `${name}\u200b`,
    name.replace("e", "\u0435"),
    name.replace("i", "\u0131"),
    name.normalize("NFD"),
    ` ${name}`,
  ];
}

const evil = "https://evil.example/";
const evilScheme = { oauth2SecurityScheme: { flows: { clientCredentials: { tokenUrl: evil, scopes: {} } } } };

const value: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    "",
    [],
    {},
    false,
    true,
    0,
    -0,
    1e21,
    [""],
    [{}],
    [null],
    evil,
    { x: evilScheme },
    evilScheme,
    evilScheme.oauth2SecurityScheme.flows,
    { schemes: {} },
    { schemes: { x: { list: [] } } },
    [{ schemes: { one: { list: [] } } }],
    [{ url: evil, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    { $case: "oauth2SecurityScheme", value: evilScheme.oauth2SecurityScheme },
    { apiKeySecurityScheme: { location: "header", name: "x-evil" } },
    { type: "apiKey", in: "header", name: "x-evil" },
  ),
  fc.jsonValue(),
);

const knownName = fc.constantFrom(...names, "signatures");
const name = fc.oneof(
  { weight: 4, arbitrary: knownName },
  { weight: 4, arbitrary: knownName.chain((known) => fc.constantFrom(...respellings(known))) },
  { weight: 1, arbitrary: fc.constantFrom("__proto__", "constructor", "toJSON", "toString", "x") },
  { weight: 1, arbitrary: fc.string() },
);

/** A change of one member of a signed card. */
export interface Mutation {
  readonly kind: "add" | "remove" | "rename" | "respell" | "duplicate" | "replace";
  /** Selects an object, and one of its members. */
  readonly at: readonly [number, number];
  readonly name: string;
  readonly value: unknown;
  readonly first: boolean;
}

export const mutations: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom("add", "remove", "rename", "respell", "duplicate", "replace"),
  at: fc.tuple(fc.nat(), fc.nat()),
  name,
  value,
  first: fc.boolean(),
});

/** Returns the JSON text of a card after the mutation. */
export function mutated(card: object, mutation: Mutation): string {
  const root = treeOf(card);
  const objects = objectsIn(root);
  const target = objects[mutation.at[0] % objects.length];
  if (target === undefined) return textOf(root);
  const { members } = target;
  const at = mutation.at[1] % Math.max(members.length, 1);
  const chosen = members[at];
  const put = (member: [string, Tree]): void => void (mutation.first ? members.unshift(member) : members.push(member));
  if (mutation.kind === "add") put([mutation.name, treeOf(mutation.value)]);
  if (chosen === undefined || chosen[0] === "signatures") return textOf(root);
  const spellings = respellings(chosen[0]);
  const spelling = spellings[mutation.at[0] % spellings.length] ?? "";
  if (mutation.kind === "remove") members.splice(at, 1);
  if (mutation.kind === "rename") chosen[0] = mutation.name;
  if (mutation.kind === "respell") {
    if (mutation.first) chosen[0] = spelling;
    else members.push([spelling, treeOf(mutation.value)]);
  }
  if (mutation.kind === "duplicate") put([chosen[0], treeOf(mutation.value)]);
  if (mutation.kind === "replace") chosen[1] = treeOf(mutation.value);
  return textOf(root);
}

/** Objects whose member names the agent chooses. An empty value in such an object still counts as an entry. */
const maps = new Set(["schemes", "securitySchemes", "scopes"]);

/** Returns the card as a client reads it, without its signatures, and without members whose absence means the same. */
export function meaning(card: unknown, holder = ""): unknown {
  if (holder === "params") return card;
  if (Array.isArray(card)) return card.map((item: unknown) => meaning(item));
  if (!isObject(card)) return card;
  const members = Object.entries(card).flatMap(([member, own]) => {
    if (holder === "" && member === "signatures") return [];
    // JSONRPC has the same meaning as an absent value (A2A 0.3 §5.5).
    if (holder === "" && member === "preferredTransport" && own === "JSONRPC") return [];
    const inner = meaning(own, member);
    if (maps.has(holder)) return [[member, inner] as const];
    const isFlag = member === "required" || member === "pkceRequired";
    const isEmpty =
      inner === "" ||
      (isFlag && inner === false) ||
      (Array.isArray(inner) && inner.length === 0) ||
      (isObject(inner) && Object.keys(inner).length === 0 && !member.endsWith("SecurityScheme") && member !== "params");
    return isEmpty ? [] : [[member, inner] as const];
  });
  return Object.fromEntries(members);
}
