import { invalidParams } from "../model/index.ts";
import { isSigningKey, makeKey, publicJwk } from "../jws/keys.ts";
import type { CardAlgorithm, CardKeySet, PrivateCardKey } from "./port.ts";

/* Keys for cards. The library is loaded when the first one is used. */

/**
 * Checks a private key without using it.
 *
 * @throws A2AError `InvalidParams`, without anything of the key.
 */
export function checkSigningKey(value: unknown, field: string): PrivateCardKey {
  if (isSigningKey(value)) return value;
  const description =
    "must be a private key as a JWK: EC with P-256, OKP with Ed25519, or RSA. `parley card key` and makeCardKey() make one";
  throw invalidParams([{ field, description }]);
}

/**
 * The key set to publish for keys that sign cards: their public parts alone.
 *
 * @throws A2AError `InvalidParams` where one of them is no private key for cards.
 */
export async function cardKeySet(keys: readonly PrivateCardKey[]): Promise<CardKeySet> {
  return { keys: await Promise.all(keys.map((key, at) => publicJwk(checkSigningKey(key, `keys[${at}]`)))) };
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
  return makeKey(algorithm);
}
