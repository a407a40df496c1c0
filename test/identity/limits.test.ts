import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { A2AError, defineAgent, memoryStore, silentLogger, type RateLimiter } from "@parley/server";
import { bearer } from "@parley/a2a/auth";
import { connect, serve, type Client, type ServeOptions, type Server } from "@parley/node";
import { interfaces, type Interface } from "../behaviour/served.ts";

/** Limits per caller, on every binding and version: 429 or RESOURCE_EXHAUSTED, with the time to wait. */

const agent = defineAgent({
  name: "Slow",
  description: "Works until it is stopped.",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    if (turn.text === "hello") return turn.reply("Hello");
    yield turn.working();
    await new Promise<void>((resolve) => turn.signal.addEventListener("abort", () => resolve()));
    return undefined;
  },
});

const authenticator = bearer({ "ada-token": { subject: "ada" }, "bob-token": { subject: "bob" } });
const hour = 3_600_000;

async function start(options: ServeOptions): Promise<Server> {
  return serve(agent, {
    port: 0,
    grpc: true,
    signals: false,
    store: memoryStore(),
    logger: silentLogger,
    authenticator,
    ...options,
  });
}

/** A client without retries, so that the test sees the first response. */
function open(server: Server, at: Interface, name = "ada"): Promise<Client> {
  return connect(server.url, { ...at, headers: { Authorization: `Bearer ${name}-token` }, retry: false });
}

/** The error of a call, or `undefined` on success. */
async function errorOf(call: Promise<unknown>): Promise<A2AError | undefined> {
  try {
    await call;
    return undefined;
  } catch (thrown) {
    if (thrown instanceof A2AError) return thrown;
    throw thrown;
  }
}

/** Opens a stream, and waits for its first event. */
async function begin(client: Client): Promise<void> {
  const stream = client.sendStreamingMessage("work")[Symbol.asyncIterator]();
  onTestFinished(async () => void (await stream.return?.()));
  await stream.next();
}

describe.each(interfaces)("over $binding $version", (at) => {
  it("requests beyond limits.rate.principal are rejected, and other callers are answered", async () => {
    const server = await start({ limits: { rate: { principal: { requests: 2, per: hour } } } });
    onTestFinished(() => server.close({ grace: 0 }));
    const [ada, bob] = [await open(server, at), await open(server, at, "bob")];
    expect([await errorOf(ada.sendMessage("hello")), await errorOf(ada.sendMessage("hello"))]).toEqual([
      undefined,
      undefined,
    ]);
    expect(await errorOf(ada.sendMessage("hello"))).toMatchObject({
      code: "TooManyRequests",
      retryAfter: hour / 2_000,
    });
    expect(await errorOf(begin(ada))).toMatchObject({ code: "TooManyRequests" });
    expect(await errorOf(bob.sendMessage("hello"))).toBeUndefined();
  });

  it("attempts beyond limits.rate.failures are rejected, even with a valid token", async () => {
    const server = await start({ limits: { rate: { failures: { requests: 2, per: hour } } } });
    onTestFinished(() => server.close({ grace: 0 }));
    const [ada, eve] = [await open(server, at), await open(server, at, "eve")];
    const codes: unknown[] = [];
    for (let count = 0; count < 3; count++) codes.push((await errorOf(eve.sendMessage("hello")))?.code);
    expect(codes).toEqual(["Unauthenticated", "Unauthenticated", "TooManyRequests"]);
    const refused = await errorOf(ada.sendMessage("hello"));
    expect(refused?.code).toBe("TooManyRequests");
    expect(refused?.retryAfter).toBeGreaterThan(0);
  });

  it("streams beyond limits.streamsPerCaller are rejected until one ends", async () => {
    const server = await start({ limits: { streamsPerCaller: 1 } });
    onTestFinished(() => server.close({ grace: 0 }));
    const [ada, bob] = [await open(server, at), await open(server, at, "bob")];
    const first = ada.sendStreamingMessage("work")[Symbol.asyncIterator]();
    await first.next();
    expect(await errorOf(begin(ada))).toMatchObject({ code: "TooManyRequests", retryAfter: 5 });
    expect(await errorOf(begin(bob))).toBeUndefined();
    await first.return?.();
    // The server notices a moment later that the reader has left.
    while ((await errorOf(begin(ada)))?.code === "TooManyRequests") await new Promise(setImmediate);
  });

  it("messages beyond limits.tasksPerCaller are rejected", async () => {
    const server = await start({ limits: { tasksPerCaller: 1 } });
    onTestFinished(() => server.close({ grace: 0 }));
    const [ada, bob] = [await open(server, at), await open(server, at, "bob")];
    await begin(ada);
    expect(await errorOf(ada.sendMessage("hello"))).toMatchObject({ code: "TooManyRequests", retryAfter: 5 });
    expect(await errorOf(bob.sendMessage("hello"))).toBeUndefined();
  });
});

describe("on the wire", () => {
  let server: Server;
  beforeAll(async () => {
    server = await start({ limits: { rate: { address: { requests: 1, per: hour } } } });
    await fetch(`${server.url}/tasks`);
  });
  afterAll(() => server.close({ grace: 0 }));

  it.each([
    ["REST 1.0", "/tasks", undefined, "1.0"],
    ["REST 0.3", "/v1/tasks/x", undefined, "0.3"],
    ["JSON-RPC 1.0", "/", "ListTasks", "1.0"],
    ["JSON-RPC 0.3", "/", "tasks/get", "0.3"],
  ])("%s answers 429 with Retry-After in seconds (RFC 6585 §4)", async (_name, path, method, version) => {
    const body = method && JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { id: "x" } });
    const answer = await fetch(server.url + path, {
      headers: { "a2a-version": version, "content-type": "application/json" },
      ...(body !== undefined && { method: "POST", body }),
    });
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([429, "3600"]);
    expect(JSON.stringify(await answer.json())).toContain("Too many requests");
  });

  it("a card is read without counting", async () => {
    for (let count = 0; count < 3; count++) {
      expect((await fetch(`${server.url}/.well-known/agent-card.json`)).status).toBe(200);
    }
  });
});

it("a limiter of rate-limiter-flexible fits the port by the adapter of docs/security.md", async () => {
  const shared = new RateLimiterMemory({ points: 2, duration: 3_600 });
  const limiter: RateLimiter = {
    async take(key, cost) {
      try {
        await shared.consume(key, cost);
        return { ok: true, retryAfter: 0 };
      } catch (refused) {
        if (refused instanceof RateLimiterRes) return { ok: false, retryAfter: refused.msBeforeNext };
        throw refused;
      }
    },
  };
  // Two servers share the limiter, as two processes share a store.
  const servers = await Promise.all([1, 2].map(() => start({ limits: { rate: { principal: limiter } } })));
  onTestFinished(async () => void (await Promise.all(servers.map((server) => server.close({ grace: 0 })))));
  const list = async (at: number, token: string): Promise<readonly unknown[]> => {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${servers[at]?.url}/tasks`, { headers });
    await answer.text();
    return [answer.status, answer.headers.has("retry-after")];
  };
  expect([await list(0, "ada-token"), await list(1, "ada-token")]).toEqual([
    [200, false],
    [200, false],
  ]);
  expect([await list(0, "ada-token"), await list(1, "ada-token"), await list(1, "bob-token")]).toEqual([
    [429, true],
    [429, true],
    [200, false],
  ]);
});
