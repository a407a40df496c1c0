import type { AgentCard, AgentInterface } from "../model/index.ts";
import type { Codec } from "../wire/codec.ts";

/** As much of a card of any version as tells that it is one. */
export interface OlderCard {
  readonly name: string;
  readonly url: string;
}

/**
 * A card as the first version reads it that can. One that carries the shapes of several gains the interfaces that only
 * the others of its shapes name. Throws the `InvalidResponse` of the version that it seems to be of.
 */
export function readCard(codecs: readonly Pick<Codec, "decodeCard">[], value: unknown): AgentCard {
  const errors: unknown[] = [];
  const cards = codecs.flatMap((codec) => {
    try {
      return codec.decodeCard(structuredClone(value));
    } catch (thrown) {
      errors.push(thrown);
      return [];
    }
  });
  const [card, ...others] = cards;
  if (card === undefined) {
    const newest = typeof value !== "object" || value === null || "supportedInterfaces" in value;
    throw errors.at(newest ? 0 : -1);
  }
  const known = new Set(card.supportedInterfaces.map(key));
  const more = others.flatMap((other) => other.supportedInterfaces).filter((each) => !known.has(key(each)));
  return more.length === 0 ? card : { ...card, supportedInterfaces: [...card.supportedInterfaces, ...more] };
}

function key({ url, protocolBinding, protocolVersion }: AgentInterface): string {
  return JSON.stringify([url, protocolBinding, protocolVersion.split(".", 2)]);
}
