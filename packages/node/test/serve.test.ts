import { mkdtemp, rm, stat } from "node:fs/promises";
import { request as httpsRequest } from "node:https";
import { connect as netConnect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { memoryStore, type Agent, type AgentMount } from "@parley/server";
import { bearer } from "@parley/a2a/auth";
import { connect } from "@parley/a2a";
import { isLoopback } from "@parley/a2a/internal/base/index";
import { addressOf, urlOf } from "../src/listen.ts";
import { serve, type ServeOptions, type Server } from "../src/index.ts";
import { echoAgent, slowAgent } from "./support/agents.ts";
import { certificateFor } from "./support/certificate.ts";
import { RawClient } from "./support/host.ts";
import { Http2Client } from "./support/http2.ts";

const running: Server[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close({ grace: 0 })));
});

/** Starts a server on a free port, with a memory store. */
async function start(agents: Agent | readonly AgentMount[], options: ServeOptions = {}): Promise<Server> {
  const server = await serve(agents, { port: 0, signals: false, store: memoryStore(), ...options });
  running.push(server);
  return server;
}

const send = (text: string, tenant?: string): string =>
  JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "SendMessage",
    params: {
      ...(tenant && { tenant }),
      message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] },
    },
  });

describe("serve", () => {
  it("answers the operations over JSON-RPC and REST, and the card, on one port", async () => {
    const server = await start(echoAgent());
    expect(server.url).toBe(`http://127.0.0.1:${server.port}`);
    for (const protocolBinding of ["JSONRPC", "HTTP+JSON"]) {
      const client = await connect(server.url);
      const [face] = client.card.supportedInterfaces.filter((one) => one.protocolBinding === protocolBinding);
      const only = await connect({ ...client.card, supportedInterfaces: face === undefined ? [] : [face] });
      const { task } = await only.sendMessage("hello");
      expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
      expect(task?.artifacts?.[0]?.parts).toEqual([{ text: "Echo: hello" }]);
      const events = [];
      for await (const event of only.sendStreamingMessage("again")) events.push(event);
      expect(events.at(-1)?.statusUpdate?.status.state).toBe("TASK_STATE_COMPLETED");
    }
  });

  it("serves several agents on one port and one store, by path and by tenant", async () => {
    const server = await start([
      { agent: echoAgent("Root") },
      { agent: echoAgent("Weather"), path: "/weather" },
      { agent: echoAgent("Acme"), path: "/shared", tenant: "acme" },
      { agent: echoAgent("Bolt"), path: "/shared", tenant: "bolt" },
    ]);
    expect(server.agents.map(({ card }) => card.name)).toEqual(["Root", "Weather", "Acme", "Bolt"]);
    const made: string[] = [];
    for (const { card, cardUrl } of server.agents) {
      const client = await connect(cardUrl);
      const { task } = await client.sendMessage("hi");
      expect(task?.artifacts?.[0]?.parts).toEqual([{ text: `${card.name}: hi` }]);
      expect((await client.listTasks()).tasks.map(({ id }) => id)).toEqual([task?.id]);
      for (const other of made) {
        const stranger = await client.getTask(other).catch((error: unknown) => error);
        expect(stranger).toMatchObject({ code: "TaskNotFound" });
      }
      made.push(task?.id ?? "");
    }
  });

  it("puts the public URL on cards, whatever the Host of a request is", async () => {
    const server = await start(echoAgent(), { publicUrl: "https://agents.example.com/echo", allowedHosts: ["*"] });
    const client = await RawClient.to(server.port);
    client.socket.write(
      "GET /echo/.well-known/agent-card.json HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    );
    const text = await client.ended();
    expect(text).toContain('"https://agents.example.com/echo"');
    expect(text).not.toContain("evil.example");
  });

  it("speaks HTTPS with a certificate", async () => {
    const tls = await certificateFor("localhost", "127.0.0.1");
    const server = await start(echoAgent(), { tls });
    expect(server.url).toBe(`https://127.0.0.1:${server.port}`);
    const answer = await new Promise<string>((resolve, reject) => {
      const request = httpsRequest(server.url, {
        method: "POST",
        ca: tls.cert,
        headers: { "content-type": "application/json" },
      });
      request.on("error", reject).on("response", (message) => {
        let body = "";
        message.on("data", (chunk: Buffer) => (body += chunk.toString()));
        message.on("end", () => resolve(body));
      });
      request.end(send("over TLS"));
    });
    expect(JSON.parse(answer)).toMatchObject({
      result: { task: { artifacts: [{ parts: [{ text: "Echo: over TLS" }] }] } },
    });
  });

  it("sends 100 Continue only when a large body is read (RFC 9110 §10.1.1)", async () => {
    const server = await start(echoAgent(), { limits: { bodyBytes: 1000 } });
    using client = await RawClient.to(server.port);
    const head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n";
    const body = send("asked first");
    client.socket.write(`${head}Content-Length: ${body.length}\r\n\r\n`);
    await client.until((text) => text.startsWith("HTTP/1.1 100 "));
    client.socket.write(body);
    await client.until((text) => text.includes("Echo: asked first"));

    using greedy = await RawClient.to(server.port);
    greedy.socket.write(`${head}Content-Length: 1000000\r\n\r\n`);
    const text = await greedy.until((seen) => seen.includes("larger than"));
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
  });

  it("accepts calls while earlier ones on the same connection wait (pipelining)", async () => {
    const { agent, begun, finish } = slowAgent();
    const server = await start([{ agent }, { agent: echoAgent(), path: "/echo" }]);
    using client = await RawClient.to(server.port);
    const post = (path: string, body: string): string =>
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    client.socket.write(post("/", send("first")) + post("/echo", send("second")));
    await begun;
    const echo = await connect(`${server.url}/echo`);
    await vi.waitFor(async () => expect((await echo.listTasks()).totalSize).toBe(1));
    finish();
    const text = await client.until((seen) => seen.includes("Echo: second"));
    expect(text.indexOf("done")).toBeLessThan(text.indexOf("Echo: second"));
  });

  it("keeps tasks on disk below the working directory by default", async () => {
    const before = process.cwd();
    const folder = await mkdtemp(join(tmpdir(), "parley-serve-"));
    process.chdir(folder);
    try {
      const first = await serve(echoAgent(), { port: 0, signals: false });
      const { task } = await (await connect(first.url)).sendMessage("keep me");
      await first.close();
      const second = await serve(echoAgent(), { port: 0, signals: false });
      const kept = await (await connect(second.url)).getTask(task?.id ?? "");
      expect(kept.artifacts).toEqual(task?.artifacts);
      await second.close();
      expect((await stat(join(folder, ".parley", "parley.db"))).isFile()).toBe(true);
    } finally {
      process.chdir(before);
      await rm(folder, { recursive: true });
    }
  });
});

describe("an address to listen on", () => {
  it.each([
    ["127.0.0.1", true, "http://127.0.0.1:4000"],
    ["127.8.9.1", true, "http://127.8.9.1:4000"],
    ["::1", true, "http://[::1]:4000"],
    ["0.0.0.0", false, "http://0.0.0.0:4000"],
    ["::", false, "http://[::]:4000"],
    ["::ffff:10.0.0.1", false, "http://[::ffff:10.0.0.1]:4000"],
    ["192.168.1.5", false, "http://192.168.1.5:4000"],
  ])("of %s is only for this machine: %s", async (host, alone, url) => {
    expect(isLoopback(await addressOf(host))).toBe(alone);
    expect(urlOf(host, 4000, false)).toBe(url);
  });

  it("may be a name, which is checked by its address", async () => {
    expect(isLoopback(await addressOf("localhost"))).toBe(true);
    expect(urlOf("localhost", 4000, true)).toBe("https://localhost:4000");
  });
});

describe("serve rejects", () => {
  it("an address that other machines reach, without an authenticator and without insecure: true", async () => {
    const refused = start(echoAgent(), { host: "0.0.0.0", publicUrl: "https://agents.example.com" });
    await expect(refused).rejects.toThrow(/no authenticator\. .* `insecure: true`/);
  });

  it("an address that other machines reach, without a publicUrl", async () => {
    await expect(start(echoAgent(), { host: "0.0.0.0", insecure: true })).rejects.toThrow("publicUrl");
    await expect(start(echoAgent(), { host: "::", insecure: true })).rejects.toThrow("publicUrl");
  });

  it("no such address with an authenticator, a publicUrl and a named proxy", async () => {
    const authenticator = bearer({ secret: { subject: "ann" } });
    const server = await start(echoAgent(), {
      host: "0.0.0.0",
      publicUrl: "https://agents.example.com",
      authenticator,
      trustProxy: ["loopback"],
    });
    const answer = await fetch(`http://127.0.0.1:${server.port}/`, {
      method: "POST",
      body: send("hi"),
      headers: { "content-type": "application/json" },
    });
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, expect.stringContaining("Bearer")]);
  });

  it("a port that is taken, with the reason, and leaves nothing open", async () => {
    const first = await start(echoAgent());
    await expect(start(echoAgent(), { port: first.port })).rejects.toThrow(
      `Cannot listen on 127.0.0.1:${first.port}: another process uses this port`,
    );
  });

  it("a port that is not valid", async () => {
    await expect(start(echoAgent(), { port: 70_000 })).rejects.toThrow("port");
  });

  it("a host name without an address, with the reason", async () => {
    const host = "no-such-host.invalid";
    await expect(start(echoAgent(), { host })).rejects.toThrow(`Cannot listen on ${host}: the name has no address`);
  });

  it("options that the handler rejects, and closes the port", async () => {
    const { port, close } = await serve(echoAgent(), { port: 0, signals: false, store: memoryStore() });
    await close();
    await expect(start(echoAgent(), { port, publicUrl: "nonsense" })).rejects.toThrow("publicUrl");
    expect((await start(echoAgent(), { port })).port).toBe(port);
  });
});

describe("close", () => {
  it("lets a call finish within the grace, and closes its connection", async () => {
    const { agent, begun, finish } = slowAgent();
    const server = await start(agent);
    const answer = fetch(server.url, {
      method: "POST",
      body: send("x"),
      headers: { "content-type": "application/json" },
    });
    await begun;
    const closing = server.close({ grace: 60_000 });
    finish();
    const response = await answer;
    expect(response.headers.get("connection")).toBe("close");
    expect(await response.json()).toMatchObject({ result: { task: { status: { state: "TASK_STATE_COMPLETED" } } } });
    await closing;
  });

  it("aborts runs that take longer, and ends their streams so that clients continue elsewhere", async () => {
    const { agent, begun, aborted } = slowAgent();
    const store = memoryStore();
    const server = await start(agent, { store });
    using client = await RawClient.to(server.port);
    const body = send("x").replace("SendMessage", "SendStreamingMessage");
    client.socket.write(
      `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await begun;
    await client.until((text) => text.includes("Began"));
    await server.close({ grace: 0 });
    await aborted;
    expect(await client.ended()).not.toContain("TASK_STATE_COMPLETED");
  });

  it("lets a call over HTTP/2 finish within the grace, and ends calls that take longer", async () => {
    const { agent, begun, finish } = slowAgent();
    const server = await start(agent);
    using client = await Http2Client.to(server.url);
    const answer = client.post("/", send("x"));
    await begun;
    const closing = server.close({ grace: 60_000 });
    finish();
    expect(JSON.parse((await answer).body)).toMatchObject({
      result: { task: { status: { state: "TASK_STATE_COMPLETED" } } },
    });
    await closing;

    const slow = slowAgent();
    const second = await start(slow.agent);
    using reader = await Http2Client.to(second.url);
    const stream = reader.post("/", send("x").replace("SendMessage", "SendStreamingMessage"));
    await slow.begun;
    await second.close({ grace: 0 });
    await slow.aborted;
    const { body } = await stream;
    expect(body).toContain("Began");
    expect(body).not.toContain("TASK_STATE_COMPLETED");
  });

  it("accepts no new connection", async () => {
    const server = await start(echoAgent());
    await server.close();
    const refused = await new Promise((resolve) => {
      netConnect(server.port, "127.0.0.1").on("error", resolve).on("connect", resolve);
    });
    expect(refused).toMatchObject({ code: "ECONNREFUSED" });
  });

  it("called again returns the same promise", async () => {
    const server = await start(echoAgent());
    expect(server.close()).toBe(server.close({ grace: 5 }));
    await server.close();
  });

  it("does not wait for idle or silent connections", async () => {
    const server = await start(echoAgent());
    using silent = await RawClient.to(server.port);
    using half = await RawClient.to(server.port);
    half.socket.write("POST / HTTP/1.1\r\nHost:");
    using idle = await RawClient.to(server.port);
    idle.socket.write("GET /.well-known/agent-card.json HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await idle.until((text) => text.includes("}"));
    await server.close({ grace: 60_000 });
    expect(await Promise.all([silent.ended(), half.ended()])).toEqual(["", ""]);
    await idle.ended();
  });

  it("does not wait for a TLS handshake that never ends", async () => {
    const server = await start(echoAgent(), { tls: await certificateFor("localhost") });
    using silent = await RawClient.to(server.port);
    await server.close({ grace: 60_000 });
    expect(await silent.ended()).toBe("");
  });

  it("does not abort an answer that is being sent to a slow reader", async () => {
    const text = "x".repeat(8_000_000);
    const server = await start(echoAgent());
    using client = await RawClient.to(server.port);
    const body = send(text);
    client.socket.write(
      `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await client.until((seen) => seen.length > 0);
    client.socket.pause();
    const closing = server.close({ grace: 60_000 });
    client.socket.resume();
    const answer = await client.ended();
    // The server sends a large task in pieces. The last chunk shows that the response is complete (RFC 9112 §7.1).
    expect(answer).toMatch(/^HTTP\/1\.1 200 [^]*\r\n0\r\n\r\n$/);
    expect(answer.length).toBeGreaterThan(2 * text.length);
    await closing;
  });

  it("rejects a URL as the store, and suggests how to open one without repeating the URL", async () => {
    const starting = serve(echoAgent(), { port: 0, signals: false, store: "postgres://ada:secret@db/x" as never });
    await expect(starting).rejects.toThrow(/^The option `store` must be a store, or a function that opens one: .*url/);
    await expect(starting).rejects.not.toThrow("secret");
  });

  it("leaves a given store open, and closes its own", async () => {
    const store = memoryStore();
    const server = await start(echoAgent(), { store });
    await server.close();
    await expect(store.claimable({ now: 0, agents: [], limit: 1 })).resolves.toEqual({ heads: [] });
  });
});
