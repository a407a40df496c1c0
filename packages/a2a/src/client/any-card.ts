import type { AgentCard, AgentInterface } from "../model/index.ts";
import type { Codec } from "../wire/codec.ts";

/** What identifies a card of version 0.3 or earlier. The other members of such a card may be there too. */
export interface OlderCard {
  /** Name of the agent. */
  readonly name: string;
  /** Address of the agent. */
  readonly url: string;
}

/**
 * Reads a card with the first codec that can. Some cards have the shapes of several versions: such a card gets the
 * interfaces of all of them. Throws the `InvalidResponse` of the version that the card seems to have.
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
