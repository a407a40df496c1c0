/** What the bindings of a server have in common. */

export { beforeRouter, isAnyPath, type AnyPathBinding, type AnyPathEndpoint } from "./any-path.ts";
export { answerCall, converted, type AnyReply, type ServerCall } from "./answer-call.ts";
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
} from "./binding.ts";
export { type RequestLimits, type ServerHost, serviceOf } from "./host.ts";
export { corsPolicy, type CorsHeaders, type CorsOptions, type CorsPolicy } from "./cors.ts";
export { KeepAlive } from "./keep-alive.ts";
export { interfaceAt, pathBelow, tenantPath } from "./paths.ts";
export { bodyOf } from "./pieces.ts";
export { cannotServe } from "./refuse.ts";
export { bodyText, codecOf, parseJson, requestContext, requestedVersion, type ServerContext } from "./request.ts";
export { errorResponse, failureOf, type WireError, withExtensions } from "./response.ts";
export { speakers } from "./speakers.ts";
export { Unfinished } from "./unfinished.ts";
