/**
 * Building blocks for interceptors, for bindings of servers and clients, for requests to untrusted URLs, and for showing untrusted text.
 * @packageDocumentation
 */

// Calls and interceptors.
export {
  mapItems,
  observeRequests,
  Payload,
  type AgentService,
  type CallContext,
  type Interceptor,
  type OperationName,
  type Principal,
  type Reply,
  type StreamItem,
  type StreamName,
  type StreamReply,
  type TurnBase,
  type UniversalHandler,
  type UniversalRequest,
  type UniversalResponse,
} from "./protocol/index.ts";
export type { Clock, Logger } from "./base/index.ts";

// The versions of the protocol.
export { byVersion, codecV1, codecV11, wires, type Codec } from "./wires.ts";

// A binding of a server, and one call from its request to its answer.
export { interfaceAt, type AnyPathBinding, type ServerBinding, type ServerHost } from "./transport/server/binding.ts";
export { answerCall, type AnyReply, type ServerCall } from "./transport/server/answer-call.ts";
export type { ServerContext } from "./transport/server/context.ts";
export { bodyText, codecOf, parseJson, requestedVersion } from "./transport/server/request.ts";
export { bodyOf, errorResponse, failureOf, withExtensions, type WireError } from "./transport/server/response.ts";
export { streamHeaders, writeEvents, type EventFormat } from "./transport/server/event-stream.ts";

// A binding of a client.
export type { ClientBinding, ClientHost } from "./transport/client/binding.ts";
export { requestHeaders, sendRequest, type ClientResponse } from "./transport/client/request.ts";
export { clientService, readEvents, type ClientTransport, type EncodedCall } from "./transport/client/service.ts";
export { abortError } from "./transport/client/signals.ts";

// Requests to untrusted URLs, and safe forms of untrusted text.
export { guardedFetch, type Dialer, type GuardedFetch, type NetPolicy } from "./net/index.ts";
export { html, line, plain } from "./base/display.ts";
