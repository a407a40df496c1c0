/**
 * What a client's binding is made of, in addition to `@parley/a2a/protocol` and `@parley/a2a/wires`.
 * @packageDocumentation
 */

export type {
  AnswerHeaders,
  ClientBinding,
  ClientHost,
  ClientLimits,
  CredentialedRequest,
  HeadersRequest,
  HeadersSource,
  RequestCredentialing,
} from "./binding.ts";
export { retryAfterOf } from "../../base/retry-after.ts";
export { requestHeaders, sendRequest, type ClientResponse } from "./request.ts";
export { clientService, readEvents, type ClientTransport, type EncodedCall, type EventSource } from "./service.ts";
export { abortError } from "./signals.ts";
