import { isObject } from "../../model/schema.ts";
import type { AgentCard03, OAuthFlow03, Security03, SecurityScheme03 } from "./types.ts";

/** The card of 0.3 in ProtoJSON, which gRPC carries and some servers of REST send: it differs where security is told. */

interface ProtoSecurity {
  readonly schemes: { readonly [scheme: string]: { readonly list: readonly string[] } };
}

/** Exactly one member. */
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

/** The card as JSON-RPC has it, with the members of ProtoJSON in its schemes as well: either reader knows them. */
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
  return { schemes: Object.fromEntries(Object.entries(requirement).map(([name, list]) => [name, { list }])) };
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

/** The proto has room for one flow. */
function oneFlow(flows: NonNullable<SecurityScheme03["flows"]>): { readonly [flow: string]: OAuthFlow03 } {
  const wanted = ["authorizationCode", "clientCredentials", "implicit", "password"].find((name) => name in flows);
  return wanted === undefined ? {} : { [wanted]: flows[wanted] as OAuthFlow03 };
}

/** A card of either form as JSON-RPC has it, for `decodeCard` to check. */
export function ofProtoCard(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { securitySchemes, security, skills } = value;
  return {
    ...value,
    ...(Array.isArray(security) && { security: security.map(ofProtoSecurity) }),
    ...(isObject(securitySchemes) && {
      securitySchemes: Object.fromEntries(
        Object.entries(securitySchemes).map(([name, scheme]) => [name, ofProtoScheme(scheme)]),
      ),
    }),
    ...(Array.isArray(skills) && { skills: skills.map(ofProtoSkill) }),
  };
}

function ofProtoSkill(skill: unknown): unknown {
  if (!isObject(skill) || !Array.isArray(skill["security"])) return skill;
  return { ...skill, security: skill["security"].map(ofProtoSecurity) };
}

function ofProtoSecurity(requirement: unknown): unknown {
  const schemes = isObject(requirement) ? requirement["schemes"] : undefined;
  if (!isObject(schemes)) return requirement;
  return Object.fromEntries(
    Object.entries(schemes).map(([name, scopes]) => [name, isObject(scopes) ? (scopes["list"] ?? []) : scopes]),
  );
}

function ofProtoScheme(scheme: unknown): unknown {
  if (!isObject(scheme)) return scheme;
  const { apiKeySecurityScheme } = scheme;
  if (isObject(apiKeySecurityScheme)) {
    const { location, ...rest } = apiKeySecurityScheme;
    return { type: "apiKey", in: location, ...rest };
  }
  for (const [type, member] of Object.entries(members)) {
    if (isObject(scheme[member])) return { type, ...scheme[member] };
  }
  return scheme;
}
