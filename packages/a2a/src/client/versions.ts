import { withoutSlashes, type Logger } from "../base/index.ts";
import { hasCode, A2AError, type AgentCard, type AgentInterface, type SecurityScheme } from "../model/index.ts";
import {
  Payload,
  type AgentService,
  type CallContext,
  type Reply,
  type UnaryName,
  type UnaryOperations,
  isCardOf,
} from "../protocol/index.ts";
import type { ClientBinding, ClientHost } from "../transport/client/binding.ts";
import { requestHeaders, sendRequest } from "../transport/client/request.ts";
import { parseJson, refusal } from "../transport/client/service.ts";
import { byVersion, type Codec, type Shapes, type JsonRpcCodec, type RestCodec } from "../wire/codec.ts";
import { isObject, itemsOf } from "../model/schema.ts";

/** Compatibility with servers of every version. Reads their cards, and makes their services behave the same. */

/** The members that identify a card of version 0.3 or earlier. Such a card has other members too. */
export interface OlderCard {
  /** Name of the agent. */
  readonly name: string;
  /** Address of the agent. */
  readonly url: string;
}

/**
 * Reads a card with the first codec that can. A card that has the shapes of several versions gets the interfaces of all these
 * versions. Throws the `InvalidResponse` of the version that the card seems to have.
 */
export function readCard(codecs: readonly Pick<Codec, "decodeCard">[], value: unknown): AgentCard {
  const errors: unknown[] = [];
  const spelled = respelled(value);
  const cards = codecs.flatMap((codec) => {
    try {
      return codec.decodeCard(structuredClone(spelled));
    } catch (thrown) {
      errors.push(thrown);
      return [];
    }
  });
  const [first, ...others] = cards;
  if (first === undefined) {
    const newest = typeof value !== "object" || value === null || "supportedInterfaces" in value;
    throw errors.at(newest ? 0 : -1);
  }
  const card = withSchemesOf(first, others);
  const known = new Set(card.supportedInterfaces.map(key));
  const more = others.flatMap((other) => other.supportedInterfaces).filter((each) => !known.has(key(each)));
  return more.length === 0 ? card : { ...card, supportedInterfaces: [...card.supportedInterfaces, ...more] };
}

function key({ url, protocolBinding, protocolVersion }: AgentInterface): string {
  return JSON.stringify([url, protocolBinding, protocolVersion.split(".", 2)]);
}

/** A binding whose services behave the same for every version (`Codec.adaptClient`). */
export function adapted(binding: ClientBinding, codecs: readonly Codec[]): ClientBinding {
  const known = byVersion(codecs);
  return {
    name: binding.name,
    versions: binding.versions,
    ...(binding.unusable !== undefined && { unusable: (url: string) => binding.unusable?.(url) }),
    ...(binding.origin !== undefined && {
      origin: (url: string, card: AgentCard) => binding.origin?.(url, card),
    }),
    open(target, version, host, card) {
      const service = binding.open(target, version, host, card);
      const codec = known.get(version);
      if (codec?.adaptClient === undefined) return service;
      return withCardElsewhere(codec.adaptClient(service), target.url, codec, host);
    },
  };
}

/** Reads the extended card with an HTTP GET if a server has no method to read it, as in 0.2. */
function withCardElsewhere(service: AgentService, url: string, codec: Codec, host: ClientHost): AgentService {
  const { extendedCardPath: path } = codec;
  if (path === undefined || !URL.canParse(url)) return service;
  return {
    stream: (operation, request, context) => service.stream(operation, request, context),
    call<Name extends UnaryName>(operation: Name, request: UnaryOperations[Name]["request"], context: CallContext) {
      const reply = service.call(operation, request, context);
      if (operation !== "GetExtendedAgentCard") return reply;
      return reply.catch(async (thrown: unknown) => {
        const card = hasCode(thrown, "MethodNotFound")
          ? await cardElsewhere(url, path, codec, host, context)
          : undefined;
        if (card === undefined) throw thrown;
        return { payload: new Payload(card) } as Reply<never>;
      });
    },
  };
}

/** Reads the extended card at the URLs that 0.2 servers use: next to the agent's address, below that address, or at the root of its host. */
async function cardElsewhere(
  address: string,
  path: string,
  codec: Codec,
  host: ClientHost,
  context: CallContext,
): Promise<AgentCard | undefined> {
  const base = withoutSlashes(address);
  const urls = [new URL(`${base}/..${path}`).href, base + path, new URL(address).origin + path];
  for (const url of new Set(urls)) {
    const headers = await requestHeaders(host, { url, operation: "GetExtendedAgentCard" }, context, codec);
    headers["accept"] = "application/json";
    const answer = await sendRequest(host, { method: "GET", url, headers }, context);
    const text = await answer.text();
    const value = parseJson(answer, text);
    if (answer.status === 200 && value !== undefined) return codec.decodeCard(value);
    // If the server requires credentials at this URL, the card is there.
    if (answer.status === 401 || answer.status === 403) throw refusal(answer, host.clock, url, text, undefined);
  }
  return undefined;
}

/**
 * Reads variants of a 1.0 card's security members that other SDKs write. Otherwise a client could not authenticate to servers with these SDKs.
 * Signatures are verified over the received card.
 */

type Members = Readonly<Record<string, unknown>>;

/** Maps the members of an object. Other values stay unchanged. */
function mapMembers(value: unknown, map: (member: unknown) => unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, map(member)]));
}

/** The card with its security members in the form of the specification. */
function respelled(card: unknown): unknown {
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
  const list = (scopes: unknown): unknown => (Array.isArray(scopes) ? { list: itemsOf(scopes) } : scopes);
  return requirements.map((one: unknown) =>
    isObject(one) ? { ...one, schemes: mapMembers(one["schemes"], list) } : one,
  );
}

/**
 * The SDK for JavaScript (1.3) serializes the unions of schemes in its in-memory form: `{ scheme: { $case: "…", value: … }
 * }`. An object with a second member stays unchanged, because a signature over that member does not cover the union.
 */
function withoutCases(value: unknown, depth = 0): unknown {
  if (!isObject(value) || depth > 4) return value;
  const entries = Object.entries(value);
  const members = entries.map(([name, member]): readonly [string, unknown] => {
    const { $case, value }: Readonly<Record<string, unknown>> = isObject(member) ? member : {};
    return entries.length === 1 && typeof $case === "string"
      ? [$case, withoutCases(value, depth + 1)]
      : [name, withoutCases(member, depth + 1)];
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

/** The card, with schemes from its older shape if its 1.0 schemes are unreadable, as in Go SDK cards that have both shapes. */
function withSchemesOf(card: AgentCard, others: readonly AgentCard[]): AgentCard {
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
 * The documents of extended cards, as received, because signatures cover the document. REST 0.3 has a different card form, which is never signed,
 * so such a card is rewritten in the form of JSON-RPC 0.3.
 */
export type CardDocuments = WeakMap<AgentCard, object>;

/** Extends the codec so that it reads extended cards like public ones, and keeps their documents. */
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
    if (isObject(document) && isSignedForm(document) && isCardOf(operation, response))
      documents.set(response, document);
    return response;
  };
  return { ...wire, decodeResponse };
}

/** Support for servers whose card declares 1.0 but whose events have the `kind` of 0.3 instead of a wrapper, such as LangGraph 0.16. */

const members: Readonly<Record<string, string>> = {
  task: "task",
  message: "message",
  "status-update": "statusUpdate",
  "artifact-update": "artifactUpdate",
};

/** The member that wraps an event, by its `kind`. `undefined` if the event is already wrapped or unknown. */
function memberFor(value: unknown): string | undefined {
  if (!isObject(value) || typeof value["kind"] !== "string") return undefined;
  return Object.hasOwn(members, value["kind"]) ? members[value["kind"]] : undefined;
}

/** The 1.0 codec, extended to wrap events by their `kind`. Logs one warning. */
export function wrappingByKind<Version extends JsonRpcCodec & RestCodec>(
  codec: Version,
  logger: Logger | undefined,
): Version {
  if (codec.version < "1") return codec;
  let isTold = false;
  const wrapped = <T>(value: unknown, decode: (value: unknown) => T): T => {
    const member = memberFor(value);
    if (member === undefined) return decode(value);
    try {
      const event = decode({ [member]: value });
      if (!isTold)
        logger?.warn("The server sends events of 1.0 without their wrapper; reading them by their kind", { member });
      isTold = true;
      return event;
    } catch (thrown) {
      if (!(thrown instanceof A2AError)) throw thrown;
      const hint = 'it looks like an event of 0.3: try connect(url, { version: "0.2.5" })';
      throw new A2AError(thrown.code, `${thrown.message}; ${hint}`, { cause: thrown });
    }
  };
  const reading = <Wire extends Pick<Shapes, "decodeResponse" | "decodeEvent">>(wire: Wire): Wire => {
    const decodeResponse: Shapes["decodeResponse"] = (operation, value) =>
      operation === "SendMessage"
        ? wrapped(value, (each) => wire.decodeResponse(operation, each))
        : wire.decodeResponse(operation, value);
    return {
      ...wire,
      decodeResponse,
      decodeEvent: (value: unknown) => wrapped(value, (each) => wire.decodeEvent(each)),
    };
  };
  const { bindings } = codec;
  const both = { JSONRPC: reading(bindings.JSONRPC), "HTTP+JSON": reading(bindings["HTTP+JSON"]) };
  return { ...codec, bindings: { ...bindings, ...both } };
}
