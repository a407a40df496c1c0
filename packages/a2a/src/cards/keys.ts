import { A2AError, invalidParams } from "../model/index.ts";
import type { CardAlgorithm, CardKeySet, PrivateCardKey, PublicCardKey } from "./port.ts";

/* Keys for cards. The library is loaded when the first one is used. */

/** The public members of a key, by its type (RFC 7518 §6, RFC 8037 §2), in the order that its thumbprint demands. */
const publicMembers: Readonly<Record<string, readonly string[]>> = {
  EC: ["crv", "kty", "x", "y"],
  OKP: ["crv", "kty", "x"],
  RSA: ["e", "kty", "n"],
};

/** The algorithm of a key that signs; `undefined` where it can sign no card. */
export function algorithmOf({
  kty,
  crv,
  alg,
}: Pick<PublicCardKey, "kty" | "alg"> & { readonly crv?: unknown }): CardAlgorithm | undefined {
  const own =
    kty === "RSA"
      ? "RS256"
      : kty === "EC" && crv === "P-256"
        ? "ES256"
        : kty === "OKP" && crv === "Ed25519"
          ? "EdDSA"
          : undefined;
  const fits = alg === undefined || alg === own || (alg === "Ed25519" && own === "EdDSA");
  return fits ? own : undefined;
}

/**
 * Checks a private key without using it.
 *
 * @throws A2AError `InvalidParams`, without anything of the key.
 */
export function checkSigningKey(value: unknown, field: string): PrivateCardKey {
  const key = value as Partial<PrivateCardKey> | null | undefined;
  const isKey = typeof key === "object" && key !== null && typeof key.kty === "string" && typeof key.d === "string";
  if (isKey && algorithmOf(key as PrivateCardKey) !== undefined) return key as PrivateCardKey;
  const description =
    "must be a private key as a JWK: EC with P-256, OKP with Ed25519, or RSA. `parley card key` and makeCardKey() make one";
  throw invalidParams([{ field, description }]);
}

/** The public key of a private one, with its name and its algorithm: what a key set has. */
export async function publicCardKey(key: PrivateCardKey): Promise<PublicCardKey> {
  const alg = algorithmOf(key);
  const names = publicMembers[key.kty];
  if (alg === undefined || names === undefined) throw new A2AError("InvalidParams", "This key can sign no card");
  const members = Object.fromEntries(names.map((name) => [name, key[name]]));
  return { ...members, kty: key.kty, kid: key.kid ?? (await thumbprint(members)), use: "sig", alg };
}

/** RFC 7638: the name of a key that has none. */
async function thumbprint(members: Readonly<Record<string, unknown>>): Promise<string> {
  const { calculateJwkThumbprint } = await import("jose");
  return calculateJwkThumbprint(members);
}

/**
 * The key set to publish for keys that sign cards: their public parts alone.
 *
 * @throws A2AError `InvalidParams` where one of them is no private key for cards.
 */
export async function cardKeySet(keys: readonly PrivateCardKey[]): Promise<CardKeySet> {
  return { keys: await Promise.all(keys.map((key, at) => publicCardKey(checkSigningKey(key, `keys[${at}]`)))) };
}

/**
 * Makes a key that signs cards. Keep it secret, and publish its `cardKeySet()`.
 *
 * @param algorithm - Default ES256, which readers of all languages know.
 *
 * @example
 * ```ts
 * const key = await makeCardKey();
 * const signed = await signCard(client.card, key);
 * ```
 */
export async function makeCardKey(algorithm: CardAlgorithm = "ES256"): Promise<PrivateCardKey> {
  const { exportJWK, generateKeyPair } = await import("jose");
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
  const jwk = (await exportJWK(privateKey)) as PrivateCardKey;
  return { ...jwk, ...(await publicCardKey(jwk)), d: jwk.d };
}

/** What of a key set is looked at, at most. */
const mostKeys = 32;

/**
 * The usable keys of a key set that was read.
 *
 * @throws A2AError `InvalidParams` where it is no key set.
 */
export function readCardKeySet(value: unknown): CardKeySet {
  const keys = (value as { readonly keys?: unknown } | null | undefined)?.keys;
  if (!Array.isArray(keys)) throw new A2AError("InvalidParams", "A key set has a list of keys (RFC 7517 §5)");
  const isKey = (key: unknown): key is PublicCardKey =>
    typeof key === "object" && key !== null && typeof (key as { readonly kty?: unknown }).kty === "string";
  return { keys: keys.slice(0, mostKeys).filter(isKey) };
}

/** Why a key proves nothing now (A2A 1.0 §8.4.3); `undefined`: it does. `now`: in milliseconds since the Unix epoch. */
export function outdated({ exp, nbf, revoked }: PublicCardKey, now: number): string | undefined {
  const seconds = now / 1000;
  if (revoked !== undefined && revoked !== null && revoked !== false) return "the key is revoked";
  if (exp !== undefined && !(typeof exp === "number" && seconds < exp)) return "the key has expired";
  if (nbf !== undefined && !(typeof nbf === "number" && seconds >= nbf)) return "the key is not valid yet";
  return undefined;
}

/** The public members of a key for the library. Whatever else it has, such as `key_ops` or a secret part, decides nothing. */
export function bareKey(key: PublicCardKey): Readonly<Record<string, unknown>> | undefined {
  const names = Object.hasOwn(publicMembers, key.kty) ? publicMembers[key.kty] : undefined;
  return names && Object.fromEntries(names.map((name) => [name, key[name]]));
}
