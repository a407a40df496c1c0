import type { OwnShapes } from "../codec.ts";
import type { JsonRpcCodec, RestCodec } from "../bindings.ts";
import { decodeCard, decodeEvent, decodeRequest, decodeResponse } from "./decode.ts";
import {
  encodeCard,
  encodeEvent,
  encodeRequest,
  encodeResponse,
  eventOf,
  eventPieces,
  responseOf,
  responsePieces,
} from "./encode.ts";
import { decodeJsonRpcError, decodeRestError, encodeJsonRpcError, encodeRestError } from "../errors.ts";
import { names, routes } from "./routes.ts";

/** One for every binding: the JSON of A2A 1.0 is ProtoJSON (§5.5). */
const shapes: OwnShapes = {
  decodeRequest: (operation, value) => decodeRequest(operation, value, "request"),
  encodeRequest,
  responseOf,
  encodeResponse,
  responsePieces,
  decodeResponse,
  eventOf,
  encodeEvent,
  eventPieces,
  decodeEvent,
  encodeError: encodeRestError,
  decodeError: decodeRestError,
};

/** A2A 1.0. Made by a call that is marked pure: bundlers can then drop what nobody uses. */
export const codecV1: JsonRpcCodec & RestCodec = /* @__PURE__ */ makeCodec();

function makeCodec(): JsonRpcCodec & RestCodec {
  return {
    version: "1.0",
    shapes,
    bindings: {
      JSONRPC: {
        ...shapes,
        operation: (method) => names.operation(method),
        method: (operation) => names.method(operation),
        encodeError: encodeJsonRpcError,
        decodeError: decodeJsonRpcError,
      },
      "HTTP+JSON": { ...shapes, routes, mediaType: "application/a2a+json" },
    },
    encodeCard,
    decodeCard,
  };
}

export { jsonRpcClientV1 } from "./client.ts";
