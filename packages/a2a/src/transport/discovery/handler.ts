import type { AgentCard } from "../../model/index.ts";
import type { UniversalRequest, UniversalResponse } from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import { requestedVersion } from "../server/request.ts";
import type { Headers } from "../server/response.ts";
import { methodNotAllowed } from "./errors.ts";

export { buildCard } from "./card.ts";

/** Where a card is found below a base (A2A 1.0 §8.2). */
export const cardPath = "/.well-known/agent-card.json";

export interface CardOptions {
  /** How long a client may keep the card, in seconds. */
  readonly maxAge: number;
}

/** Answers requests for one card. Anyone may read it: it says how to authenticate. */
export type CardEndpoint = (request: UniversalRequest, query: string) => Promise<UniversalResponse>;

interface Document {
  readonly text: string;
  readonly headers: Headers;
}

/**
 * Serves a card, written once for each version (§8.6): strong `ETag`, `Cache-Control`, 304 for what the client has. Who
 * names a version gets the card in its form, anyone else in that of the first.
 */
export function cardEndpoint(
  card: AgentCard,
  codecs: readonly [Codec, ...Codec[]],
  { maxAge }: CardOptions,
): CardEndpoint {
  const documents = new Map<Codec, Promise<Document>>();
  const documentOf = (codec: Codec) => {
    const known = documents.get(codec) ?? writeDocument(card, codec, maxAge, codecs.length > 1);
    documents.set(codec, known);
    return known;
  };
  return async (request, query) => {
    if (request.method !== "GET" && request.method !== "HEAD") return methodNotAllowed(codecs[0]);
    const version = codecs.length > 1 ? requestedVersion(request, query) : undefined;
    const { text, headers } = await documentOf(
      codecs.find((codec) => codec.version === version || codec.aliases?.includes(version ?? "")) ?? codecs[0],
    );
    const known = request.header("if-none-match");
    if (known !== undefined && matches(known, headers["etag"] as string)) return { status: 304, headers };
    return { status: 200, headers, body: text };
  };
}

async function writeDocument(card: AgentCard, codec: Codec, maxAge: number, varies: boolean): Promise<Document> {
  const text = JSON.stringify(codec.encodeCard(card));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  const etag = Array.from(digest.subarray(0, 16), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return {
    text,
    headers: {
      "content-type": "application/json",
      "cache-control": `public, max-age=${maxAge}`,
      etag: `"${etag}"`,
      ...(varies && { vary: "A2A-Version" }),
    },
  };
}

/** Weak comparison, as RFC 9110 §13.1.2 wants it: a cache in between may have marked the tag. */
function matches(header: string, etag: string): boolean {
  return header.split(",").some((part) => {
    const tag = part.trim();
    return tag === "*" || tag === etag || tag === `W/${etag}`;
  });
}
