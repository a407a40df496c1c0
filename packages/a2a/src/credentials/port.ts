import type { AgentCard, SecurityScheme } from "../model/index.ts";
import type { AnswerHeaders } from "../transport/client/binding.ts";
import type { Clock } from "../base/index.ts";
import type { Dialer } from "../net/index.ts";
import { BoundedMap, memoryOf } from "../base/bounded-map.ts";

/** The credentials of a client, for the security schemes of cards (A2A 1.0 §7.3). */

/** A secret, or a function that returns it, such as from a file or a vault. The function is called for each request. */
export type Secret = string | (() => string | Promise<string>);

/** The parts of a request that satisfy a scheme. If a requirement has several schemes, their parts are merged. */
export interface RequestCredentials {
  /** Headers, by their lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Parameters of the query. Only bindings with a URL for each request can send them. */
  readonly query?: Readonly<Record<string, string>>;
  /** Cookies. Pages in a browser cannot set them. */
  readonly cookies?: Readonly<Record<string, string>>;
}

/** A scheme of a card that a provider must supply credentials for. */
export interface SchemeRequest {
  /** The name of the scheme on the card. */
  readonly name: string;
  /** The scheme. */
  readonly scheme: SecurityScheme;
  /** The scopes of the card's requirement, and scopes that the server has requested later (RFC 6750 §3.1). */
  readonly scopes: readonly string[];
  /** The card. Empty for the request of a card that itself requires credentials. */
  readonly card: AgentCard;
  /** URL of the agent: the resource that tokens are for (RFC 8707). */
  readonly resource: string;
  /** Ends the work of the provider when it is aborted. */
  readonly signal?: AbortSignal;
}

/** The request that the credentials are for. Proofs cover it (RFC 9449). */
export interface CredentialTarget {
  /** HTTP method. */
  readonly method: string;
  /** URL of the request. */
  readonly url: string;
}

/**
 * Provides credentials for security schemes. `bearerToken()`, `clientCredentials()` and others of `@parley/a2a/credentials` are
 * providers.
 */
export interface CredentialProvider {
  /** Returns whether it can satisfy a scheme. Makes no requests. */
  supports(request: SchemeRequest): boolean;
  /**
   * The credentials for one request.
   *
   * @throws A2AError `Unauthenticated` if it cannot get any, such as when the user rejects the login.
   */
  credentials(request: SchemeRequest, target: CredentialTarget): Promise<RequestCredentials>;
  /**
   * Called when the server has rejected the last credentials. `challenge` is its `WWW-Authenticate`. Resolves to true if the provider has other
   * credentials: the client then retries the call. Absent: no retry.
   */
  refused?(request: SchemeRequest, challenge: string | undefined): Promise<boolean>;
  /** Reads data for the next credentials from each answer of the agent: the nonce for proofs (RFC 9449 §8.2). */
  answered?(request: SchemeRequest, headers: AnswerHeaders): void;
}

/** The client at an authorization server, and the purpose of its tokens. */
export interface OAuthOptions {
  /** The id under which the client is registered, or the URL of its metadata document. */
  readonly clientId: string;
  /** The secret of the client. Absent: a public client (RFC 6749 §2.1), unless it has a key or a certificate. */
  readonly clientSecret?: Secret;
  /** Where the secret is sent: in the header (`client_secret_basic`) or in the body (`client_secret_post`). Default `header`. */
  readonly secretIn?: "header" | "body";
  /** The private key of the client as a JWK with `alg`, for `private_key_jwt` (RFC 7523). */
  readonly clientKey?: Readonly<Record<string, unknown>>;
  /** Whether the client authenticates by the certificate that `dialer` presents (`tls_client_auth`, RFC 8705). Default false. */
  readonly clientCertificate?: boolean;
  /**
   * The issuer of the authorization server. Secrets are sent only to this server, even if a card names another. Default: the server that
   * the card names, or else the metadata of the agent (RFC 9728). The provider then rejects cards that name another server.
   */
  readonly issuer?: string;
  /** Scopes to request in addition to the card's scopes. `offline_access` requests a refresh token from an OpenID provider. */
  readonly scopes?: readonly string[];
  /** The resource that tokens are for (RFC 8707). Default: the URL of the agent. `false`: not sent, for servers that reject it. */
  readonly resource?: string | false;
  /** Stores the tokens. Default: in the memory of this provider. */
  readonly store?: TokenStore;
  /** Whether tokens are bound to a key of this client, so that stolen tokens are useless (DPoP, RFC 9449). Default false. */
  readonly dpop?: boolean;
  /** Name of the scheme on the card. Default: every scheme that the provider can satisfy. */
  readonly scheme?: string;
  /**
   * Opens the connections to the authorization server: `nodeDialer()` of `@parley/node`, which pins addresses and may present a
   * certificate. Default: the `fetch` of the runtime.
   */
  readonly dialer?: Dialer;
  /** Clock. Default: the runtime's. */
  readonly clock?: Clock;
}

/** Identifies stored tokens: by client, authorization server and resource. */
export interface TokenKey {
  /** The issuer of the tokens (RFC 8414 §2). */
  readonly issuer: string;
  /** The client that they were issued to. */
  readonly clientId: string;
  /** The resource that they are for (RFC 8707), such as the URL of an agent. Empty: no particular resource. */
  readonly resource: string;
  /** In a token exchange: a digest of the subject's token. */
  readonly subject?: string;
}

/** Tokens of an authorization server. All members are secret. */
export interface StoredTokens {
  /** The access token. */
  readonly accessToken: string;
  /** How it is sent: as a bearer token, or with proofs of a key (RFC 9449). */
  readonly type: "Bearer" | "DPoP";
  /** When it expires, in milliseconds since the Unix epoch. Absent: the server did not report it. */
  readonly expiresAt?: number;
  /** Gets further access tokens. */
  readonly refreshToken?: string;
  /** The requested or granted scopes. */
  readonly scopes: readonly string[];
  /** The private key of the proofs, as a JWK. */
  readonly proofKey?: Readonly<Record<string, unknown>>;
}

/**
 * Stores tokens, so that other clients and later processes need not request them again. Its content is secret: encrypt it, or protect it
 * like a password.
 */
export interface TokenStore {
  /** The tokens of a key, or `undefined`. */
  get(key: TokenKey): Promise<StoredTokens | undefined> | StoredTokens | undefined;
  /** Replaces the tokens of a key. `undefined`: deletes them. */
  set(key: TokenKey, tokens: StoredTokens | undefined): Promise<void> | void;
  /**
   * Runs a function that gets new tokens for a key, under a lock across all users of the store, because many servers accept a refresh token
   * only once. `get` within `run` returns tokens that others have stored. Absent: processes do not share the store.
   */
  exclusively?<T>(key: TokenKey, run: () => Promise<T>): Promise<T>;
}

/** Maximum memory of the tokens of a process, in bytes. */
const maxBytes = 16 * 1024 * 1024;

/**
 * Stores tokens in memory, up to 16 MiB. Drops the oldest ones first. Share one store among the clients of a process.
 *
 * @example
 * ```ts
 * const store = memoryTokenStore();
 * const credentials = [clientCredentials({ clientId: "app", clientSecret: "…", store })];
 * ```
 */
export function memoryTokenStore(): TokenStore {
  const known = new BoundedMap<{ readonly tokens: StoredTokens | undefined }>({
    bytes: maxBytes,
    bytesOf: (name, { tokens }) => memoryOf(name, JSON.stringify(tokens)),
  });
  return {
    get: (key) => known.get(textOfKey(key))?.tokens,
    set: (key, tokens) => known.set(textOfKey(key), { tokens }),
  };
}

/** A key as text, the same for equal keys. */
export function textOfKey({ issuer, clientId, resource, subject = "" }: TokenKey): string {
  return JSON.stringify([issuer, clientId, resource, subject]);
}
