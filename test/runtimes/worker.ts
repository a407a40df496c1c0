import type { Handler } from "@parley/server";
import { countingHandler } from "./agent.ts";
import { check } from "./check.ts";

interface Env {
  readonly AGENTS: {
    idFromName(name: string): unknown;
    get(id: unknown): { fetch(request: Request): Promise<Response> };
  };
}

/**
 * The agents live in a Durable Object, so that a task continues between requests, and one request can read the data of another. Plain Workers
 * keep requests apart.
 */
export class Agents {
  #handler: Handler | undefined;

  fetch(request: Request): Promise<Response> {
    // The origin can be trusted, because a Worker receives only requests for host names that are routed to it.
    this.#handler ??= countingHandler(new URL(request.url).origin);
    return this.#handler.fetch(request);
  }
}

export default {
  async fetch(request: Request, { AGENTS }: Env): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/check") return Response.json(await check(searchParams.get("url") ?? ""));
    return AGENTS.get(AGENTS.idFromName("all")).fetch(request);
  },
};
