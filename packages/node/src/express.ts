import type { IncomingMessage, ServerResponse } from "node:http";
import { exchangeOf, Responder, type HttpOptions, withParsedBody, type MountedHandler } from "./http.ts";

/** What Express adds to a request, as far as it matters here. */
export interface ExpressRequest extends IncomingMessage {
  /** The URL before routers took their prefixes away. */
  readonly originalUrl?: string;
  /** The body, where a parser has read it. */
  readonly body?: unknown;
  /** What authentication middleware before the mount has found. */
  readonly user?: unknown;
}

/** How agents are mounted in an Express application. */
export interface ExpressMountOptions extends HttpOptions {
  /** The application's own user of a request, which authenticators read as `request.facts.user`. Default: `request.user`. */
  readonly user?: (request: ExpressRequest) => unknown;
}

/** A middleware of Express. */
export type ExpressMiddleware = (request: ExpressRequest, response: ServerResponse, next: () => void) => void;

/**
 * Agents as middleware of an Express application: `app.use(expressMount(handler))`, with or without body parsers before
 * it. The path of the handler's `publicUrl` decides where its agents are, or `basePath` where a proxy changes paths;
 * what has another path goes on to the next middleware.
 *
 * To stop, close the handler and then the server.
 */
export function expressMount(handler: MountedHandler, options: ExpressMountOptions = {}): ExpressMiddleware {
  const { user = (request) => request.user } = options;
  const responder = new Responder(handler.handle, options);
  return (incoming, response, next) => {
    const exchange = exchangeOf(incoming, response, incoming.originalUrl ?? incoming.url);
    exchange.user = () => user(incoming);
    if (handler.answers(exchange.url)) void responder.answer(withParsedBody(exchange, incoming, incoming.body));
    else next();
  };
}

export type { HttpOptions, MountedHandler };
