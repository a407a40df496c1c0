import { A2AError, type A2AErrorOptions, hasCode, codeOfStatus, type WireErrorCode } from "../../model/index.ts";
import { isObject } from "../../model/schema.ts";
import { Payload, type StreamItem, type StreamName } from "../../protocol/index.ts";
import type { Clock } from "../../base/index.ts";
import { nestsDeeper } from "../../base/json-text.ts";
import { chunkDecoder } from "./chunks.ts";
import type { Shapes } from "../../wire/codec.ts";
import type { ClientResponse } from "./request.ts";
import { finishing } from "./finishing.ts";
import { untilOver } from "./until-over.ts";

/** How a client reads what HTTP answers, whatever the binding. */

export { isObject };

/** Header `A2A-Extensions`, before 1.0 with an `X-`: the URIs that the server activated (A2A 1.0 §4.6.1). */
export function activatedExtensions(response: ClientResponse): { extensions?: readonly string[] } {
  const uris = response.header("a2a-extensions") ?? response.header("x-a2a-extensions");
  return uris === undefined ? {} : { extensions: uris.match(/[^\s,]+/g) ?? [] };
}

/** Deepest nesting of an answer: what walks a value deeper down runs out of stack. */
const maxDepth = 512;

/** JSON of a peer; `undefined` where it is none. Throws `InvalidResponse` where it nests too deep. */
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

/** The beginning of an error page, as text. Each alternative matches wherever it begins, so that the pattern is linear. */
function excerpt(text: string): string {
  const plain = text
    .slice(0, 50_000)
    .replace(/<(style|script)[^]*?(<\/\1>|$)|<[^<>]*>/gi, " ")
    .replace(/\s+/g, " ")
    .trim();
  return plain.length > 200 ? `${plain.slice(0, 200)}…` : plain;
}

/** An answer that is none of the protocol's. `metadata.httpStatus` says what HTTP called it. */
export function strangeAnswer(response: ClientResponse, url: string, text: string): A2AError {
  const { status } = response;
  const shown = excerpt(text);
  const location = response.header("location");
  const what =
    // A browser hides the answer behind status 0.
    status === 0 || (status >= 300 && status < 400)
      ? `a redirect${location === undefined ? "" : ` to ${location}`}, which is not followed`
      : `HTTP ${status}, ${response.mediaType || "no media type"}${shown === "" ? "" : `: ${shown}`}`;
  return new A2AError("InvalidResponse", `${url} does not answer in the protocol: ${what}`, {
    metadata: { httpStatus: String(status) },
  });
}

/**
 * The body as JSON; `undefined` when it says that it is something else, or is no JSON. Servers in Go that name no media
 * type are said to send plain text.
 */
export function parseJson(response: ClientResponse, text: string): unknown {
  return /^$|[/+]json$|^text\/plain$/.test(response.mediaType) ? readJson(text) : undefined;
}

/** `retry-after` in seconds: a number, or a date. */
function seconds(value: string | undefined, now: number): number | undefined {
  if (!value) return undefined;
  const wait = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - now) / 1000;
  return Number.isNaN(wait) ? undefined : Math.max(0, wait);
}

/**
 * The error of a refused request: what the body said, sharpened by what HTTP knows better, the status of what never
 * reached the protocol, `WWW-Authenticate` and `Retry-After`.
 */
export function refusal(
  response: ClientResponse,
  clock: Clock,
  url: string,
  text: string,
  decoded: A2AError | undefined,
): A2AError {
  const outside = codeOfStatus(response.status);
  const retryAfter = seconds(response.header("retry-after"), clock.now()) ?? decoded?.retryAfter;
  const challenge = response.header("www-authenticate") ?? decoded?.challenge;
  if (decoded === undefined && outside === undefined) return strangeAnswer(response, url, text);
  // These codes say less than an HTTP status does.
  const vague = hasCode(decoded, "InternalError", "InvalidRequest", "MethodNotFound", "ParseError");
  const own = vague ? undefined : decoded?.code;
  const told: A2AErrorOptions | undefined = decoded;
  const code = (own ?? outside ?? decoded?.code) as WireErrorCode;
  return new A2AError(code, decoded?.message, { ...told, retryAfter, challenge });
}

/** A place in a log, if an event's id is one. */
function seqOf(id: string | undefined): number | undefined {
  return id !== undefined && /^\d{1,15}$/.test(id) ? Number(id) : undefined;
}

/**
 * The events of an answer, until the protocol says that the stream is over. Throws `ConnectionLost` where it ends
 * sooner, with the wait that the server asked for. `parse` gives what the shapes read; throws the error that a peer sent.
 */
export function streamItems(
  response: ClientResponse,
  operation: StreamName,
  shapes: Pick<Shapes, "decodeEvent" | "endsStream">,
  parse: (data: string) => unknown,
): AsyncIterable<readonly StreamItem[]> {
  const batches = (): AsyncIterator<readonly StreamItem[]> => {
    let ends: boolean | undefined;
    const read = chunkDecoder((data) => {
      const value = parse(data);
      ends = shapes.endsStream?.(value);
      return shapes.decodeEvent(value);
    });
    return untilOver(
      response.events(),
      operation,
      ({ id, data }) => ({ seq: seqOf(id), payload: new Payload(read(data)) }),
      () => ends,
      () => response.retryAfter(),
    );
  };
  return finishing({ [Symbol.asyncIterator]: batches }, () => response.close());
}

/** Text of an event as JSON. Throws `InvalidResponse`. */
export function eventJson(data: string): unknown {
  const value = readJson(data);
  if (value !== undefined) return value;
  throw new A2AError("InvalidResponse", `An event of the stream is no JSON: ${excerpt(data)}`);
}
