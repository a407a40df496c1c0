import { agentExtensionSchema, agentProviderSchema, agentCardSignatureSchema } from "../../model/index.ts";
import {
  boolean,
  filled,
  isObject,
  list,
  object,
  optional,
  record,
  required,
  string,
  type Schema,
} from "../../model/schema.ts";
import type { AgentCard03, AgentInterface03, AgentSkill03, OAuthFlow03, SecurityScheme03 } from "./types.ts";

/** The card of A2A 0.3 and 0.2.5 as peers send it (0.3 §5.5): lenient, since nothing in it is ours to refuse. */

const strings: Schema<readonly string[]> = list(string);
const none = (): readonly never[] => [];
const nothing = (): string => "";

/** `{ name: [scopes] }`; the proto's form is `{ schemes: { name: { list: [scopes] } } }`. */
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

/** In the proto's form the kind of a scheme is the name of the only member, and what it says stands below that. */
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

export const card03: Schema<AgentCard03> = object<AgentCard03>({
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
