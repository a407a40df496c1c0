import { secretDigest } from "../base/sha256.ts";
import { fromBase64, invalidParams, toBase64 } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type { Principal } from "../protocol/index.ts";

/* Keys and tokens that a server knows, by their hashes. */

const prefix = "sha256:";
const sha256Bytes = 32;

/**
 * The hash of a key, which `apiKey()` and `bearer()` take in place of the key: `sha256:` and its SHA-256 in base64. It needs no
 * salt, because nobody can try all keys of 32 random bytes: passwords need `hashPassword()`.
 *
 * @param key - The key. It should have at least 128 random bits.
 * @throws A2AError `InvalidParams` where there is none.
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

async function sha256(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
}

/** What becomes of a variable that is not set, where JavaScript makes a text or the name of a member of it. */
const unset: ReadonlySet<unknown> = new Set(["", "undefined", "null", undefined, null]);

/**
 * Refuses a secret that everybody can guess, because it was never set.
 *
 * @throws A2AError `InvalidParams`.
 */
export function checkIsSet(field: string, secret: unknown): void {
  if (!unset.has(secret)) return;
  const description = `is ${secret === "" ? "empty" : String(secret)}. Is an environment variable not set?`;
  throw invalidParams([{ field, description }]);
}

/** Finds what belongs to a secret; `undefined` where nobody has it. */
export type SecretLookup<T> = (secret: string) => Promise<T | undefined>;

/**
 * Makes a function that finds the owner of a secret. Secrets themselves are not kept.
 *
 * @param owners - By secrets, or by their hashes as `hashKey()` returns them.
 * @param canBeSent - Whether a secret can be in a request.
 * @param what - The secrets in an error, which never has one of them: `a bearer token is made of …`.
 * @throws A2AError `InvalidParams` where a hash is no hash, a secret cannot be sent or was never set, or an owner has no subject.
 */
export function secretLookup<T extends Principal>(
  owners: Readonly<Record<string, T>>,
  canBeSent: (secret: string) => boolean,
  what: string,
): SecretLookup<T> {
  if (!isObject(owners)) throw invalidParams([{ field: "secrets", description: "are required, with their owners" }]);
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
  // The look-up is by a digest under a random key, so that its time does not tell how much of a hash is right.
  const digest = secretDigest();
  const found = (hash: ArrayBuffer): string => digest(String.fromCharCode(...new Uint8Array(hash)));
  const prepare = async (): Promise<ReadonlyMap<string, T>> => {
    const rows = entries.map(
      async ([secret, owner]) => [found(hashOf(secret) ?? (await sha256(secret))), owner] as const,
    );
    return new Map(await Promise.all(rows));
  };
  let ready: Promise<ReadonlyMap<string, T>> | undefined;
  return async (secret) => (await (ready ??= prepare())).get(found(await sha256(secret)));
}

/** Refuses an owner without a subject. Only JavaScript can have one, and callers would get an `InternalError`. */
function checkOwner(owner: Partial<Principal> | undefined): void {
  if (typeof owner?.subject === "string" && owner.subject !== "") return;
  throw invalidParams([{ field: "owner", description: 'of a secret must have a subject: { subject: "ada" }' }]);
}

/** The bytes of a hash; `undefined` where the text is no hash. */
function hashOf(text: string): ArrayBuffer | undefined {
  if (!text.startsWith(prefix)) return undefined;
  try {
    const { buffer, length } = fromBase64(text.slice(prefix.length));
    return length === sha256Bytes && buffer.byteLength === length ? buffer : undefined;
  } catch {
    return undefined;
  }
}
