import { A2AError, invalidParams, type AgentCardSignature } from "../model/index.ts";
import { signableForms, versionsOf } from "./canonical.ts";
import { algorithmOf, importSigningKey, publicJwk, isSigningKey, makeKey } from "../jws/keys.ts";
import type { PrivateCardKey, SignCardOptions, CardAlgorithm, CardKeySet } from "./port.ts";
import { fromBase64Url } from "../base/bytes.ts";
import { isObject } from "../model/schema.ts";

interface Signable {
  readonly text: string;
  readonly lacking: boolean;
}

/**
 * Signs a card (A2A 1.0 §8.4) with a JWS with detached payload, over the canonical form of the card. Each key signs each version that the
 * card has: 1.0, 0.3, or both. Keeps signatures of other keys.
 *
 * The specification keeps empty required members, but the SDKs of JavaScript and Python drop all empty values. If the two forms differ,
 * both are signed. See also `SignCardOptions.reduced`.
 *
 * @param card - The card, in the form that the server sends.
 * @throws A2AError `InvalidParams` if a key cannot sign cards, or if `card` is not a card.
 *
 * @example
 * ```ts
 * const signed = await signCard(client.card, cardKey, { jku: "https://agents.example.com/.well-known/card-keys.json" });
 * ```
 */
export async function signCard<Card extends object>(
  card: Card,
  key: PrivateCardKey | readonly PrivateCardKey[],
  options: SignCardOptions = {},
): Promise<Card & { readonly signatures: readonly AgentCardSignature[] }> {
  const keys = [key].flat().map((each, at) => checkSigningKey(each, `keys[${at}]`));
  const { signatures: before, ...content }: { readonly signatures?: unknown } = card;
  const texts = signables(content, options.reduced ?? true);
  if (keys.length === 0) throw new A2AError("InvalidParams", "Signing a card needs at least one key");
  const made = (await Promise.all(keys.map((each) => signaturesBy(each, texts, options.jku)))).flat();
  const names = new Set<unknown>(made.map(({ kid }) => kid));
  const others = Array.isArray(before)
    ? (before as AgentCardSignature[]).filter((one) => !names.has(readHeader(one.protected)?.kid))
    : [];
  return { ...card, signatures: [...others, ...made.map(({ signature }) => signature)] };
}

function signables(content: Readonly<Record<string, unknown>>, wantsReduced: boolean): readonly Signable[] {
  const versions = versionsOf(content);
  if (versions.length === 0) {
    throw new A2AError("InvalidParams", "Not an agent card: it has neither supportedInterfaces nor url");
  }
  const all = versions.flatMap((version) => {
    const { specification, reduced, same } = signableForms(content, version);
    const both = reduced !== specification && (same || wantsReduced);
    return [{ text: specification, lacking: false }, ...(both ? [{ text: reduced, lacking: !same }] : [])];
  });
  return all.filter(({ text }, at) => all.findIndex((other) => other.text === text) === at);
}

async function signaturesBy(key: PrivateCardKey, texts: readonly Signable[], jku: string | undefined) {
  const { FlattenedSign } = await import("jose");
  const { kid = "" } = await publicJwk(key);
  const alg = algorithmOf(key) ?? "";
  const secret = await importSigningKey(key).catch((cause: unknown) => {
    throw new A2AError("InvalidParams", "Failed to sign the card with one of the keys", { cause });
  });
  return Promise.all(
    texts.map(async ({ text, lacking }) => {
      const jws = await new FlattenedSign(new TextEncoder().encode(text))
        .setProtectedHeader({
          alg,
          typ: "JOSE",
          kid,
          ...(jku !== undefined && { jku }),
          ...(lacking && { [reducedMark]: true }),
        })
        .sign(secret);
      return { kid, signature: { protected: jws.protected ?? "", signature: jws.signature } };
    }),
  );
}

/** The relevant members of a signature's protected header (A2A 1.0 §8.4.2). */
interface SignatureHeader {
  readonly alg: string;
  readonly kid?: string;
  readonly jku?: string;
  readonly typ?: string;
  /** Whether the signature covers a form that lacks content of the card. */
  readonly reduced: boolean;
}

/**
 * The member that marks a signature over a reduced form that lacks content of the card. Clients of this package ignore such a signature,
 * because it would also be valid for a card without that content.
 */
const reducedMark = "reduced";

const longest = 8192;

/** Reads a protected header. `undefined` if it is invalid or unsupported. */
export function readHeader(value: unknown): SignatureHeader | undefined {
  const bytes = typeof value !== "string" || value.length > longest ? undefined : fromBase64Url(value);
  if (bytes === undefined) return undefined;
  try {
    const header: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    // A critical extension changes the signed bytes or the algorithm (RFC 7515 §4.1.11). None is supported.
    if (!isObject(header) || typeof header["alg"] !== "string" || header["crit"] !== undefined) return undefined;
    const { alg, kid, jku, typ } = header;
    return {
      alg,
      ...(typeof kid === "string" && { kid }),
      ...(typeof jku === "string" && { jku }),
      ...(typeof typ === "string" && { typ }),
      reduced: header[reducedMark] === true,
    };
  } catch {
    return undefined;
  }
}

/* Keys for cards. The library is loaded on first use. */

/**
 * Checks a private key without using it.
 *
 * @throws A2AError `InvalidParams`, whose message contains no part of the key.
 */
function checkSigningKey(value: unknown, field: string): PrivateCardKey {
  if (isSigningKey(value)) return value;
  const description =
    "must be a private key as a JWK: EC with P-256, OKP with Ed25519, or RSA. Make one with `parley card key` or makeCardKey()";
  throw invalidParams([{ field, description }]);
}

/**
 * The key set to publish for keys that sign cards. Contains only the public parts of the keys.
 *
 * @throws A2AError `InvalidParams` if a key is not a private key for cards.
 */
export async function cardKeySet(keys: readonly PrivateCardKey[]): Promise<CardKeySet> {
  return { keys: await Promise.all(keys.map((key, at) => publicJwk(checkSigningKey(key, `keys[${at}]`)))) };
}

/**
 * Makes a key that signs cards. Keep it secret, and publish its `cardKeySet()`.
 *
 * @param algorithm - Default ES256, which readers in all languages support.
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
