import { once } from "node:events";
import { connect as http2Connect } from "node:http2";
import { createServer, request as httpRequest, type RequestListener } from "node:http";
import { connect as netConnect, type AddressInfo } from "node:net";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { tmpdir } from "node:os";
import express from "express";
import { A2AError, createHandler, memoryStore, silentLogger, type HandlerOptions, type Store } from "@parley/server";
import type { Logger } from "@parley/a2a/protocol";
import { bearer } from "@parley/a2a/auth";
import type { StoreCondition } from "@parley/server/store";
import { fakeClock } from "@parley/testing";
import { sqliteStore } from "@parley/sql/sqlite";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { GrpcJs } from "../../grpc/test/support/grpc-js.ts";
import { expressMount } from "../src/express.ts";
import { serve, type ServeOptions, type Server } from "../src/index.ts";
import { plainRule, underRule } from "../src/http/tls.ts";
import { Proxies } from "../src/http/proxies.ts";
import { echoAgent, slowAgent } from "./support/agents.ts";

/* Tests responses to probes from orchestrators and load balancers. */

const running: Server[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close({ grace: 0 })));
});

async function start(options: ServeOptions = {}, agent = echoAgent()): Promise<Server> {
  const server = await serve(agent, {
    port: 0,
    grpc: true,
    signals: false,
    logger: false,
    store: memoryStore(),
    ...options,
  });
  running.push(server);
  return server;
}

/** Returns the status and body of a probe with arbitrary headers, including `Host`. */
function probe(
  { port }: Pick<Server, "port">,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  method = "GET",
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    httpRequest({ port, path, method, headers, host: "127.0.0.1", agent: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      answer.on("end", () => resolve([answer.statusCode, text]));
    })
      .on("error", reject)
      .end();
  });
}

const alive = [200, '{"status":"ok"}'];
const ready = [200, '{"status":"ready"}'];
const stopping = [503, '{"status":"closing"}'];
const unavailable = [503, '{"status":"unavailable"}'];

/** Resolves to "connected", or to the error. */
function connectTo(port: number): Promise<unknown> {
  return new Promise((resolve) => {
    const socket = netConnect(port, "127.0.0.1");
    socket.on("error", resolve).on("connect", () => {
      socket.destroy();
      resolve("connected");
    });
  });
}

/** Creates a store whose `head` the test defines. */
function storeWith(head: (store: Store) => Store["head"]): Store {
  const store = memoryStore();
  return Object.create(store, {
    head: { value: head(store) },
    ...Object.fromEntries(
      (
        [
          "append",
          "load",
          "read",
          "list",
          "once",
          "conversation",
          "claimable",
          "stranded",
          "features",
          "dueFeatures",
          "sweep",
          "close",
        ] as const
      ).map((name) => [name, { value: (store[name] as () => unknown).bind(store) }]),
    ),
  }) as Store;
}

describe("the probes of a server", () => {
  it("answer GET and HEAD with one word that must not be cached, and no other method", async () => {
    const server = await start();
    for (const [path, word] of [
      ["/healthz", "ok"],
      ["/readyz", "ready"],
      ["/readyz?verbose", "ready"],
    ] as const) {
      const answer = await fetch(server.url + path);
      expect([answer.status, answer.headers.get("content-type"), answer.headers.get("cache-control")]).toEqual([
        200,
        "application/json",
        "no-store",
      ]);
      expect(await answer.json()).toEqual({ status: word });
      const head = await fetch(server.url + path, { method: "HEAD" });
      expect([head.status, await head.text()]).toEqual([200, ""]);
      for (const method of ["POST", "DELETE", "PUT"]) {
        const refused = await fetch(server.url + path, { method });
        expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
      }
    }
  });

  it("answer any host and page, and reveal nothing else: no card, no name (DNS rebinding)", async () => {
    const server = await start();
    for (const host of ["10.1.2.3:4000", "evil.example", "a b", "[::ffff:10.0.0.1]"]) {
      const headers = { host, origin: "https://evil.example" };
      expect(await probe(server, "/healthz", headers)).toEqual(alive);
      expect(await probe(server, "/readyz", headers)).toEqual(ready);
      const refused = (await probe(server, "/.well-known/agent-card.json", headers)) as [number, string];
      expect(refused[0]).toBe(403);
      const page = (await probe(server, "/", { ...headers, accept: "text/html" })) as [number, string];
      expect(page[0]).toBe(403);
    }
    expect((await fetch(`${server.url}/healthz`)).headers.get("access-control-allow-origin")).toBeNull();
  });

  it("need no credentials, and do not count for rate limits", async () => {
    const limits = { rate: { address: { requests: 1, per: 3_600_000 } } };
    const server = await start({ authenticator: bearer({ "token-of-ada-0123456789": { subject: "ada" } }), limits });
    for (let count = 0; count < 20; count += 1) expect(await probe(server, "/readyz")).toEqual(ready);
    expect((await fetch(`${server.url}/tasks`)).status).toBe(401);
    expect((await fetch(`${server.url}/tasks`)).status).toBe(429);
    expect(await probe(server, "/healthz")).toEqual(alive);
  });

  it("are answered without TLS too, while all other requests of their sender are refused", async () => {
    const { handle, isProbe } = handlerWith({ health: true });
    const guarded = underRule(handle, plainRule(new Proxies(["10.0.0.0/8"]), silentLogger), isProbe);
    const ask = async (url: string) => {
      const facts: object = { peer: "192.0.2.7" };
      const request = {
        method: "GET",
        url,
        facts,
        header: () => undefined,
        text: async () => "",
        signal: AbortSignal.any([]),
      };
      return (await guarded(request)).status;
    };
    expect([await ask("/healthz"), await ask("/readyz?x"), await ask("/.well-known/agent-card.json")]).toEqual([
      200, 200, 403,
    ]);
  });

  it("have other paths, or are off", async () => {
    const server = await start({ health: { live: "/internal/alive", ready: false } });
    expect(await probe(server, "/internal/alive")).toEqual(alive);
    for (const path of ["/healthz", "/readyz"]) expect((await fetch(server.url + path)).status).toBe(404);
    const without = await start({ health: false });
    expect((await fetch(`${without.url}/healthz`)).status).toBe(404);
  });

  it("are at the host, beside the path of publicUrl and of agents", async () => {
    const server = await serve([{ agent: echoAgent(), path: "/echo" }], {
      port: 0,
      signals: false,
      logger: false,
      store: memoryStore(),
      publicUrl: "https://agents.example.com/all",
    });
    running.push(server);
    expect(await probe(server, "/readyz")).toEqual(ready);
    expect(((await probe(server, "/all/echo/.well-known/agent-card.json")) as [number])[0]).toBe(200);
  });

  it.each([
    ["the path of an agent", [{ agent: echoAgent(), path: "/healthz" }], true, "The probe health.live"],
    ["a path with an agent below it", [{ agent: echoAgent(), path: "/readyz/echo" }], true, "The probe health.ready"],
    ["an address of REST", [{ agent: echoAgent() }], { ready: "/tasks" }, "The probe health.ready"],
    ["one path twice", [{ agent: echoAgent() }], { live: "/up", ready: "/up" }, "twice"],
    ["no path", [{ agent: echoAgent() }], { live: "healthz" }, "health.live"],
    ["a path with a query", [{ agent: echoAgent() }], { live: "/healthz?a" }, "health.live"],
    ["a path that leads up", [{ agent: echoAgent() }], { live: "/a/../b" }, "health.live"],
  ])("reject %s when the server is created", async (_name, agents, health, problem) => {
    await expect(
      serve(agents, { port: 0, signals: false, logger: false, store: memoryStore(), health }),
    ).rejects.toThrow(problem);
  });
});

function handlerWith(options: Partial<HandlerOptions>) {
  const handler = createHandler(echoAgent(), { publicUrl: "http://127.0.0.1/agent", store: memoryStore(), ...options });
  onTestFinished(() => handler.close());
  return handler;
}

describe("readiness", () => {
  it("is a read of the store: 503 while that fails, logged once, and 200 again", async () => {
    const clock = fakeClock();
    let broken = false;
    const lines: string[] = [];
    const logger: Logger = {
      ...silentLogger,
      warn: (message) => void lines.push(message),
      info: (message) => void lines.push(message),
    };
    const store = storeWith((own) => (scope, id) => {
      if (broken) return Promise.reject(new A2AError("Unavailable", "The disk MARK-disk-0815 is gone"));
      return own.head(scope, id);
    });
    const server = await start({ store, clock, logger });
    expect(await probe(server, "/readyz")).toEqual(ready);
    broken = true;
    clock.advance(1_001);
    for (let count = 0; count < 3; count += 1) {
      expect(await probe(server, "/readyz")).toEqual(unavailable);
      expect(await probe(server, "/healthz")).toEqual(alive);
      clock.advance(1_001);
    }
    broken = false;
    expect(await probe(server, "/readyz")).toEqual(ready);
    expect(lines).toEqual(["Store unavailable; server is not ready", "Store available again; server is ready"]);
  });

  it("costs one read a second, for any number of probes, and one in all while the store hangs", async () => {
    const clock = fakeClock();
    let reads = 0;
    let hang = false;
    const store = storeWith((own) => (scope, id) => {
      reads += 1;
      return hang ? new Promise(() => {}) : own.head(scope, id);
    });
    const server = await start({ store, clock });
    const many = () => Promise.all(Array.from({ length: 50 }, () => probe(server, "/readyz")));
    expect(new Set((await many()).map(String))).toEqual(new Set([String(ready)]));
    await many();
    expect(reads).toBe(1);
    hang = true;
    clock.advance(1_001);
    const waiting = Promise.all([probe(server, "/readyz"), probe(server, "/readyz")]);
    await expect.poll(() => reads).toBe(2);
    // Each probe has its own timer. Advances the clock past that timer, by less than a second each time.
    let done = false;
    void waiting.then(() => (done = true));
    await expect.poll(() => (clock.advance(900), done)).toBe(true);
    // A store may take a few seconds to answer. After that, the server considers the store broken, and probes no longer wait for it.
    clock.advance(5_000);
    expect(await many()).toEqual(Array(50).fill(unavailable));
    expect(reads).toBe(2);
  });

  it("returns the last result while the next check takes long, and never success before the first one", async () => {
    const clock = fakeClock();
    const waiting: (() => void)[] = [];
    const store = storeWith((own) => async (scope, id) => {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return own.head(scope, id);
    });
    const server = await start({ store, clock });
    const ask = async (): Promise<unknown> => {
      let answer: unknown;
      const asked = probe(server, "/readyz").then((given) => (answer = given));
      await expect.poll(() => (answer === undefined && clock.advance(300), answer)).toBeDefined();
      return asked;
    };
    expect(await ask()).toEqual(unavailable);
    waiting.shift()?.();
    await expect.poll(ask).toEqual(ready);
    clock.advance(1_001);
    expect(await ask()).toEqual(ready);
    expect(waiting.length).toBe(1);
    waiting.shift()?.();
  });

  it("is the store's status without its reason and other texts of the store", async () => {
    const clock = fakeClock();
    const lines: unknown[] = [];
    const logger: Logger = { ...silentLogger, warn: (_, fields) => void lines.push(fields) };
    const own = memoryStore();
    let found: StoreCondition = { writable: true, changes: "polled" };
    const store: Store = Object.assign(own, { check: async () => found });
    const server = await start({ store, clock, logger });
    const ask = (next: StoreCondition): Promise<unknown> => {
      found = next;
      clock.advance(1_001);
      return probe(server, "/readyz");
    };
    for (const changes of ["polled", "told", "unseen"] as const) {
      expect(await ask({ writable: true, changes })).toEqual([200, JSON.stringify({ status: "ready", changes })]);
    }
    const foreign = { writable: true, changes: "host-17 is slow", version: "15.18" } as unknown as StoreCondition;
    expect(await ask(foreign)).toEqual(ready);
    const reason = "The database is read-only: the server db-17 is a replica";
    expect(await ask({ writable: false, reason, changes: "told" })).toEqual(unavailable);
    expect(await ask({ writable: false, reason })).toEqual(unavailable);
    expect(lines).toEqual([{ cause: reason }]);
    expect(await ask({ writable: true })).toEqual(ready);
  });

  it("fails if SQLite is closed, and is read from the file otherwise", async () => {
    const folder = await mkdtemp(join(tmpdir(), "parley-health-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const store = await sqliteStore({ path: join(folder, "tasks.db") });
    const clock = fakeClock();
    const server = await start({ store, clock });
    expect(await probe(server, "/readyz")).toEqual(ready);
    await store.close();
    clock.advance(1_001);
    expect(await probe(server, "/readyz")).toEqual(unavailable);
  });

  it("is 503 during the drain delay, while everything is served; then the port closes and running turns finish", async () => {
    const { agent, begun, finish } = slowAgent();
    const clock = fakeClock();
    const server = await start({ clock }, agent);
    const post = (configuration: object) =>
      fetch(server.url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          jsonrpc: "2.0",
          id: 1,
          method: "SendMessage",
          params: {
            message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: "x" }] },
            configuration,
          },
        }),
      });
    const answer = post({});
    await begun;
    const closed = server.close({ drainDelay: 5_000, grace: 3_600_000 });
    for (let count = 0; count < 3; count += 1) {
      expect(await probe(server, "/readyz")).toEqual(stopping);
      expect(await probe(server, "/healthz")).toEqual(alive);
      const sent = await post({ returnImmediately: true });
      expect([sent.status, sent.headers.get("connection")]).toEqual([200, "close"]);
      expect(await sent.json()).toMatchObject({ result: { task: {} } });
    }
    clock.advance(5_000);
    await expect.poll(() => connectTo(server.port)).toMatchObject({ code: "ECONNREFUSED" });
    finish();
    expect(await (await answer).json()).toMatchObject({
      result: { task: { status: { state: "TASK_STATE_COMPLETED" } } },
    });
    await closed;
  });

  it("closes the port at once without a drain delay, for a process that takes over while running turns finish", async () => {
    const { agent, begun, finish } = slowAgent();
    const server = await start({}, agent);
    const answer = fetch(server.url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"1","role":"ROLE_USER","parts":[{"text":"x"}]}}}',
    });
    await begun;
    const closed = server.close({ grace: 3_600_000 });
    await expect.poll(() => connectTo(server.port)).toMatchObject({ code: "ECONNREFUSED" });
    const next = await start({ port: server.port });
    expect(await probe(next, "/readyz")).toEqual(ready);
    finish();
    expect(await (await answer).json()).toMatchObject({
      result: { task: { status: { state: "TASK_STATE_COMPLETED" } } },
    });
    await closed;
    expect(await probe(next, "/readyz")).toEqual(ready);
  });

  it("answers a connection whose first request arrives after the port closed, over HTTP/1.1 and HTTP/2, and says that it was the last", async () => {
    const server = await start();
    const socket = netConnect(server.port, "127.0.0.1");
    const session = http2Connect(server.url);
    let goaway = false;
    session.on("goaway", () => (goaway = true));
    await Promise.all([once(socket, "connect"), once(session, "remoteSettings")]);
    const closed = server.close({ grace: 3_600_000 });
    await expect.poll(() => connectTo(server.port)).toMatchObject({ code: "ECONNREFUSED" });
    const stream = session.request({ ":path": "/.well-known/agent-card.json" });
    const [headers] = (await once(stream, "response")) as [{ ":status": number }];
    expect(headers[":status"]).toBe(200);
    stream.resume();
    socket.write(`GET /.well-known/agent-card.json HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n\r\n`);
    let text = "";
    for await (const piece of socket.setEncoding("utf8")) text += piece as string;
    expect(text).toMatch(/^HTTP\/1.1 200 OK\r\n(.+\r\n)*connection: close\r\n/i);
    await closed;
    expect(goaway).toBe(true);
  });

  it("is reported by gRPC as well, to any host (grpc.health.v1)", async () => {
    const clock = fakeClock();
    let broken = false;
    const store = storeWith(
      (own) => (scope, id) => (broken ? Promise.reject(new A2AError("Unavailable")) : own.head(scope, id)),
    );
    const server = await start({ store, clock });
    using client = new GrpcJs(`127.0.0.1:${server.port}`, "10.1.2.3");
    const check = async () => (await client.unary("/grpc.health.v1.Health/Check", { service: "" })).value;
    expect(await check()).toEqual({ status: "SERVING" });
    broken = true;
    clock.advance(1_001);
    expect(await check()).toEqual({ status: "NOT_SERVING" });
  });
});

describe("the probes of a handler on another host", () => {
  it("are off by default, and are answered if they are on", async () => {
    for (const health of [undefined, true]) {
      const app = express().use(expressMount(handlerWith({ ...(health !== undefined && { health }) })));
      app.get("/healthz", (_request, response) => void response.send("the application"));
      const server = createServer(app as RequestListener);
      onTestFinished(() => void server.close());
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const port = (server.address() as AddressInfo).port;
      expect(await probe({ port }, "/healthz")).toEqual(health ? alive : [200, "the application"]);
      if (health) expect(await probe({ port }, "/readyz")).toEqual(ready);
    }
  });

  it("are answered by fetch", async () => {
    const { fetch: answer, close } = handlerWith({ health: true, allowedHosts: [] });
    const ask = async (path: string) => {
      const response = await answer(new Request(`http://10.1.2.3${path}`));
      return [response.status, await response.text()];
    };
    expect(await ask("/healthz")).toEqual(alive);
    expect(await ask("/readyz")).toEqual(ready);
    await close();
    expect(await ask("/readyz")).toEqual(stopping);
  });
});
