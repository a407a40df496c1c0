import type { Bytes, WebKey } from "@parley/a2a/internal/base/index";
import { hkdf, hkdfRoot } from "../seal/index.ts";
import { fromBase64Url } from "@parley/a2a/internal/base/bytes";
import { ed25519Key, publicJwk, type KeySet, type PublicJwk } from "@parley/a2a/internal/webhooks/index";

/* The keys of `PushOptions.keys`: from each 32 bytes, a key that seals the secrets of configs, and one that signs. */

/** What one element of `PushOptions.keys` gives. */
export interface PushKey {
  /** The name of the key: the `kid` of its public key. It may be stored beside what the key sealed. */
  readonly id: string;
  /** Seals and opens: AES-256-GCM. */
  readonly seal: WebKey;
  /** Signs: Ed25519. */
  readonly sign: WebKey;
  /** The public key of `sign`, for the key set. */
  readonly jwk: PublicJwk;
}

/** The keys of a server. The first one seals; the others open what they sealed. */
export type PushKeys = readonly [PushKey, ...PushKey[]];

/** Derives the keys when it is called first, and then returns the same. */
export type PushKeyring = () => Promise<PushKeys>;

/** The keys that are derived from `PushSettings.keys`, 32 bytes each. */
export function pushKeyring([first, ...others]: readonly [Bytes, ...Bytes[]]): PushKeyring {
  let derived: Promise<PushKeys> | undefined;
  return () => (derived ??= Promise.all([derive(first), ...others.map(derive)]));
}

/** The public keys of a server, as it publishes them. */
export async function keySetOf(keyring: PushKeyring): Promise<KeySet> {
  return { keys: (await keyring()).map(({ jwk }) => jwk) };
}

/** Derives with HKDF (RFC 5869), so that neither of the two derived keys tells anything about the other. */
async function derive(bytes: Bytes): Promise<PushKey> {
  const root = await hkdfRoot(bytes);
  const aes = { name: "AES-GCM", length: 256 };
  const seal = await crypto.subtle.deriveKey(hkdf("parley push seal 1"), root, aes, false, ["encrypt", "decrypt"]);
  const seed = new Uint8Array(await crypto.subtle.deriveBits(hkdf("parley push sign 1"), root, 256));
  // WebCrypto has no other way from a private key to its public key than a JWK, which has both.
  const { x = "" } = await crypto.subtle.exportKey("jwk", await ed25519Key(seed, true));
  const jwk = await publicJwk(fromBase64Url(x) as Bytes);
  return { id: jwk.kid, seal, sign: await ed25519Key(seed), jwk };
}
