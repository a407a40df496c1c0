import type { Logger } from "../../base/index.ts";
import { A2AError, isWireErrorCode, toA2AError, wireErrors, type WireErrorCode } from "../../model/index.ts";
import {
  RunGivenUp,
  ServerIsStopping,
  type BodyWriter,
  type InlineFiles,
  type Sink,
  type UniversalRequest,
  type UniversalResponse,
} from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import { extensionsHeader, type ServerContext } from "./context.ts";

/* Writes errors, headers, and bodies within their reserved memory, for all bindings of HTTP. */

/** Headers of a response. Shared constants, unless a response needs further headers. */
export type Headers = Readonly<Record<string, string>>;

/** An error that may go to a client, because its code is in the protocol's table. */
export interface WireError extends A2AError {
  readonly code: WireErrorCode;
}

function isWireError(error: A2AError): error is WireError {
  return isWireErrorCode(error.code);
}

/**
 * Converts a thrown value to the error for the client, and logs it for the operator if the server is at fault. If a service calls another
 * server and that call fails, such as with a lost connection, the error becomes an `InternalError`.
 *
 * @param isGone - Whether the client has disconnected, so that an aborted call is not a failure. Only called for aborted calls.
 */
export function failureOf(
  thrown: unknown,
  logger: Logger,
  fields: Readonly<Record<string, unknown>>,
  isGone: () => boolean,
): WireError {
  const error = toA2AError(thrown);
  const shown = isWireError(error) ? error : (new A2AError("InternalError", undefined, { cause: error }) as WireError);
  if (httpStatusOf(shown) >= 500) {
    const line = { ...fields, error: shown.code, cause: shown.cause ?? shown };
    if (error.code === "Aborted" && isGone()) logger.debug("Client disconnected before the answer", line);
    // When a server stops, every open stream ends with this error, and continues elsewhere.
    else if (error instanceof ServerIsStopping) logger.debug("Ended a call because the server stops", fields);
    // The outage is logged with the number of such runs.
    else if (error instanceof RunGivenUp) logger.debug("Ended a stream because its run was given up", line);
    else if (shown.code === "Unavailable") logger.warn("Failed to serve request: unavailable", line);
    else logger.error("A request failed", line);
  }
  return shown;
}

/** The HTTP status of REST for an error. */
function httpStatusOf({ code, sentAs }: WireError): number {
  return sentAs?.http ?? wireErrors[code].http;
}

/** `application/json`, not the protocol's own media type, because some clients read errors only from `application/json`. */
const jsonError: Headers = { "content-type": "application/json", "cache-control": "no-store" };

/** An error with its HTTP status, in the form of the version (A2A 1.0 §11.6). `allow` has the methods of the URL, for the header `Allow`. */
export function errorResponse({ shapes }: Codec, error: WireError, allow?: string): UniversalResponse {
  return {
    status: httpStatusOf(error),
    headers: errorHeaders(jsonError, error, allow),
    body: shapes.encodeError(error),
  };
}

/** The headers of an error: `base`, and the headers that the error code requires (RFC 9110 §10.2.3, §11.6.1). */
export function errorHeaders(base: Headers, error: A2AError, allow?: string): Headers {
  if (error.challenge === undefined && error.retryAfter === undefined && allow === undefined) return base;
  return {
    ...base,
    ...challengeHeaders(error.challenge),
    ...(error.retryAfter !== undefined && { "retry-after": String(Math.max(0, Math.ceil(error.retryAfter))) }),
    ...(allow !== undefined && { allow }),
  };
}

/**
 * `www-authenticate` for a challenge, and `dpop-nonce` if the challenge has a nonce (RFC 9449 §9). The nonce is part of the challenge, so
 * that combined authenticators keep it.
 */
export function challengeHeaders(challenge: string | undefined): Headers {
  if (challenge === undefined) return {};
  const nonce = /\bdpop_nonce="([\w-]+)"/.exec(challenge)?.[1];
  return { "www-authenticate": challenge, ...(nonce !== undefined && { "dpop-nonce": nonce }) };
}

/** `base`, and the header that lists the activated extensions (A2A 1.0 §3.2.6). */
export function withExtensions(
  base: Headers,
  extensions: readonly string[] | undefined,
  request: UniversalRequest,
): Headers {
  if (extensions === undefined || extensions.length === 0) return base;
  return { ...base, [extensionsHeader(request)]: extensions.join(", ") };
}

/** Characters per write. For a large body, a host holds one such piece in addition to the text. */
const pieceLength = 1 << 16;

/** The body of an answer: its text if it is small, otherwise a writer that waits for its reader after each piece. */
export function bodyOf(
  text: string | readonly string[],
  context: ServerContext,
  inline?: InlineFiles,
): string | BodyWriter {
  if (inline !== undefined) return writePieces(typeof text === "string" ? [text] : text, context, inline);
  if (typeof text !== "string") return writePieces(text, context);
  if (context.reserved === 0) {
    context.end();
    return text;
  }
  // The value of the answer is already released, and the text may need less memory than reserved.
  context.shrink(2 * text.length);
  if (text.length > pieceLength) return writePieces([text], context);
  context.end();
  return text;
}

function writePieces(pieces: readonly string[], context: ServerContext, inline?: InlineFiles): BodyWriter {
  return async (sink) => {
    try {
      for (const piece of pieces) {
        const written = writeWithFiles(sink, piece, context, inline);
        if (written !== undefined) await written;
      }
    } finally {
      context.end();
    }
  };
}

/** Writes a text with the files that it refers to. Rejects if a file cannot be read, which leaves the written answer incomplete. */
export function writeWithFiles(
  sink: Sink,
  text: string,
  context: ServerContext,
  inline: InlineFiles | undefined,
): Promise<void> | undefined {
  const pieces = inline?.pieces(text);
  return pieces === undefined ? writeText(sink, text, context) : writeEach(sink, pieces, context);
}

async function writeEach(sink: Sink, pieces: AsyncIterable<string>, context: ServerContext): Promise<void> {
  for await (const piece of pieces) {
    if (sink.closed) return;
    const written = writeText(sink, piece, context);
    if (written !== undefined) await written;
  }
}

/** Writes a text. Returns a promise if the reader has to catch up before the next write. */
function writeText(sink: Sink, text: string, context: ServerContext): Promise<void> | undefined {
  if (text.length > pieceLength) return writeLong(sink, text, context);
  return sink.closed || sink.write(text) ? undefined : context.awaitReader(sink.ready());
}

async function writeLong(sink: Sink, text: string, context: ServerContext): Promise<void> {
  for (let at = 0; at < text.length && !sink.closed;) {
    let end = at + pieceLength;
    // Both halves of a surrogate pair go into one piece.
    if (isHighSurrogate(text.charCodeAt(end - 1))) end += 1;
    if (!sink.write(text.slice(at, end))) await context.awaitReader(sink.ready());
    at = end;
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/* Documents that clients may cache, with their tags, and the answer to a client that already has the document. */

/** A document with the headers of its answers. */
export interface Document {
  readonly text: string;
  readonly headers: Headers;
}

/** Writes a document, with a strong `ETag`. */
export function writeDocument(value: unknown, headers: Headers): Promise<Document> {
  return tagged(JSON.stringify(value), headers);
}

/** Like `writeDocument`, for a serialized document. */
export async function tagged(text: string, headers: Headers): Promise<Document> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  const etag = Array.from(digest.subarray(0, 16), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { text, headers: { etag: `"${etag}"`, ...headers } };
}

/** The document, or 304 for a client that already has it (RFC 9110 §13.2.2). */
export function answerWith({ text, headers }: Document, request: UniversalRequest): UniversalResponse {
  return isKnown(request, headers) ? { status: 304, headers } : { status: 200, headers, body: text };
}

/** Whether the client already has the document. The tag decides; without a tag, the date decides. */
function isKnown(request: UniversalRequest, headers: Headers): boolean {
  const tags = request.header("if-none-match");
  if (tags !== undefined) return matches(tags, headers["etag"] ?? "");
  const since = request.header("if-modified-since");
  return since !== undefined && Date.parse(since) >= Date.parse(headers["last-modified"] ?? "");
}

/** Weak comparison (RFC 9110 §13.1.2), because a cache between client and server may have marked the tag as weak. */
function matches(header: string, etag: string): boolean {
  return header.split(",").some((part) => {
    const tag = part.trim();
    return tag === "*" || tag === etag || tag === `W/${etag}`;
  });
}
