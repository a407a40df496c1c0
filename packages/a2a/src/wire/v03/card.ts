import {
  A2AError,
  check,
  withFields,
  type AgentCard,
  type AgentInterface,
  type AgentSkill,
  type OAuthFlows,
  type SecurityRequirement,
  type SecurityScheme,
} from "../../model/index.ts";
import { card03 } from "./card-schemas.ts";
import type { AgentCard03, AgentSkill03, OAuthFlow03, Security03, SecurityScheme03 } from "./types.ts";

/** The card as clients of 0.3 and 0.2.5 know it (0.3 §5.5), from the model and back. */

const defaultTransport = "JSONRPC";

/** Whether an interface is one of this wire. */
function isOurs({ protocolVersion }: AgentInterface): boolean {
  return /^0\.[23](?:\.|$)/.test(protocolVersion);
}

/** A patch number, as the texts of that time have it. */
function wholeVersion(version: string): string {
  return /^\d+\.\d+$/.test(version) ? `${version}.0` : version;
}

export function encodeCard(card: AgentCard): AgentCard03 {
  const ours = card.supportedInterfaces.filter(isOurs);
  const interfaces = ours.length > 0 ? ours : card.supportedInterfaces;
  const [main, ...others] = interfaces;
  const { extendedAgentCard, ...capabilities } = card.capabilities;
  return {
    protocolVersion: wholeVersion(main?.protocolVersion ?? "0.3"),
    name: card.name,
    description: card.description,
    url: main?.url ?? "",
    preferredTransport: main?.protocolBinding ?? defaultTransport,
    // The main one stands among them too, so that who looks for a transport finds them all in one place (§5.5.5).
    ...(others.length > 0 && {
      additionalInterfaces: interfaces.map(({ url, protocolBinding }) => ({ url, transport: protocolBinding })),
    }),
    ...(card.iconUrl !== undefined && { iconUrl: card.iconUrl }),
    ...(card.provider !== undefined && { provider: card.provider }),
    version: card.version,
    ...(card.documentationUrl !== undefined && { documentationUrl: card.documentationUrl }),
    capabilities,
    ...(card.securitySchemes !== undefined && {
      securitySchemes: mapValues(card.securitySchemes, encodeScheme),
    }),
    ...(card.securityRequirements !== undefined && { security: encodeSecurity(card.securityRequirements) }),
    defaultInputModes: card.defaultInputModes,
    defaultOutputModes: card.defaultOutputModes,
    skills: card.skills.map(encodeSkill),
    ...(extendedAgentCard !== undefined && { supportsAuthenticatedExtendedCard: extendedAgentCard }),
    ...(card.signatures !== undefined && { signatures: card.signatures }),
  };
}

function encodeSkill({ securityRequirements, ...rest }: AgentSkill): AgentSkill03 {
  return securityRequirements === undefined ? rest : { security: encodeSecurity(securityRequirements), ...rest };
}

function encodeSecurity(requirements: readonly SecurityRequirement[]): Security03 {
  return requirements.map(({ schemes = {} }) => mapValues(schemes, ({ list = [] }) => list));
}

function encodeScheme(scheme: SecurityScheme): SecurityScheme03 {
  if (scheme.apiKeySecurityScheme !== undefined) {
    const { location, ...rest } = scheme.apiKeySecurityScheme;
    return { type: "apiKey", in: location, ...rest };
  }
  if (scheme.httpAuthSecurityScheme !== undefined) return { type: "http", ...scheme.httpAuthSecurityScheme };
  if (scheme.oauth2SecurityScheme !== undefined) {
    const { flows, ...rest } = scheme.oauth2SecurityScheme;
    return { type: "oauth2", flows: encodeFlows(flows), ...rest };
  }
  if (scheme.openIdConnectSecurityScheme !== undefined) {
    return { type: "openIdConnect", ...scheme.openIdConnectSecurityScheme };
  }
  return { type: "mutualTLS", ...scheme.mtlsSecurityScheme };
}

/** 0.3 has no word for the device code; an object of flows without one says at least that this is OAuth. */
function encodeFlows({
  deviceCode: _,
  authorizationCode,
  ...others
}: OAuthFlows): Readonly<Record<string, OAuthFlow03>> {
  if (authorizationCode === undefined) return others;
  const { pkceRequired: __, ...flow } = authorizationCode;
  return { authorizationCode: flow };
}

/** @throws A2AError `InvalidResponse` when it is no card of these versions. */
export function decodeCard(value: unknown): AgentCard {
  // A copy: a card that carries the shapes of several versions is read by each of them.
  const checked = check(card03, structuredClone(value), "answer");
  if (!checked.ok) {
    throw new A2AError("InvalidResponse", withFields("The peer's agent card is not valid", checked.violations), {
      fields: checked.violations,
    });
  }
  const card = checked.value;
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

/** The main interface first, the others in their order, each address once. A card without a version is one of 0.2.5. */
function interfacesOf({
  url,
  preferredTransport = defaultTransport,
  additionalInterfaces = [],
  protocolVersion = "0.2.5",
}: AgentCard03): readonly AgentInterface[] {
  const version = protocolVersion.startsWith("0.2.") ? protocolVersion : protocolVersion.split(".", 2).join(".");
  const all = [{ url, transport: preferredTransport }, ...additionalInterfaces];
  return all
    .filter((one, at) => all.findIndex((other) => other.url === one.url && other.transport === one.transport) === at)
    .map((one) => ({ url: one.url, protocolBinding: one.transport, protocolVersion: version }));
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

/** What is of no kind known here stays in the card as a scheme that nobody can satisfy. */
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

/** Of several flows the one that 1.0 would rather have (A2A 1.0 §4.5.7 has room for one). */
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

function mapValues<From, To>(
  from: Readonly<Record<string, From>>,
  map: (value: From) => To,
): Readonly<Record<string, To>> {
  return Object.fromEntries(Object.entries(from).map(([name, value]) => [name, map(value)]));
}
