import { secretDigest } from "../base/sha256.ts";
import { fromCanonicalBase64 } from "../base/bytes.ts";
import { A2AError, invalidParams, fromBase64, toBase64 } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type { Principal, UniversalRequest } from "../protocol/index.ts";
import { challenge, problemParams } from "./challenge.ts";
import type { Authenticator } from "./port.ts";
import { defineScheme } from "./scheme.ts";
import type { Bytes } from "../base/index.ts";
import { checkIsSet } from "./keys.ts";

/** A user of `basic()`. */
export interface BasicUser extends Partial<Principal> {
  /** The hash of the password, made by `hashPassword()` or `parley key --password`. */
  readonly password: string;
}

/** Options of `basic()`. */
export interface BasicOptions {
  /** Name of the scheme on the card. Default `basic`. */
  readonly name?: string;
  /** The realm in `WWW-Authenticate`, which browsers show (RFC 7617 §2). Default `agents`. */
  readonly realm?: string;
  /** Description of the scheme on the card. Default: none. */
  readonly description?: string;
  /** The scopes that every caller needs: `Principal.scopes` must have them. Default: none. */
  readonly scopes?: readonly string[];
}

/** Returns a user, or `undefined` if the name or the password is wrong. */
export type VerifyPassword = (
  name: string,
  password: string,
  request: UniversalRequest,
) => Promise<Principal | undefined> | Principal | undefined;

/**
 * Authenticates callers by HTTP Basic (RFC 7617). Use it over TLS only, because the password is in every request. Pages of other origins
 * cannot use it.
 *
 * @param users - The users by their names, with the hashes of their passwords; or a function that checks a password.
 * @throws A2AError `InvalidParams` if a hash is malformed, or a name cannot be sent.
 *
 * @example
 * ```ts
 * const users = { ada: { password: await hashPassword("correct horse battery staple"), organization: "acme" } };
 * await serve(agent, { authenticator: basic(users) });
 * ```
 */
export function basic(
  users: Readonly<Record<string, BasicUser>> | VerifyPassword,
  options: BasicOptions = {},
): Authenticator {
  const { name = "basic", realm = "agents", description, scopes } = options;
  const verify = typeof users === "function" ? users : knownUsers(users);
  return defineScheme({
    name,
    scheme: { httpAuthSecurityScheme: { scheme: "Basic", ...(description !== undefined && { description }) } },
    scopes,
    isAmbient: true,
    credentials: (request) => /^basic +(\S.*)$/i.exec(request.header("authorization") ?? "")?.[1]?.trimEnd(),
    verify(text, request) {
      const credentials = decode(text);
      return credentials && verify(credentials.name, credentials.password, request);
    },
    challenge: (_place, problem) => challenge("Basic", { realm, charset: "UTF-8", ...problemParams(problem) }),
  });
}

/** Control characters, which neither a name nor a password may contain (RFC 7617 §2). */
// oxlint-disable-next-line no-control-regex -- The pattern must match them.
const control = /[\x00-\x1f\x7f]/;

function decode(text: string): { readonly name: string; readonly password: string } | undefined {
  const bytes = fromCanonicalBase64(text);
  if (bytes === undefined) return undefined;
  try {
    const pair = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const colon = pair.indexOf(":");
    return colon < 0 || control.test(pair)
      ? undefined
      : { name: pair.slice(0, colon), password: pair.slice(colon + 1) };
  } catch {
    return undefined;
  }
}

/** Maximum concurrent derivations. Each occupies one of Node's four threads, which also read files and resolve names. */
const atOnce = 2;
const waiting = 100;

interface KnownUser {
  readonly principal: Principal;
  readonly hash: PasswordHash;
  /** The digest of the password once verified, so that it is not derived again. */
  digest?: string;
}

function knownUsers(users: Readonly<Record<string, BasicUser>>): VerifyPassword {
  if (!isObject(users)) throw invalidParams([{ field: "users", description: "must be an object: names and users" }]);
  const known = new Map(Object.entries(users).map(([name, user]) => [name, knownUser(name, user)]));
  const iterations = [...known.values()].map(({ hash }) => hash.iterations);
  const nobody = nobodysHash(Math.max(...iterations, 1));
  // Hashes may have different iterations, for example after the default was raised. Timing must not reveal which users exist or have old hashes.
  const isPassword = passwordCheck(iterations);
  const digest = secretDigest();
  const turns = new Turns(
    atOnce,
    waiting,
    () => new A2AError("Unavailable", "Too many passwords are being checked", { retryAfter: 1 }),
  );
  /** Concurrent requests with the same password share one derivation. */
  const checks = new Map<string, Promise<boolean>>();
  return async (name, password) => {
    const user = known.get(name);
    const own = digest(`${name}:${password}`);
    if (user?.digest === own) return user.principal;
    let check = checks.get(own);
    if (check === undefined) {
      check = turns.take(() => isPassword(password, user?.hash ?? nobody)).finally(() => checks.delete(own));
      checks.set(own, check);
    }
    if (!(await check) || user === undefined) return undefined;
    user.digest = own;
    return user.principal;
  };
}

function knownUser(name: string, user: BasicUser): KnownUser {
  // JavaScript callers may pass a password instead of a user.
  const { password, ...principal }: Partial<BasicUser> = isObject(user) ? user : {};
  const hash = parsePasswordHash(password);
  const isName = !name.includes(":") && !control.test(name);
  if (hash !== undefined && isName) return { principal: { subject: name, ...principal }, hash };
  const description = isName
    ? "must have the hash of a password from hashPassword(): { password: hash }"
    : "is not a valid user name";
  throw invalidParams([{ field: `users[${JSON.stringify(name)}]`, description }]);
}

/* Hashes of passwords: PBKDF2 with HMAC-SHA-256 (RFC 8018 §5.2), the only password hash of WebCrypto. */

/** Options of `hashPassword()`. */
export interface PasswordHashOptions {
  /** Number of iterations. More iterations cost more time, for the server and for attackers. Default 600,000. */
  readonly iterations?: number;
}

const usualIterations = 600_000;
const maxIterations = 10_000_000;
const kind = "pbkdf2-sha256";

interface PasswordHash {
  readonly iterations: number;
  readonly salt: Bytes;
  readonly hash: Bytes;
}

/**
 * The hash of a password, for `basic()`: `pbkdf2-sha256$`, the iterations, the salt and the hash. Takes a fraction of a second.
 *
 * @throws A2AError `InvalidParams` if the password is missing.
 *
 * @example
 * ```ts
 * const hash = await hashPassword("correct horse battery staple"); // for the configuration of the server
 * ```
 */
export async function hashPassword(
  password: string,
  { iterations = usualIterations }: PasswordHashOptions = {},
): Promise<string> {
  checkIsSet("password", password);
  const salt = crypto.getRandomValues(new Uint8Array(16));
  const hash = await derive(password, salt, iterations);
  return [kind, iterations, toBase64(salt), toBase64(hash)].join("$");
}

function parsePasswordHash(text: unknown): PasswordHash | undefined {
  if (typeof text !== "string") return undefined;
  const [name, count = "", salt = "", hash = "", more] = text.split("$");
  if (name !== kind || more !== undefined || !/^[1-9]\d{0,7}$/.test(count) || Number(count) > maxIterations)
    return undefined;
  try {
    const parsed = { iterations: Number(count), salt: fromBase64(salt), hash: fromBase64(hash) };
    return parsed.salt.length >= 8 && parsed.hash.length === 32 ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Makes a function that checks a password against a hash with constant work: the number of derivations and the sum of their iterations
 * are equal for every hash.
 *
 * @param all - The iterations of all hashes that are checked.
 */
function passwordCheck(all: readonly number[]): (password: string, hash: PasswordHash) => Promise<boolean> {
  const highest = Math.max(...all, 1);
  const areEqual = all.every((one) => one === highest);
  return async (password, { iterations, salt, hash }) => {
    const derived = new Uint8Array(await derive(password, salt, iterations));
    // Adds the iterations that this hash lacks compared to the slowest one. At least one, so that there are always two derivations.
    if (!areEqual) await derive(password, salt, highest - iterations + 1);
    // Compares all bytes, so that timing does not reveal how many match.
    return derived.reduce((difference, byte, at) => difference | (byte ^ (hash[at] ?? 0)), 0) === 0;
  };
}

/** A hash without a known password: rejecting an unknown user must take as long as rejecting a wrong password. */
function nobodysHash(iterations: number = usualIterations): PasswordHash {
  const random = (length: number): Bytes => crypto.getRandomValues(new Uint8Array(length));
  return { iterations, salt: random(16), hash: random(32) };
}

async function derive(password: string, salt: Bytes, iterations: number): Promise<ArrayBuffer> {
  // Equal text may have different code points (RFC 8265 §4.2).
  const text = new TextEncoder().encode(password.normalize("NFC"));
  const key = await crypto.subtle.importKey("raw", text, "PBKDF2", false, ["deriveBits"]);
  return crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt, iterations }, key, 256);
}

/** Limits concurrency, and rejects work beyond a maximum queue. */
class Turns {
  readonly #atOnce: number;
  readonly #waiting: (() => void)[] = [];
  readonly #maxWaiting: number;
  readonly #refuse: () => A2AError;
  #running = 0;

  constructor(atOnce: number, maxWaiting: number, refuse: () => A2AError) {
    this.#atOnce = atOnce;
    this.#maxWaiting = maxWaiting;
    this.#refuse = refuse;
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#atOnce) {
      if (this.#waiting.length >= this.#maxWaiting) throw this.#refuse();
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else {
      this.#running += 1;
    }
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
