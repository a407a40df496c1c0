import type { IncomingMessage, ServerResponse } from "node:http";
import { Responder, type HttpOptions } from "./http.ts";
import { MountRequest, type MountedHandler } from "./mount.ts";

/** What of a Fastify instance is used here. */
export interface FastifyInstanceLike {
  removeAllContentTypeParsers(): void;
  addContentTypeParser(
    contentType: string,
    parser: (request: unknown, payload: unknown, done: (error: Error | null, body?: unknown) => void) => void,
  ): unknown;
  all(
    path: string,
    handler: (
      request: { readonly raw: IncomingMessage },
      reply: { readonly raw: ServerResponse; hijack(): unknown; callNotFound(): unknown },
    ) => void,
  ): unknown;
}

export type FastifyPlugin = (instance: FastifyInstanceLike) => Promise<void>;

/**
 * Agents as a Fastify plugin: `app.register(fastifyMount(handler), { prefix: "/agents" })`, the prefix being the path of
 * the handler's `publicUrl`, or its `basePath` where a proxy changes paths. Parsers and limits of the application do not
 * touch what is posted to them; what has no route of theirs is answered by the application's own not-found handler.
 *
 * To stop, close the handler and then the application.
 */
export function fastifyMount(handler: MountedHandler, options: HttpOptions = {}): FastifyPlugin {
  const responder = new Responder(handler.handle, options);
  return async (instance) => {
    // Inside this plugin alone bodies are left unread: the handler reads them under its own limit.
    instance.removeAllContentTypeParsers();
    instance.addContentTypeParser("*", (_request, _payload, done) => done(null));
    for (const path of ["/", "/*"]) {
      instance.all(path, ({ raw: incoming }, reply) => {
        const request = new MountRequest(incoming, reply.raw, incoming.url, undefined);
        if (!handler.answers(request.url)) {
          reply.callNotFound();
          return;
        }
        reply.hijack();
        void responder.answer(request, incoming, reply.raw);
      });
    }
  };
}

export type { HttpOptions, MountedHandler };
