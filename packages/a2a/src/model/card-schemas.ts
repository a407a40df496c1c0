import {
  boolean,
  filled,
  list,
  none,
  nothing,
  object,
  optional,
  record,
  required,
  string,
  strings,
  struct,
  type Fields,
  type Schema,
} from "./schema.ts";
import type {
  AgentCapabilities,
  AgentCard,
  AgentCardSignature,
  AgentExtension,
  AgentInterface,
  AgentProvider,
  AgentSkill,
  APIKeySecurityScheme,
  AuthorizationCodeOAuthFlow,
  ClientCredentialsOAuthFlow,
  DeviceCodeOAuthFlow,
  HTTPAuthSecurityScheme,
  ImplicitOAuthFlow,
  MutualTlsSecurityScheme,
  OAuth2SecurityScheme,
  OAuthFlows,
  OpenIdConnectSecurityScheme,
  PasswordOAuthFlow,
  SecurityRequirement,
  SecurityScheme,
  StringList,
} from "./card.ts";

/**
 * A schema for each message of the A2A 1.0 proto that a card is made of. Texts stay as they are, empty ones too, because a
 * signature covers them (A2A 1.0 §8.4.1).
 */

/** The members of a union side by side. */
type Members<Union> = { readonly [Name in Union extends unknown ? keyof Union : never]?: MemberOf<Union, Name> };
type MemberOf<Union, Name extends PropertyKey> = Union extends { readonly [Key in Name]: infer Value } ? Value : never;

function union<Union>(fields: Fields<Members<Union>>): Schema<Union> {
  // A card stays readable where one of its members is of a kind that this release does not know.
  return object<Members<Union>>(fields, { none: {} }) as Schema<Union>;
}

const scopes: Schema<Readonly<Record<string, string>>> = record(string);
const noScopes = (): Readonly<Record<string, string>> => ({});

/** Checks an `AgentInterface`. */
export const agentInterfaceSchema: Schema<AgentInterface> = object<AgentInterface>({
  url: required(filled),
  protocolBinding: required(filled),
  tenant: optional(string),
  protocolVersion: required(filled),
});

/** Checks an `AgentProvider`. */
export const agentProviderSchema: Schema<AgentProvider> = object<AgentProvider>({
  url: required(filled, nothing),
  organization: required(filled, nothing),
});

/** Checks an `AgentExtension`. */
export const agentExtensionSchema: Schema<AgentExtension> = object<AgentExtension>({
  uri: optional(string),
  description: optional(string),
  required: optional(boolean),
  params: optional(struct),
});

/** Checks an `AgentCapabilities`. */
export const agentCapabilitiesSchema: Schema<AgentCapabilities> = object<AgentCapabilities>({
  streaming: optional(boolean),
  pushNotifications: optional(boolean),
  extensions: optional(list(agentExtensionSchema)),
  extendedAgentCard: optional(boolean),
});

/** Checks a `StringList`. */
export const stringListSchema: Schema<StringList> = object<StringList>({ list: optional(strings) });

/** Checks a `SecurityRequirement`. */
export const securityRequirementSchema: Schema<SecurityRequirement> = object<SecurityRequirement>({
  schemes: optional(record(stringListSchema)),
});

/** Checks an `AgentSkill`. */
export const agentSkillSchema: Schema<AgentSkill> = object<AgentSkill>({
  id: required(filled),
  name: required(filled, nothing),
  description: required(filled, nothing),
  tags: required(strings, none),
  examples: optional(strings),
  inputModes: optional(strings),
  outputModes: optional(strings),
  securityRequirements: optional(list(securityRequirementSchema)),
});

/** Checks an `AgentCardSignature`. */
export const agentCardSignatureSchema: Schema<AgentCardSignature> = object<AgentCardSignature>({
  protected: required(filled),
  signature: required(filled),
  header: optional(struct),
});

/** Checks an `APIKeySecurityScheme`. */
export const apiKeySecuritySchemeSchema: Schema<APIKeySecurityScheme> = object<APIKeySecurityScheme>({
  description: optional(string),
  location: required(filled),
  name: required(filled),
});

/** Checks an `HTTPAuthSecurityScheme`. */
export const httpAuthSecuritySchemeSchema: Schema<HTTPAuthSecurityScheme> = object<HTTPAuthSecurityScheme>({
  description: optional(string),
  scheme: required(filled),
  bearerFormat: optional(string),
});

/** Checks an `AuthorizationCodeOAuthFlow`. */
export const authorizationCodeOAuthFlowSchema: Schema<AuthorizationCodeOAuthFlow> = object<AuthorizationCodeOAuthFlow>({
  authorizationUrl: required(filled),
  tokenUrl: required(filled),
  refreshUrl: optional(string),
  scopes: required(scopes, noScopes),
  pkceRequired: optional(boolean),
});

/** Checks a `ClientCredentialsOAuthFlow`. */
export const clientCredentialsOAuthFlowSchema: Schema<ClientCredentialsOAuthFlow> = object<ClientCredentialsOAuthFlow>({
  tokenUrl: required(filled),
  refreshUrl: optional(string),
  scopes: required(scopes, noScopes),
});

/** Checks an `ImplicitOAuthFlow`. */
export const implicitOAuthFlowSchema: Schema<ImplicitOAuthFlow> = object<ImplicitOAuthFlow>({
  authorizationUrl: optional(string),
  refreshUrl: optional(string),
  scopes: optional(scopes),
});

/** Checks a `PasswordOAuthFlow`. */
export const passwordOAuthFlowSchema: Schema<PasswordOAuthFlow> = object<PasswordOAuthFlow>({
  tokenUrl: optional(string),
  refreshUrl: optional(string),
  scopes: optional(scopes),
});

/** Checks a `DeviceCodeOAuthFlow`. */
export const deviceCodeOAuthFlowSchema: Schema<DeviceCodeOAuthFlow> = object<DeviceCodeOAuthFlow>({
  deviceAuthorizationUrl: required(filled),
  tokenUrl: required(filled),
  refreshUrl: optional(string),
  scopes: required(scopes, noScopes),
});

/** Checks an `OAuthFlows`. */
export const oAuthFlowsSchema: Schema<OAuthFlows> = union<OAuthFlows>({
  authorizationCode: optional(authorizationCodeOAuthFlowSchema),
  clientCredentials: optional(clientCredentialsOAuthFlowSchema),
  implicit: optional(implicitOAuthFlowSchema),
  password: optional(passwordOAuthFlowSchema),
  deviceCode: optional(deviceCodeOAuthFlowSchema),
});

/** Checks an `OAuth2SecurityScheme`. */
export const oAuth2SecuritySchemeSchema: Schema<OAuth2SecurityScheme> = object<OAuth2SecurityScheme>({
  description: optional(string),
  flows: required(oAuthFlowsSchema),
  oauth2MetadataUrl: optional(string),
});

/** Checks an `OpenIdConnectSecurityScheme`. */
export const openIdConnectSecuritySchemeSchema: Schema<OpenIdConnectSecurityScheme> =
  object<OpenIdConnectSecurityScheme>({
    description: optional(string),
    openIdConnectUrl: required(filled),
  });

/** Checks a `MutualTlsSecurityScheme`. */
export const mutualTlsSecuritySchemeSchema: Schema<MutualTlsSecurityScheme> = object<MutualTlsSecurityScheme>({
  description: optional(string),
});

/** Checks a `SecurityScheme`. */
export const securitySchemeSchema: Schema<SecurityScheme> = union<SecurityScheme>({
  apiKeySecurityScheme: optional(apiKeySecuritySchemeSchema),
  httpAuthSecurityScheme: optional(httpAuthSecuritySchemeSchema),
  oauth2SecurityScheme: optional(oAuth2SecuritySchemeSchema),
  openIdConnectSecurityScheme: optional(openIdConnectSecuritySchemeSchema),
  mtlsSecurityScheme: optional(mutualTlsSecuritySchemeSchema),
});

/** Checks an `AgentCard`. */
export const agentCardSchema: Schema<AgentCard> = object<AgentCard>({
  name: required(filled, nothing),
  description: required(filled, nothing),
  supportedInterfaces: required(list(agentInterfaceSchema, "must hold at least one interface")),
  provider: optional(agentProviderSchema),
  version: required(filled, nothing),
  documentationUrl: optional(string),
  capabilities: required(agentCapabilitiesSchema, () => ({})),
  securitySchemes: optional(record(securitySchemeSchema)),
  securityRequirements: optional(list(securityRequirementSchema)),
  defaultInputModes: required(strings, none),
  defaultOutputModes: required(strings, none),
  skills: required(list(agentSkillSchema), none),
  signatures: optional(list(agentCardSignatureSchema)),
  iconUrl: optional(string),
});
