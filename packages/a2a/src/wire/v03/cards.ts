import { mapValues } from "../../base/index.ts";
import {
  agentCardSignatureSchema,
  agentExtensionSchema,
  agentProviderSchema,
  type AgentCapabilities,
  type AgentCard,
  type AgentInterface,
  type AgentSkill,
  type OAuthFlows,
  type SecurityRequirement,
  type SecurityScheme,
} from "../../model/index.ts";
import {
  boolean,
  filled,
  isObject,
  list,
  none,
  nothing,
  object,
  optional,
  record,
  required,
  string,
  strings,
  type Schema,
} from "../../model/schema.ts";
import { converted, told } from "./messages.ts";

/* Cards of 0.3 and 0.2.5 (0.3 §5.5), in JSON and in ProtoJSON, which some servers send over REST. */

/** A requirement is `{ name: [scopes] }` in JSON, and `{ schemes: { name: { list: [scopes] } } }` in ProtoJSON. */
const requirement: Schema<SecurityRequirement> = converted(
  (value, state) => {
    const schemes = isObject(value) && isObject(value["schemes"]) ? value["schemes"] : undefined;
    if (schemes === undefined) return record(strings)(value, state);
    const plain = mapValues(schemes, (scopes) => (isObject(scopes) ? (scopes["list"] ?? []) : scopes));
    return record(strings)(plain, state);
  },
  (schemes: Readonly<Record<string, readonly string[]>>) => ({
    schemes: mapValues(schemes, (scopes) => ({ list: scopes })),
  }),
);

interface OAuthFlow03 {
  readonly authorizationUrl?: string;
  readonly tokenUrl?: string;
  readonly refreshUrl?: string;
  readonly scopes?: Readonly<Record<string, string>>;
}

/** The members of all kinds of schemes. `type` is the kind. */
interface Scheme03 {
  readonly type?: string;
  readonly description?: string;
  readonly in?: string;
  /** The name of `in` in the proto. */
  readonly location?: string;
  readonly name?: string;
  readonly scheme?: string;
  readonly bearerFormat?: string;
  readonly flows?: Readonly<Record<string, OAuthFlow03>>;
  readonly oauth2MetadataUrl?: string;
  readonly openIdConnectUrl?: string;
}

const scheme03 = object<Scheme03>({
  type: optional(string),
  description: optional(string),
  in: optional(string),
  location: optional(string),
  name: optional(string),
  scheme: optional(string),
  bearerFormat: optional(string),
  flows: optional(
    record(
      object<OAuthFlow03>({
        authorizationUrl: optional(string),
        tokenUrl: optional(string),
        refreshUrl: optional(string),
        scopes: optional(record(string)),
      }),
    ),
  ),
  oauth2MetadataUrl: optional(string),
  openIdConnectUrl: optional(string),
});

/** In ProtoJSON and in 1.0, a scheme has one member, whose name is the type. */
const memberOfType: Readonly<Record<string, string>> = {
  apiKey: "apiKeySecurityScheme",
  http: "httpAuthSecurityScheme",
  oauth2: "oauth2SecurityScheme",
  openIdConnect: "openIdConnectSecurityScheme",
  mutualTLS: "mtlsSecurityScheme",
};

const scheme: Schema<SecurityScheme> = converted((value, state) => {
  if (!isObject(value) || typeof value["type"] === "string") return scheme03(value, state);
  const [type, member = ""] = Object.entries(memberOfType).find(([, name]) => isObject(value[name])) ?? [];
  return scheme03(type === undefined ? value : { ...(value[member] as object), type }, state);
}, toScheme);

/** A scheme of an unknown type becomes an empty scheme, which no credentials satisfy. */
function toScheme({ type, description, ...given }: Scheme03): SecurityScheme {
  const more = description !== undefined && { description };
  switch (type) {
    case "apiKey": {
      const location = given.in ?? given.location ?? "header";
      return { apiKeySecurityScheme: { location, name: given.name ?? "", ...more } };
    }
    case "http": {
      const { scheme: name = "", bearerFormat } = given;
      return { httpAuthSecurityScheme: { scheme: name, ...(bearerFormat !== undefined && { bearerFormat }), ...more } };
    }
    case "oauth2": {
      const { flows = {}, oauth2MetadataUrl } = given;
      const metadata = oauth2MetadataUrl !== undefined && { oauth2MetadataUrl };
      return { oauth2SecurityScheme: { flows: toFlows(flows), ...metadata, ...more } };
    }
    case "openIdConnect":
      return { openIdConnectSecurityScheme: { openIdConnectUrl: given.openIdConnectUrl ?? "", ...more } };
    case "mutualTLS":
      return { mtlsSecurityScheme: { ...more } };
    default:
      return {} as SecurityScheme;
  }
}

/** 1.0 allows only one flow (A2A 1.0 §4.5.7), so this returns the first. */
function toFlows(flows: Readonly<Record<string, OAuthFlow03>>): OAuthFlows {
  const { authorizationCode, clientCredentials, password, implicit } = flows;
  if (authorizationCode !== undefined) {
    const { authorizationUrl = "", tokenUrl = "", scopes = {}, ...rest } = authorizationCode;
    return { authorizationCode: { authorizationUrl, tokenUrl, scopes, ...rest } };
  }
  if (clientCredentials !== undefined) {
    const { tokenUrl = "", scopes = {}, refreshUrl } = clientCredentials;
    return { clientCredentials: { tokenUrl, scopes, ...(refreshUrl !== undefined && { refreshUrl }) } };
  }
  return password === undefined ? { implicit: implicit ?? {} } : { password };
}

const skill: Schema<AgentSkill> = converted(
  object<Omit<AgentSkill, "securityRequirements"> & { readonly security?: readonly SecurityRequirement[] }>({
    id: required(filled),
    name: required(filled, nothing),
    description: required(filled, nothing),
    tags: required(strings, none),
    examples: optional(strings),
    inputModes: optional(strings),
    outputModes: optional(strings),
    security: optional(list(requirement)),
  }),
  ({ id, name, description, tags, examples, inputModes, outputModes, security }) => ({
    id,
    name,
    description,
    tags,
    ...(examples !== undefined && { examples }),
    ...(inputModes !== undefined && { inputModes }),
    ...(outputModes !== undefined && { outputModes }),
    ...(security !== undefined && { securityRequirements: security }),
  }),
);

interface Interface03 {
  readonly url: string;
  readonly transport: string;
}

/** A card of 0.3. Members that also exist in 1.0 have the form of 1.0. */
interface Card03 extends Omit<AgentCard, "supportedInterfaces" | "securityRequirements"> {
  readonly protocolVersion?: string;
  readonly url: string;
  readonly preferredTransport?: string;
  readonly additionalInterfaces?: readonly Interface03[];
  readonly security?: readonly SecurityRequirement[];
  readonly supportsAuthenticatedExtendedCard?: boolean;
  /** The name of `supportsAuthenticatedExtendedCard` in some implementations. */
  readonly supportsExtendedAgentCard?: boolean;
}

const card03 = object<Card03>({
  protocolVersion: optional(string),
  name: required(filled, nothing),
  description: required(filled, nothing),
  url: required(filled),
  preferredTransport: optional(string),
  additionalInterfaces: optional(list(object<Interface03>({ url: required(filled), transport: required(filled) }))),
  iconUrl: optional(string),
  provider: optional(agentProviderSchema),
  version: required(filled, nothing),
  documentationUrl: optional(string),
  capabilities: required(
    object<AgentCapabilities>({
      streaming: optional(boolean),
      pushNotifications: optional(boolean),
      extensions: optional(list(agentExtensionSchema)),
      extendedAgentCard: optional(boolean),
    }),
    () => ({}),
  ),
  securitySchemes: optional(record(scheme)),
  security: optional(list(requirement)),
  defaultInputModes: required(strings, none),
  defaultOutputModes: required(strings, none),
  skills: required(list(skill), none),
  supportsAuthenticatedExtendedCard: optional(boolean),
  supportsExtendedAgentCard: optional(boolean),
  signatures: optional(list(agentCardSignatureSchema)),
});

const readCard = told(card03, "agent card");

/** Reads a card. Throws `InvalidResponse` if it is not a card of these versions. */
export function decodeCard(value: unknown): AgentCard {
  const card = readCard(value);
  const extended = card.supportsAuthenticatedExtendedCard ?? card.supportsExtendedAgentCard;
  const { streaming, pushNotifications, extensions } = card.capabilities;
  return {
    name: card.name,
    description: card.description,
    supportedInterfaces: interfacesOf(card),
    ...(card.provider !== undefined && { provider: card.provider }),
    version: card.version,
    ...(card.documentationUrl !== undefined && { documentationUrl: card.documentationUrl }),
    capabilities: {
      ...(streaming !== undefined && { streaming }),
      ...(pushNotifications !== undefined && { pushNotifications }),
      ...(extensions !== undefined && { extensions }),
      ...(extended !== undefined && { extendedAgentCard: extended }),
    },
    ...(card.securitySchemes !== undefined && { securitySchemes: card.securitySchemes }),
    ...(card.security !== undefined && { securityRequirements: card.security }),
    defaultInputModes: card.defaultInputModes,
    defaultOutputModes: card.defaultOutputModes,
    skills: card.skills,
    ...(card.signatures !== undefined && { signatures: card.signatures }),
    ...(card.iconUrl !== undefined && { iconUrl: card.iconUrl }),
  };
}

/** The main interface, then the other interfaces in their order, without duplicates. A card without a version is a card of 0.2.5. */
function interfacesOf(card: Card03): readonly AgentInterface[] {
  const { url: main, preferredTransport = "JSONRPC", additionalInterfaces = [], protocolVersion = "0.2.5" } = card;
  const version = protocolVersion.startsWith("0.2.") ? protocolVersion : protocolVersion.split(".", 2).join(".");
  const all = [{ url: main, transport: preferredTransport }, ...additionalInterfaces];
  const each = new Map(all.map((one) => [JSON.stringify([one.transport, one.url]), one]));
  return [...each.values()].map(({ url, transport }) => ({
    url,
    protocolBinding: transport,
    protocolVersion: version,
  }));
}

/** Whether an interface speaks 0.3 or 0.2. */
function isOurs({ protocolVersion }: AgentInterface): boolean {
  return /^0\.[23](?:\.|$)/.test(protocolVersion);
}

/** The version with a patch number, in the form of 0.3 and 0.2.5. */
function wholeVersion(version: string): string {
  return /^\d+\.\d+$/.test(version) ? `${version}.0` : version;
}

/** The card in JSON. */
export function encodeCard(card: AgentCard): object {
  return jsonCard(card);
}

function jsonCard(card: AgentCard) {
  const ours = card.supportedInterfaces.filter(isOurs);
  const interfaces = ours.length > 0 ? ours : card.supportedInterfaces;
  const [main, ...others] = interfaces;
  const { extendedAgentCard, ...capabilities } = card.capabilities;
  return {
    protocolVersion: wholeVersion(main?.protocolVersion ?? "0.3"),
    name: card.name,
    description: card.description,
    url: main?.url ?? "",
    preferredTransport: main?.protocolBinding ?? "JSONRPC",
    // `additionalInterfaces` includes the main interface, so that a client finds all transports in one list (§5.5.5).
    ...(others.length > 0 && {
      additionalInterfaces: interfaces.map(({ url, protocolBinding }) => ({ url, transport: protocolBinding })),
    }),
    ...(card.iconUrl !== undefined && { iconUrl: card.iconUrl }),
    ...(card.provider !== undefined && { provider: card.provider }),
    version: card.version,
    ...(card.documentationUrl !== undefined && { documentationUrl: card.documentationUrl }),
    capabilities,
    ...(card.securitySchemes !== undefined && { securitySchemes: mapValues(card.securitySchemes, fromScheme) }),
    ...(card.securityRequirements !== undefined && { security: fromSecurity(card.securityRequirements) }),
    defaultInputModes: card.defaultInputModes,
    defaultOutputModes: card.defaultOutputModes,
    skills: card.skills.map(fromSkill),
    ...(extendedAgentCard !== undefined && { supportsAuthenticatedExtendedCard: extendedAgentCard }),
    ...(card.signatures !== undefined && { signatures: card.signatures }),
  };
}

type Security03 = readonly Readonly<Record<string, readonly string[]>>[];

function fromSecurity(requirements: readonly SecurityRequirement[]): Security03 {
  return requirements.map(({ schemes = {} }) => mapValues(schemes, ({ list: scopes = [] }) => scopes));
}

function fromSkill({ securityRequirements, ...rest }: AgentSkill): typeof rest & { readonly security?: Security03 } {
  return securityRequirements === undefined ? rest : { security: fromSecurity(securityRequirements), ...rest };
}

function fromScheme(given: SecurityScheme): Scheme03 {
  if (given.apiKeySecurityScheme !== undefined) {
    const { location, ...rest } = given.apiKeySecurityScheme;
    return { type: "apiKey", in: location, ...rest };
  }
  if (given.httpAuthSecurityScheme !== undefined) return { type: "http", ...given.httpAuthSecurityScheme };
  if (given.oauth2SecurityScheme !== undefined) {
    const { flows, ...rest } = given.oauth2SecurityScheme;
    return { type: "oauth2", flows: fromFlows(flows), ...rest };
  }
  if (given.openIdConnectSecurityScheme !== undefined) {
    return { type: "openIdConnect", ...given.openIdConnectSecurityScheme };
  }
  return { type: "mutualTLS", ...given.mtlsSecurityScheme };
}

/** 0.3 has no flow for device codes. For such a scheme, `flows` is empty, but still shows that the scheme is OAuth. */
function fromFlows({ deviceCode: _, authorizationCode, ...others }: OAuthFlows): Scheme03["flows"] & object {
  if (authorizationCode === undefined) return others;
  const { pkceRequired: __, ...flow } = authorizationCode;
  return { authorizationCode: flow };
}

/** The card in ProtoJSON. */
export function protoCard(card: AgentCard): object {
  const { security, securitySchemes, skills, ...rest } = jsonCard(card);
  const schemes = securitySchemes && Object.entries(mapValues(securitySchemes, protoScheme));
  return {
    ...rest,
    ...(security !== undefined && { security: protoSecurity(security) }),
    ...(schemes && { securitySchemes: Object.fromEntries(schemes.filter(([, member]) => member !== undefined)) }),
    skills: skills.map(({ security: own, ...each }) => ({ ...each, ...(own && { security: protoSecurity(own) }) })),
  };
}

/** The card in JSON. Its security schemes also have the members of ProtoJSON, so that readers of both forms understand the card. */
export function restCard(card: AgentCard): object {
  const { securitySchemes, ...rest } = jsonCard(card);
  if (securitySchemes === undefined) return rest;
  return { securitySchemes: mapValues(securitySchemes, (each) => ({ ...each, ...protoScheme(each) })), ...rest };
}

function protoSecurity(security: Security03): readonly object[] {
  return security.map((each) => ({ schemes: mapValues(each, (scopes) => ({ list: scopes })) }));
}

function protoScheme({ type = "", in: location, ...given }: Scheme03): object | undefined {
  const member = Object.hasOwn(memberOfType, type) ? memberOfType[type] : undefined;
  if (member === undefined) return undefined;
  const flows = given.flows && { flows: oneFlow(given.flows) };
  return { [member]: { ...given, ...flows, ...(location !== undefined && { location }) } };
}

/** Keeps one flow, because the proto allows only one. */
function oneFlow(flows: NonNullable<Scheme03["flows"]>): object {
  const wanted = ["authorizationCode", "clientCredentials", "implicit", "password"].find((name) => name in flows);
  return wanted === undefined ? {} : { [wanted]: flows[wanted] };
}
