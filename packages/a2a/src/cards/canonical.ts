import { isObject } from "../model/schema.ts";
import { cardV03, cardV1, type Message, type Presence, type Shape } from "./fields.ts";
import { canonicalJson } from "../jws/jcs.ts";
import { ascii, isImplied, withoutDefaults } from "./reduced-v03.ts";
import type { CardReading } from "./port.ts";

/* The forms of a card that a signature can be over. */

type Json = Readonly<Record<string, unknown>>;

/** The bytes of one form of a card, as text. */
export interface CardForm {
  readonly version: "1.0" | "0.3";
  readonly reading: CardReading;
  readonly text: string;
  /** Whether something of the card is not in it, so that a signature over it proves nothing. */
  readonly lacking: boolean;
}

/** The two texts that a signer of one version may have to sign. */
export interface SignableForms {
  /** As the specification demands. */
  readonly specification: string;
  /** As the SDKs write it. */
  readonly reduced: string;
  /** Whether `reduced` lacks only empty texts and required values that are empty, and so means the same. */
  readonly same: boolean;
}

/** The members of a card by version. A document may be a card of both. */
export function versionsOf(card: Json): readonly CardForm["version"][] {
  return [
    ...("supportedInterfaces" in card ? (["1.0"] as const) : []),
    ...(typeof card["url"] === "string" ? (["0.3"] as const) : []),
  ];
}

/** The forms of a card in one version. */
export function signableForms(card: Json, version: CardForm["version"]): SignableForms {
  const message = version === "1.0" ? cardV1 : cardV03;
  const canonical = messageOf(message, card, false);
  const specification = canonicalJson(canonical);
  const short = messageOf(message, card, true);
  if (version === "1.0") {
    const reduced = canonicalJson(reducedOf(canonical) ?? {});
    return { specification, reduced, same: reduced === canonicalJson(short) };
  }
  const reduced = ascii(canonicalJson(reducedOf(withoutDefaults(canonical, () => true)) ?? {}));
  return { specification, reduced, same: reduced === ascii(canonicalJson(withoutDefaults(short, isImplied))) };
}

/**
 * The forms of a card that a signature may be over, each once: as it came, then as the specification demands, then the reduced one.
 */
export function verifiableForms(document: Json): readonly CardForm[] {
  const { signatures: _, ...card } = document;
  const versions = versionsOf(card);
  const exact = canonicalJson(withoutUndefined(card));
  const forms: CardForm[] = [{ version: versions[0] ?? "1.0", reading: "exact", text: exact, lacking: false }];
  for (const version of versions) {
    const { specification, reduced, same } = signableForms(card, version);
    forms.push({ version, reading: "specification", text: specification, lacking: false });
    forms.push({ version, reading: "reduced", text: reduced, lacking: !same });
  }
  return forms.filter(({ text }, at) => forms.findIndex((other) => other.text === text) === at);
}

function withoutUndefined(card: Json): Json {
  return Object.fromEntries(Object.entries(card).filter(([, value]) => value !== undefined));
}

/** The known members of an object. `short`: without texts that are empty, and without required members that are. */
function messageOf(message: Message, value: unknown, short: boolean): unknown {
  if (!isObject(value)) return value;
  const members = Object.entries(message).flatMap(([name, [presence, shape]]) => {
    const given = Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined;
    const member = given === undefined ? emptyOf(presence, shape) : shaped(shape, given, short);
    const drops =
      presence === "implicit" || (short && (presence === "required" || (presence === "optional" && shape === "text")));
    const left = member === undefined || (drops && isEmpty(shape, member));
    return left ? [] : [[name, member] as const];
  });
  return Object.fromEntries(members);
}

/** What an absent member is in the canonical form; `undefined`: it is not there. */
function emptyOf(presence: Presence, shape: Shape): unknown {
  if (presence !== "required") return undefined;
  if (shape === "text") return "";
  return shape === "texts" || (typeof shape === "object" && "list" in shape) ? [] : {};
}

function shaped(shape: Shape, value: unknown, short: boolean): unknown {
  if (typeof shape === "string") return value;
  if ("message" in shape) return messageOf(shape.message, value, short);
  if ("list" in shape) {
    return Array.isArray(value) ? value.map((item) => messageOf(shape.list, item, short)) : value;
  }
  const { map } = shape;
  if (typeof map === "string" || !isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, messageOf(map, item, short)]));
}

/** Whether a value is the default of its type. An object is one only where it is required, since it was set otherwise. */
function isEmpty(shape: Shape, value: unknown): boolean {
  if (shape === "flag") return value === false;
  if (shape === "any") return false;
  if (value === "") return true;
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0;
}

/** Without empty texts, lists, objects and nulls at any depth, as the SDKs of JavaScript and Python do it. */
function reducedOf(value: unknown, depth = 0): unknown {
  if (value === "" || value === null || value === undefined) return undefined;
  // `canonicalJson` refuses what nests so deep.
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
