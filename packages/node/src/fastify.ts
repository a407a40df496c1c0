import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { exchangeOf, Responder, type HttpOptions, withParsedBody, type MountedHandler } from "./http.ts";

/** What of a Fastify request is used here. */
export interface FastifyRequestLike {
  /** The request of Node. */
  readonly raw: IncomingMessage | Http2ServerRequest;
  /** What authentication hooks before the mount have found. */
  readonly user?: unknown;
}

/** How agents are mounted in a Fastify application. */
export interface FastifyMountOptions extends HttpOptions {
  /** The application's own user of a request, which authenticators read as `request.facts.user`. Default: `request.user`. */
  readonly user?: (request: FastifyRequestLike) => unknown;
}

/** What of a Fastify instance is used here. */
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
 * Agents as a Fastify plugin: `app.register(fastifyMount(handler), { prefix: "/agents" })`, the prefix being the path of
 * the handler's `publicUrl`, or its `basePath` where a proxy changes paths. Parsers and limits of the application do not
 * touch what is posted to them; what has no route of theirs is answered by the application's own not-found handler.
 *
 * To stop, close the handler and then the application.
 */
export function fastifyMount(handler: MountedHandler, options: FastifyMountOptions = {}): FastifyPlugin {
  const { user = (request) => request.user } = options;
  const responder = new Responder(handler.handle, options);
  return async (instance) => {
    // Inside this plugin alone bodies are left unread: the handler reads them under its own limit.
    instance.removeAllContentTypeParsers();
    instance.addContentTypeParser("*", (_request, _payload, done) => done(null));
    for (const path of ["/", "/*"]) {
      instance.all(path, (request, reply) => {
        const { raw: incoming } = request;
        const exchange = exchangeOf(incoming, reply.raw);
        exchange.user = () => user(request);
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
