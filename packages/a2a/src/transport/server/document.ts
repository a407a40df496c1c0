import type { UniversalRequest, UniversalResponse } from "../../protocol/index.ts";
import type { Headers } from "./response.ts";

/* Documents that clients may keep: their tags, and the answer to a client that has one already. */

/** A document with the headers of its answers. */
export interface Document {
  readonly text: string;
  readonly headers: Headers;
}

/** Writes a document, with a strong `ETag`. */
export function writeDocument(value: unknown, headers: Headers): Promise<Document> {
  return tagged(JSON.stringify(value), headers);
}

/** The same for a document that is written already. */
export async function tagged(text: string, headers: Headers): Promise<Document> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  const etag = Array.from(digest.subarray(0, 16), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { text, headers: { etag: `"${etag}"`, ...headers } };
}

/** The document, or 304 for a client that has it already (RFC 9110 §13.2.2). */
export function answerWith({ text, headers }: Document, request: UniversalRequest): UniversalResponse {
  return isKnown(request, headers) ? { status: 304, headers } : { status: 200, headers, body: text };
}

/** Whether the client has the document already. The tag decides; the date counts only where there is no tag. */
function isKnown(request: UniversalRequest, headers: Headers): boolean {
  const tags = request.header("if-none-match");
  if (tags !== undefined) return matches(tags, headers["etag"] as string);
  const since = request.header("if-modified-since");
  return since !== undefined && Date.parse(since) >= Date.parse(headers["last-modified"] ?? "");
}

/** Weak comparison (RFC 9110 §13.1.2): a cache between client and server may have marked the tag as weak. */
function matches(header: string, etag: string): boolean {
  return header.split(",").some((part) => {
    const tag = part.trim();
    return tag === "*" || tag === etag || tag === `W/${etag}`;
  });
}
