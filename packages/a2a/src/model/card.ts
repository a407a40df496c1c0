import type { JsonObject } from "./json.ts";

/** The agent card and its parts (A2A 1.0 §4.4), with the security schemes (§4.5). */

/** One way to call an agent: an address, its binding, and its protocol version (A2A 1.0 §4.4.6). */
export interface AgentInterface {
  /** Address of the interface: a URL, or `host:port` for gRPC. */
  readonly url: string;
  /** One of the three core bindings, or the URI of a custom one (A2A 1.0 §5.8). */
  readonly protocolBinding: "JSONRPC" | "GRPC" | "HTTP+JSON" | (string & {});
  /** The `tenant` to put into every request, unchanged, if several agents share an address (A2A 1.0 §8.3.2). */
  readonly tenant?: string;
  /** Version of the protocol at this address, `Major.Minor`: `"1.0"`. */
  readonly protocolVersion: string;
}

/** The provider of an agent (A2A 1.0 §4.4.2). */
export interface AgentProvider {
  /** Web page of the provider. */
  readonly url: string;
  /** Name of the organization. */
  readonly organization: string;
}

/** An extension that an agent supports (A2A 1.0 §4.4.4, §4.6). */
export interface AgentExtension {
  /** URI that identifies the extension. */
  readonly uri?: string;
  /** How the agent uses it. */
  readonly description?: string;
  /** Whether the agent rejects clients that do not request the extension. Default false. */
  readonly required?: boolean;
  /** Parameters, as the extension defines them. */
  readonly params?: JsonObject;
}

/** Optional features of an agent (A2A 1.0 §4.4.3). An absent capability is not supported. */
export interface AgentCapabilities {
  /** Whether it answers with streams (A2A 1.0 §3.1.2, §3.1.6). */
  readonly streaming?: boolean;
  /** Whether it posts events to webhooks (A2A 1.0 §3.1.7). */
  readonly pushNotifications?: boolean;
  /** Extensions that it supports. */
  readonly extensions?: readonly AgentExtension[];
  /** Whether authenticated callers get a card with more details (A2A 1.0 §3.1.11). */
  readonly extendedAgentCard?: boolean;
}

/** A list of strings, as the protobuf of the protocol wraps it. */
export interface StringList {
  /** The strings. */
  readonly list?: readonly string[];
}

/** Security schemes that a caller has to satisfy, all of them together. */
export interface SecurityRequirement {
  /** Names of schemes in the card's `securitySchemes`, each with the scopes that it needs. */
  readonly schemes?: { readonly [scheme: string]: StringList };
}

/** Something that an agent is good at (A2A 1.0 §4.4.5). */
export interface AgentSkill {
  /** Identifier, unique within the card. */
  readonly id: string;
  /** Name for people. */
  readonly name: string;
  /** Its purpose, for people and for models that choose an agent. */
  readonly description: string;
  /** Keywords. */
  readonly tags: readonly string[];
  /** Messages that this skill answers well. */
  readonly examples?: readonly string[];
  /** Media types that it reads. Default: the card's `defaultInputModes`. */
  readonly inputModes?: readonly string[];
  /** Media types that it writes. Default: the card's `defaultOutputModes`. */
  readonly outputModes?: readonly string[];
  /** Requirements for callers of this skill. A caller must satisfy one of them. */
  readonly securityRequirements?: readonly SecurityRequirement[];
}

/** A signature of a card (A2A 1.0 §4.4.7, §8.4.2): a JWS (RFC 7515) with its payload detached. */
export interface AgentCardSignature {
  /** The protected header: a JSON object as base64url. */
  readonly protected: string;
  /** The signature as base64url. */
  readonly signature: string;
  /** The unprotected header. */
  readonly header?: JsonObject;
}

/** An API key (A2A 1.0 §4.5.2). */
export interface APIKeySecurityScheme {
  /** Description for people. */
  readonly description?: string;
  /** Where the key is sent: `query`, `header` or `cookie`. */
  readonly location: string;
  /** Name of the parameter, header or cookie. */
  readonly name: string;
}

/** An HTTP authentication scheme (A2A 1.0 §4.5.3). */
export interface HTTPAuthSecurityScheme {
  /** Description for people. */
  readonly description?: string;
  /** Name of the scheme in the `Authorization` header, such as `Bearer`. */
  readonly scheme: string;
  /** The format of the bearer token, such as `JWT`. Documentation only. */
  readonly bearerFormat?: string;
}

/** The client credentials flow of OAuth 2.0 (A2A 1.0 §4.5.9). */
export interface ClientCredentialsOAuthFlow {
  /** Address of the token endpoint. */
  readonly tokenUrl: string;
  /** Address at which refresh tokens are used. Default: `tokenUrl`. */
  readonly refreshUrl?: string;
  /** The available scopes, each with a description. */
  readonly scopes: { readonly [scope: string]: string };
}

/** The authorization code flow of OAuth 2.0 (A2A 1.0 §4.5.8). */
export interface AuthorizationCodeOAuthFlow extends ClientCredentialsOAuthFlow {
  /** Address of the authorization endpoint. */
  readonly authorizationUrl: string;
  /** Whether PKCE (RFC 7636) is required. */
  readonly pkceRequired?: boolean;
}

/** The device code flow of OAuth 2.0 (A2A 1.0 §4.5.10, RFC 8628). */
export interface DeviceCodeOAuthFlow extends ClientCredentialsOAuthFlow {
  /** Address of the device authorization endpoint. */
  readonly deviceAuthorizationUrl: string;
}

/**
 * The password flow of OAuth 2.0.
 *
 * @deprecated By A2A 1.0: use the authorization code flow with PKCE, or the device code flow.
 */
export type PasswordOAuthFlow = Partial<ClientCredentialsOAuthFlow>;

/**
 * The implicit flow of OAuth 2.0.
 *
 * @deprecated By A2A 1.0: use the authorization code flow with PKCE.
 */
export type ImplicitOAuthFlow = Partial<Pick<AuthorizationCodeOAuthFlow, "authorizationUrl" | "refreshUrl" | "scopes">>;

/** A union of objects that each have exactly one of `Members`. The others are `never`, so that the compiler can narrow it. */
type OneOf<Members> = {
  [Name in keyof Members]: { readonly [Key in Name]: Members[Key] } & {
    readonly [Key in Exclude<keyof Members, Name>]?: never;
  };
}[keyof Members];

/** How tokens are obtained (A2A 1.0 §4.5.7). It has exactly one member. */
export type OAuthFlows = OneOf<{
  authorizationCode: AuthorizationCodeOAuthFlow;
  clientCredentials: ClientCredentialsOAuthFlow;
  implicit: ImplicitOAuthFlow;
  password: PasswordOAuthFlow;
  deviceCode: DeviceCodeOAuthFlow;
}>;

/** OAuth 2.0 (A2A 1.0 §4.5.4). */
export interface OAuth2SecurityScheme {
  /** Description for people. */
  readonly description?: string;
  /** How tokens are obtained. */
  readonly flows: OAuthFlows;
  /** Address of the authorization server's metadata (RFC 8414). */
  readonly oauth2MetadataUrl?: string;
}

/** OpenID Connect (A2A 1.0 §4.5.5). */
export interface OpenIdConnectSecurityScheme {
  /** Description for people. */
  readonly description?: string;
  /** Address of the provider's discovery document. */
  readonly openIdConnectUrl: string;
}

/** Mutual TLS: the client has a certificate (A2A 1.0 §4.5.6). */
export interface MutualTlsSecurityScheme {
  /** Description for people. */
  readonly description?: string;
}

/** How callers authenticate (A2A 1.0 §4.5.1). It has exactly one member. */
export type SecurityScheme = OneOf<{
  apiKeySecurityScheme: APIKeySecurityScheme;
  httpAuthSecurityScheme: HTTPAuthSecurityScheme;
  oauth2SecurityScheme: OAuth2SecurityScheme;
  openIdConnectSecurityScheme: OpenIdConnectSecurityScheme;
  mtlsSecurityScheme: MutualTlsSecurityScheme;
}>;

/** The self-description of an agent (A2A 1.0 §4.4.1). Clients find it at `/.well-known/agent-card.json` (§8.2). */
export interface AgentCard {
  /** Name for people. */
  readonly name: string;
  /** Its purpose, for people and for models that choose an agent. */
  readonly description: string;
  /** Ways to call it, at least one, the preferred one first. */
  readonly supportedInterfaces: readonly AgentInterface[];
  /** The provider of the agent. */
  readonly provider?: AgentProvider;
  /** Version of the agent, in the form that its provider chose. */
  readonly version: string;
  /** Address of its documentation. */
  readonly documentationUrl?: string;
  /** Optional features of the agent. */
  readonly capabilities: AgentCapabilities;
  /** Ways to authenticate, by names that `securityRequirements` refer to. */
  readonly securitySchemes?: { readonly [name: string]: SecurityScheme };
  /** Requirements for callers. A caller must satisfy one of them. Absent or empty: no authentication. */
  readonly securityRequirements?: readonly SecurityRequirement[];
  /** Media types that skills read, unless a skill has its own list. */
  readonly defaultInputModes: readonly string[];
  /** Media types that skills write, unless a skill has its own list. */
  readonly defaultOutputModes: readonly string[];
  /** The skills of the agent. */
  readonly skills: readonly AgentSkill[];
  /** Signatures of this card (A2A 1.0 §8.4). */
  readonly signatures?: readonly AgentCardSignature[];
  /** Address of an icon. */
  readonly iconUrl?: string;
}
