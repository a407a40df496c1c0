import { A2AError, type AgentCardSignature } from "../model/index.ts";
import { signableForms, versionsOf } from "./canonical.ts";
import { readHeader, reducedMark } from "./header.ts";
import { algorithmOf, importSigningKey, publicJwk } from "../jws/keys.ts";
import { checkSigningKey } from "./keys.ts";
import type { PrivateCardKey, SignCardOptions } from "./port.ts";

/** One text to sign, and whether it lacks something of the card. */
interface Signable {
  readonly text: string;
  readonly lacking: boolean;
}

/**
 * Signs a card (A2A 1.0 §8.4): a JWS with its payload detached, over the canonical form of the card. A card of 1.0, of 0.3, or of both
 * at once: each version is signed by each key. Signatures of other keys stay.
 *
 * The specification keeps required members that are empty, and the SDKs of JavaScript and Python drop all that is empty. Where these two
 * readings differ, both are signed. See also `SignCardOptions.reduced`.
 *
 * @param card - The card as it will be sent.
 * @throws A2AError `InvalidParams` where a key cannot sign cards, or where this is no card.
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
  const { signatures: before, ...content } = card as { readonly signatures?: unknown };
  const texts = signables(content, options.reduced ?? true);
  if (keys.length === 0) throw new A2AError("InvalidParams", "At least one key is needed to sign a card");
  const made = (await Promise.all(keys.map((each) => signaturesBy(each, texts, options.jku)))).flat();
  const names = new Set<unknown>(made.map(({ kid }) => kid));
  const others = Array.isArray(before)
    ? (before as AgentCardSignature[]).filter((one) => !names.has(readHeader(one.protected)?.kid))
    : [];
  return { ...card, signatures: [...others, ...made.map(({ signature }) => signature)] };
}

/** What has to be signed of a card, each text once. */
function signables(content: Readonly<Record<string, unknown>>, wantsReduced: boolean): readonly Signable[] {
  const versions = versionsOf(content);
  if (versions.length === 0) {
    throw new A2AError("InvalidParams", "This is no card: it has neither supportedInterfaces nor url");
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
    throw new A2AError("InvalidParams", "A key for cards cannot be used", { cause });
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
