import type { WebKey } from "../base/index.ts";
import { A2AError } from "../model/index.ts";
import { isObject } from "../model/schema.ts";

/* Keys of signatures, as JWKs (RFC 7517). The library is loaded on first use. */

/** A public key as a JWK (RFC 7517). It may have further members. */
export interface PublicJwk {
  /** Type: `EC`, `OKP` or `RSA`. */
  readonly kty: string;
  /** Name of the key. A signature names it in its header. */
  readonly kid?: string;
  /** Its algorithm. Absent: the algorithm of its type. */
  readonly alg?: string;
  /** Its use. Only keys with `sig` are used. */
  readonly use?: string;
  /** When it expires, in seconds since the Unix epoch. Signatures of an expired key are rejected. */
  readonly exp?: number;
  /** When it becomes valid, in seconds since the Unix epoch. */
  readonly nbf?: number;
  /** Whether it was revoked. Signatures of a revoked key are rejected. */
  readonly revoked?: unknown;
  readonly [member: string]: unknown;
}

/** A private key as a JWK. Keep it secret. */
export interface PrivateJwk extends PublicJwk {
  /** The secret part. */
  readonly d: string;
}

/** Algorithms of signatures: ECDSA with P-256, Ed25519, RSA with PKCS #1 v1.5 (RFC 7518, RFC 8037). */
export type SigningAlgorithm = "ES256" | "EdDSA" | "RS256";

/** The accepted algorithms of signatures: only asymmetric ones. */
export const acceptedAlgorithms: readonly string[] = ["ES256", "ES384", "EdDSA", "Ed25519", "RS256", "PS256"];

/** The public members of a key, by its type (RFC 7518 §6, RFC 8037 §2), in the order for its thumbprint. */
const publicMembers: Readonly<Record<string, readonly string[]>> = {
  EC: ["crv", "kty", "x", "y"],
  OKP: ["crv", "kty", "x"],
  RSA: ["e", "kty", "n"],
};

/** The algorithm of a key that signs; `undefined` if it cannot sign. */
export function algorithmOf({
  kty,
  crv,
  alg,
}: Pick<PublicJwk, "kty" | "alg"> & { readonly crv?: unknown }): SigningAlgorithm | undefined {
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

/** Whether a value looks like a private key that can sign. Does not use the key. */
export function isSigningKey(value: unknown): value is PrivateJwk {
  return isPublicJwk(value) && typeof value["d"] === "string" && algorithmOf(value) !== undefined;
}

/** The public key of a private one, with its name and its algorithm, for a key set. */
export async function publicJwk(key: PrivateJwk): Promise<PublicJwk> {
  const alg = algorithmOf(key);
  const names = publicMembers[key.kty];
  if (alg === undefined || names === undefined) throw new A2AError("InvalidParams", "This key cannot sign");
  const members = Object.fromEntries(names.map((name) => [name, key[name]]));
  return { ...members, kty: key.kty, kid: key.kid ?? (await thumbprint(members)), use: "sig", alg };
}

/** The thumbprint of a key (RFC 7638), as the name of a key without one. */
async function thumbprint(members: Readonly<Record<string, unknown>>): Promise<string> {
  const { calculateJwkThumbprint } = await import("jose");
  return calculateJwkThumbprint(members);
}

/** Makes a private key with a name. */
export async function makeKey(algorithm: SigningAlgorithm): Promise<PrivateJwk> {
  const { exportJWK, generateKeyPair } = await import("jose");
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
  const jwk = (await exportJWK(privateKey)) as PrivateJwk;
  return { ...jwk, ...(await publicJwk(jwk)), d: jwk.d };
}

/** A private key for the library, without members that restrict its use. */
export async function importSigningKey(key: PrivateJwk): Promise<WebKey | Uint8Array> {
  const { importJWK } = await import("jose");
  const { ext: _, key_ops: __, ...jwk } = key;
  return importJWK(jwk, algorithmOf(key) ?? "");
}

const maxKeys = 32;

/**
 * The usable keys of a key set.
 *
 * @throws A2AError `InvalidParams` if it is not a key set.
 */
export function readKeySet(value: unknown): { readonly keys: readonly PublicJwk[] } {
  const keys = isObject(value) ? value["keys"] : undefined;
  if (!Array.isArray(keys)) throw new A2AError("InvalidParams", "A key set must have a list of keys (RFC 7517 §5)");
  return { keys: keys.slice(0, maxKeys).filter(isPublicJwk) };
}

/** Whether a value looks like a key. */
export function isPublicJwk(key: unknown): key is PublicJwk {
  return isObject(key) && typeof key["kty"] === "string";
}

/** Why a key is not valid now (A2A 1.0 §8.4.3); `undefined` if it is. `now`: in milliseconds since the Unix epoch. */
export function outdated({ exp, nbf, revoked }: PublicJwk, now: number): string | undefined {
  const seconds = now / 1000;
  if (revoked !== undefined && revoked !== null && revoked !== false) return "the key is revoked";
  if (exp !== undefined && !(typeof exp === "number" && seconds < exp)) return "the key has expired";
  if (nbf !== undefined && !(typeof nbf === "number" && seconds >= nbf)) return "the key is not valid yet";
  return undefined;
}

/** The public members of a key for the library. Ignores all others, such as `key_ops` or a secret part. */
export function bareKey(key: PublicJwk): Readonly<Record<string, unknown>> | undefined {
  const names = Object.hasOwn(publicMembers, key.kty) ? publicMembers[key.kty] : undefined;
  return names && Object.fromEntries(names.map((name) => [name, key[name]]));
}

/** Whether a key may be used with an algorithm: its `alg` and `use` can exclude that (RFC 7517 §4.2, §4.4). */
export function fitsAlgorithm(key: PublicJwk, alg: string): boolean {
  const same = key.alg === undefined || key.alg === alg || (isEdDsa(key.alg) && isEdDsa(alg));
  return same && (key.use === undefined || key.use === "sig");
}

function isEdDsa(alg: string): boolean {
  return alg === "EdDSA" || alg === "Ed25519";
}
