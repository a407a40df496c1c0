import { A2AError, type AgentCard } from "../model/index.ts";
import {
  type ClientHost,
  exchange,
  type Exchange,
  parseJson,
  refusal,
  requestHeaders,
  strangeAnswer,
  withoutSlashes,
} from "../transport/http/index.ts";

/** A card as it was fetched, and how long it may be used unasked (RFC 9111, A2A 1.0 §8.6.2). */
export interface CachedCard {
  readonly card: AgentCard;
  readonly etag?: string | undefined;
  readonly lastModified?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly freshUntil: number;
}

/** Where cards are kept, by their URL: a `Map` will do. Share it among clients that use the same credentials. */
export interface CardCache {
  get(url: string): CachedCard | undefined;
  set(url: string, entry: CachedCard): unknown;
}

export interface CardSource {
  readonly host: ClientHost;
  readonly cache: CardCache;
  readonly version: string;
  /** Longest card. */
  readonly maxBytes: number;
  decode(value: unknown): AgentCard;
  /** The address that was asked last: in the end that of the card. */
  address: string;
}

/** The second is where servers of 0.2 have it. */
const wellKnown = ["/.well-known/agent-card.json", "/.well-known/agent.json"] as const;

/** Throws `InvalidParams`. */
export function toUrl(given: string): URL {
  if (URL.canParse(given)) return new URL(given);
  throw new A2AError("InvalidParams", `${JSON.stringify(given)} is no absolute URL`);
}

/** Where the card of an agent may be: below its base, or at the root of its host. */
function addresses(given: URL): { readonly base: string; readonly urls: readonly string[] } {
  const url = new URL(given);
  url.hash = "";
  if (url.pathname.endsWith(".json")) return { base: url.href, urls: [url.href] };
  url.search = "";
  const base = withoutSlashes(url.href);
  const urls = [...new Set([base, url.origin])].flatMap((at) => wellKnown.map((path) => at + path));
  return { base, urls };
}

/** The card of the agent at `given`, its base or the card's own URL (A2A 1.0 §8.2). */
export async function findCard(given: URL, source: CardSource, signal: AbortSignal | undefined): Promise<AgentCard> {
  const { base, urls } = addresses(given);
  let missing: unknown;
  for (const url of urls) {
    source.address = url;
    try {
      const card = await fetchCard(url, source, signal);
      // The host's card may be another agent's: it counts if it names the address that was asked for.
      const named = (one: string): boolean => one === base || one.startsWith(`${base}/`);
      if (named(url) || card.supportedInterfaces.some((one) => named(one.url))) return card;
    } catch (thrown) {
      missing ??= thrown;
      // What else goes wrong at the next address says nothing of the first.
      if (!(missing instanceof A2AError) || missing.metadata["httpStatus"] !== "404") throw missing;
    }
  }
  throw missing;
}

async function fetchCard(url: string, source: CardSource, signal: AbortSignal | undefined): Promise<AgentCard> {
  const { host, cache } = source;
  const known = cache.get(url);
  if (known !== undefined && host.clock.now() < known.freshUntil) return known.card;
  const headers = await requestHeaders(
    host,
    { url, operation: "AgentCard" },
    { version: source.version, extensions: [] },
  );
  headers["accept"] = "application/json";
  if (known?.etag !== undefined) headers["if-none-match"] = known.etag;
  else if (known?.lastModified !== undefined) headers["if-modified-since"] = known.lastModified;
  // Credentials are for the address that was named; without any, a card may move.
  const redirect = host.headers === noHeaders ? "follow" : "manual";
  const answer = await exchange(host, { method: "GET", url, headers, redirect }, { signal });
  const text = await answer.text(source.maxBytes);
  if (answer.status === 304 && known !== undefined) {
    return keep(source, url, known, answer);
  }
  if (answer.status !== 200) throw refusal(answer, host.clock, url, text, undefined);
  const value = parseJson(answer, text);
  if (value === undefined) throw strangeAnswer(answer, url, text);
  const [etag, lastModified] = [answer.header("etag"), answer.header("last-modified")];
  return keep(source, url, { card: source.decode(value), etag, lastModified }, answer);
}

/** What a client is built with when its caller gave no headers. */
export const noHeaders: Readonly<Record<string, string>> = Object.freeze({});

/** Keeps a card for as long as its answer allows. */
function keep(source: CardSource, url: string, entry: Omit<CachedCard, "freshUntil">, answer: Exchange): AgentCard {
  const control = answer.header("cache-control") ?? "";
  const age = /\bmax-age="?(\d+)/i.exec(control)?.[1];
  const fresh =
    age === undefined || /\bno-cache\b/i.test(control) ? 0 : Number(age) - Number(answer.header("age") ?? 0);
  const freshUntil = source.host.clock.now() + fresh * 1000;
  if (!/\bno-store\b/i.test(control)) source.cache.set(url, { ...entry, freshUntil });
  return entry.card;
}
