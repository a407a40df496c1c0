import { mapValues } from "../../base/index.ts";
import {
  agentCardSignatureSchema,
  agentExtensionSchema,
  agentProviderSchema,
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
import { answered } from "../codec.ts";
import type {
  AgentCard03,
  AgentInterface03,
  AgentSkill03,
  OAuthFlow03,
  Security03,
  SecurityScheme03,
} from "./types.ts";

/**
 * Reads cards of 0.3 and 0.2.5 (0.3 §5.5), in JSON and in the ProtoJSON of gRPC, which some servers send over REST too. It
 * accepts what other implementations leave out.
 */

/** `{ name: [scopes] }`. In ProtoJSON it is `{ schemes: { name: { list: [scopes] } } }`. */
const requirement: Schema<Readonly<Record<string, readonly string[]>>> = (value, run) => {
  const schemes = isObject(value) && isObject(value["schemes"]) ? value["schemes"] : undefined;
  if (schemes === undefined) return record(strings)(value, run);
  return record(strings)(
    Object.fromEntries(
      Object.entries(schemes).map(([name, scopes]) => [name, isObject(scopes) ? (scopes["list"] ?? []) : scopes]),
    ),
    run,
  );
};

const oAuthFlow: Schema<OAuthFlow03> = object<OAuthFlow03>({
  authorizationUrl: optional(string),
  tokenUrl: optional(string),
  refreshUrl: optional(string),
  scopes: optional(record(string)),
});

const fields: Schema<SecurityScheme03> = object<SecurityScheme03>({
  type: optional(string),
  description: optional(string),
  in: optional(string),
  location: optional(string),
  name: optional(string),
  scheme: optional(string),
  bearerFormat: optional(string),
  flows: optional(record(oAuthFlow)),
  oauth2MetadataUrl: optional(string),
  openIdConnectUrl: optional(string),
});

/** In ProtoJSON a scheme has one member, whose name is its type. */
const members: Readonly<Record<string, string>> = {
  apiKeySecurityScheme: "apiKey",
  httpAuthSecurityScheme: "http",
  oauth2SecurityScheme: "oauth2",
  openIdConnectSecurityScheme: "openIdConnect",
  mtlsSecurityScheme: "mutualTLS",
};

const securityScheme: Schema<SecurityScheme03> = (value, run) => {
  if (!isObject(value) || typeof value["type"] === "string") return fields(value, run);
  const member = Object.keys(members).find((name) => isObject(value[name]));
  if (member === undefined) return fields(value, run);
  return fields({ ...(value[member] as object), type: members[member] }, run);
};

const skill: Schema<AgentSkill03> = object<AgentSkill03>({
  id: required(filled),
  name: required(filled, nothing),
  description: required(filled, nothing),
  tags: required(strings, none),
  examples: optional(strings),
  inputModes: optional(strings),
  outputModes: optional(strings),
  security: optional(list(requirement)),
});

const card03: Schema<AgentCard03> = object<AgentCard03>({
  protocolVersion: optional(string),
  name: required(filled, nothing),
  description: required(filled, nothing),
  url: required(filled),
  preferredTransport: optional(string),
  additionalInterfaces: optional(
    list(object<AgentInterface03>({ url: required(filled), transport: required(filled) })),
  ),
  iconUrl: optional(string),
  provider: optional(agentProviderSchema),
  version: required(filled, nothing),
  documentationUrl: optional(string),
  capabilities: required(
    object<AgentCard03["capabilities"]>({
      streaming: optional(boolean),
      pushNotifications: optional(boolean),
      extensions: optional(list(agentExtensionSchema)),
    }),
    () => ({}),
  ),
  securitySchemes: optional(record(securityScheme)),
  security: optional(list(requirement)),
  defaultInputModes: required(strings, none),
  defaultOutputModes: required(strings, none),
  skills: required(list(skill), none),
  supportsAuthenticatedExtendedCard: optional(boolean),
  supportsExtendedAgentCard: optional(boolean),
  signatures: optional(list(agentCardSignatureSchema)),
});

/** Reads a card. Throws `InvalidResponse` where it is not a card of these versions. */
export function decodeCard(value: unknown): AgentCard {
  // A copy, because the codecs of several versions read the same card.
  const card = answered(card03, structuredClone(value), "agent card");
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
    ...(card.securitySchemes !== undefined && { securitySchemes: mapValues(card.securitySchemes, decodeScheme) }),
    ...(card.security !== undefined && { securityRequirements: decodeSecurity(card.security) }),
    defaultInputModes: card.defaultInputModes,
    defaultOutputModes: card.defaultOutputModes,
    skills: card.skills.map(decodeSkill),
    ...(card.signatures !== undefined && { signatures: card.signatures }),
    ...(card.iconUrl !== undefined && { iconUrl: card.iconUrl }),
  };
}

/** The main interface, then the others in their order, each once. A card without a version is a card of 0.2.5. */
function interfacesOf({
  url,
  preferredTransport = "JSONRPC",
  additionalInterfaces = [],
  protocolVersion = "0.2.5",
}: AgentCard03): readonly AgentInterface[] {
  const version = protocolVersion.startsWith("0.2.") ? protocolVersion : protocolVersion.split(".", 2).join(".");
  const all = [{ url, transport: preferredTransport }, ...additionalInterfaces];
  const each = new Map(all.map((one) => [JSON.stringify([one.transport, one.url]), one]));
  return [...each.values()].map((one) => ({
    url: one.url,
    protocolBinding: one.transport,
    protocolVersion: version,
  }));
}

function decodeSkill({
  security,
  id,
  name,
  description,
  tags,
  examples,
  inputModes,
  outputModes,
}: AgentSkill03): AgentSkill {
  return {
    id,
    name,
    description,
    tags,
    ...(examples !== undefined && { examples }),
    ...(inputModes !== undefined && { inputModes }),
    ...(outputModes !== undefined && { outputModes }),
    ...(security !== undefined && { securityRequirements: decodeSecurity(security) }),
  };
}

function decodeSecurity(security: Security03): readonly SecurityRequirement[] {
  return security.map((schemes) => ({ schemes: mapValues(schemes, (list) => ({ list })) }));
}

/** A scheme of an unknown type stays in the card as an empty scheme, which nobody can satisfy. */
function decodeScheme(scheme: SecurityScheme03): SecurityScheme {
  const description = scheme.description !== undefined && { description: scheme.description };
  switch (scheme.type) {
    case "apiKey": {
      const location = scheme.in ?? scheme.location ?? "header";
      return { apiKeySecurityScheme: { location, name: scheme.name ?? "", ...description } };
    }
    case "http":
      return {
        httpAuthSecurityScheme: {
          scheme: scheme.scheme ?? "",
          ...(scheme.bearerFormat !== undefined && { bearerFormat: scheme.bearerFormat }),
          ...description,
        },
      };
    case "oauth2":
      return {
        oauth2SecurityScheme: {
          flows: decodeFlows(scheme.flows ?? {}),
          ...(scheme.oauth2MetadataUrl !== undefined && { oauth2MetadataUrl: scheme.oauth2MetadataUrl }),
          ...description,
        },
      };
    case "openIdConnect":
      return { openIdConnectSecurityScheme: { openIdConnectUrl: scheme.openIdConnectUrl ?? "", ...description } };
    case "mutualTLS":
      return { mtlsSecurityScheme: { ...description } };
    default:
      return {} as SecurityScheme;
  }
}

/** 1.0 has one flow (A2A 1.0 §4.5.7): the first of these. */
function decodeFlows({
  authorizationCode,
  clientCredentials,
  password,
  implicit,
}: Readonly<Record<string, OAuthFlow03>>): OAuthFlows {
  if (authorizationCode !== undefined) {
    const { authorizationUrl = "", tokenUrl = "", scopes = {}, ...rest } = authorizationCode;
    return { authorizationCode: { authorizationUrl, tokenUrl, scopes, ...rest } };
  }
  if (clientCredentials !== undefined) {
    const { tokenUrl = "", scopes = {}, refreshUrl } = clientCredentials;
    return { clientCredentials: { tokenUrl, scopes, ...(refreshUrl !== undefined && { refreshUrl }) } };
  }
  if (password !== undefined) return { password };
  return { implicit: implicit ?? {} };
}
