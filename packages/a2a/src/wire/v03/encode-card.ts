import { mapValues } from "../../base/index.ts";
import type {
  AgentCard,
  AgentInterface,
  AgentSkill,
  OAuthFlows,
  SecurityRequirement,
  SecurityScheme,
} from "../../model/index.ts";
import type { AgentCard03, AgentSkill03, OAuthFlow03, Security03, SecurityScheme03 } from "./types.ts";

/** Writes a card as clients of 0.3 and 0.2.5 read it (0.3 §5.5): in JSON, and in the ProtoJSON of gRPC. */

const defaultTransport = "JSONRPC";

/** Whether an interface speaks 0.3 or 0.2. */
function isOurs({ protocolVersion }: AgentInterface): boolean {
  return /^0\.[23](?:\.|$)/.test(protocolVersion);
}

/** The version with a patch number, as 0.3 and 0.2.5 write it. */
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
    // They include the main interface, so that a client finds all transports in one list (§5.5.5).
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

/** 0.3 has no flow for device codes. Then `flows` is empty, which still says that the scheme is OAuth. */
function encodeFlows({
  deviceCode: _,
  authorizationCode,
  ...others
}: OAuthFlows): Readonly<Record<string, OAuthFlow03>> {
  if (authorizationCode === undefined) return others;
  const { pkceRequired: __, ...flow } = authorizationCode;
  return { authorizationCode: flow };
}

interface ProtoSecurity {
  readonly schemes: { readonly [scheme: string]: { readonly list: readonly string[] } };
}

/** It has exactly one member. */
interface ProtoScheme {
  readonly apiKeySecurityScheme?: { readonly location?: string; readonly name?: string; readonly description?: string };
  readonly httpAuthSecurityScheme?: SecurityScheme03;
  readonly oauth2SecurityScheme?: SecurityScheme03;
  readonly openIdConnectSecurityScheme?: SecurityScheme03;
  readonly mtlsSecurityScheme?: SecurityScheme03;
}

const members = {
  http: "httpAuthSecurityScheme",
  oauth2: "oauth2SecurityScheme",
  openIdConnect: "openIdConnectSecurityScheme",
  mutualTLS: "mtlsSecurityScheme",
} as const;

export function toProtoCard(card: AgentCard03): unknown {
  const { security, securitySchemes, skills, ...rest } = card;
  return {
    ...rest,
    ...(security !== undefined && { security: security.map(toProtoSecurity) }),
    ...(securitySchemes !== undefined && {
      securitySchemes: Object.fromEntries(
        Object.entries(securitySchemes).flatMap(([name, scheme]) => {
          const proto = toProtoScheme(scheme);
          return proto === undefined ? [] : [[name, proto] as const];
        }),
      ),
    }),
    skills: skills.map(({ security: own, ...skill }) => ({
      ...skill,
      ...(own !== undefined && { security: own.map(toProtoSecurity) }),
    })),
  };
}

/** The card in JSON, whose security schemes have the members of ProtoJSON too: readers of both forms understand it. */
export function toRestCard(card: AgentCard03): unknown {
  const { securitySchemes, ...rest } = card;
  if (securitySchemes === undefined) return card;
  const both = Object.entries(securitySchemes).map(
    ([name, scheme]): readonly [string, SecurityScheme03 & ProtoScheme] => [
      name,
      Object.assign({}, scheme, toProtoScheme(scheme)),
    ],
  );
  return { securitySchemes: Object.fromEntries(both), ...rest };
}

function toProtoSecurity(requirement: Security03[number]): ProtoSecurity {
  return { schemes: mapValues(requirement, (list) => ({ list })) };
}

function toProtoScheme({ type, ...scheme }: SecurityScheme03): ProtoScheme | undefined {
  if (type === "apiKey") {
    const { in: location, ...rest } = scheme;
    return { apiKeySecurityScheme: { ...rest, ...(location !== undefined && { location }) } };
  }
  if (type === "oauth2")
    return { oauth2SecurityScheme: { ...scheme, ...(scheme.flows && { flows: oneFlow(scheme.flows) }) } };
  return Object.hasOwn(members, type ?? "") ? { [members[type as keyof typeof members]]: scheme } : undefined;
}

/** The proto has one flow. */
function oneFlow(flows: NonNullable<SecurityScheme03["flows"]>): { readonly [flow: string]: OAuthFlow03 } {
  const wanted = ["authorizationCode", "clientCredentials", "implicit", "password"].find((name) => name in flows);
  return wanted === undefined ? {} : { [wanted]: flows[wanted] as OAuthFlow03 };
}
