import { A2AError, isWireErrorCode, toA2AError, wireErrors, type WireErrorCode } from "../../model/index.ts";
import type { Logger } from "../../base/index.ts";
import type { UniversalRequest, UniversalResponse } from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import { extensionsHeader } from "./request.ts";

/** What the bindings of HTTP write in the same way. Headers are shared constants until an answer needs more. */

export type Headers = Readonly<Record<string, string>>;

/** An error that has a place in the table of the wire. */
export interface WireError extends A2AError {
  readonly code: WireErrorCode;
}

function isWireError(error: A2AError): error is WireError {
  return isWireErrorCode(error.code);
}

/**
 * Anything thrown as what a client may see, and as what the operator should. A failure of a service that stands
 * before another one, a connection lost there, is an internal error to those who call here.
 *
 * @param isGone - Whether the caller has left: its aborted call is no failure then. Only called for aborted calls.
 */
export function failureOf(
  thrown: unknown,
  logger: Logger,
  fields: Readonly<Record<string, unknown>>,
  isGone: () => boolean,
): WireError {
  const error = toA2AError(thrown);
  const shown = isWireError(error) ? error : (new A2AError("InternalError", undefined, { cause: error }) as WireError);
  if (wireErrors[shown.code].http >= 500) {
    const line = { ...fields, error: shown.code, cause: shown.cause ?? shown };
    if (error.code === "Aborted" && isGone()) logger.debug("A caller left before the answer", line);
    else if (shown.code === "Unavailable") logger.warn("A request could not be served now", line);
    else logger.error("A request failed", line);
  }
  return shown;
}

/** `application/json` and not the protocol's own type: some clients read typed errors from nothing else. */
const jsonError: Headers = { "content-type": "application/json", "cache-control": "no-store" };

/** An error by the HTTP status of the table, with the version's own words for it (A2A 1.0 §11.6). `allow`: the methods that are taken. */
export function errorResponse({ shapes }: Codec, error: WireError, allow?: string): UniversalResponse {
  return {
    status: wireErrors[error.code].http,
    headers: errorHeaders(jsonError, error, allow),
    body: shapes.encodeError(error),
  };
}

/** The headers of an error: `base`, and what its kind asks for (RFC 9110 §10.2.3, §11.6.1). */
export function errorHeaders(base: Headers, error: A2AError, allow?: string): Headers {
  if (error.challenge === undefined && error.retryAfter === undefined && allow === undefined) return base;
  return {
    ...base,
    ...(error.challenge !== undefined && { "www-authenticate": error.challenge }),
    ...(error.retryAfter !== undefined && { "retry-after": String(Math.max(0, Math.ceil(error.retryAfter))) }),
    ...(allow !== undefined && { allow }),
  };
}

/** `base`, telling which extensions were activated (A2A 1.0 §3.2.6). */
export function withExtensions(
  base: Headers,
  extensions: readonly string[] | undefined,
  request: UniversalRequest,
): Headers {
  if (extensions === undefined || extensions.length === 0) return base;
  return { ...base, [extensionsHeader(request)]: extensions.join(", ") };
}
