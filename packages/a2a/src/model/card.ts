import type { JsonObject } from "./types.ts";

/** The agent card and what it is made of (A2A 1.0 §4.4, §4.5). */

/** A2A 1.0 §4.4.6. `protocolBinding` is one of the core names or the URI of a custom binding (§5.8). */
export interface AgentInterface {
  readonly url: string;
  readonly protocolBinding: "JSONRPC" | "GRPC" | "HTTP+JSON" | (string & {});
  readonly tenant?: string;
  readonly protocolVersion: string;
}

export interface AgentProvider {
  readonly url: string;
  readonly organization: string;
}

/** A2A 1.0 §4.4.4. */
export interface AgentExtension {
  readonly uri?: string;
  readonly description?: string;
  readonly required?: boolean;
  readonly params?: JsonObject;
}

export interface AgentCapabilities {
  readonly streaming?: boolean;
  readonly pushNotifications?: boolean;
  readonly extensions?: readonly AgentExtension[];
  readonly extendedAgentCard?: boolean;
}

export interface StringList {
  readonly list?: readonly string[];
}

/** Every scheme named in `schemes` must be satisfied together. */
export interface SecurityRequirement {
  readonly schemes?: { readonly [scheme: string]: StringList };
}

export interface AgentSkill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly examples?: readonly string[];
  readonly inputModes?: readonly string[];
  readonly outputModes?: readonly string[];
  readonly securityRequirements?: readonly SecurityRequirement[];
}

/** A2A 1.0 §8.4.2: a JWS, its payload detached. */
export interface AgentCardSignature {
  readonly protected: string;
  readonly signature: string;
  readonly header?: JsonObject;
}

export interface APIKeySecurityScheme {
  readonly description?: string;
  /** `query`, `header` or `cookie`. */
  readonly location: string;
  readonly name: string;
}

export interface HTTPAuthSecurityScheme {
  readonly description?: string;
  readonly scheme: string;
  readonly bearerFormat?: string;
}

export interface AuthorizationCodeOAuthFlow {
  readonly authorizationUrl: string;
  readonly tokenUrl: string;
  readonly refreshUrl?: string;
  readonly scopes: { readonly [scope: string]: string };
  readonly pkceRequired?: boolean;
}

export interface ClientCredentialsOAuthFlow {
  readonly tokenUrl: string;
  readonly refreshUrl?: string;
  readonly scopes: { readonly [scope: string]: string };
}

/** Deprecated by A2A 1.0. */
export interface ImplicitOAuthFlow {
  readonly authorizationUrl?: string;
  readonly refreshUrl?: string;
  readonly scopes?: { readonly [scope: string]: string };
}

/** Deprecated by A2A 1.0. */
export interface PasswordOAuthFlow {
  readonly tokenUrl?: string;
  readonly refreshUrl?: string;
  readonly scopes?: { readonly [scope: string]: string };
}

export interface DeviceCodeOAuthFlow {
  readonly deviceAuthorizationUrl: string;
  readonly tokenUrl: string;
  readonly refreshUrl?: string;
  readonly scopes: { readonly [scope: string]: string };
}

/** `T` with every other member of `Names` ruled out, so that a union is told apart by the member that is present. */
type OneOf<Members> = {
  [Name in keyof Members]: { readonly [Key in Name]: Members[Key] } & {
    readonly [Key in Exclude<keyof Members, Name>]?: never;
  };
}[keyof Members];

/** A2A 1.0 §4.5.7: exactly one member. */
export type OAuthFlows = OneOf<{
  authorizationCode: AuthorizationCodeOAuthFlow;
  clientCredentials: ClientCredentialsOAuthFlow;
  implicit: ImplicitOAuthFlow;
  password: PasswordOAuthFlow;
  deviceCode: DeviceCodeOAuthFlow;
}>;

export interface OAuth2SecurityScheme {
  readonly description?: string;
  readonly flows: OAuthFlows;
  readonly oauth2MetadataUrl?: string;
}

export interface OpenIdConnectSecurityScheme {
  readonly description?: string;
  readonly openIdConnectUrl: string;
}

export interface MutualTlsSecurityScheme {
  readonly description?: string;
}

/** A2A 1.0 §4.5.1: exactly one member. */
export type SecurityScheme = OneOf<{
  apiKeySecurityScheme: APIKeySecurityScheme;
  httpAuthSecurityScheme: HTTPAuthSecurityScheme;
  oauth2SecurityScheme: OAuth2SecurityScheme;
  openIdConnectSecurityScheme: OpenIdConnectSecurityScheme;
  mtlsSecurityScheme: MutualTlsSecurityScheme;
}>;

/** A2A 1.0 §4.4.1. */
export interface AgentCard {
  readonly name: string;
  readonly description: string;
  readonly supportedInterfaces: readonly AgentInterface[];
  readonly provider?: AgentProvider;
  readonly version: string;
  readonly documentationUrl?: string;
  readonly capabilities: AgentCapabilities;
  readonly securitySchemes?: { readonly [name: string]: SecurityScheme };
  readonly securityRequirements?: readonly SecurityRequirement[];
  readonly defaultInputModes: readonly string[];
  readonly defaultOutputModes: readonly string[];
  readonly skills: readonly AgentSkill[];
  readonly signatures?: readonly AgentCardSignature[];
  readonly iconUrl?: string;
}
