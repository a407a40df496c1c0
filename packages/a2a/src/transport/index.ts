/** What a binding of one's own is made of, beside `@parley/a2a/protocol`: gRPC is one such. */

export { byVersion, type Codec, type JsonRpcWire, type RestRoute, type RestWire, type Shapes } from "../wire/codec.ts";
export { answerCall, converted, type AnyReply, type ServerCall } from "./server/answer-call.ts";
export type {
  AgentAddress,
  BaseAddress,
  ClaimedPath,
  HttpBinding,
  HttpClaim,
  HttpEndpoint,
  InterfaceAddress,
  ServerBinding,
  Target,
} from "./server/binding.ts";
export { beforeRouter, isAnyPath, type AnyPathBinding, type AnyPathEndpoint } from "./server/any-path.ts";
export { type RequestLimits, type ServerHost, serviceOf } from "./server/host.ts";
export { KeepAlive } from "./server/keep-alive.ts";
export { type EventFormat, streamHeaders, writeEvents } from "./sse/write.ts";
export { type CorsBinding, type CorsPolicy, corsPolicy } from "./server/cors.ts";
export {
  bodyText,
  requestContext,
  codecOf,
  parseJson,
  requestedVersion,
  type ServerContext,
  versionOfSilence,
} from "./server/request.ts";
export { Unfinished } from "./server/unfinished.ts";
export { failureOf, type WireError } from "./server/response.ts";
export { isLoopback } from "../base/index.ts";
export {
  abortError,
  type ClientBinding,
  type ClientHost,
  type ClientLimits,
  exchange,
  type Exchange,
  type HeadersRequest,
  type HeadersSource,
  requestHeaders,
  untilOver,
  waits,
} from "./http/index.ts";
