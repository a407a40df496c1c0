import type { Codec, Shapes } from "../codec.ts";
import { adaptClient } from "./adapt-client.ts";
import { adapt } from "./adapt.ts";
import { decodeCard, encodeCard } from "./card.ts";
import { decodeEvent, decodeRequest, decodeResponse, endsStream } from "./decode.ts";
import { encodeEvent, encodeRequest, encodeResponse, eventOf, responseOf } from "./encode.ts";
import { decodeJsonRpcError, decodeRestError, encodeJsonRpcError, encodeRestError } from "./errors.ts";
import { elsewhere, routes } from "./proto-routes.ts";
import { grpcShapes, restShapes } from "./proto-shapes.ts";
import { names } from "./routes.ts";

const shapes: Shapes = {
  decodeRequest,
  encodeRequest,
  responseOf,
  encodeResponse,
  decodeResponse,
  eventOf,
  encodeEvent,
  decodeEvent,
  endsStream,
};

/** A2A 0.3, and 0.2.5 with it, whose JSON-RPC is the same. */
export const codecV03: Codec = /* @__PURE__ */ makeCodec();

function makeCodec(): Codec {
  return {
    version: "0.3",
    aliases: ["0.2"],
    tenantInPath: true,
    cardPaths: ["/.well-known/agent.json"],
    extensionsHeader: "x-a2a-extensions",
    jsonrpc: {
      ...shapes,
      streamsErrors: true,
      operation: (method) => names.operation(method),
      method: (operation) => names.method(operation),
      encodeError: encodeJsonRpcError,
      decodeError: decodeJsonRpcError,
    },
    rest: {
      ...restShapes,
      routes,
      elsewhere,
      mediaType: "application/json",
      encodeError: encodeRestError,
      decodeError: decodeRestError,
    },
    grpc: grpcShapes,
    // What all SDKs of 0.3 send and read; the text has no word on it.
    grpcStatuses: { PushNotificationNotSupported: "UNIMPLEMENTED", UnsupportedOperation: "UNIMPLEMENTED" },
    encodeCard,
    decodeCard,
    adapt,
    adaptClient,
  };
}
