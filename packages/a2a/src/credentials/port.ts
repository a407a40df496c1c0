import type { AgentCard, SecurityScheme } from "../model/index.ts";
import type { AnswerHeaders } from "../transport/client/binding.ts";
import type { Clock } from "../base/index.ts";
import type { Dialer } from "../net/index.ts";
import { BoundedMap, memoryOf } from "../base/bounded-map.ts";

/** The credentials of a client: what a card's security schemes are satisfied with (A2A 1.0 §7.3). */

/** A secret, or a function that returns it, such as one that reads a file or a vault. It is called for each request. */
export type Secret = string | (() => string | Promise<string>);

/** What a request needs to carry to satisfy a scheme. Members are merged where a requirement has several schemes. */
export interface RequestCredentials {
  /** Headers, by their lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Parameters of the query. Only bindings with a URL for each request can send them. */
  readonly query?: Readonly<Record<string, string>>;
  /** Cookies. A browser does not let them be set. */
  readonly cookies?: Readonly<Record<string, string>>;
}

/** A scheme of a card that a provider is asked for. */
export interface SchemeRequest {
  /** The name of the scheme on the card. */
  readonly name: string;
  /** The scheme. */
  readonly scheme: SecurityScheme;
  /** The scopes that the card's requirement names, with those that the server asked for since (RFC 6750 §3.1). */
  readonly scopes: readonly string[];
  /** The card. If a server gives its card to known callers alone, an empty one for the request for the card. */
  readonly card: AgentCard;
  /** URL of the agent: the resource that tokens are for (RFC 8707). */
  readonly resource: string;
  /** Ends the work of the provider when it is aborted. */
  readonly signal?: AbortSignal;
}

/** The request that credentials go with, for proofs (RFC 9449). */
export interface CredentialTarget {
  /** HTTP method. */
  readonly method: string;
  /** URL of the request. */
  readonly url: string;
}

/**
 * Gives credentials for security schemes. `bearerToken()`, `clientCredentials()` and others of `@parley/a2a/credentials` are
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
   * The server has refused the last credentials. `challenge` is its `WWW-Authenticate`. Resolves with whether other credentials can
   * be had, so that the call is worth repeating. Absent: it is not.
   */
  refused?(request: SchemeRequest, challenge: string | undefined): Promise<boolean>;
  /** Takes what each answer of the agent says about credentials: the nonce for proofs (RFC 9449 §8.2). */
  answered?(request: SchemeRequest, headers: AnswerHeaders): void;
}

/** The client at an authorization server, and what its tokens are for. */
export interface OAuthOptions {
  /** The id under which the client is registered, or the URL of its metadata document. */
  readonly clientId: string;
  /** The secret of the client. Absent: it has none (RFC 6749 §2.1), unless it has a key or a certificate. */
  readonly clientSecret?: Secret;
  /** Where the secret is sent: in the header (`client_secret_basic`) or in the body (`client_secret_post`). Default `header`. */
  readonly secretIn?: "header" | "body";
  /** The private key of the client as a JWK with `alg`, for `private_key_jwt` (RFC 7523). */
  readonly clientKey?: Readonly<Record<string, unknown>>;
  /** Whether the client authenticates by the certificate that `dialer` shows (`tls_client_auth`, RFC 8705). Default false. */
  readonly clientCertificate?: boolean;
  /**
   * The authorization server, by its issuer. Secrets go to this one alone, whatever a card says. Default: the server that the card
   * names, or the metadata of the agent (RFC 9728). The provider is then for that server, and refuses cards that name another.
   */
  readonly issuer?: string;
  /** Scopes to request in addition to those of the card. `offline_access` requests a refresh token from an OpenID provider. */
  readonly scopes?: readonly string[];
  /** The resource that tokens are for (RFC 8707). Default: the URL of the agent. `false`: none is sent, for servers that refuse it. */
  readonly resource?: string | false;
  /** Keeps the tokens. Default: the memory of this provider. */
  readonly store?: TokenStore;
  /** Whether tokens are bound to a key of this client, so that a stolen one is of no use (DPoP, RFC 9449). Default false. */
  readonly dpop?: boolean;
  /** Name of the scheme on the card. Default: each that the provider can satisfy. */
  readonly scheme?: string;
  /**
   * Opens the connections to the authorization server: `nodeDialer()` of `@parley/node`, which pins addresses and may show a
   * certificate. Default: the `fetch` of the runtime.
   */
  readonly dialer?: Dialer;
  /** Time. Default: that of the runtime. */
  readonly clock?: Clock;
}

/** Which tokens: those of one client, from one authorization server, for one resource. */
export interface TokenKey {
  /** The issuer of the tokens (RFC 8414 §2). */
  readonly issuer: string;
  /** The client that they were issued to. */
  readonly clientId: string;
  /** The resource that they are for (RFC 8707), such as the URL of an agent. Empty: they are for none in particular. */
  readonly resource: string;
  /** In a token exchange: a digest of the subject's token. */
  readonly subject?: string;
}

/** Tokens of an authorization server. All of it is secret. */
export interface StoredTokens {
  /** The access token. */
  readonly accessToken: string;
  /** How it is sent: alone, or with proofs of a key (RFC 9449). */
  readonly type: "Bearer" | "DPoP";
  /** When it expires, in milliseconds since the Unix epoch. Absent: the server did not say. */
  readonly expiresAt?: number;
  /** Gets further access tokens. */
  readonly refreshToken?: string;
  /** The scopes that were asked for or granted. */
  readonly scopes: readonly string[];
  /** The private key of the proofs, as a JWK. */
  readonly proofKey?: Readonly<Record<string, unknown>>;
}

/**
 * Keeps tokens, so that other clients and later processes need not ask for them again. What it keeps is secret: encrypt it, or
 * protect it like a password.
 */
export interface TokenStore {
  /** The tokens of a key, or `undefined`. */
  get(key: TokenKey): Promise<StoredTokens | undefined> | StoredTokens | undefined;
  /** Keeps tokens in place of those before. `undefined`: forgets them. */
  set(key: TokenKey, tokens: StoredTokens | undefined): Promise<void> | void;
  /**
   * Runs a function that gets new tokens for a key, with a lock across all users of the store: many servers accept a refresh token only
   * once. `get` within `run` returns the tokens that others have stored. Absent: processes do not share the store.
   */
  exclusively?<T>(key: TokenKey, run: () => Promise<T>): Promise<T>;
}

/** Most memory of the tokens of a process, in bytes. */
const maxBytes = 16 * 1024 * 1024;

/**
 * Keeps tokens in memory, up to 16 MiB. Those that were put in first are forgotten first. Share one among the clients of a process.
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

/** A key as text, the same for keys that are equal. */
export function textOfKey({ issuer, clientId, resource, subject = "" }: TokenKey): string {
  return JSON.stringify([issuer, clientId, resource, subject]);
}
