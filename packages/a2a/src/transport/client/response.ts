import type { Clock } from "../../base/index.ts";
import { nestsDeeper } from "../../base/json-text.ts";
import { retryAfterOf } from "../../base/retry-after.ts";
import { A2AError, type A2AErrorOptions, codeOfStatus, hasCode, type WireErrorCode } from "../../model/index.ts";
import { finishing, Payload, type StreamName, type StreamReply } from "../../protocol/index.ts";
import type { Shapes } from "../../wire/codec.ts";
import type { chunkDecoder } from "./chunks.ts";
import type { ClientResponse } from "./request.ts";
import { untilOver } from "./service.ts";

/** What an HTTP response means, in JSON-RPC and in REST. */

/** The header `A2A-Extensions`, before 1.0 `X-A2A-Extensions`: URIs that the server activated (A2A 1.0 §4.6.1). */
export function activatedExtensions(response: ClientResponse): { extensions?: readonly string[] } {
  const uris = response.header("a2a-extensions") ?? response.header("x-a2a-extensions");
  return uris === undefined ? {} : { extensions: uris.match(/[^\s,]+/g) ?? [] };
}

/**
 * The body as JSON; `undefined` where its media type is another one, or it is not JSON. Some servers in Go set no media
 * type, and Go's default is `text/plain`.
 */
export function parseJson(response: ClientResponse, text: string): unknown {
  return /^$|[/+]json$|^text\/plain$/.test(response.mediaType) ? readJson(text) : undefined;
}

/** Deepest nesting of a response. Code that walks a deeper value could exceed the stack. */
const maxDepth = 512;

/** Parses JSON; `undefined` where it is not JSON. Throws `InvalidResponse` where it nests too deeply. */
function readJson(text: string): unknown {
  if (nestsDeeper(text, maxDepth)) {
    throw new A2AError("InvalidResponse", `The answer nests deeper than ${maxDepth} levels`);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Parses the text of an event. Throws `InvalidResponse`. */
export function eventJson(data: string): unknown {
  const value = readJson(data);
  if (value !== undefined) return value;
  throw new A2AError("InvalidResponse", `An event of the stream is no JSON: ${excerpt(data)}`);
}

/**
 * The error of a refused request. It combines what the body says with what HTTP says: the status of a response that does
 * not come from an agent, `WWW-Authenticate` and `Retry-After`.
 */
export function refusal(
  response: ClientResponse,
  clock: Clock,
  url: string,
  text: string,
  decoded: A2AError | undefined,
): A2AError {
  const byStatus = codeOfStatus(response.status);
  const retryAfter = retryAfterOf(response.header("retry-after"), clock.now()) ?? decoded?.retryAfter;
  const challenge = response.header("www-authenticate") ?? decoded?.challenge;
  if (!decoded && !byStatus) return strangeAnswer(response, url, text);
  // An HTTP status says more than these codes.
  const vague = hasCode(decoded, "InternalError", "InvalidRequest", "MethodNotFound", "ParseError");
  const own = vague ? undefined : decoded?.code;
  const options: A2AErrorOptions | undefined = decoded;
  const code = (own ?? byStatus ?? decoded?.code) as WireErrorCode;
  const message = response.status === 431 ? `${url} takes no headers of this size (HTTP 431)` : decoded?.message;
  return new A2AError(code, message, { ...options, retryAfter, challenge });
}

/** The error of a response that does not follow the protocol. `metadata.httpStatus` is its status. */
export function strangeAnswer(response: ClientResponse, url: string, text: string): A2AError {
  const { status } = response;
  const shown = excerpt(text);
  const location = response.header("location");
  const what =
    // A browser reports a redirect as status 0.
    status === 0 || (status >= 300 && status < 400)
      ? `a redirect${location === undefined ? "" : ` to ${location}`}, which is not followed`
      : `HTTP ${status}, ${response.mediaType || "no media type"}${shown === "" ? "" : `: ${shown}`}`;
  return new A2AError("InvalidResponse", `${url} does not answer in the protocol: ${what}`, {
    metadata: { httpStatus: String(status) },
  });
}

/** The beginning of an error page as plain text. The pattern takes linear time. */
function excerpt(text: string): string {
  const plain = text
    .slice(0, 50_000)
    .replace(/<(style|script)[^]*?(<\/\1>|$)|<[^<>]*>/gi, " ")
    .replace(/\s+/g, " ")
    .trim();
  return plain.length > 200 ? `${plain.slice(0, 200)}…` : plain;
}

/**
 * The items of an event stream, until the protocol says that it is over. Throws `ConnectionLost` where the stream ends
 * earlier. `parse` reads the JSON of an event, and throws an error that the event carries. `decoder` may decode some events
 * faster.
 */
export function streamItems(
  response: ClientResponse,
  operation: StreamName,
  shapes: Pick<Shapes, "decodeEvent" | "endsStream">,
  parse: (data: string) => unknown,
  decoder: typeof chunkDecoder,
): StreamReply["batches"] {
  let ends: boolean | undefined;
  const decode = decoder((data) => {
    const value = parse(data);
    ends = shapes.endsStream?.(value);
    return shapes.decodeEvent(value);
  });
  const items = untilOver(
    response.events(),
    operation,
    ({ id, data }) => ({ seq: seqOf(id), payload: new Payload(decode(data)) }),
    () => ends,
    () => response.retryAfter(),
  );
  return finishing(items, () => response.close());
}

/** The number of an event in the log of its task, where its id is such a number. */
function seqOf(id: string | undefined): number | undefined {
  return id !== undefined && /^\d{1,15}$/.test(id) ? Number(id) : undefined;
}
