import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import type { PrivateCardKey, PublicCardKey } from "@parley/a2a/internal/cards/port";
import type { AgentCard, AgentCardSignature } from "@parley/a2a/internal/model/index";
import { isObject } from "@parley/a2a/internal/model/schema";
import type { PublicDocument } from "@parley/a2a/internal/transport/discovery/handler";
import { cannotServe } from "@parley/a2a/internal/transport/server/binding";
import type { Codec } from "@parley/a2a/internal/wire/codec";

/* The option `signCards` of a handler. What signs is loaded with the first card. */

/** Path of the public keys, below the path of the public URL. */
const cardKeysPath = "/.well-known/card-keys.json";

/**
 * How a server signs its cards. The public keys are published at `/.well-known/card-keys.json` below `publicUrl`, which the signatures
 * name as `jku`.
 */
export interface SignCards {
  /** The keys, as `makeCardKey()` makes them. Each of them signs each card, so that a new key can be added before an old one goes. */
  readonly keys: readonly PrivateCardKey[];
  /** Public keys of earlier times, which stay published as long as clients keep cards that these have signed. Default: none. */
  readonly retired?: readonly PublicCardKey[];
  /** See `SignCardOptions.reduced`. Default true. */
  readonly reduced?: boolean;
}

/** Signs the cards of a server. */
export interface CardSigner {
  /** The card with signatures of each version that it is written in. */
  sign(card: AgentCard): Promise<AgentCard>;
  /** The public keys. */
  readonly document: PublicDocument;
}

/** Signatures that are remembered, and the bytes of their cards. Extended cards differ from caller to caller. */
const remembered = { entries: 1_000, bytes: 8 << 20 };

/**
 * The signer of a server; `undefined` where it signs nothing.
 *
 * @param host - The public URL, what is before each path, and the versions that cards are written in.
 */
export function cardSignerOf(
  option: SignCards | undefined,
  host: { readonly publicUrl: string; readonly basePath: string; readonly codecs: readonly Codec[] },
): CardSigner | undefined {
  if (option === undefined) return undefined;
  checkKeys(option);
  const jku = host.publicUrl + cardKeysPath;
  const sign = async (card: AgentCard): Promise<readonly AgentCardSignature[]> => {
    const { signCard } = await import("@parley/a2a/internal/cards/index");
    const { keys, reduced = true } = option;
    const written = host.codecs.map((codec) => codec.encodeCard(card) as object);
    const signed = await Promise.all(written.map((form) => signCard(form, keys, { jku, reduced }))).catch(
      (cause: unknown) => {
        // It is no mistake of the caller.
        throw new Error("The card cannot be signed: see signCards", { cause });
      },
    );
    return signed.flatMap(({ signatures }) => signatures);
  };
  const known = new BoundedMap<readonly AgentCardSignature[]>({ ...remembered, bytesOf: (text) => memoryOf(text) });
  return {
    async sign(card) {
      const { signatures: _, ...unsigned } = card;
      const text = JSON.stringify(unsigned);
      const signatures = known.get(text) ?? (await sign(unsigned));
      known.set(text, signatures);
      return { ...unsigned, signatures };
    },
    document: {
      path: host.basePath + cardKeysPath,
      name: "A key set",
      mediaType: "application/jwk-set+json",
      async load() {
        const { cardKeySet } = await import("@parley/a2a/internal/cards/index");
        const { keys } = await cardKeySet(option.keys);
        return { keys: [...keys, ...(option.retired ?? [])] };
      },
    },
  };
}

/** Types of keys that can sign cards. */
const types: readonly unknown[] = ["EC", "OKP", "RSA"];

/** Refuses what is no private key, at start and without showing it; the rest is found when the first card is signed. */
function checkKeys({ keys, retired = [] }: SignCards): void {
  if (!areKeys(keys, true) || keys.length === 0) {
    const made = "makeCardKey() of @parley/a2a/cards makes one";
    throw cannotServe("signCards.keys", `must be a list of private keys as JWKs. ${made}`);
  }
  if (!areKeys(retired, false)) {
    throw cannotServe("signCards.retired", "must be a list of public keys as JWKs, without their secret part");
  }
}

/** JavaScript callers can pass anything. */
function areKeys(list: unknown, arePrivate: boolean): list is readonly object[] {
  const isKey = (key: unknown): boolean =>
    isObject(key) && types.includes(key["kty"]) && (typeof key["d"] === "string") === arePrivate;
  return Array.isArray(list) && list.every(isKey);
}
