import { afterEach, describe, expect, it } from "vitest";
import { jsonRpcBinding, memoryStore, restBinding, type Agent, type AgentMount } from "@parley/server";
import { connect, type Client } from "@parley/a2a";
import { grpcBinding as grpcServerBinding } from "@parley/grpc";
import { grpcBinding } from "@parley/grpc/client";
import { connect as connectInNode, serve, type ServeOptions, type Server } from "../src/index.ts";
import { echoAgent, slowAgent } from "./support/agents.ts";
import { certificateFor } from "./support/certificate.ts";
import { Http2Client } from "./support/http2.ts";

const running: Server[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close({ grace: 0 })));
});

async function start(agents: Agent | readonly AgentMount[], options: ServeOptions = {}): Promise<Server> {
  const grpc = options.bindings === undefined && { grpc: true };
  const server = await serve(agents, { port: 0, signals: false, store: memoryStore(), ...grpc, ...options });
  running.push(server);
  return server;
}

const bindings = [grpcBinding()];
const overGrpc = (server: Server, version?: string): Promise<Client> =>
  connect(server.agents[0]?.card ?? "", { bindings, binding: "GRPC", ...(version !== undefined && { version }) });

const faces = (server: Server): unknown[] =>
  server.agents.flatMap(({ card }) =>
    card.supportedInterfaces
      .filter(({ protocolBinding }) => protocolBinding === "GRPC")
      .map(({ url, protocolVersion, tenant }) => [protocolVersion, url, ...(tenant === undefined ? [] : [tenant])]),
  );

describe("serve with the option grpc", () => {
  it("speaks gRPC on the same port, and the card has its address without a scheme", async () => {
    const server = await start(echoAgent());
    const url = `127.0.0.1:${server.port}`;
    expect(server.ports).toEqual({});
    expect(faces(server)).toEqual([
      ["1.0", url],
      ["0.3", url],
    ]);
    for (const version of ["1.0", "0.3"]) {
      const client = await overGrpc(server, version);
      const { task } = await client.sendMessage(`over gRPC ${version}`);
      expect(task?.artifacts?.[0]?.parts).toEqual([{ text: `Echo: over gRPC ${version}` }]);
      const events = [];
      for await (const event of client.sendStreamingMessage("again")) events.push(event);
      expect(events.at(-1)?.statusUpdate?.status.state).toBe("TASK_STATE_COMPLETED");
    }
  });

  it("speaks gRPC over TLS, beside REST and JSON-RPC on the same connection", async () => {
    const tls = await certificateFor("localhost", "127.0.0.1");
    const server = await start(echoAgent(), { tls });
    const trusting = [grpcBinding(undefined, { tls: { ca: tls.cert } })];
    const client = await connect(server.agents[0]?.card ?? "", { bindings: trusting, binding: "GRPC" });
    expect((await client.sendMessage("hi")).task?.artifacts?.[0]?.parts).toEqual([{ text: "Echo: hi" }]);
    using http = await Http2Client.to(server.url, { ca: tls.cert });
    expect((await http.get("/tasks", { "a2a-version": "1.0" })).status).toBe(200);
  });

  it("tells agents apart by a label instead of their path", async () => {
    const server = await start([
      { agent: echoAgent("Root") },
      { agent: echoAgent("Weather"), path: "/weather" },
      { agent: echoAgent("Acme"), path: "/shared", tenant: "acme" },
    ]);
    for (const { card } of server.agents) {
      const client = await connect(card, { bindings, binding: "GRPC" });
      expect((await client.sendMessage("hi")).task?.artifacts?.[0]?.parts).toEqual([{ text: `${card.name}: hi` }]);
    }
    expect(faces(server)).toContainEqual(["1.0", `127.0.0.1:${server.port}`, "shared/acme"]);
  });

  it.each([
    ["https://agents.example.com", "agents.example.com:443"],
    ["http://agents.example.com/base", "agents.example.com:80"],
    ["https://[2001:db8::1]:8443", "[2001:db8::1]:8443"],
  ])("names the address of %s as %s", async (publicUrl, url) => {
    expect(faces(await start(echoAgent(), { publicUrl }))[0]).toEqual(["1.0", url]);
  });

  it.each([
    ["the option", { grpc: { url: "http://grpc.example.com:50051" } }],
    ["a binding", { bindings: [grpcServerBinding({ url: "http://grpc.example.com:50051" })] }],
  ])("has the given address on its card, by %s", async (_, options: ServeOptions) => {
    const server = await start(echoAgent(), options);
    expect(faces(server)[0]).toEqual(["1.0", "http://grpc.example.com:50051"]);
  });

  it.each([
    ["the option", { grpc: { port: 0 } }],
    ["a binding", { bindings: [jsonRpcBinding(), restBinding(), { binding: grpcServerBinding(), port: 0 }] }],
  ])("may have a second port only for gRPC, by %s", async (_, options: ServeOptions) => {
    const server = await start(echoAgent(), options);
    const { GRPC: port = 0 } = server.ports;
    expect([0, server.port]).not.toContain(port);
    expect(faces(server)[0]).toEqual(["1.0", `127.0.0.1:${port}`]);
    expect((await (await overGrpc(server)).sendMessage("hi")).task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect((await fetch(`http://127.0.0.1:${port}/.well-known/agent-card.json`)).status).toBe(404);
    using http = await Http2Client.to(server.url);
    const head = { "content-type": "application/grpc", te: "trailers" };
    expect((await http.post("/lf.a2a.v1.A2AService/GetTask", "", head)).headers["grpc-status"]).toBeUndefined();
    await server.close();
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow("fetch failed");
  });

  it("closes the first port if the second one is taken", async () => {
    const other = await start(echoAgent());
    const refused = start(echoAgent(), { grpc: { port: other.port } });
    await expect(refused).rejects.toThrow("another process uses this port");
  });

  it.each([
    ["by default, though @parley/grpc is installed", {}],
    ["with grpc: false", { grpc: false }],
    ["if the bindings do not list it", { bindings: [jsonRpcBinding(), restBinding()] }],
  ])("does not speak gRPC %s", async (_, options: ServeOptions) => {
    const server = await serve(echoAgent(), { port: 0, signals: false, store: memoryStore(), ...options });
    running.push(server);
    expect(server.agents[0]?.card.supportedInterfaces.map(({ protocolBinding }) => protocolBinding)).toEqual([
      "JSONRPC",
      "HTTP+JSON",
      "JSONRPC",
      "HTTP+JSON",
    ]);
    using http = await Http2Client.to(server.url);
    const { status } = await http.post("/lf.a2a.v1.A2AService/GetTask", "", { "content-type": "application/grpc" });
    expect(status).toBe(404);
  });

  it("rejects grpc beside bindings, and unknown options of it", async () => {
    const bindings = [jsonRpcBinding()];
    await expect(start(echoAgent(), { bindings, grpc: true })).rejects.toThrow(
      "The options `bindings` and `grpc` exclude each other: add grpcBinding() to `bindings`",
    );
    for (const grpc of ["yes", 50051, [], null])
      await expect(start(echoAgent(), { grpc: grpc as never })).rejects.toThrow(
        `The option \`grpc\` must be true, false or { port, url }; got ${JSON.stringify(grpc)}`,
      );
  });

  it("lets calls over gRPC finish when it closes, and ends streams", async () => {
    const { agent, begun, finish } = slowAgent();
    const server = await start(agent);
    const client = await overGrpc(server);
    const answer = client.sendMessage("x");
    await begun;
    const closing = server.close({ grace: 60_000 });
    finish();
    expect((await answer).task?.status.state).toBe("TASK_STATE_COMPLETED");
    await closing;

    const slow = slowAgent();
    const second = await start(slow.agent);
    const bounded = await connect(second.agents[0]?.card ?? "", { bindings, binding: "GRPC", reconnect: false });
    const stream = bounded.sendStreamingMessage("x")[Symbol.asyncIterator]();
    await stream.next();
    await slow.begun;
    await second.close({ grace: 0 });
    const rest = (async (): Promise<unknown> => {
      for (let next = await stream.next(); next.done !== true; next = await stream.next());
      return undefined;
    })();
    expect(await rest.catch((error: unknown) => (error as { code: string }).code)).not.toBe("TASK_STATE_COMPLETED");
  });

  it("answers gRPC-Web over HTTP/1.1", async () => {
    const server = await start(echoAgent());
    const answer = await fetch(`${server.url}/lf.a2a.v1.A2AService/ListTasks`, {
      method: "POST",
      headers: { "content-type": "application/grpc-web+proto", "a2a-version": "1.0" },
      body: new Uint8Array(5),
    });
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/grpc-web+proto"]);
    expect(Buffer.from(await answer.arrayBuffer()).toString("latin1")).toContain("grpc-status: 0");
  });
});

describe("connect in Node", () => {
  it("speaks gRPC if the options choose it, otherwise the first interface of the card", async () => {
    const server = await start(echoAgent());
    const asked = await connectInNode(server.url, { binding: "GRPC" });
    expect((await asked.sendMessage("hi")).task?.artifacts?.[0]?.parts).toEqual([{ text: "Echo: hi" }]);
    const others = await Promise.all([connectInNode(server.url), connectInNode(server.url, { binding: "HTTP+JSON" })]);
    const names = [asked, ...others].map(({ chosen }) => chosen.protocolBinding);
    expect(names).toEqual(["GRPC", "JSONRPC", "HTTP+JSON"]);
  });

  it("continues with another binding and version if an interface does not answer (A2A 1.0 §8.3.2)", async () => {
    const server = await start(echoAgent());
    const grpc = { url: `127.0.0.1:${server.port}`, protocolBinding: "GRPC" };
    const rpc = { url: server.url, protocolBinding: "JSONRPC" };
    const { card } = await connectInNode(server.url);
    // After this server closes, its port has no listener.
    const gone = await serve(echoAgent(), { port: 0, signals: false, store: memoryStore() });
    await gone.close({ grace: 0 });
    const dead = { url: `127.0.0.1:${gone.port}`, protocolVersion: "1.0" };
    for (const [first, second] of [
      [{ ...dead, protocolBinding: "GRPC" }, rpc],
      [{ ...dead, url: `http://${dead.url}`, protocolBinding: "JSONRPC" }, grpc],
    ] as const) {
      const supportedInterfaces = [first, { ...second, protocolVersion: "0.3" }];
      const client = await connectInNode({ ...card, supportedInterfaces }, { retry: false });
      expect(client.chosen).toEqual(first);
      expect((await client.sendMessage("hi")).task?.artifacts?.[0]?.parts).toEqual([{ text: "Echo: hi" }]);
      expect(client.chosen).toEqual({ ...second, protocolVersion: "0.3" });
    }
  });
});
