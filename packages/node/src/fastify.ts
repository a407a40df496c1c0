/**
 * A mount for Fastify.
 * @packageDocumentation
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { HostPrincipal } from "@parley/a2a/internal/protocol/index";
import { exchangeOf, Responder, type HttpOptions, withParsedBody, type MountedHandler } from "./http/listener.ts";
import { Proxies } from "./http/proxies.ts";

/** The members of a Fastify request that are used here. */
export interface FastifyRequestLike {
  /** The request of Node. */
  readonly raw: IncomingMessage | Http2ServerRequest;
  /** The user that authentication hooks before the mount have set. */
  readonly user?: unknown;
}

/** Options of `fastifyMount`. `R`: the type of the application's requests. */
export interface FastifyMountOptions<R extends FastifyRequestLike = FastifyRequestLike> extends HttpOptions {
  /**
   * Returns the caller for `hostUser()` of `@parley/a2a/auth`, or a falsy value if no user is logged in. It is called at most once per request,
   * when the principal is read, and after the hooks that precede the mount. Default: no user.
   *
   * @example
   * ```ts
   * const options: FastifyMountOptions<FastifyRequestLike & { user?: { sub: string } }> = {
   *   principal: (request) => request.user && { subject: request.user.sub },
   * };
   * ```
   */
  readonly principal?: (request: R) => HostPrincipal | Promise<HostPrincipal>;
  /** Returns the application's user for custom authenticators (`request.facts.user`). Default: `request.user`. */
  readonly user?: (request: R) => unknown;
}

/** The members of a Fastify instance that are used here. */
export interface FastifyInstanceLike {
  /** Removes the parsers of bodies. */
  removeAllContentTypeParsers(): void;
  /** Adds a parser of bodies. */
  addContentTypeParser(
    contentType: string,
    parser: (request: unknown, payload: unknown, done: (error: Error | null, body?: unknown) => void) => void,
  ): unknown;
  /** Adds a route for every method. */
  all(
    path: string,
    handler: (
      request: FastifyRequestLike,
      reply: { readonly raw: ServerResponse | Http2ServerResponse; hijack(): unknown; callNotFound(): unknown },
    ) => void,
  ): unknown;
}

/** A plugin of Fastify. */
export type FastifyPlugin = (instance: FastifyInstanceLike) => Promise<void>;

/**
 * Agents as a Fastify plugin: `app.register(fastifyMount(handler), { prefix: "/agents" })`. The prefix is the path of the
 * handler's `publicUrl`, or its `basePath` if a proxy changes paths. Parsers and limits of the application do not apply to
 * requests of the agents. The not-found handler of the application answers requests to other paths.
 *
 * To stop, close the handler and then the application.
 */
export function fastifyMount<R extends FastifyRequestLike = FastifyRequestLike>(
  handler: MountedHandler,
  options: FastifyMountOptions<R> = {},
): FastifyPlugin {
  const { principal = () => undefined, user = (request) => request.user } = options;
  const responder = new Responder(handler.handle, options, options.trustProxy && new Proxies(options.trustProxy));
  return async (instance) => {
    // Fastify reads no bodies inside this plugin. The handler reads them, under its own limit.
    instance.removeAllContentTypeParsers();
    instance.addContentTypeParser("*", (_request, _payload, done) => done(null));
    for (const path of ["/", "/*"]) {
      instance.all(path, (request, reply) => {
        const { raw: incoming } = request;
        const exchange = exchangeOf(incoming, reply.raw);
        // `R` is the type of the application's requests.
        const own = request as R;
        exchange.framework = { user: () => user(own), principal: () => principal(own) };
        if (!handler.answers(exchange.url)) {
          reply.callNotFound();
          return;
        }
        reply.hijack();
        void responder.answer(withParsedBody(exchange, incoming, undefined));
      });
    }
  };
}

export type { HttpOptions, MountedHandler };
