import { mapValues } from "../base/index.ts";
import { isObject, jsonName } from "../model/schema.ts";
import { cardV03, cardV1, type Members, type Presence, type Shape } from "./fields.ts";
import { canonicalJson } from "../jws/jcs.ts";
import type { CardReading } from "./port.ts";

/*
 * The forms of a card that a signature can cover. A form keeps every member of the card, including unknown ones. A form omits a member only
 * if its absence means the same, so a verified card contains nothing that the signer did not sign.
 */

type Json = Readonly<Record<string, unknown>>;

/** A text that a signature may cover. */
export interface CardForm {
  readonly version: "1.0" | "0.3";
  readonly reading: CardReading;
  readonly text: string;
  /** Whether the text lacks content of the card, so that a signature over it proves nothing. */
  readonly lacking: boolean;
  /** The members that a signature over the text covers. Readers use these members instead of the document. */
  readonly covered: Json;
}

/** The two texts that a signer of one version may have to sign. */
interface SignableForms {
  /** The form of the specification. */
  readonly specification: string;
  /** The form of the SDKs. */
  readonly reduced: string;
  /** Whether `reduced` has the same meaning, because it lacks only empty texts and empty required values. */
  readonly same: boolean;
  readonly canonical: Json;
}

/** The versions whose members a card has. A document may be a card of both versions. */
export function versionsOf(card: Json): readonly CardForm["version"][] {
  return [
    ...(card["supportedInterfaces"] === undefined ? [] : (["1.0"] as const)),
    ...(typeof card["url"] === "string" ? (["0.3"] as const) : []),
  ];
}

/** The forms of a card in one version. If the card has both versions, the forms omit the members of the other version. */
export function signableForms({ signatures: _, ...card }: Json, version: CardForm["version"]): SignableForms {
  const [own, other] = version === "1.0" ? [cardV1, cardV03] : [cardV03, cardV1];
  const left = versionsOf(card).length > 1 ? other : undefined;
  const canonical = formOf(own, left, card, false) as Json;
  const specification = canonicalJson(canonical);
  const short = formOf(own, left, card, true);
  if (version === "1.0") {
    const reduced = canonicalJson(reducedOf(canonical) ?? {});
    return { specification, reduced, same: reduced === canonicalJson(short), canonical };
  }
  const reduced = ascii(canonicalJson(reducedOf(withoutDefaults(canonical, () => true)) ?? {}));
  const same = hasDefaulted(canonical) && reduced === ascii(canonicalJson(withoutDefaults(short, isImplied)));
  return { specification, reduced, same, canonical };
}

/** The distinct forms of a card that a signature may cover: the form as received, the form of the specification, and the reduced form. */
export function verifiableForms(document: Json): readonly CardForm[] {
  const { signatures: _, ...card } = document;
  const versions = versionsOf(card);
  const exact = canonicalJson(withoutUndefined(card));
  const forms: CardForm[] = [
    { version: versions[0] ?? "1.0", reading: "exact", text: exact, lacking: false, covered: card },
  ];
  for (const version of versions) {
    const { specification, reduced, same, canonical: covered } = signableForms(card, version);
    forms.push({ version, reading: "specification", text: specification, lacking: false, covered });
    forms.push({ version, reading: "reduced", text: reduced, lacking: !same, covered });
  }
  return forms.filter(({ text }, at) => forms.findIndex((other) => other.text === text) === at);
}

function withoutUndefined(card: Json): Json {
  return Object.fromEntries(Object.entries(card).filter(([, value]) => value !== undefined));
}

/**
 * An object in canonical form. Known members get the canonical form, and unknown members stay unchanged. Omits members of the `other`
 * version. With `short`, also omits empty texts and empty required members.
 */
function formOf(own: Members, other: Members | undefined, value: unknown, short: boolean): unknown {
  if (!isObject(value)) return value;
  const members = Object.entries(own).flatMap(([name, [presence, shape]]) => {
    const given = Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined;
    const member = given === undefined ? emptyOf(presence, shape) : shaped(shape, other?.[name]?.[1], given, short);
    const drops =
      presence === "implicit" || (short && (presence === "required" || (presence === "optional" && shape === "text")));
    const left = member === undefined || (drops && isEmpty(shape, member));
    return left ? [] : [[name, member] as const];
  });
  const unknown = Object.entries(value).filter(
    ([name]) => !Object.hasOwn(own, name) && !(other !== undefined && Object.hasOwn(other, name)),
  );
  return Object.fromEntries([...members, ...unknown]);
}

/** The value of an absent member in the canonical form; `undefined` if the form omits the member. */
function emptyOf(presence: Presence, shape: Shape): unknown {
  if (presence !== "required") return undefined;
  if (shape === "text") return "";
  return shape === "texts" || (typeof shape === "object" && "list" in shape) ? [] : {};
}

function shaped(shape: Shape, otherShape: Shape | undefined, value: unknown, short: boolean): unknown {
  const inner = membersIn(shape);
  if (inner === undefined || typeof shape === "string") return value;
  const canonical = (item: unknown): unknown => formOf(inner, membersIn(otherShape), item, short);
  if ("object" in shape) return canonical(value);
  if ("list" in shape) return Array.isArray(value) ? value.map(canonical) : value;
  return isObject(value) ? mapValues(value, canonical) : value;
}

/** The members of the objects in a shape, which are the object itself, its elements, or its values. */
export function membersIn(shape: Shape | undefined): Members | undefined {
  if (shape === undefined || typeof shape === "string") return undefined;
  if ("object" in shape) return shape.object;
  if ("list" in shape) return shape.list;
  return typeof shape.map === "string" ? undefined : shape.map;
}

/**
 * Whether a value is the default of its type, such as an empty map. For objects with their own members, callers check only required
 * members, because any other empty object was set on purpose.
 */
function isEmpty(shape: Shape, value: unknown): boolean {
  if (shape === "flag") return value === false;
  if (shape === "text") return value === "";
  if (shape === "any") return false;
  if (shape === "texts" || "list" in shape) return Array.isArray(value) && value.length === 0;
  return isObject(value) && Object.keys(value).length === 0;
}

/** Removes empty texts, lists, objects and nulls at any depth, as the JavaScript and Python SDKs do. */
function reducedOf(value: unknown, depth = 0): unknown {
  if (value === "" || value === null || value === undefined) return undefined;
  // `canonicalJson` rejects values that are nested this deeply.
  if (typeof value !== "object" || depth > 200) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => reducedOf(item, depth + 1)).filter((item) => item !== undefined);
    return items.length === 0 ? undefined : items;
  }
  const members = Object.entries(value).flatMap(([name, item]) => {
    const left = reducedOf(item, depth + 1);
    return left === undefined ? [] : [[name, left] as const];
  });
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

/*
 * The reduced form of a 0.3 card, as version 0.3 of the Python SDK signs it. The form is in ASCII, without default values of the SDK's types and
 * without empty values.
 */

/** A card of 0.3 without the default values of the SDK's types. `drops` tells whether to also omit the `type` of a scheme. */
function withoutDefaults(card: unknown, drops: (scheme: Json) => boolean): unknown {
  if (!isObject(card)) return card;
  const { protocolVersion, preferredTransport, securitySchemes, ...rest } = card;
  return {
    ...rest,
    ...(protocolVersion !== "0.3.0" && { protocolVersion }),
    ...(preferredTransport !== "JSONRPC" && { preferredTransport }),
    ...(securitySchemes !== undefined && {
      securitySchemes: isObject(securitySchemes)
        ? mapValues(securitySchemes, (scheme) => {
            if (!isObject(scheme) || !drops(scheme)) return scheme;
            const { type: _, ...others } = scheme;
            return others;
          })
        : securitySchemes,
    }),
  };
}

/**
 * Whether a card has the members whose default values the reduced form omits. Readers treat a card without a version as
 * 0.2.5, and a scheme without a type as unknown. So the reduced form of such a card would have another meaning.
 */
function hasDefaulted({ protocolVersion, securitySchemes }: Json): boolean {
  const schemes = isObject(securitySchemes) ? Object.values(securitySchemes) : [];
  return protocolVersion !== undefined && schemes.every((one) => isObject(one) && one["type"] !== undefined);
}

/** Whether the other members of a scheme imply its type, so that omitting it loses nothing. */
function isImplied({ type, ...scheme }: Json): boolean {
  const own =
    "in" in scheme
      ? "apiKey"
      : "scheme" in scheme
        ? "http"
        : "flows" in scheme
          ? "oauth2"
          : "openIdConnectUrl" in scheme
            ? "openIdConnect"
            : "mutualTLS";
  return type === own;
}

function ascii(json: string): string {
  return json.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A member that the versions of a card do not define. */
export interface StrayMember {
  /** Path of the member. */
  readonly field: string;
  /** The member that lenient readers, such as ProtoJSON, read instead. For `security_schemes`, this is `securitySchemes`. */
  readonly readAs?: string;
}

const maxListed = 100;

/** The members of a card, at any depth, that its versions do not define. */
export function strayMembers(
  { signatures: _, ...card }: Json,
  versions: readonly CardForm["version"][] = versionsOf(card),
): readonly StrayMember[] {
  const defined = versions.map((version) => (version === "1.0" ? cardV1 : cardV03));
  const found: StrayMember[] = [];
  walk(card, "", { defined, readable: [cardV1, cardV03] }, found);
  return found;
}

interface Tables {
  /** The members that the versions of the card define. */
  readonly defined: readonly Members[];
  /** The members that any reader may know. */
  readonly readable: readonly Members[];
}

function walk(value: unknown, path: string, { defined, readable }: Tables, found: StrayMember[]): void {
  if (!isObject(value)) return;
  const knows = (tables: readonly Members[], name: string): boolean => tables.some((one) => Object.hasOwn(one, name));
  for (const [name, member] of Object.entries(value)) {
    if (found.length >= maxListed) return;
    const field = path === "" ? name : `${path}.${name}`;
    const known = jsonName(name);
    if (!knows(defined, name)) {
      const alias = known !== name && knows(readable, known);
      found.push({ field, ...(alias && { readAs: known }) });
      continue;
    }
    const shapes = (tables: readonly Members[]): readonly (Shape | undefined)[] =>
      tables.map((one) => (Object.hasOwn(one, name) ? one[name]?.[1] : undefined));
    const inner = (tables: readonly Members[]): readonly Members[] =>
      shapes(tables)
        .map(membersIn)
        .filter((one) => one !== undefined);
    const inside = { defined: inner(defined), readable: inner(readable) };
    // If a member is free-form JSON in one version, it is free-form in all versions.
    if (inside.defined.length === 0) continue;
    const isMap = shapes(defined).some((shape) => typeof shape === "object" && "map" in shape);
    if (Array.isArray(member)) member.forEach((item, at) => walk(item, `${field}[${at}]`, inside, found));
    else if (isMap && isObject(member))
      for (const [key, item] of Object.entries(member)) walk(item, `${field}.${key}`, inside, found);
    else walk(member, field, inside, found);
  }
}
