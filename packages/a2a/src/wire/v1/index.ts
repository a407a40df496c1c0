import type { AgentCard } from "../../model/index.ts";
import type { JsonRpcClientCodec, JsonRpcCodec, RestCodec } from "../bindings.ts";
import type { OwnShapes } from "../codec.ts";
import { decodeJsonRpcError, decodeRestError, encodeJsonRpcError, encodeRestError } from "../errors.ts";
import { names, routes } from "./routes.ts";
import { decodeCard, decodeEvent, decodeRequest, decodeResponse, encodeRequest } from "./shapes.ts";

/**
 * A2A 1.0 on the wire. The JSON of 1.0 is ProtoJSON (§5.5) and the same over every binding. It is also the JSON of the model,
 * so responses and events are sent as they are.
 */
const shapes: OwnShapes = {
  decodeRequest: (operation, value) => decodeRequest(operation, value, "request"),
  encodeRequest,
  responseOf: (_operation, { payload }) => payload.read(),
  encodeResponse: (_operation, { payload }) => payload.json,
  responsePieces: (_operation, { payload }) => payload.pieces,
  decodeResponse,
  eventOf: ({ payload }) => payload.read(),
  encodeEvent: ({ payload }) => payload.json,
  eventPieces: ({ payload }) => payload.pieces,
  decodeEvent,
  encodeError: encodeRestError,
  decodeError: decodeRestError,
};

/** The codec of A2A 1.0. It is made by a call that is marked pure, so that bundlers can remove it where it is not used. */
export const codecV1: JsonRpcCodec & RestCodec = /* @__PURE__ */ makeCodec();

function makeCodec(): JsonRpcCodec & RestCodec {
  return {
    version: "1.0",
    shapes,
    webhook: { mediaType: "application/a2a+json", sends: "event", extensions: "a2a-extensions" },
    bindings: {
      JSONRPC: { ...shapes, ...names, encodeError: encodeJsonRpcError, decodeError: decodeJsonRpcError },
      "HTTP+JSON": { ...shapes, routes, mediaType: "application/a2a+json" },
    },
    encodeCard: (card) => card,
    decodeCard,
  };
}

/** The part of A2A 1.0 that a client over JSON-RPC needs. The whole codec would double the size of its bundle. */
export const jsonRpcClientV1: JsonRpcClientCodec & { readonly decodeCard: (value: unknown) => AgentCard } = {
  version: "1.0",
  bindings: {
    JSONRPC: {
      method: (operation) => operation,
      encodeRequest,
      decodeResponse,
      decodeEvent,
      decodeError: decodeJsonRpcError,
    },
  },
  decodeCard,
};
