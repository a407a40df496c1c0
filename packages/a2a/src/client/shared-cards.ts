import { BoundedMap, memoryOf } from "../base/bounded-map.ts";
import { type Clock, isLoopback } from "../base/index.ts";
import type { AgentCard } from "../model/index.ts";
import type { FetchLike } from "../transport/client/binding.ts";
import type { CachedCard, CardCache, CardKey } from "./card.ts";

/*
 * The cache of cards that clients share unless their options say otherwise (A2A 1.0 §8.6.2).
 *
 * Cards are kept by what sends the requests, by their headers and by whether redirects are followed. So no client gets a card that was given to
 * other credentials, or from where it would not have gone. On
 * loopback a card is revalidated at each use: ports are reused within seconds, and whoever develops an agent changes it all the time.
 */

/** What is kept of a card. */
interface Kept extends Pick<CachedCard, "etag" | "lastModified"> {
  /** The document as received, as JSON: each client reads it by the versions that it speaks, and checks its signatures. */
  readonly json: string;
  /** When the card is stale, in monotonic time. */
  readonly staleAt: number;
}

/** Bounds of a cache: all cards in bytes, and how many of the newest are kept at least. */
const bounds = { bytes: 16 << 20, entries: 200, bytesOf: (key: string, { json }: Kept) => memoryOf(key, json) };

/** Maximum time for which a card is used without a request, whatever its server allows. */
const maxFreshMs = 24 * 60 * 60_000;

/** By the function that sends requests, then by the clock. The functions of users live as long as they keep them. */
const caches = new WeakMap<object, WeakMap<Clock, BoundedMap<Kept>>>();

/** The cache of all clients that send requests with a function. `decode` reads a card for one of them. */
export function sharedCards(
  fetch: FetchLike | typeof globalThis.fetch,
  clock: Clock,
  decode: (value: unknown) => AgentCard,
): CardCache {
  const byClock = caches.get(fetch) ?? new WeakMap<Clock, BoundedMap<Kept>>();
  caches.set(fetch, byClock);
  const cards = byClock.get(clock) ?? new BoundedMap<Kept>(bounds);
  byClock.set(clock, cards);
  return {
    get(key) {
      const kept = cards.get(key);
      if (kept === undefined) return undefined;
      const { json, staleAt, etag, lastModified } = kept;
      const left = isLocal(key) ? 0 : staleAt - clock.elapsed();
      const document = JSON.parse(json) as object;
      return { card: decode(document), document, etag, lastModified, freshUntil: clock.now() + left };
    },
    set(key, { document, etag, lastModified, freshUntil }) {
      const left = Math.min(freshUntil - clock.now(), maxFreshMs);
      // A card that is stale and has no validator cannot be revalidated.
      if (left <= 0 && etag === undefined && lastModified === undefined) return;
      cards.set(key, { json: JSON.stringify(document), etag, lastModified, staleAt: clock.elapsed() + left });
    },
  };
}

/** The key of a card: its URL, and a digest of how it was asked for. The headers may have credentials. */
export const cardKey: CardKey = async (url, headers, redirect) => {
  const text = JSON.stringify([redirect, ...Object.entries(headers).sort(([one], [other]) => (one < other ? -1 : 1))]);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return `${url} ${Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
};

function isLocal(key: string): boolean {
  return isLoopback(new URL(key.split(" ", 1)[0] as string).hostname);
}
