/** What a binding of one's own is made of, beside `@parley/a2a/protocol`: gRPC is one such. */

export { isLoopback } from "../base/index.ts";
export { byVersion, type Codec, type OwnShapes, type Shapes, versionOfSilence } from "../wire/codec.ts";
export {
  type GrpcCodec,
  type GrpcWire,
  grpcWire,
  type JsonRpcCodec,
  type JsonRpcWire,
  type RestCodec,
  type RestRoute,
  type RestWire,
} from "../wire/bindings.ts";
export * from "./server/index.ts";
export { type EventFormat, streamHeaders, writeEvents } from "./sse/write.ts";
export type { Found } from "./router/index.ts";
export {
  abortError,
  type ClientBinding,
  type ClientHost,
  type ClientLimits,
  sendRequest,
  type ClientResponse,
  type HeadersRequest,
  type HeadersSource,
  requestHeaders,
  untilOver,
  waits,
} from "./http/index.ts";
