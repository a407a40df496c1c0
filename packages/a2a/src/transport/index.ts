/**
 * What a server's binding is made of, in addition to `@parley/a2a/protocol` and `@parley/a2a/wires`.
 * @packageDocumentation
 */

// The port of a binding.
export {
  cannotServe,
  interfaceAt,
  isAnyPath,
  openAnyPath,
  pathBelow,
  speakers,
  tenantPath,
  type AgentAddress,
  type AnyPathBinding,
  type AnyPathEndpoint,
  type BaseAddress,
  type ClaimedPath,
  type HttpBinding,
  type HttpClaim,
  type HttpEndpoint,
  type InterfaceAddress,
  type RequestLimits,
  type ServerBinding,
  type ServerHost,
  type Target,
} from "./server/binding.ts";

// One call, from its request to its answer.
export { answerCall, converted, serviceOf, type AnyReply, type ServerCall } from "./server/answer-call.ts";
export { requestContext, type ServerContext } from "./server/context.ts";
export { bodyText, codecOf, messageText, parseJson, requestedVersion } from "./server/request.ts";
export {
  bodyOf,
  challengeHeaders,
  errorResponse,
  failureOf,
  withExtensions,
  type WireError,
} from "./server/response.ts";
export { KeepAlive, streamHeaders, writeEvents, type EventFormat } from "./server/event-stream.ts";

// A message whose large files are stored while it is read.
export { BodyPieces } from "./server/body-pieces.ts";
export { fileLimits } from "./server/file-limits.ts";

// What a server shares among its bindings.
export { corsPolicy, type CorsHeaders, type CorsOptions, type CorsPolicy } from "./server/cors.ts";
export { Unfinished } from "./server/unfinished.ts";
export { beforeRouter, type Found } from "./router/router.ts";
