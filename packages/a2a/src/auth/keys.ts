import { sha256 } from "../base/bytes.ts";
import type { Bytes } from "../base/index.ts";
import { invalidParams, fromBase64, toBase64 } from "../model/index.ts";
import type { Principal, UniversalRequest } from "../protocol/index.ts";
import { challenge, problemParams } from "./challenge.ts";
import type { Authenticator } from "./port.ts";
import { defineScheme } from "./scheme.ts";
import { secretDigest } from "../base/sha256.ts";
import { isObject } from "../model/schema.ts";

/** Options of `apiKey()`. At most one of `header`, `query` and `cookie`. */
export interface ApiKeyOptions {
  /** Name of the header with the key. Over gRPC it is metadata. Default `x-api-key`. */
  readonly header?: string;
  /** Name of the query parameter with the key. Proxies log URLs, and gRPC has no query. */
  readonly query?: string;
  /** Name of the cookie with the key. Pages of other origins cannot use it. */
  readonly cookie?: string;
  /** Name of the scheme on the card. Default `apiKey`. */
  readonly name?: string;
  /** Description of the scheme on the card. Default: none. */
  readonly description?: string;
  /** The scopes that every caller needs: `Principal.scopes` must have them. Default: none. */
  readonly scopes?: readonly string[];
}

/** Returns the owner of a key, or `undefined` if the key is not valid. It may throw an `A2AError` such as `PermissionDenied`. */
export type VerifyKey = (
  key: string,
  request: UniversalRequest,
) => Promise<Principal | undefined> | Principal | undefined;

/** The characters of a key. All are valid in headers, cookies and queries. */
const keyPattern = /^[\x21-\x7e]+$/;

/** A name of a header or a cookie (RFC 9110 §5.6.2). */
const tokenPattern = /^[\w!#$%&'*+\-.^`|~]+$/;

/**
 * Authenticates callers by an API key (A2A 1.0 §4.5.2).
 *
 * @param keys - The owners by the hashes of their keys, as `hashKey()` and `parley key` make them, or by the keys themselves; or
 * a function that finds the owner of a key.
 * @throws A2AError `InvalidParams` if a key contains characters that cannot be sent, a hash is malformed, or an option is wrong.
 *
 * @example
 * ```ts
 * const keys = { "sha256:Oi1ZFHMxUFVYpsQFdQdLCMHTXdAWhYdPXZnRAQkS9q0=": { subject: "ada" } };
 * await serve(agent, { authenticator: apiKey(keys, { header: "x-api-key" }) });
 * ```
 */
export function apiKey(
  keys: Readonly<Record<string, Principal>> | VerifyKey,
  options: ApiKeyOptions = {},
): Authenticator {
  const { name = "apiKey", description, scopes } = options;
  const { location, parameter } = placeOf(options);
  const what = "an API key must have only printable ASCII characters without spaces";
  const find = typeof keys === "function" ? keys : secretLookup(keys, (key) => keyPattern.test(key), what);
  return defineScheme({
    name,
    scheme: {
      apiKeySecurityScheme: { location, name: parameter, ...(description !== undefined && { description }) },
    },
    scopes,
    isAmbient: location === "cookie",
    credentials: readers[location](parameter),
    verify: (key, request) => (keyPattern.test(key) ? find(key, request) : undefined),
    // There is no registered scheme for API keys, and a 401 must have a challenge (RFC 9110 §15.5.2).
    challenge: (_place, problem) => challenge("ApiKey", { in: location, name: parameter, ...problemParams(problem) }),
  });
}

type Location = "header" | "query" | "cookie";

function placeOf(options: ApiKeyOptions): { readonly location: Location; readonly parameter: string } {
  const { header, query, cookie } = options;
  const places: readonly (readonly [Location, string | undefined])[] = [
    ["header", header],
    ["query", query],
    ["cookie", cookie],
  ];
  const [given, another] = places.filter(([, name]) => name !== undefined);
  const [location = "header", parameter = "x-api-key"] = given ?? [];
  const isName = location === "query" ? parameter !== "" : tokenPattern.test(parameter);
  if (another === undefined && isName) return { location, parameter };
  const description = isName
    ? "must not be combined with another: set only one of header, query and cookie"
    : "is not a valid name";
  throw invalidParams([{ field: location, description }]);
}

type Reader = (request: UniversalRequest) => string | undefined;

/** Reads a key. If the key is sent twice, the result is `""`, which is never valid. */
const readers: Readonly<Record<Location, (name: string) => Reader>> = {
  header(name) {
    const lower = name.toLowerCase();
    return (request) => request.header(lower)?.trim() || undefined;
  },
  query(name) {
    return ({ url }) => {
      const mark = url.indexOf("?");
      return mark < 0 ? undefined : only(new URLSearchParams(url.slice(mark + 1)).getAll(name));
    };
  },
  cookie(name) {
    return (request) => {
      const header = request.header("cookie");
      if (header === undefined) return undefined;
      // HTTP/2 and some runtimes join several headers with a comma, which cookie values cannot contain (RFC 6265 §4.1.1).
      const pairs = header.split(/[;,]/).map((pair) => pair.trim());
      return only(
        pairs.flatMap((pair) => (pair.startsWith(`${name}=`) ? [unquoted(pair.slice(name.length + 1))] : [])),
      );
    };
  },
};

function only([value, another]: readonly string[]): string | undefined {
  return another === undefined ? value || undefined : "";
}

function unquoted(value: string): string {
  return /^"[^"]*"$/.test(value) ? value.slice(1, -1) : value;
}

/** Options of `bearer()`. */
export interface BearerOptions {
  /** Name of the scheme on the card. Default `bearer`. */
  readonly name?: string;
  /** The realm in `WWW-Authenticate`, for callers without a valid token (RFC 9110 §11.5). Default: none. */
  readonly realm?: string;
  /** Description of the scheme on the card. Default: none. */
  readonly description?: string;
  /** Format of the tokens for the card, such as `JWT` (A2A 1.0 §4.5.3). Default: none. */
  readonly bearerFormat?: string;
  /** The scopes that every caller needs: `Principal.scopes` must have them. Default: none. */
  readonly scopes?: readonly string[];
}

/** Returns the owner of a token, or `undefined` if the token is not valid. It may throw an `A2AError` such as `PermissionDenied`. */
export type VerifyToken = (
  token: string,
  request: UniversalRequest,
) => Promise<Principal | undefined> | Principal | undefined;

/** The syntax of a bearer token (RFC 6750 §2.1). */
const bearerPattern = /^[A-Za-z0-9\-._~+/]+=*$/;

/**
 * Authenticates callers by `Authorization: Bearer` (RFC 6750).
 *
 * @param tokens - The owners by token, or by the token's hash from `hashKey()` or `parley key`; or a function that finds the owner
 * of a token.
 * @throws A2AError `InvalidParams` if a token contains characters that cannot be sent, or a hash is malformed.
 *
 * @example
 * ```ts
 * await serve(agent, { authenticator: bearer({ "a-long-random-token": { subject: "ada" } }) });
 * ```
 */
export function bearer(
  tokens: Readonly<Record<string, Principal>> | VerifyToken,
  options: BearerOptions = {},
): Authenticator {
  const { name = "bearer", realm, description, bearerFormat, scopes } = options;
  const what = "a bearer token must have only letters, digits and -._~+/, with = at its end (RFC 6750 §2.1)";
  const verify =
    typeof tokens === "function" ? tokens : secretLookup(tokens, (token) => bearerPattern.test(token), what);
  return defineScheme({
    name,
    scheme: {
      httpAuthSecurityScheme: {
        scheme: "Bearer",
        ...(bearerFormat !== undefined && { bearerFormat }),
        ...(description !== undefined && { description }),
      },
    },
    scopes,
    credentials: (request) => bearerToken(request),
    accessToken: (token) => token,
    verify: (token, request) => (bearerPattern.test(token) ? verify(token, request) : undefined),
    challenge: ({ metadataUrl }, problem) =>
      challenge("Bearer", { realm, ...problemParams(problem), resource_metadata: metadataUrl }),
  });
}

/** The token of `Authorization: Bearer`, unchecked, or `undefined`. */
function bearerToken(request: UniversalRequest): string | undefined {
  const header = request.header("authorization");
  return header === undefined ? undefined : /^bearer +(\S.*)$/i.exec(header)?.[1]?.trimEnd();
}

/* Lookup of keys and tokens by their hashes. */

const prefix = "sha256:";
const sha256Bytes = 32;

/**
 * The hash of a key, which `apiKey()` and `bearer()` accept instead of the key: `sha256:` and its SHA-256 in base64. It needs no
 * salt, because keys of 32 random bytes cannot be guessed. Passwords need `hashPassword()`.
 *
 * @param key - The key. It should have at least 128 random bits.
 * @throws A2AError `InvalidParams` for an empty key.
 *
 * @example
 * ```ts
 * const hash = await hashKey("k-2GZ0nJ4rX3mY8tQ5vB7wA1"); // for the configuration of the server
 * ```
 */
export async function hashKey(key: string): Promise<string> {
  checkIsSet("key", key);
  return prefix + toBase64(await sha256(key));
}

/** The texts that result from an unset variable in JavaScript. */
const unset: ReadonlySet<unknown> = new Set(["", "undefined", "null", undefined, null]);

/**
 * Rejects a secret that anyone can guess, because it was never set.
 *
 * @throws A2AError `InvalidParams`.
 */
export function checkIsSet(field: string, secret: unknown): void {
  if (!unset.has(secret)) return;
  const description = `is ${secret === "" ? "empty" : String(secret)}. Is an environment variable not set?`;
  throw invalidParams([{ field, description }]);
}

type SecretLookup<T> = (secret: string) => Promise<T | undefined>;

/**
 * Makes a function that finds the owner of a secret. Secrets themselves are not kept.
 *
 * @param owners - By secrets, or by their hashes as `hashKey()` returns them.
 * @param canBeSent - Whether a secret can be in a request.
 * @param what - Describes the secrets in errors, which never contain one: `a bearer token must have …`.
 * @throws A2AError `InvalidParams` if a hash is malformed, a secret cannot be sent or was never set, or an owner has no subject.
 */
function secretLookup<T extends Principal>(
  owners: Readonly<Record<string, T>>,
  canBeSent: (secret: string) => boolean,
  what: string,
): SecretLookup<T> {
  if (!isObject(owners)) throw invalidParams([{ field: "secrets", description: "must be an object with owners" }]);
  const entries = Object.entries(owners);
  const bad = entries.filter(([secret]) =>
    secret.startsWith(prefix) ? hashOf(secret) === undefined : !canBeSent(secret),
  );
  if (bad.length > 0) {
    const description = `${what}. A hash is sha256: and 32 bytes in base64`;
    throw invalidParams(
      [{ field: "secrets", description }],
      `${bad.length} of the secrets cannot be used: ${description}`,
    );
  }
  for (const [secret, owner] of entries) {
    checkIsSet("secret", secret);
    checkOwner(owner);
  }
  // Looks up a digest under a random key, so that timing reveals nothing about the hash.
  const digest = secretDigest();
  const found = (hash: Uint8Array): string => digest(String.fromCharCode(...hash));
  const prepare = async (): Promise<ReadonlyMap<string, T>> => {
    const rows = entries.map(
      async ([secret, owner]) => [found(hashOf(secret) ?? (await sha256(secret))), owner] as const,
    );
    return new Map(await Promise.all(rows));
  };
  let ready: Promise<ReadonlyMap<string, T>> | undefined;
  return async (secret) => (await (ready ??= prepare())).get(found(await sha256(secret)));
}

/** Rejects an owner without a subject, which JavaScript code can pass. Callers would get an `InternalError`. */
function checkOwner(owner: Partial<Principal> | undefined): void {
  if (typeof owner?.subject === "string" && owner.subject !== "") return;
  throw invalidParams([{ field: "owner", description: 'of a secret must have a subject: { subject: "ada" }' }]);
}

function hashOf(text: string): Bytes | undefined {
  if (!text.startsWith(prefix)) return undefined;
  try {
    const hash = fromBase64(text.slice(prefix.length));
    return hash.length === sha256Bytes ? hash : undefined;
  } catch {
    return undefined;
  }
}
