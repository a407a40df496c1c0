import { BoundedMap, memoryOf } from "../base/bounded-map.ts";

/** Which tokens: those of one client, from one authorization server, for one resource. */
export interface TokenKey {
  /** The issuer of the tokens (RFC 8414 §2). */
  readonly issuer: string;
  /** The client that they were issued to. */
  readonly clientId: string;
  /** The resource that they are for (RFC 8707), such as the URL of an agent. Empty: they are for none in particular. */
  readonly resource: string;
  /** For whom, in a token exchange: a digest of the subject's token. */
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
  /** The tokens of a key; `undefined` if there are none. */
  get(key: TokenKey): Promise<StoredTokens | undefined> | StoredTokens | undefined;
  /** Keeps tokens in place of those before. `undefined`: forgets them. */
  set(key: TokenKey, tokens: StoredTokens | undefined): Promise<void> | void;
  /**
   * Runs something that gets new tokens for a key, while nobody else who shares the store does. Many servers accept a refresh token
   * once. `get` within `run` returns what others have kept before. Absent: the store is not shared by processes.
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
