import type { OwnShapes, GrpcCodec, JsonRpcCodec, RestCodec } from "../codec.ts";
import { adapt, adaptClient } from "./adapt.ts";
import { decodeCard } from "./decode-card.ts";
import { encodeCard } from "./encode-card.ts";
import { decodeJsonRpcError, decodeRestError, encodeJsonRpcError, encodeRestError } from "./errors.ts";
import { grpcShapes, restShapes } from "./proto-shapes.ts";
import { elsewhere, extendedCardPath, names, routes } from "./routes.ts";
import {
  decodeEvent,
  decodeRequest,
  decodeResponse,
  encodeEvent,
  encodeRequest,
  encodeResponse,
  endsStream,
  eventOf,
  responseOf,
} from "./shapes.ts";
import { textShapesOf } from "./text-shapes.ts";

const errors = { encodeError: encodeRestError, decodeError: decodeRestError };

/** The shapes of JSON-RPC with the errors of REST: for bindings that 0.3 does not know. */
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

/** The codec of A2A 0.3. It reads 0.2.5 too, because its JSON-RPC is the same. */
export const codecV03: JsonRpcCodec & RestCodec & GrpcCodec = /* @__PURE__ */ makeCodec();

function makeCodec(): JsonRpcCodec & RestCodec & GrpcCodec {
  return {
    version: "0.3",
    aliases: ["0.2"],
    tenantInPath: true,
    cardPaths: ["/.well-known/agent.json"],
    extensionsHeader: "x-a2a-extensions",
    extendedCardPath,
    webhook: { mediaType: "application/json", sends: "task", extensions: "x-a2a-extensions" },
    shapes,
    bindings: {
      JSONRPC: {
        ...shapes,
        ...names,
        encodeError: encodeJsonRpcError,
        decodeError: decodeJsonRpcError,
      },
      "HTTP+JSON": {
        ...restShapes,
        ...errors,
        routes,
        elsewhere,
        mediaType: "application/json",
        otherShapes: textShapesOf,
        listsAreArrays: true,
      },
      GRPC: {
        ...grpcShapes,
        ...errors,
        // The specification does not say. All SDKs of 0.3 send and read these.
        statuses: { PushNotificationNotSupported: "UNIMPLEMENTED", UnsupportedOperation: "UNIMPLEMENTED" },
      },
    },
    encodeCard,
    decodeCard,
    adapt,
    adaptClient,
  };
}
