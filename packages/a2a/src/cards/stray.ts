import { isObject, jsonName } from "../model/schema.ts";
import { messageIn, versionsOf, type CardForm } from "./canonical.ts";
import { cardV03, cardV1, type Message, type Shape } from "./fields.ts";

/** A member that the versions of a card do not define. */
export interface StrayMember {
  /** Its path. */
  readonly field: string;
  /** The member that lenient readers take it for, as of ProtoJSON: `security_schemes` becomes `securitySchemes`. */
  readonly readAs?: string;
}

type Json = Readonly<Record<string, unknown>>;

/** Maximum number of members that are listed. */
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
  /** What the versions of the card define. */
  readonly defined: readonly Message[];
  /** What any reader may know. */
  readonly readable: readonly Message[];
}

function walk(value: unknown, path: string, { defined, readable }: Tables, found: StrayMember[]): void {
  if (!isObject(value)) return;
  const knows = (tables: readonly Message[], name: string): boolean => tables.some((one) => Object.hasOwn(one, name));
  for (const [name, member] of Object.entries(value)) {
    if (found.length >= maxListed) return;
    const field = path === "" ? name : `${path}.${name}`;
    const known = jsonName(name);
    if (!knows(defined, name)) {
      const alias = known !== name && knows(readable, known);
      found.push({ field, ...(alias && { readAs: known }) });
      continue;
    }
    const shapes = (tables: readonly Message[]): readonly (Shape | undefined)[] =>
      tables.map((one) => (Object.hasOwn(one, name) ? one[name]?.[1] : undefined));
    const messages = (tables: readonly Message[]): readonly Message[] =>
      shapes(tables)
        .map(messageIn)
        .filter((one) => one !== undefined);
    const inside = { defined: messages(defined), readable: messages(readable) };
    // A member of free JSON in one version is free in all.
    if (inside.defined.length === 0) continue;
    const isMap = shapes(defined).some((shape) => typeof shape === "object" && "map" in shape);
    if (Array.isArray(member)) member.forEach((item, at) => walk(item, `${field}[${at}]`, inside, found));
    else if (isMap && isObject(member))
      for (const [key, item] of Object.entries(member)) walk(item, `${field}.${key}`, inside, found);
    else walk(member, field, inside, found);
  }
}
