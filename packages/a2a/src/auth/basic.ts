import { secretDigest } from "../base/sha256.ts";
import { fromCanonicalBase64 } from "../base/bytes.ts";
import { A2AError, invalidParams } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type { Principal, UniversalRequest } from "../protocol/index.ts";
import { challenge, problemParams } from "./challenge.ts";
import { nobodysHash, parsePasswordHash, passwordCheck, Turns, type PasswordHash } from "./password.ts";
import type { Authenticator } from "./port.ts";
import { defineScheme } from "./scheme.ts";

/** A user of `basic()`. */
export interface BasicUser extends Partial<Principal> {
  /** The hash of the password, as `hashPassword()` and `parley key --password` make it. */
  readonly password: string;
}

/** How HTTP Basic is declared. */
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

/** Returns a user, or `undefined` where the name or the password is wrong. */
export type VerifyPassword = (
  name: string,
  password: string,
  request: UniversalRequest,
) => Promise<Principal | undefined> | Principal | undefined;

/**
 * Authenticates callers by HTTP Basic (RFC 7617). Use it over TLS only, as the password is in every request. Pages of other origins
 * cannot use it.
 *
 * @param users - The users by their names, with the hashes of their passwords; or a function that checks a password.
 * @throws A2AError `InvalidParams` where a hash is no hash, or a name cannot be sent.
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

/** Characters that neither a name nor a password may have (RFC 7617 §2). */
// oxlint-disable-next-line no-control-regex -- They are what is looked for.
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

/** Derivations at a time. Each keeps a thread busy, of which Node has four for files and names as well. */
const atOnce = 2;
/** Derivations that may wait. */
const waiting = 100;

interface KnownUser {
  readonly principal: Principal;
  readonly hash: PasswordHash;
  /** The digest of the password, once it was right: it need not be derived again. */
  digest?: string;
}

function knownUsers(users: Readonly<Record<string, BasicUser>>): VerifyPassword {
  if (!isObject(users)) throw invalidParams([{ field: "users", description: "are required, by their names" }]);
  const known = new Map(Object.entries(users).map(([name, user]) => [name, knownUser(name, user)]));
  const iterations = [...known.values()].map(({ hash }) => hash.iterations);
  const nobody = nobodysHash(Math.max(...iterations, 1));
  // Hashes may have different iterations, as after their default was raised. The time must not tell which user exists, or which is old.
  const isPassword = passwordCheck(iterations);
  const digest = secretDigest();
  const turns = new Turns(
    atOnce,
    waiting,
    () => new A2AError("Unavailable", "Too many passwords are being checked", { retryAfter: 1 }),
  );
  /** The same password is derived once, however many requests come with it. */
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
  // Only JavaScript can pass a password in place of a user.
  const { password, ...principal }: Partial<BasicUser> = isObject(user) ? user : {};
  const hash = parsePasswordHash(password);
  const isName = !name.includes(":") && !control.test(name);
  if (hash !== undefined && isName) return { principal: { subject: name, ...principal }, hash };
  const description = isName
    ? "needs the hash of its password, as hashPassword() makes it: { password: hash }"
    : "is not a name that can be sent";
  throw invalidParams([{ field: `users[${JSON.stringify(name)}]`, description }]);
}
