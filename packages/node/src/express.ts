/**
 * A mount for Express.
 * @packageDocumentation
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { HostPrincipal } from "@parley/a2a/internal/protocol/index";
import { exchangeOf, Responder, type HttpOptions, withParsedBody, type MountedHandler } from "./http/listener.ts";
import { Proxies } from "./http/proxies.ts";

/** The members of an Express request that are used here. */
export interface ExpressRequest extends IncomingMessage {
  /** The URL before routers removed their prefixes. */
  readonly originalUrl?: string;
  /** The parsed body, if a parser has read it. */
  readonly body?: unknown;
  /** The user that authentication middleware before the mount has set. */
  readonly user?: unknown;
}

/** Options of `expressMount`. `R`: the type of the application's requests. */
export interface ExpressMountOptions<R extends ExpressRequest = ExpressRequest> extends HttpOptions {
  /**
   * Returns the caller for `hostUser()` of `@parley/a2a/auth`, or a falsy value if no user is logged in. It is called at most once per request,
   * when the principal is read, and after the middleware that precedes the mount. Default: no user.
   *
   * @example
   * ```ts
   * const options: ExpressMountOptions<ExpressRequest & { user?: { id: string } }> = {
   *   principal: (request) => request.user && { subject: request.user.id },
   * };
   * ```
   */
  readonly principal?: (request: R) => HostPrincipal | Promise<HostPrincipal>;
  /** Returns the application's user for custom authenticators (`request.facts.user`). Default: `request.user`. */
  readonly user?: (request: R) => unknown;
}

/** A middleware of Express. */
export type ExpressMiddleware<R extends ExpressRequest = ExpressRequest> = (
  request: R,
  response: ServerResponse,
  next: () => void,
) => void;

/**
 * Agents as middleware of an Express application: `app.use(expressMount(handler))`, with or without body parsers before it.
 * The agents are at the path of the handler's `publicUrl`, or at its `basePath` if a proxy changes paths. Requests to other paths go
 * to the next middleware.
 *
 * To stop, close the handler and then the server.
 */
export function expressMount<R extends ExpressRequest = ExpressRequest>(
  handler: MountedHandler,
  options: ExpressMountOptions<R> = {},
): ExpressMiddleware<R> {
  const { principal = () => undefined, user = (request) => request.user } = options;
  const responder = new Responder(handler.handle, options, options.trustProxy && new Proxies(options.trustProxy));
  return (incoming, response, next) => {
    const exchange = exchangeOf(incoming, response, incoming.originalUrl ?? incoming.url);
    exchange.framework = { user: () => user(incoming), principal: () => principal(incoming) };
    if (handler.answers(exchange.url)) void responder.answer(withParsedBody(exchange, incoming, incoming.body));
    else next();
  };
}

export type { HttpOptions, MountedHandler };
