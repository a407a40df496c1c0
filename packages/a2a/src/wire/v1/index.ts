import type { Codec } from "../codec.ts";
import { decodeCard, decodeEvent, decodeRequest, decodeResponse } from "./decode.ts";
import { encodeCard, encodeEvent, encodeRequest, encodeResponse } from "./encode.ts";
import { decodeJsonRpcError, decodeRestError, encodeJsonRpcError, encodeRestError } from "./errors.ts";
import { names, routes } from "./routes.ts";

/** A2A 1.0 on JSON-RPC and REST. Nothing is read from anything here: bundlers can then drop what nobody uses. */
export const codecV1: Codec = {
  version: "1.0",
  jsonrpc: {
    operation: (method) => names.operation(method),
    method: (operation) => names.method(operation),
    encodeError: encodeJsonRpcError,
    decodeError: decodeJsonRpcError,
  },
  rest: { routes, mediaType: "application/a2a+json", encodeError: encodeRestError, decodeError: decodeRestError },
  decodeRequest: (operation, value) => decodeRequest(operation, value, "request"),
  encodeRequest,
  encodeResponse,
  decodeResponse,
  encodeEvent,
  decodeEvent,
  encodeCard,
  decodeCard,
};

export { jsonRpcClientV1 } from "./client.ts";
