import { withoutQuery, type Clock, type Logger } from "../../base/index.ts";
import { A2AError } from "../../model/index.ts";
import type { UniversalRequest, UniversalResponse } from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import type { HttpEndpoint } from "../server/binding.ts";
import { answerWith, writeDocument, type Document } from "../server/document.ts";
import { errorResponse, failureOf, type Headers, type WireError } from "../server/response.ts";

/* Public documents, such as cards: JSON that clients read with GET, and may keep for a while. */

/** How a document is served. */
export interface DocumentOptions {
  /** How long a client may keep the document, in seconds. */
  readonly maxAge: number;
  /** The clock for `Last-Modified`, which is the time when the endpoint was created. */
  readonly clock: Clock;
}

/** Decides who reads a document. */
export interface CardGate {
  /** Headers that readers authenticate by. */
  readonly vary: readonly string[];
  /**
   * Resolves where the sender of a request may read. A refusal is recorded, but for one that leaves a card out of a list (`isListed`).
   *
   * @throws A2AError `Unauthenticated`, `PermissionDenied` or `TooManyRequests`.
   */
  check(request: UniversalRequest, isListed?: boolean): Promise<void>;
}

/** Headers that tell how long a document may be kept, and since when it is as it is. Behind a gate its reader alone may keep it. */
export function cacheHeaders({ maxAge, clock }: DocumentOptions, gate?: CardGate): Headers {
  return {
    "cache-control": gate === undefined ? `public, max-age=${maxAge}` : "private, no-cache",
    "last-modified": new Date(clock.now()).toUTCString(),
  };
}

const allow = "GET, HEAD";

/** The answer to a method that does not read, or `undefined` for one that does. `what`: what is there, as `A card`. */
export function refuseToWrite({ method }: UniversalRequest, codec: Codec, what: string): UniversalResponse | undefined {
  if (method === "GET" || method === "HEAD") return undefined;
  return errorResponse(codec, new A2AError("MethodNotAllowed", `${what} takes ${allow}`) as WireError, allow);
}

/** What a server publishes beside its cards, at a single path of its own. */
export interface PublicDocument {
  /** The path, after the path that is before everything. */
  readonly path: string;
  /** What it is, as the beginning of a sentence: `A key set`. */
  readonly name: string;
  readonly mediaType: string;
  /** Loads it, once. A failure is not kept. */
  load(): Promise<unknown>;
}

/** Serves a document. */
export function documentEndpoint(
  { name, mediaType, load }: PublicDocument,
  codec: Codec,
  options: DocumentOptions & { readonly logger: Logger },
): HttpEndpoint {
  const headers = { "content-type": mediaType, ...cacheHeaders(options) };
  let written: Promise<Document> | undefined;
  return {
    async answer(request) {
      const refusal = refuseToWrite(request, codec, name);
      if (refusal !== undefined) return refusal;
      try {
        written ??= load().then((value) => writeDocument(value, headers));
        return answerWith(await written, request);
      } catch (thrown) {
        written = undefined;
        return errorResponse(
          codec,
          failureOf(thrown, options.logger, { url: withoutQuery(request.url) }, () => false),
        );
      }
    },
  };
}
