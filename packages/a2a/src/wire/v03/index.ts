import type { OwnShapes } from "../codec.ts";
import type { GrpcCodec, JsonRpcCodec, RestCodec } from "../bindings.ts";
import { adaptClient } from "./adapt-client.ts";
import { adapt } from "./adapt.ts";
import { decodeCard, encodeCard } from "./card.ts";
import { decodeEvent, decodeRequest, decodeResponse, endsStream } from "./decode.ts";
import { encodeEvent, encodeRequest, encodeResponse, eventOf, responseOf } from "./encode.ts";
import { decodeJsonRpcError, decodeRestError, encodeJsonRpcError, encodeRestError } from "./errors.ts";
import { elsewhere, extendedCardPath, routes } from "./proto-routes.ts";
import { grpcShapes, restShapes } from "./proto-shapes.ts";
import { names } from "./routes.ts";

const errors = { encodeError: encodeRestError, decodeError: decodeRestError };

/** Those of JSON-RPC, and the errors of REST. */
const shapes: OwnShapes = {
  decodeRequest,
  encodeRequest,
  responseOf,
  encodeResponse,
  decodeResponse,
  eventOf,
  encodeEvent,
  decodeEvent,
  endsStream,
  ...errors,
};

/** A2A 0.3, and 0.2.5 with it, whose JSON-RPC is the same. */
export const codecV03: JsonRpcCodec & RestCodec & GrpcCodec = /* @__PURE__ */ makeCodec();

function makeCodec(): JsonRpcCodec & RestCodec & GrpcCodec {
  return {
    version: "0.3",
    aliases: ["0.2"],
    tenantInPath: true,
    cardPaths: ["/.well-known/agent.json"],
    extensionsHeader: "x-a2a-extensions",
    extendedCardPath,
    shapes,
    bindings: {
      JSONRPC: {
        ...shapes,
        streamsErrors: true,
        operation: (method) => names.operation(method),
        method: (operation) => names.method(operation),
        encodeError: encodeJsonRpcError,
        decodeError: decodeJsonRpcError,
      },
      "HTTP+JSON": { ...restShapes, ...errors, routes, elsewhere, mediaType: "application/json" },
      GRPC: {
        ...grpcShapes,
        ...errors,
        // What all SDKs of 0.3 send and read; the text has no word on it.
        statuses: { PushNotificationNotSupported: "UNIMPLEMENTED", UnsupportedOperation: "UNIMPLEMENTED" },
      },
    },
    encodeCard,
    decodeCard,
    adapt,
    adaptClient,
  };
}
