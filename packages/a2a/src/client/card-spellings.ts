import type { AgentCard, SecurityScheme } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type { JsonRpcCodec, RestCodec, Shapes } from "../wire/codec.ts";

/**
 * What other SDKs write in place of the security members of a 1.0 card. A client that could not read them would not know how to
 * authenticate at their servers. Signatures are verified over the card as it came.
 */

type Members = Readonly<Record<string, unknown>>;

/** An object with its members changed. Anything else stays as it is. */
function mapMembers(value: unknown, map: (member: unknown) => unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, map(member)]));
}

/** A card whose security members are written as the specification has them. */
export function respelled(card: unknown): unknown {
  if (!isObject(card) || !("supportedInterfaces" in card)) return card;
  const { securitySchemes, securityRequirements, skills } = card;
  return {
    ...card,
    ...(securitySchemes !== undefined && { securitySchemes: mapMembers(securitySchemes, (one) => withoutCases(one)) }),
    ...(securityRequirements !== undefined && { securityRequirements: listed(securityRequirements) }),
    ...(Array.isArray(skills) && { skills: skills.map(ofSkill) }),
  };
}

function ofSkill(skill: unknown): unknown {
  if (!isObject(skill) || skill["securityRequirements"] === undefined) return skill;
  return { ...skill, securityRequirements: listed(skill["securityRequirements"]) };
}

/** Requirements of the SDK for Go (2.3): `{ schemes: { name: ["scope"] } }`, without the member `list`. */
function listed(requirements: unknown): unknown {
  if (!Array.isArray(requirements)) return requirements;
  const list = (scopes: unknown): unknown => (Array.isArray(scopes) ? { list: scopes as unknown[] } : scopes);
  return requirements.map((one: unknown) =>
    isObject(one) ? { ...one, schemes: mapMembers(one["schemes"], list) } : one,
  );
}

/**
 * A scheme of the SDK for JavaScript (1.3) has its unions as they are in memory: `{ scheme: { $case: "…", value: … } }`. Beside another
 * member it is none of them: a signature over that member does not cover it.
 */
function withoutCases(value: unknown, depth = 0): unknown {
  if (!isObject(value) || depth > 4) return value;
  const entries = Object.entries(value);
  const members = entries.map(([name, member]): readonly [string, unknown] => {
    const isUnion = entries.length === 1 && isObject(member) && typeof member["$case"] === "string";
    const union = isUnion ? member : undefined;
    return union === undefined
      ? [name, withoutCases(member, depth + 1)]
      : [union["$case"] as string, withoutCases(union["value"], depth + 1)];
  });
  return Object.fromEntries(members);
}

const schemeMembers = [
  "apiKeySecurityScheme",
  "httpAuthSecurityScheme",
  "oauth2SecurityScheme",
  "openIdConnectSecurityScheme",
  "mtlsSecurityScheme",
];

/** The card with the schemes of its older shapes where its own cannot be read, as in cards of the SDK for Go that have both. */
export function withSchemesOf(card: AgentCard, others: readonly AgentCard[]): AgentCard {
  const known = (scheme: Members): boolean => schemeMembers.some((member) => scheme[member] !== undefined);
  const entries = Object.entries(card.securitySchemes ?? {}).map(
    ([name, scheme]): readonly [string, SecurityScheme] => {
      if (known(scheme)) return [name, scheme];
      const read = others.map(({ securitySchemes = {} }) =>
        Object.hasOwn(securitySchemes, name) ? securitySchemes[name] : undefined,
      );
      return [name, read.find((one) => one !== undefined && known(one)) ?? scheme];
    },
  );
  return entries.length === 0 ? card : { ...card, securitySchemes: Object.fromEntries(entries) };
}

/**
 * The documents that extended cards were read from, as received: a signature covers the document. REST of 0.3 has a form of cards of its
 * own, which nobody signs: such a card is written again as JSON-RPC of 0.3 writes it.
 */
export type CardDocuments = WeakMap<AgentCard, object>;

/** The codec, whose extended cards are read like those that are fetched, and whose documents are kept. */
export function respelling<Version extends JsonRpcCodec & RestCodec>(
  codec: Version,
  documents: CardDocuments,
): Version {
  const { bindings } = codec;
  const both = {
    JSONRPC: withCards(bindings.JSONRPC, documents, () => true),
    "HTTP+JSON": withCards(bindings["HTTP+JSON"], documents, (document) => "supportedInterfaces" in document),
  };
  return { ...codec, bindings: { ...bindings, ...both } };
}

function withCards<Wire extends Pick<Shapes, "decodeResponse">>(
  wire: Wire,
  documents: CardDocuments,
  isSignedForm: (document: object) => boolean,
): Wire {
  const decodeResponse: Shapes["decodeResponse"] = (operation, value) => {
    if (operation !== "GetExtendedAgentCard") return wire.decodeResponse(operation, value);
    const document = structuredClone(value);
    const response = wire.decodeResponse(operation, respelled(value));
    if (isObject(document) && isSignedForm(document)) documents.set(response as AgentCard, document);
    return response;
  };
  return { ...wire, decodeResponse };
}
