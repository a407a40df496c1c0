import type { UniversalHandler, UniversalRequest, UniversalResponse } from "../../protocol/index.ts";
import type { ServerBinding } from "./binding.ts";
import type { ServerHost } from "./host.ts";

/**
 * A binding that knows its requests by their headers, whatever their path, as gRPC does by its media type. It is opened once
 * for a server, and `host.services` are all agents there, by the labels that stand in place of a path.
 */
export interface AnyPathBinding extends ServerBinding {
  /** Begins to serve. Called once for a server. */
  openAnyPath(host: ServerHost): AnyPathEndpoint;
}

/** Answers the requests of a binding that has no paths. */
export interface AnyPathEndpoint {
  /** Whether a request is its own. Asked before a path is looked at. */
  claims(request: UniversalRequest): boolean;
  /** Answers one request; never rejects. It has not been admitted: `answerCall` does so. */
  answer(request: UniversalRequest): Promise<UniversalResponse> | UniversalResponse;
  /** The server stops: what waits for its health and the like is told. */
  close?(): void;
}

/** Whether a binding knows its requests by their headers, whatever their path. */
export function isAnyPath(binding: ServerBinding): binding is AnyPathBinding {
  return "openAnyPath" in binding;
}

/** Has requests answered by the endpoint that claims them, and all others by `handle`. */
export function beforeRouter(endpoints: readonly AnyPathEndpoint[], handle: UniversalHandler): UniversalHandler {
  const [only, ...more] = endpoints;
  if (only === undefined) return handle;
  if (more.length === 0) return (request) => (only.claims(request) ? only.answer(request) : handle(request));
  return (request) => {
    const found = endpoints.find((endpoint) => endpoint.claims(request));
    return found === undefined ? handle(request) : found.answer(request);
  };
}
