import { isLoopback, systemClock, type Clock } from "../../base/index.ts";
import { invalidParams, type A2AError } from "../../model/index.ts";
import { guardedFetch, type GuardedFetch } from "../../net/index.ts";
import type { Principal } from "../../protocol/index.ts";

/** The claims of a verified token: claims of a JWT, or members of an introspection response. */
export type TokenClaims = Readonly<Record<string, unknown>>;

/** How proofs of possession are checked (RFC 9449). */
export interface DpopOptions {
  /** The algorithms of proofs that are accepted. Default: all asymmetric ones. */
  readonly algorithms?: readonly string[];
  /** Maximum age of a proof, in milliseconds. Because clocks differ, it may also be that far in the future. Default 60 s. */
  readonly maxAge?: number;
  /**
   * Whether proofs need a nonce of this server (RFC 9449 §9), which prevents proofs made in advance. The nonce changes every five
   * minutes, and each change costs a client one repeated request. A string is the secret of the nonces; processes with the same callers must share
   * it. Default false.
   */
  readonly nonce?: boolean | string;
  /**
   * Remembers a proof until it expires, and returns whether it was seen before. For servers with several processes, which must share this
   * memory. Default: this process remembers the proofs that it sees, in at most 16 MiB.
   *
   * @param proof - The digest that identifies the proof.
   * @param until - When it may be forgotten, in milliseconds since the Unix epoch.
   */
  readonly seen?: (proof: string, until: number) => boolean | Promise<boolean>;
}

/** Options of all authenticators for tokens of an authorization server. */
export interface TokenOptions {
  /** Name of the scheme on the card. Default: the function's name. */
  readonly name?: string;
  /** Description of the scheme on the card. Default: none. */
  readonly description?: string;
  /** The realm in challenges (RFC 9110 §11.5). Default: none. */
  readonly realm?: string;
  /** The scopes that every caller needs. They are in the requirement on the card. Default: none. */
  readonly scopes?: readonly string[];
  /**
   * The required audience of tokens (`aud`). Default: the URL of the agent or of the server, as on its card, so that tokens for other
   * services are rejected (RFC 8707). With this option, a token is valid for every agent of the server.
   */
  readonly audience?: string | readonly string[];
  /**
   * Returns the caller for verified claims; `undefined` rejects it. Called when a token is verified, not for each message: see
   * `remember`. `usual` is the caller without this option: `sub` (or else `client_id`) as the subject, `scope` or `scp` as the scopes, no
   * organization.
   *
   * A subject is unique only within its issuer. If a server accepts tokens of several issuers, give each its own organization:
   * otherwise `anyOf()` rejects them.
   *
   * @example
   * ```ts
   * const authenticator = jwt({
   *   issuer: "https://login.example.com",
   *   principal: (claims, usual) => ({ ...usual, organization: String(claims["org_id"]) }),
   * });
   * ```
   */
  readonly principal?: (
    claims: TokenClaims,
    usual: Principal,
  ) => Principal | undefined | Promise<Principal | undefined>;
  /**
   * Accepts only tokens that are bound to a key of the caller: `dpop` (RFC 9449) or `certificate` (RFC 8705). Default: bound tokens need a
   * proof, and all others are bearer tokens.
   */
  readonly bound?: "dpop" | "certificate";
  /** How DPoP proofs are checked. With this option challenges offer DPoP. Default: proofs are checked with the defaults, and challenges do not offer it. */
  readonly dpop?: DpopOptions;
  /** How far clocks may differ, in milliseconds. Default 30 s. */
  readonly tolerance?: number;
  /**
   * How long a verified token is cached, in milliseconds, so that it is not verified for each message. Until then a revoked token is still accepted,
   * but never an expired one. Default 5 min; 30 s for introspection.
   */
  readonly remember?: number;
  /** Calls the authorization server. Default: `guardedFetch()`, which may call the host of the issuer, and public addresses. */
  readonly fetch?: GuardedFetch;
  /** Clock. Default: the runtime's. */
  readonly clock?: Clock;
}

/** Options of `jwt()`, and of the functions based on it. */
export interface JwtOptions extends TokenOptions {
  /** The issuer of the tokens, exactly as in their `iss`: `https://login.example.com/realms/agents`. */
  readonly issuer: string;
  /**
   * Its public keys: the URL of its key set, or the key set itself (RFC 7517). Default: the `jwks_uri` of its metadata (RFC 8414,
   * OpenID Connect Discovery).
   */
  readonly keySet?: string | { readonly keys: readonly object[] };
  /** The algorithms of signatures that are accepted. Default: all asymmetric ones. Symmetric algorithms and `none` are always rejected. */
  readonly algorithms?: readonly string[];
  /**
   * The `typ` that tokens must have. Default `at+jwt` (RFC 9068 §4), so that an ID token is never accepted as an access token. Many
   * servers write `JWT` by default.
   */
  readonly type?: string;
}

const asymmetricAlgorithms: readonly string[] = [
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
  "PS256",
  "PS384",
  "PS512",
  "RS256",
  "RS384",
  "RS512",
];

/** Checks algorithms. Throws if one of them is symmetric, `none` or unknown. */
export function checkedAlgorithms(field: string, algorithms: readonly string[] = asymmetricAlgorithms): string[] {
  const [bad] = algorithms.filter((algorithm) => !asymmetricAlgorithms.includes(algorithm));
  if (algorithms.length > 0 && bad === undefined) return [...algorithms];
  throw wrongOption(field, `must be some of ${asymmetricAlgorithms.join(", ")}`);
}

/** The error for an invalid option. */
export function wrongOption(field: string, description: string): A2AError {
  return invalidParams([{ field, description }]);
}

/** Checks a URL of an authorization server: HTTPS, or HTTP on loopback. */
export function checkedUrl(field: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url.hostname));
  if (url !== undefined && isSafe) return url;
  throw wrongOption(field, "must be an https URL, or an http URL of this machine");
}

/** Maximum size of a document of an authorization server, in bytes. */
const largest = 512 * 1024;

/** Dependencies of the checks of tokens. */
export interface TokenHost {
  readonly clock: Clock;
  /** In milliseconds. */
  readonly tolerance: number;
  readonly fetch: GuardedFetch;
}

/**
 * Defaults of options. `named`: the URLs in the options, whose hosts may be called even in a private network. URLs in their
 * metadata must be public, because an authorization server must not choose addresses of this network.
 */
export function tokenHost(options: Omit<TokenOptions, "audience">, named: readonly (URL | undefined)[]): TokenHost {
  const { clock = systemClock, tolerance = 30_000 } = options;
  if (!(tolerance >= 0)) throw wrongOption("tolerance", "must be a number of milliseconds");
  const hosts = named.filter((url) => url !== undefined);
  const protocols = ["https:", ...(hosts.some(({ protocol }) => protocol === "http:") ? ["http:"] : [])];
  const allow = hosts.map(
    ({ hostname, port, protocol }) => `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`,
  );
  const { fetch = guardedFetch({ protocols, allow, maxBytes: largest, timeout: 5_000 }, undefined, clock) } = options;
  return { clock, tolerance, fetch };
}
