import { wireErrors } from "../../model/index.ts";
import type { UniversalResponse } from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import { errorHeaders, type Headers, type WireError } from "../server/response.ts";

/** `application/json` and not the protocol's own type: some clients read typed errors from nothing else. */
const headers: Headers = { "content-type": "application/json", "cache-control": "no-store" };

/** An error as the binding says it (A2A 1.0 §11.6): the HTTP status of the table, a `google.rpc.Status` body. */
export function errorResponse(codec: Codec, error: WireError, allow?: string): UniversalResponse {
  return {
    status: wireErrors[error.code].http,
    headers: errorHeaders(headers, error, allow),
    body: codec.rest.encodeError(error),
  };
}
