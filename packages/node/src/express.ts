import type { IncomingMessage, ServerResponse } from "node:http";
import { exchangeOf, Responder, type HttpOptions, withParsedBody, type MountedHandler } from "./http.ts";
import { Proxies } from "./proxies.ts";

/** The members of an Express request that are used here. */
export interface ExpressRequest extends IncomingMessage {
  /** The URL before routers removed their prefixes. */
  readonly originalUrl?: string;
  /** The parsed body, where a parser has read it. */
  readonly body?: unknown;
  /** The user that authentication middleware before the mount has found. */
  readonly user?: unknown;
}

/** Options of `expressMount`. */
export interface ExpressMountOptions extends HttpOptions {
  /** The application's user of a request, for authenticators (`request.facts.user`). Default: `request.user`. */
  readonly user?: (request: ExpressRequest) => unknown;
}

/** A middleware of Express. */
export type ExpressMiddleware = (request: ExpressRequest, response: ServerResponse, next: () => void) => void;

/**
 * Agents as middleware of an Express application: `app.use(expressMount(handler))`, with or without body parsers before it.
 * The path of the handler's `publicUrl` is the path of its agents, or its `basePath` where a proxy changes paths. Requests to
 * other paths go to the next middleware.
 *
 * To stop, close the handler and then the server.
 */
export function expressMount(handler: MountedHandler, options: ExpressMountOptions = {}): ExpressMiddleware {
  const { user = (request) => request.user } = options;
  const responder = new Responder(handler.handle, options, options.trustProxy && new Proxies(options.trustProxy));
  return (incoming, response, next) => {
    const exchange = exchangeOf(incoming, response, incoming.originalUrl ?? incoming.url);
    exchange.user = () => user(incoming);
    if (handler.answers(exchange.url)) void responder.answer(withParsedBody(exchange, incoming, incoming.body));
    else next();
  };
}

export type { HttpOptions, MountedHandler };
