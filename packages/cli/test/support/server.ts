import { memoryStore, serve, type Agent, type ServeOptions, type Server } from "@parley/node";

/** A server of our own on a free port, with its tasks in memory. */
export function startServer(agent: Agent, options: ServeOptions = {}): Promise<Server> {
  return serve(agent, { port: 0, grpc: true, store: memoryStore(), signals: false, logger: false, ...options });
}
