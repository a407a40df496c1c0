import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import fastify, { type FastifyInstance } from "fastify";
import { afterEach, describe, expect, it } from "vitest";
import { A2AError, createHandler, defineAgent, memoryStore } from "@parley/server";
import { jwt } from "@parley/a2a/auth";
import { expressMount } from "../src/express.ts";
import { fastifyMount } from "../src/fastify.ts";
import type { MountedHandler } from "../src/http/listener.ts";
import { deferred } from "./support/host.ts";

/** Handles requests below `/agents`. Answers with the content of the request. */
const handler: MountedHandler = {
  answers: (url) => /^\/agents(\/|$|\?)/.test(url) && !url.includes("unknown"),
  async handle(request) {
    if (request.url.endsWith("stream")) {
      return {
        status: 200,
        headers: { "content-type": "text/event-stream" },
        async body(sink) {
          sink.write(":\n\n");
          await new Promise<void>((resolve) => {
            if (request.url.includes("slow")) sink.onClose(resolve);
            else resolve();
          });
          sink.write("data: 1\n\n");
          left.resolve();
        },
      };
    }
    const headers = { "content-type": "application/json" };
    try {
      const body = `${request.method} ${request.url} ${await request.text(1000)}`;
      return { status: 200, headers, body };
    } catch (error) {
      if (!(error instanceof A2AError)) throw error;
      return { status: error.code === "RequestTooLarge" ? 413 : 400, headers, body: error.code };
    }
  },
};
let left = deferred();

const closers: (() => unknown)[] = [];
afterEach(async () => {
  left = deferred();
  for (const close of closers.splice(0)) await close();
});

async function listen(app: RequestListener): Promise<string> {
  const server: Server = createServer(app);
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function listenFastify(app: FastifyInstance): Promise<string> {
  closers.push(() => app.close());
  return app.listen({ port: 0, host: "127.0.0.1" });
}

const post = (url: string, body: string, type = "application/json"): Promise<Response> =>
  fetch(url, { method: "POST", body, headers: { "content-type": type } });

const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;

describe("in Express", () => {
  it("agents answer below their path, even if Express removes a prefix", async () => {
    for (const app of [express().use(expressMount(handler)), express().use("/agents", expressMount(handler))]) {
      const url = await listen(app);
      expect(await (await fetch(`${url}/agents/tasks/a%20b?x=1`)).text()).toBe("GET /agents/tasks/a%20b?x=1 ");
      expect(await (await post(`${url}/agents`, '{"a":1}')).text()).toBe('POST /agents {"a":1}');
    }
  });

  it.each([
    ["none", []],
    ["JSON", [express.json()]],
    ["JSON of every type", [express.json({ type: "*/*" })]],
    ["text", [express.text({ type: "*/*" })]],
    ["raw", [express.raw({ type: "*/*" })]],
    ["several", [express.json(), express.urlencoded(), express.text()]],
  ])("agents get the body with these parsers before them: %s", async (_name, parsers) => {
    const app = express();
    for (const parser of parsers) app.use(parser);
    app.use(expressMount(handler));
    const url = await listen(app);
    for (const type of ["application/json", "application/a2a+json"]) {
      expect(await (await post(`${url}/agents`, '{"a":["ü",1]}', type)).text()).toBe('POST /agents {"a":["ü",1]}');
    }
    expect(await (await fetch(`${url}/agents/x`)).text()).toBe("GET /agents/x ");
    expect(await (await post(`${url}/agents/x`, "")).text()).toBe("POST /agents/x ");
  });

  it("a parsed body has the limit of the agents", async () => {
    const url = await listen(express().use(express.json(), expressMount(handler)));
    const big = JSON.stringify({ a: "x".repeat(2000) });
    expect((await post(`${url}/agents`, big)).status).toBe(413);
  });

  it("a parsed body that is nested too deeply is a client error", async () => {
    const url = await listen(express().use(express.json({ limit: "1mb" }), expressMount(handler)));
    // Since Node 26, `JSON.stringify` writes any depth, so the server rejects this text for its size instead.
    const refused = Number.parseInt(process.versions.node) >= 26 ? 413 : 400;
    expect((await post(`${url}/agents`, deep)).status).toBe(refused);
  });

  it("a body that was read and discarded is an operator error", async () => {
    const causes: unknown[] = [];
    const logger = { debug() {}, info() {}, warn() {}, error: (_text: string, fields?: object) => causes.push(fields) };
    const app = express();
    app.use((request, _response, next) => {
      request.resume().on("end", () => next());
    });
    app.use(expressMount(handler, { logger }));
    const url = await listen(app);
    expect((await post(`${url}/agents`, "{}")).status).toBe(500);
    expect(causes).toHaveLength(1);
  });

  it("requests to other paths go to the application", async () => {
    const app = express();
    app.use(express.json(), expressMount(handler));
    app.all("/{*rest}", (request, response) => void response.status(418).send(`app ${request.url}`));
    const url = await listen(app);
    for (const path of ["/", "/agentsmith", "/agents/unknown"]) {
      const answer = await post(url + path, "{}");
      expect([answer.status, await answer.text()]).toEqual([418, `app ${path}`]);
    }
  });

  it("streams are sent, and closed when their reader leaves", async () => {
    const url = await listen(express().use(express.json(), expressMount(handler)));
    expect(await (await post(`${url}/agents/stream`, "{}")).text()).toBe(":\n\ndata: 1\n\n");
    left = deferred();
    const controller = new AbortController();
    await fetch(`${url}/agents/slow/stream`, { signal: controller.signal });
    controller.abort();
    await left.promise;
  });
});

describe("in Fastify", () => {
  it.each(["/agents", "/"])("agents answer below their path, with the prefix %s", async (prefix) => {
    const app = fastify();
    await app.register(fastifyMount(handler), { prefix });
    const url = await listenFastify(app);
    expect(await (await fetch(`${url}/agents/tasks/a%20b?x=1`)).text()).toBe("GET /agents/tasks/a%20b?x=1 ");
    for (const type of ["application/json", "application/a2a+json", "text/plain"]) {
      expect(await (await post(`${url}/agents`, '{"a":1}', type)).text()).toBe('POST /agents {"a":1}');
    }
    const untyped = await fetch(`${url}/agents/x`, { method: "DELETE" });
    expect(await untyped.text()).toBe("DELETE /agents/x ");
  });

  it("bodies have the limit of the agents, not that of the application", async () => {
    const app = fastify({ bodyLimit: 10 });
    await app.register(fastifyMount(handler), { prefix: "/agents" });
    const url = await listenFastify(app);
    expect((await post(`${url}/agents`, JSON.stringify("x".repeat(500)))).status).toBe(200);
    const answer = await post(`${url}/agents`, JSON.stringify("x".repeat(2000)));
    expect([answer.status, await answer.text()]).toEqual([413, "RequestTooLarge"]);
  });

  it("other paths, and the parsers of other routes, belong to the application", async () => {
    const app = fastify();
    await app.register(fastifyMount(handler));
    app.post("/own", (request) => ({ got: request.body }));
    app.setNotFoundHandler((request, reply) => reply.code(418).send(`app ${request.url}`));
    const url = await listenFastify(app);
    expect(await (await post(`${url}/own`, '{"a":1}')).json()).toEqual({ got: { a: 1 } });
    for (const path of ["/", "/agentsmith", "/agents/unknown"]) {
      const answer = await fetch(url + path);
      expect([answer.status, await answer.text()]).toEqual([418, `app ${path}`]);
    }
  });

  it("streams are sent, and closed when their reader leaves", async () => {
    const app = fastify({ forceCloseConnections: true });
    await app.register(fastifyMount(handler), { prefix: "/agents" });
    const url = await listenFastify(app);
    expect(await (await post(`${url}/agents/stream`, "{}")).text()).toBe(":\n\ndata: 1\n\n");
    left = deferred();
    const controller = new AbortController();
    await fetch(`${url}/agents/slow/stream`, { signal: controller.signal });
    controller.abort();
    await left.promise;
  });
});

describe("the metadata that a challenge names (RFC 9728 §3, §5.1)", () => {
  const agent = defineAgent({
    name: "Echo",
    description: "Says it again",
    version: "1.0.0",
    skills: [],
    onMessage: (turn) => turn.reply(turn.text),
  });
  const wellKnown = "/.well-known/oauth-protected-resource";
  const guarded = (): MountedHandler => {
    const authenticator = jwt({ issuer: "https://login.example.com" });
    const made = createHandler(agent, { store: memoryStore(), publicUrl: "http://127.0.0.1/agents", authenticator });
    closers.push(() => made.close());
    return made;
  };
  /** Returns the status and content of the metadata on this server. */
  const metadataAt = async (url: string): Promise<readonly [number, unknown]> => {
    const refused = await fetch(`${url}/agents/tasks`);
    const [, named = ""] = /resource_metadata="([^"]+)"/.exec(refused.headers.get("www-authenticate") ?? "") ?? [];
    const answer = await fetch(url + new URL(named).pathname);
    return [answer.status, await answer.json()];
  };
  const metadata = [200, expect.objectContaining({ resource: "http://127.0.0.1/agents" })];

  it("is found in Express at the root, and beside a prefix if it is mounted at its path, too", async () => {
    const mount = expressMount(guarded());
    for (const app of [express().use(mount), express().use(["/agents", wellKnown], mount)]) {
      expect(await metadataAt(await listen(app))).toEqual(metadata);
    }
  });

  it("is found in Fastify at the root, and beside a prefix if it is registered at its path, too", async () => {
    const plugin = fastifyMount(guarded());
    for (const prefixes of [["/"], ["/agents", wellKnown]]) {
      const app = fastify();
      for (const prefix of prefixes) await app.register(plugin, { prefix });
      expect(await metadataAt(await listenFastify(app))).toEqual(metadata);
    }
  });
});
