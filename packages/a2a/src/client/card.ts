import { sha256, toHex } from "../base/bytes.ts";
import { withoutSlashes, isLoopback, type Clock } from "../base/index.ts";
import { A2AError, type AgentCard } from "../model/index.ts";
import { observe, type Observer, type OperationName, coreInfo } from "../protocol/index.ts";
import type { ClientHost, FetchInit, FetchLike } from "../transport/client/binding.ts";
import { requestHeaders, sendRequest, type ClientResponse } from "../transport/client/request.ts";
import { parseJson, refusal, strangeAnswer } from "../transport/client/service.ts";
import { BoundedMap, memoryOf } from "../base/bounded-map.ts";
import { writtenValue } from "../base/json-text.ts";
import { isObject } from "../model/schema.ts";

/** A fetched card, and how long it is fresh (RFC 9111, A2A 1.0 §8.6.2). */
export interface CachedCard {
  /** The card. */
  readonly card: AgentCard;
  /** The `ETag` header. */
  readonly etag?: string | undefined;
  /** The `Last-Modified` header. */
  readonly lastModified?: string | undefined;
  /** When the card becomes stale, in milliseconds since the Unix epoch. */
  readonly freshUntil: number;
  /** The card as received, which its signatures cover. A client with `trust` ignores entries without a document. */
  readonly document?: object;
}

/** Caches cards by URL. A `Map` suffices. Share a cache only among clients with the same credentials. */
export interface CardCache {
  /** The cached card of a URL. */
  get(url: string): CachedCard | undefined;
  /** Stores a card. */
  set(url: string, entry: CachedCard): unknown;
}

/** Makes the cache key of a card. The key covers credentials and redirect mode, so that only clients with the same values share a card. */
export type CardKey = (
  url: string,
  headers: Readonly<Record<string, string>>,
  redirect: FetchInit["redirect"],
) => Promise<string>;

export interface CardSource {
  readonly host: ClientHost;
  cache: CardCache;
  /** Makes the cache key from the card's URL, the request headers and the redirect mode. If absent, the key is the URL. */
  readonly keyOf: CardKey | undefined;
  readonly version: string;
  /** Maximum size of a card in bytes. */
  readonly maxBytes: number;
  decode(value: unknown): AgentCard;
  /** Notified of each request for a card. */
  readonly observer: Observer | undefined;
  /** The last requested URL, which after the search is the URL of the card. */
  address: string;
}

/** Paths of the card. Servers of version 0.2 use the second path. */
const wellKnown = ["/.well-known/agent-card.json", "/.well-known/agent.json"] as const;

/** Parses the URL of an agent. Throws `InvalidParams` unless it is an HTTP URL, because `localhost:4000` would parse as the scheme `localhost:`. */
export function toUrl(given: string): URL {
  if (/^https?:/i.test(given) && URL.canParse(given)) return new URL(given);
  throw new A2AError("InvalidParams", `${JSON.stringify(given)} is not an HTTP URL, such as "http://localhost:4000"`);
}

/** The URLs where an agent's card may be: below its base URL, or at the root of its host. */
function addresses(given: URL): { readonly base: string; readonly urls: readonly string[] } {
  const url = new URL(given);
  url.hash = "";
  if (url.pathname.endsWith(".json")) return { base: url.href, urls: [url.href] };
  url.search = "";
  const base = withoutSlashes(url.href);
  const urls = [...new Set([base, url.origin])].flatMap((at) => wellKnown.map((path) => at + path));
  return { base, urls };
}

/** Fetches the card of an agent. `given` is the base URL of the agent, or the URL of the card (A2A 1.0 §8.2). */
export async function findCard(given: URL, source: CardSource, signal: AbortSignal | undefined): Promise<AgentCard> {
  const { base, urls } = addresses(given);
  let missing: unknown;
  for (const url of urls) {
    source.address = url;
    try {
      const card = await fetchCard(url, source, signal);
      // The card at the root may belong to another agent. Accept this card only if it lists the requested address.
      const named = (one: string): boolean => one === base || one.startsWith(`${base}/`);
      if (named(url) || card.supportedInterfaces.some((one) => named(one.url))) return card;
    } catch (thrown) {
      missing ??= thrown;
      // Keep the error of the first URL, which is the most relevant for the caller's address.
      if (!(missing instanceof A2AError) || missing.metadata["httpStatus"] !== "404") throw missing;
    }
  }
  throw missing;
}

async function fetchCard(url: string, source: CardSource, signal: AbortSignal | undefined): Promise<AgentCard> {
  const { host, version } = source;
  const headers = await requestHeaders(host, { url, operation: "AgentCard" }, { version, extensions: [] });
  headers["accept"] = "application/json";
  // Follow redirects only if the caller passed no headers, because credentials are only for the origin that the caller named.
  const redirect = host.headers === noHeaders ? "follow" : "manual";
  const key = (await source.keyOf?.(url, headers, redirect)) ?? url;
  const known = source.cache.get(key);
  if (known !== undefined && host.clock.now() < known.freshUntil) return known.card;
  return observe(source.observer?.card?.({ url }), async () => {
    if (known?.etag) headers["if-none-match"] = known.etag;
    else if (known?.lastModified) headers["if-modified-since"] = known.lastModified;
    const answer = await sendRequest(host, { method: "GET", url, headers, redirect }, { signal });
    const text = await answer.text(source.maxBytes);
    if (answer.status === 304 && known !== undefined) return keep(source, key, known, answer);
    if (answer.status !== 200) throw refusal(answer, host.clock, url, text, undefined);
    const document = parseJson(answer, text);
    if (document === undefined) throw strangeAnswer(answer, url, text);
    const entry = {
      card: source.decode(document),
      ...(isObject(document) && { document }),
      etag: answer.header("etag"),
      lastModified: answer.header("last-modified"),
    };
    return keep(source, key, entry, answer);
  });
}

/** Marks that the caller passed no headers. */
export const noHeaders: Readonly<Record<string, string>> = Object.freeze({});

function keep(
  source: CardSource,
  key: string,
  entry: Omit<CachedCard, "freshUntil">,
  answer: ClientResponse,
): AgentCard {
  const control = answer.header("cache-control") ?? "";
  const age = /\bmax-age="?(\d+)/i.exec(control)?.[1];
  const fresh =
    age === undefined || /\bno-cache\b/i.test(control) ? 0 : Number(age) - Number(answer.header("age") ?? 0);
  const freshUntil = source.host.clock.now() + fresh * 1000;
  if (!/\bno-store\b/i.test(control) && answer.header("vary") !== "*") source.cache.set(key, { ...entry, freshUntil });
  return entry.card;
}

/** Rejects an operation that the card does not declare, with the same error as an agent (A2A 1.0 §3.3.4). */
export function checkDeclared(card: AgentCard, operation: OperationName): void {
  const push = operation.includes("PushNotification");
  const extended = operation === "GetExtendedAgentCard" && "extendedAgentCard";
  const needed = push ? "pushNotifications" : coreInfo(operation)?.stream ? "streaming" : extended;
  if (!needed || card.capabilities[needed]) return;
  throw new A2AError(
    push ? "PushNotificationNotSupported" : "UnsupportedOperation",
    `The card of ${JSON.stringify(card.name)} does not declare ${needed}`,
  );
}

/*
 * The card cache that clients share by default (A2A 1.0 §8.6.2).
 *
 * The keys contain the fetch function, the request headers and the redirect mode. So a client never gets a card that was served for other
 * credentials, or after a redirect that this client would not have followed. On loopback, a card is revalidated on each use, because ports
 * are reused within seconds and developers often change their agents.
 */

interface Kept extends Pick<CachedCard, "etag" | "lastModified"> {
  /** The card as received, as JSON. Each client decodes this card with the versions that the client supports, and checks the signatures. */
  readonly json: string;
  readonly staleAt: number;
}

/** Maximum time for which a card is used without a request, even if its server allows more. */
const maxFreshMs = 86_400_000;

/** Caches by fetch function, then by clock. The maps are weak, so that user functions can be garbage-collected. */
const caches = new WeakMap<object, WeakMap<Clock, BoundedMap<Kept>>>();

/** The cache of all clients with the same fetch function. `decode` reads a card in the versions that one client supports. */
export function sharedCards(
  fetch: FetchLike | typeof globalThis.fetch,
  clock: Clock,
  decode: (value: unknown) => AgentCard,
): CardCache {
  const byClock = caches.get(fetch) ?? new WeakMap<Clock, BoundedMap<Kept>>();
  caches.set(fetch, byClock);
  // The maximum bytes of all cards, and how many of the newest cards to keep at least.
  const bounds = { bytes: 16 << 20, entries: 200, bytesOf: (key: string, { json }: Kept) => memoryOf(key, json) };
  const cards = byClock.get(clock) ?? new BoundedMap<Kept>(bounds);
  byClock.set(clock, cards);
  return {
    get(key) {
      const kept = cards.get(key);
      if (kept === undefined) return undefined;
      const { json, staleAt, etag, lastModified } = kept;
      const left = isLocal(key) ? 0 : staleAt - clock.elapsed();
      const document = writtenValue<object>(json);
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

/** The key of a card: its URL, and a digest of the request's headers, which may contain credentials. */
export const cardKey: CardKey = async (url, headers, redirect) => {
  const text = JSON.stringify([redirect, ...Object.entries(headers).sort(([one], [other]) => (one < other ? -1 : 1))]);
  return `${url} ${toHex(await sha256(text))}`;
};

function isLocal(key: string): boolean {
  const [url = ""] = key.split(" ", 1);
  return isLoopback(new URL(url).hostname);
}
