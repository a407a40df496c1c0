import type { Clock } from "../../base/index.ts";
import { A2AError, type AgentCard } from "../../model/index.ts";
import { isObject } from "../../model/schema.ts";
import type { UniversalRequest, UniversalResponse } from "../../protocol/index.ts";
import { byVersion, type Codec } from "../../wire/codec.ts";
import type { HttpEndpoint } from "../server/binding.ts";
import { requestedVersion } from "../server/request.ts";
import { errorResponse, type Headers, type WireError } from "../server/response.ts";

export { buildCard, interfacesOf } from "./card.ts";

/** Where a card is found below a base (A2A 1.0 §8.2). */
export const cardPath = "/.well-known/agent-card.json";

/** Every path below a base that the card of a tenant, or of the one agent there, is found at. */
export function cardPathsOf(tenant: string | undefined, codecs: readonly Codec[]): readonly string[] {
  const prefix = tenant === undefined ? "" : `/${encodeURIComponent(tenant)}`;
  const paths = new Set([cardPath, ...codecs.flatMap((codec) => codec.cardPaths ?? [])]);
  return [...paths].map((path) => prefix + path);
}

export interface CardOptions {
  /** How long a client may keep the card, in seconds. */
  readonly maxAge: number;
  /** Since when the card is as it is: from the time it is first served. */
  readonly clock: Clock;
}

interface Document {
  readonly text: string;
  readonly headers: Headers;
}

/**
 * Serves a card, written once for each version (§8.6): strong `ETag`, `Last-Modified`, `Cache-Control`, 304 for what the
 * client has. Who names a version gets the card in its form. Anyone else gets one with the members of all of them, which
 * clients of each version read: what one does not know it ignores. Anyone may read it: it says how to authenticate.
 */
export function cardEndpoint(
  card: AgentCard,
  codecs: readonly [Codec, ...Codec[]],
  { maxAge, clock }: CardOptions,
): HttpEndpoint {
  const named = byVersion(codecs);
  const modified = new Date(clock.now()).toUTCString();
  const documents = new Map<Codec | undefined, Promise<Document>>();
  const documentOf = (codec: Codec | undefined) => {
    const known = documents.get(codec);
    if (known !== undefined) return known;
    const written = (codec === undefined ? codecs : [codec]).map((each) => each.encodeCard(card));
    const document = writeDocument(written.reduce(merge), {
      "content-type": "application/json",
      "cache-control": `public, max-age=${maxAge}`,
      "last-modified": modified,
      ...(codecs.length > 1 && { vary: "A2A-Version" }),
    });
    documents.set(codec, document);
    return document;
  };
  return {
    async answer(request, { query }) {
      if (request.method !== "GET" && request.method !== "HEAD") return methodNotAllowed(codecs[0]);
      const version = codecs.length > 1 ? requestedVersion(request, query) : undefined;
      const { text, headers } = await documentOf(named.get(version ?? ""));
      return isKnown(request, headers) ? { status: 304, headers } : { status: 200, headers, body: text };
    },
  };
}

const allow = "GET, HEAD";

function methodNotAllowed(codec: Codec): UniversalResponse {
  return errorResponse(codec, new A2AError("MethodNotAllowed", `A card takes ${allow}`) as WireError, allow);
}

/** The answer where no binding has an address, and no card is. */
export function notFound(codec: Codec): UniversalResponse {
  return errorResponse(codec, new A2AError("MethodNotFound", "There is nothing at this path") as WireError);
}

/** One value that says what both say; where they say the same thing in two ways, the first counts. */
function merge(one: unknown, other: unknown): unknown {
  if (Array.isArray(one) && Array.isArray(other) && one.length === other.length) {
    return one.map((item, at) => merge(item, other[at]));
  }
  if (!isObject(one) || !isObject(other)) return one;
  const both = Object.entries(other).map(([name, value]) => [name, name in one ? merge(one[name], value) : value]);
  return Object.assign({}, one, Object.fromEntries(both));
}

async function writeDocument(card: unknown, headers: Headers): Promise<Document> {
  const text = JSON.stringify(card);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  const etag = Array.from(digest.subarray(0, 16), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { text, headers: { etag: `"${etag}"`, ...headers } };
}

/** Whether the client has it already: the tag decides, and only without one the date (RFC 9110 §13.2.2). */
function isKnown(request: UniversalRequest, headers: Headers): boolean {
  const tags = request.header("if-none-match");
  if (tags !== undefined) return matches(tags, headers["etag"] as string);
  const since = request.header("if-modified-since");
  return since !== undefined && Date.parse(since) >= Date.parse(headers["last-modified"] as string);
}

/** Weak comparison, as RFC 9110 §13.1.2 wants it: a cache in between may have marked the tag. */
function matches(header: string, etag: string): boolean {
  return header.split(",").some((part) => {
    const tag = part.trim();
    return tag === "*" || tag === etag || tag === `W/${etag}`;
  });
}
