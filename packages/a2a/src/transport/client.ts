/** What a client's binding is made of, in addition to `@parley/a2a/protocol` and `@parley/a2a/wires`. */

export {
  abortError,
  requestHeaders,
  sendRequest,
  untilOver,
  waits,
  type ClientBinding,
  type ClientHost,
  type ClientLimits,
  type ClientResponse,
  type HeadersRequest,
  type HeadersSource,
} from "./http/index.ts";
