import express from "express";
import Fastify from "fastify";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { A2AError, createHandler, memoryStore, type AgentMount } from "@parley/server";
import { connect } from "@parley/a2a";
import { afterEach, describe, expect, it } from "vitest";
import { expressMount } from "../src/express.ts";
import { fastifyMount } from "../src/fastify.ts";
import { serve, type Server } from "../src/index.ts";
import { echoAgent } from "./support/agents.ts";

/** Tests one agent whose bindings have separate URLs (A2A 1.0 §4.4.6), with one card and one set of tasks. */

const mount: AgentMount = {
  agent: echoAgent(),
  interfaces: { JSONRPC: "/jsonrpc", "HTTP+JSON": "/rest" },
  cardPaths: ["/jsonrpc/.well-known/agent-card.json", "/card.json"],
};

const running: Server[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close({ grace: 0 })));
});

async function start(mounts: readonly AgentMount[]): Promise<Server> {
  const server = await serve(mounts, { port: 0, signals: false, store: memoryStore(), logger: false });
  running.push(server);
  return server;
}

/** Sends a message over each interface of a card. Each interface must list the tasks of all other interfaces. */
async function useAll(cardUrl: string): Promise<readonly string[]> {
  const { card } = await connect(cardUrl);
  const used: string[] = [];
  for (const face of card.supportedInterfaces.filter(({ protocolBinding }) => protocolBinding !== "GRPC")) {
    const client = await connect({ ...card, supportedInterfaces: [face] });
    const { task } = await client.sendMessage("hi");
    expect(task?.artifacts?.[0]?.parts).toEqual([{ text: "Echo: hi" }]);
    const events = [];
    for await (const event of client.sendStreamingMessage("again")) events.push(event);
    expect(events.at(-1)?.statusUpdate?.status.state).toBe("TASK_STATE_COMPLETED");
    expect((await client.getTask(task!.id)).id).toBe(task!.id);
    used.push(`${face.protocolVersion} ${face.protocolBinding} ${face.url}`);
  }
  const lists = card.supportedInterfaces.filter(
    ({ protocolBinding, protocolVersion }) => protocolBinding !== "GRPC" && protocolVersion === "1.0",
  );
  for (const face of lists) {
    const client = await connect({ ...card, supportedInterfaces: [face] });
    expect((await client.listTasks()).totalSize).toBe(2 * used.length);
  }
  return used;
}

const addresses = (url: string): readonly string[] => [
  `1.0 JSONRPC ${url}/jsonrpc`,
  `1.0 HTTP+JSON ${url}/rest`,
  `0.3 JSONRPC ${url}/jsonrpc`,
  `0.3 HTTP+JSON ${url}/rest`,
];

describe("interfaces at their own paths", () => {
  it("are on the card, and share the tasks of the agent", async () => {
    const server = await start([mount]);
    expect(await useAll(server.url)).toEqual(addresses(server.url));
  });

  it("have the card at its usual path and at the paths of cardPaths", async () => {
    const server = await start([mount]);
    const usual = await (await fetch(`${server.url}/.well-known/agent-card.json`)).text();
    for (const path of ["/jsonrpc/.well-known/agent-card.json", "/card.json", "/.well-known/agent.json"]) {
      const answer = await fetch(server.url + path);
      expect([path, answer.status, await answer.text()]).toEqual([path, 200, usual]);
    }
  });

  it("leave nothing at the default paths", async () => {
    const server = await start([mount]);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ListTasks", params: {} });
    const headers = { "content-type": "application/json" };
    expect((await fetch(server.url, { method: "POST", headers, body })).status).toBe(404);
    expect((await fetch(`${server.url}/tasks`)).status).toBe(404);
    expect((await fetch(`${server.url}/jsonrpc/tasks`)).status).toBe(404);
    expect((await fetch(`${server.url}/rest/tasks`)).status).toBe(200);
    expect((await fetch(`${server.url}/jsonrpc/`, { method: "POST", headers, body })).status).toBe(200);
  });

  it("can have tenants, beside other agents", async () => {
    const { agent, interfaces = {} } = mount;
    const server = await start([
      { agent, interfaces, path: "/shop", tenant: "acme" },
      { agent, interfaces, path: "/shop", tenant: "bolt" },
      { agent, path: "/other" },
    ]);
    const [acme, , other] = server.agents;
    expect(await useAll(acme!.cardUrl)).toEqual([
      `1.0 JSONRPC ${server.url}/shop/jsonrpc`,
      `1.0 HTTP+JSON ${server.url}/shop/rest`,
      `0.3 JSONRPC ${server.url}/shop/jsonrpc/acme`,
      `0.3 HTTP+JSON ${server.url}/shop/rest/acme`,
    ]);
    expect(await useAll(other!.cardUrl)).toHaveLength(4);
  });

  it("are mounted in Express and Fastify, which serve every other path", async () => {
    const make = (port: number) =>
      createHandler(mount, { store: memoryStore(), publicUrl: `http://127.0.0.1:${port}/agent` });
    const app = express();
    const listening = app.listen(0, "127.0.0.1");
    await once(listening, "listening");
    const { port } = listening.address() as AddressInfo;
    const handler = make(port);
    app.use(expressMount(handler));
    app.get("/agent/tasks", (_request, response) => void response.send("mine"));
    expect(await useAll(`http://127.0.0.1:${port}/agent`)).toEqual(addresses(`http://127.0.0.1:${port}/agent`));
    expect(await (await fetch(`http://127.0.0.1:${port}/agent/tasks`)).text()).toBe("mine");
    await handler.close({ grace: 0 });
    listening.closeAllConnections();
    listening.close();

    const fastify = Fastify();
    const other = createHandler(mount, { store: memoryStore(), publicUrl: "http://127.0.0.1:1/agent" });
    await fastify.register(fastifyMount(other), { prefix: "/agent" });
    const url = await fastify.listen({ port: 0, host: "127.0.0.1" });
    expect((await fetch(`${url}/agent/rest/tasks`)).status).toBe(200);
    expect((await fetch(`${url}/agent/tasks`)).status).toBe(404);
    await other.close({ grace: 0 });
    await fastify.close();
  });
});

describe("two claims for one address are rejected at startup", () => {
  const { agent } = mount;
  const cases: readonly (readonly [string, readonly AgentMount[]])[] = [
    [
      "interfaces.JSONRPC: JSONRPC and HTTP+JSON both have the address /tasks",
      [{ agent, interfaces: { JSONRPC: "/tasks" } }],
    ],
    [
      "interfaces: a card and JSONRPC both have the address /.well-known/agent-card.json",
      [{ agent, interfaces: { JSONRPC: "/.well-known/agent-card.json" } }],
    ],
    [
      "cardPaths: a card and JSONRPC both have the address /rpc",
      [{ agent, interfaces: { JSONRPC: "/rpc" }, cardPaths: ["/rpc"] }],
    ],
    [
      "cardPaths: a card and HTTP+JSON both have the address /rest/tasks",
      [{ agent, interfaces: { "HTTP+JSON": "/rest" }, cardPaths: ["/rest/tasks"] }],
    ],
    ['interfaces.HTTP+JSON: "rest" is not a valid path', [{ agent, interfaces: { "HTTP+JSON": "rest" } }]],
    [
      "interfaces must be the same for all agents with the path /a",
      [
        { agent, path: "/a", tenant: "x", interfaces: { JSONRPC: "/rpc" } },
        { agent, path: "/a", tenant: "y" },
      ],
    ],
    ["path /jsonrpc conflicts with an address of the agent at /", [mount, { agent, path: "/jsonrpc" }]],
    ["path /rest conflicts with an address of the agent at /", [mount, { agent, path: "/rest" }]],
    ["path /rest/tasks conflicts with an address of the agent at /", [mount, { agent, path: "/rest/tasks" }]],
  ];

  it.each(cases)("%s", (says, mounts) => {
    const make = () => createHandler(mounts, { store: memoryStore(), publicUrl: "http://127.0.0.1" });
    expect(make).toThrow(A2AError);
    expect(make).toThrow(says);
  });

  it("other addresses are accepted", () => {
    const mounts = [mount, { agent, path: "/tasks" }, { agent, path: "/weather" }];
    const handler = createHandler(mounts, { store: memoryStore(), publicUrl: "http://127.0.0.1" });
    expect(handler.answers("/tasks/tasks")).toBe(true);
    return handler.close({ grace: 0 });
  });
});
