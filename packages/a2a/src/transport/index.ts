/** What a binding of one's own is made of, beside `@parley/a2a/protocol`: gRPC is one such. */

export { byVersion, type Codec, type JsonRpcWire, type RestRoute, type RestWire, type Shapes } from "../wire/codec.ts";
export { type Binding, type RequestLimits, serviceOf } from "./server/binding.ts";
export { type CorsBinding, type CorsPolicy, corsPolicy } from "./server/cors.ts";
export { converted, type Invoked, invoke } from "./server/invoke.ts";
export { requestContext, codecOf, requestedVersion, type ServerContext } from "./server/request.ts";
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
