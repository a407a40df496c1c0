import { connect as connectSocket } from "node:net";
import { connect, type Client } from "@parley/a2a";
import { apiKey } from "@parley/a2a/auth";
import { defineExtension } from "@parley/a2a/extensions";
import { grpcBinding as grpcClient } from "@parley/grpc/client";
import { createHost, defineAgent, memoryStore, type Agent } from "@parley/server";
import { afterEach, describe, expect, it } from "vitest";
import { serve, type ServeOptions, type Server } from "../src/index.ts";
import { deferred } from "./support/host.ts";

/* Tests agents and services that are added and removed at run time, and requests that try to bypass a route or an agent. */

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const named = (name: string, onMessage: Parameters<typeof defineAgent>[0]["onMessage"]): Agent =>
  defineAgent({ name, description: name, version: "1.0.0", skills: [], onMessage });

const working = (name: string, gate: Promise<void> = Promise.resolve()): Agent =>
  named(name, async function* (turn) {
    yield turn.working(`${name} begins`);
    await gate;
    yield turn.completed(`${name} is done`);
  });

async function start(agents: Parameters<typeof serve>[0], options: ServeOptions = {}): Promise<Server> {
  const server = await serve(agents, { port: 0, signals: false, logger: false, store: memoryStore(), ...options });
  closers.push(() => server.close({ grace: 0 }));
  return server;
}

const textOf = async (client: Client): Promise<string | undefined> => {
  const { task } = await client.sendMessage("Go");
  return task?.status.message?.parts[0]?.text;
};

describe("agents of an engine", () => {
  it("are added over every binding, and keep their tasks when they are removed and added again", async () => {
    const server = await start([{ agent: working("A"), path: "/a" }], { grpc: true });
    const [added] = server.mounts.add({ agent: working("B"), path: "/b" });
    for (const binding of ["JSONRPC", "HTTP+JSON", "GRPC"]) {
      const client = await connect(added?.url ?? "", {
        bindings: binding === "GRPC" ? [grpcClient()] : [],
        binding,
      }).catch(() => connect(added?.url ?? "", { binding }));
      expect([binding, await textOf(client)]).toEqual([binding, "B is done"]);
    }
    const client = await connect(`${server.url}/b`);
    const { task } = await client.sendMessage("Go");
    await server.mounts.remove("/b");
    await expect(client.getTask(task?.id ?? "")).rejects.toThrow(/nothing is served at this path/i);
    server.mounts.add({ agent: working("B"), path: "/b" });
    expect((await client.getTask(task?.id ?? "")).status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("finish their turns when they are removed, and removal resolves then", async () => {
    const gate = deferred();
    const store = memoryStore();
    const server = await start([{ agent: working("A", gate.promise), path: "/a" }], { store });
    const client = await connect(`${server.url}/a`);
    const { task } = await client.sendMessage({
      message: { messageId: "m-1", role: "ROLE_USER", parts: [{ text: "Go" }] },
      configuration: { returnImmediately: true },
    });
    let isOver = false;
    const removed = server.mounts.remove("/a").then(() => (isOver = true));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(isOver).toBe(false);
    gate.resolve();
    await removed;
    server.mounts.add({ agent: working("A"), path: "/a" });
    expect((await client.getTask(task?.id ?? "")).status.message?.parts[0]?.text).toBe("A is done");
  });

  it("are replaced while a turn runs: the turn finishes with the old agent, and the next one uses the new one", async () => {
    const gate = deferred();
    const server = await start([{ agent: working("Old", gate.promise), path: "/a" }]);
    const client = await connect(`${server.url}/a`);
    const running = textOf(client);
    await expect.poll(async () => (await client.listTasks()).tasks.length).toBe(1);
    server.mounts.replace({ agent: working("New"), path: "/a" });
    gate.resolve();
    expect(await running).toBe("Old is done");
    expect(await textOf(client)).toBe("New is done");
  });

  it("cannot have an extension that the server does not know", async () => {
    const server = await start([{ agent: working("A"), path: "/a" }]);
    const drafts = defineExtension({ uri: "https://example.com/drafts/v1", description: "Drafts", kind: "data" });
    const agent = { ...working("B"), extensions: [drafts] };
    expect(() => server.mounts.add({ agent, path: "/b" })).toThrow(/extensions/);
    const knowing = await start([{ agent: { ...working("A"), extensions: agent.extensions }, path: "/a" }]);
    expect(knowing.mounts.add({ agent, path: "/b" })).toHaveLength(1);
  });

  it("cannot be added to a server without a store", async () => {
    const upstream = await connect((await start(working("Upstream"))).url);
    const service = { service: upstream.service, card: { name: "G", description: "", version: "1", skills: [] } };
    const server = await serve([service], { port: 0, signals: false, logger: false });
    closers.push(() => server.close({ grace: 0 }));
    expect(() => server.mounts.add({ agent: working("B"), path: "/b" })).toThrow(/engine/);
    await expect(server.signal("t", "n")).rejects.toMatchObject({ code: "UnsupportedOperation" });
    await expect(server.deleteOwner("ada")).rejects.toMatchObject({ code: "UnsupportedOperation" });
  });

  it("may be removed while the server stops", async () => {
    const gate = deferred();
    const server = await start([{ agent: working("A", gate.promise), path: "/a" }]);
    const client = await connect(`${server.url}/a`);
    const running = textOf(client);
    await expect.poll(async () => (await client.listTasks()).tasks.length).toBe(1);
    const closing = server.close({ grace: 2_000 });
    const removed = server.mounts.remove("/a");
    gate.resolve();
    await Promise.all([running.catch(() => {}), closing, removed]);
    expect(() => server.mounts.add({ agent: working("B"), path: "/b" })).toThrow(/stopping/);
  });
});

describe("a gateway", () => {
  it("serves an agent of another server over its own bindings, with its tasks and streams", async () => {
    const gate = deferred();
    const upstream = await start(working("Upstream", gate.promise), { grpc: true });
    const { service } = await connect(upstream.url);
    const card = { name: "Front", description: "Passes on.", version: "1.0.0", skills: [] };
    const server = await serve([{ service, card, path: "/front" }], {
      port: 0,
      signals: false,
      logger: false,
      grpc: true,
    });
    closers.push(() => server.close({ grace: 0 }));
    const client = await connect(`${server.url}/front`);
    const texts: unknown[] = [];
    for await (const { statusUpdate } of client.sendStreamingMessage("Go")) {
      const text = statusUpdate?.status.message?.parts[0]?.text;
      if (text !== undefined) texts.push(text);
      gate.resolve();
    }
    expect(texts).toEqual(["Upstream begins", "Upstream is done"]);
    expect((await client.listTasks()).tasks).toHaveLength(1);
  });
});

/** Returns the server's response to a request line that no HTTP client would send. */
async function raw(port: number, path: string, headers = ""): Promise<string> {
  const socket = connectSocket(port, "127.0.0.1");
  let text = "";
  socket.setEncoding("latin1").on("data", (chunk) => (text += chunk));
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost:${port}\r\nConnection: close\r\n${headers}\r\n`);
  await new Promise((resolve) => socket.once("close", resolve).once("error", resolve));
  return text;
}

describe("paths in other spellings", () => {
  const tricks = ["/..", "/%2e%2e", "/.%2E", "/a/../..", "/..%2f", "\\..", "/..\\x", "/.", "/;/..", "//.."];

  it("reach no route from outside, and do not leave one", async () => {
    const seen: string[] = [];
    const server = await start([{ agent: working("A"), path: "/a" }], {
      authenticator: apiKey({ "the-key-of-ada": { subject: "ada" } }, { header: "x-key" }),
      routes: [
        {
          path: "/open",
          access: "anyone",
          answer: ({ url }) => (seen.push(new URL(url).pathname), new Response("open")),
        },
        { path: "/closed", answer: ({ url }) => (seen.push(new URL(url).pathname), new Response("SECRET")) },
      ],
    });
    for (const trick of tricks) {
      for (const target of ["/closed", "/a", "/a/tasks", "/closed/x"]) {
        const answer = await raw(server.port, `/open${trick}${target}`);
        expect([trick, answer.includes("SECRET")]).toEqual([trick, false]);
      }
      await raw(server.port, `/x${trick}/closed`);
    }
    expect(seen.filter((path) => !/^\/open(?:\/|$)/.test(path))).toEqual([]);
    for (const path of ["/CLOSED", "//closed", "/closed%2f", "/%63losed", "/./closed"]) {
      expect(await raw(server.port, path)).toMatch(/^HTTP\/1\.1 404 /);
    }
    expect(await raw(server.port, "/closed", "x-key: the-key-of-ada\r\n")).toContain("SECRET");
  });

  it("a route is below the path of publicUrl", async () => {
    const publicUrl = "https://agents.example.com/all";
    const answer = ({ url }: Request): Response => new Response(url);
    const host = createHost([], { publicUrl, routes: [{ path: "/console", access: "anyone", answer }] });
    const ask = async (path: string) => {
      const found = await host.fetch(new Request(`https://agents.example.com${path}`));
      return [found.status, found.status === 200 ? await found.text() : ""];
    };
    expect(await ask("/all/console/x?y=1")).toEqual([200, `${publicUrl}/console/x?y=1`]);
    expect(await ask("/console")).toEqual([404, ""]);
    await host.close();
  });
});
