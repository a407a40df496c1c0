import { isObject } from "../../model/schema.ts";
import type { Principal, UniversalRequest } from "../../protocol/index.ts";
import type { TokenClaims } from "./options.ts";
import { BoundedMap, memoryOf } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/index.ts";
import { secretDigest } from "../../base/sha256.ts";

/* Access tokens: reading them from requests, and caching verified ones. */

/** A token in a request. */
export interface PresentedToken {
  /** The scheme of `Authorization`. */
  readonly scheme: "bearer" | "dpop";
  readonly token: string;
}

/** The content of a verified token. */
export interface CheckedToken {
  readonly claims: TokenClaims;
  /** When it expires, in milliseconds since the Unix epoch. `Infinity`: unknown. */
  readonly expires: number;
}

/** Verifies a token: its issuer, its times and its signature. Throws a `WrongToken` if it is not valid. */
export type CheckToken = (token: string) => Promise<CheckedToken>;

/** The reason to reject a token. The caller sees the message, so it contains no part of the token. */
export class WrongToken extends Error {
  /** The error code of RFC 6750 §3.1 or RFC 9449 §7.1. */
  readonly error: string;

  constructor(message: string, error = "invalid_token", cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.error = error;
  }
}

/** A proof needs a nonce of this server (RFC 9449 §9). */
export class WantedNonce extends WrongToken {
  readonly nonce: string;

  constructor(nonce: string) {
    super("The proof needs the nonce of this server", "use_dpop_nonce");
    this.nonce = nonce;
  }
}

/** The token of a request, by RFC 6750 §2.1 or RFC 9449 §7.1; `undefined` if `Authorization` has another scheme. */
export function presentedToken(request: UniversalRequest): PresentedToken | undefined {
  const header = request.header("authorization");
  if (header === undefined) return undefined;
  const space = header.indexOf(" ");
  const scheme = header.slice(0, space).toLowerCase();
  return scheme === "bearer" || scheme === "dpop" ? { scheme, token: header.slice(space).trim() } : undefined;
}

const longest = 16 * 1024;
const tokenPattern = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Rejects malformed tokens before any work is done for them. */
function checkSpelling(token: string): void {
  if (token.length > longest) throw new WrongToken("The token is too long");
  if (!tokenPattern.test(token)) throw new WrongToken("The token has characters that are not allowed in tokens");
}

/** Maximum length of a subject in characters, because it is stored with each task. */
const longestSubject = 1024;

/** The caller according to the claims. */
export function usualPrincipal(claims: TokenClaims): Principal {
  const subject = [claims["sub"], claims["client_id"]].find((name) => typeof name === "string" && name !== "");
  if (typeof subject !== "string") throw new WrongToken("The token names no subject");
  if (subject.length > longestSubject) throw new WrongToken("The subject of the token is too long");
  return { subject, scopes: scopesOf(claims), claims };
}

/** `scope` (RFC 8693 §4.2), or `scp` of some servers, as a text or a list. */
function scopesOf({ scope, scp }: TokenClaims): readonly string[] {
  const given = scope ?? scp;
  const list: readonly unknown[] = typeof given === "string" ? given.split(" ") : Array.isArray(given) ? given : [];
  return list.filter((one) => typeof one === "string").filter((one) => one !== "");
}

/** `aud` as a list (RFC 7519 §4.1.3). */
export function audienceOf({ aud }: TokenClaims): readonly string[] {
  const list: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  return list.filter((one) => typeof one === "string");
}

/** The key that a token is bound to (RFC 7800 §3.1). */
export interface Confirmation {
  /** SHA-256 of the key of DPoP proofs (RFC 9449 §6.1), in base64url. */
  readonly jkt?: string;
  /** SHA-256 of a certificate (RFC 8705 §3.1), in base64url. */
  readonly x5t?: string;
}

/**
 * The key that a token is bound to; `undefined` if the token is not bound.
 *
 * @throws WrongToken if it is bound in an unknown way: it must not be accepted as a bearer token.
 */
export function confirmationOf({ cnf }: TokenClaims): Confirmation | undefined {
  if (cnf === undefined || cnf === null) return undefined;
  if (!isObject(cnf)) throw new WrongToken("The token has an unknown kind of binding");
  const { jkt, "x5t#S256": x5t } = cnf;
  const known = { ...(typeof jkt === "string" && { jkt }), ...(typeof x5t === "string" && { x5t }) };
  if (Object.keys(known).length === 0) throw new WrongToken("The token has an unknown kind of binding");
  return known;
}

/** Maximum memory of cached tokens, in bytes. */
const maxRememberedBytes = 16 << 20;

interface Remembered<T> {
  readonly value: T;
  /** In milliseconds since the Unix epoch. */
  readonly expires: number;
  /** When it leaves the cache, in `Clock.elapsed()` time. */
  readonly until: number;
  readonly bytes: number;
}

/**
 * Caches verified tokens by their digests, so that further messages with the same token cost little. Concurrent requests with the same
 * token share one verification. Invalid tokens are not cached.
 */
export class VerifiedTokens<T> {
  readonly #check: CheckToken;
  readonly #read: (token: CheckedToken) => Promise<T>;
  readonly #clock: Clock;
  readonly #remember: number;
  readonly #digest = secretDigest();
  readonly #known = new BoundedMap<Remembered<T>>({ bytes: maxRememberedBytes, bytesOf: (_, known) => known.bytes });
  readonly #checking = new Map<string, Promise<Remembered<T>>>();

  /**
   * @param read - Returns the cached value of a token. Called once for each verification.
   * @param remember - In milliseconds.
   */
  constructor(check: CheckToken, read: (token: CheckedToken) => Promise<T>, clock: Clock, remember: number) {
    this.#check = check;
    this.#read = read;
    this.#clock = clock;
    this.#remember = remember;
  }

  /**
   * The value of a token, verified now or earlier.
   *
   * @returns The value, and when the token expires, in milliseconds since the Unix epoch. The caller must check that time.
   */
  get(token: string): Remembered<T> | Promise<Remembered<T>> {
    const key = this.#digest(token);
    const known = this.#known.get(key);
    if (known !== undefined && this.#clock.elapsed() < known.until) return known;
    const checking = this.#checking.get(key);
    if (checking !== undefined) return checking;
    const begun = this.#verify(token, key).finally(() => this.#checking.delete(key));
    this.#checking.set(key, begun);
    return begun;
  }

  async #verify(token: string, key: string): Promise<Remembered<T>> {
    checkSpelling(token);
    const checked = await this.#check(token);
    const known = {
      value: await this.#read(checked),
      expires: checked.expires,
      until: this.#clock.elapsed() + this.#remember,
      // Objects take several times the memory of their JSON.
      bytes: memoryOf(key, token) + 1_000 + 8 * JSON.stringify(checked.claims).length,
    };
    this.#known.set(key, known);
    return known;
  }
}
