import { wireErrors } from "../../model/index.ts";
import type { UniversalResponse } from "../../protocol/index.ts";
import type { JsonRpcWire } from "../../wire/bindings.ts";
import { errorHeaders, type Headers, type WireError } from "../server/response.ts";
import type { JsonRpcId } from "./envelope.ts";

export const jsonHeaders: Headers = { "content-type": "application/json", "cache-control": "no-store" };

/** An error as a JSON-RPC response (A2A 1.0 §9.5). */
export function errorText(wire: JsonRpcWire, id: JsonRpcId, error: WireError): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":${JSON.stringify(wire.encodeError(error))}}`;
}

/** HTTP 200 whatever the error is, except what HTTP has to say by itself: credentials, sizes, media types, load. */
export function errorResponse(wire: JsonRpcWire, id: JsonRpcId, error: WireError): UniversalResponse {
  const { http, outside } = wireErrors[error.code];
  return {
    status: outside ? http : 200,
    headers: errorHeaders(jsonHeaders, error, error.code === "MethodNotAllowed" ? "POST" : undefined),
    body: errorText(wire, id, error),
  };
}
