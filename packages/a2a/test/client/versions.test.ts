import { afterEach, describe, expect, test } from "vitest";
import { connect, type ConnectOptions } from "../../src/client/index.ts";
import { createHandler, type Handler, type HandlerOptions } from "@parley/server/internal/handler";
import { defineAgent } from "@parley/server/internal/agent/index";
import { memoryStore } from "@parley/server/internal/store/index";
import { codecV03 } from "../../src/wire/v03/index.ts";
import { card } from "../transport/support.ts";
import { glances } from "./support.ts";

/** Tests which interface and version a client chooses for servers of every version, and how the client handles 0.3. */

const open: Handler[] = [];
afterEach(async () => {
  for (const handler of open.splice(0)) await handler.close();
});

const base = "https://agents.example/echo";
const agent = defineAgent({
  name: "Echo",
  description: "Says it again",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    if (turn.text === "ask") return yield turn.inputRequired("What?");
    yield turn.working("on it");
    yield turn.artifact({ name: "echo", parts: [{ text: turn.text }] });
  },
});

type Answer = (request: Request) => Response | Promise<Response | undefined> | undefined;

/** Connects a client to our server. `instead` may answer a request before the server does. */
function served(options: Partial<HandlerOptions> = {}, instead: Answer = () => undefined) {
  const handler = createHandler(agent, { store: memoryStore(), publicUrl: base, ...options });
  open.push(handler);
  const seen: Request[] = [];
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const request = new Request(url, init);
    seen.push(request.clone());
    return (await instead(request)) ?? handler.fetch(request);
  };
  return { seen, connect: (more: ConnectOptions = {}) => connect(base, { fetch, retry: false, ...more }) };
}

const jsonOf = (value: unknown): Response =>
  new Response(JSON.stringify(value), { headers: { "content-type": "application/json" } });

describe("the choice of a version", () => {
  test.each<[HandlerOptions["versions"], ConnectOptions, string, string]>([
    [["1.0", "0.3"], {}, "JSONRPC", "1.0"],
    [["0.3", "1.0"], {}, "JSONRPC", "1.0"],
    [["0.3"], {}, "JSONRPC", "0.3"],
    [["1.0", "0.3"], { version: "0.3" }, "JSONRPC", "0.3"],
    [["1.0", "0.3"], { version: "0.3.0", binding: "HTTP+JSON" }, "HTTP+JSON", "0.3"],
    [["1.0", "0.3"], { binding: "HTTP+JSON" }, "HTTP+JSON", "1.0"],
  ])("of a server of %j with %j is %s %s", async (versions = [], options, protocolBinding, protocolVersion) => {
    const client = await served({ versions }).connect(options);
    expect(client.chosen).toMatchObject({ protocolBinding, protocolVersion });
    const { task } = await client.sendMessage("hello");
    expect(task?.artifacts?.[0]?.parts).toEqual([{ text: "hello" }]);
    expect((await client.getTask(task?.id as string)).status.state).toBe("TASK_STATE_COMPLETED");
    expect(await glances(client.sendStreamingMessage("hi"))).toEqual(["task SUBMITTED", "WORKING", "hi", "COMPLETED"]);
    expect(await glances(client.sendStreamingMessage("ask"))).toEqual(["task SUBMITTED", "INPUT_REQUIRED"]);
    expect(await glances(client.subscribeToTask(task?.id as string))).toEqual(["task COMPLETED"]);
  });

  test("of a version that the card does not have lists those that it has", async () => {
    await expect(served({ versions: ["1.0"] }).connect({ version: "0.3" })).rejects.toMatchObject({
      code: "InvalidResponse",
      message: expect.stringContaining('JSONRPC 1.0 at "https://agents.example/echo" was not asked for') as string,
    });
  });

  test("falls back to 0.3 if no interface of 1.0 answers", async () => {
    const dead: Answer = (request) =>
      request.method === "POST" && request.headers.get("a2a-version") === "1.0"
        ? new Response("gone", { status: 404 })
        : undefined;
    const client = await served({}, dead).connect();
    expect(client.chosen.protocolVersion).toBe("1.0");
    expect((await client.sendMessage("hello")).task).toBeDefined();
    expect(client.chosen).toMatchObject({ protocolBinding: "JSONRPC", protocolVersion: "0.3" });
  });

  test("tries another binding of 0.3 if one does not answer", async () => {
    const dead: Answer = (request) =>
      request.method === "POST" && new URL(request.url).pathname === "/echo"
        ? new Response("gone", { status: 404 })
        : undefined;
    const client = await served({ versions: ["0.3"] }, dead).connect();
    expect((await client.sendMessage("hello")).task).toBeDefined();
    expect(client.chosen).toMatchObject({ protocolBinding: "HTTP+JSON", protocolVersion: "0.3" });
  });
});

describe("the card", () => {
  const old = {
    name: "Old",
    description: "Of old",
    version: "1",
    url: base,
    protocolVersion: "0.3.0",
    capabilities: { streaming: true },
    defaultInputModes: [],
    defaultOutputModes: [],
    skills: [],
  };
  const cards =
    (at: string, value: object): Answer =>
    (request) => {
      if (request.method !== "GET") return undefined;
      return new URL(request.url).pathname === at ? jsonOf(value) : new Response("no", { status: 404 });
    };

  test.each([
    ["/echo/.well-known/agent-card.json", 1],
    ["/echo/.well-known/agent.json", 2],
    ["/.well-known/agent-card.json", 3],
    ["/.well-known/agent.json", 4],
  ])("is found at %s after %i requests", async (at, count) => {
    const { seen, connect: connectTo } = served({}, cards(at, old));
    const client = await connectTo();
    expect(client.card.name).toBe("Old");
    expect(seen).toHaveLength(count);
  });

  test("with the shapes of both versions has the interfaces of both", async () => {
    const both = {
      ...card({ supportedInterfaces: [{ url: `${base}/new`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }] }),
      ...old,
      additionalInterfaces: [{ url: `${base}/rest`, transport: "HTTP+JSON" }],
    };
    const client = await served({}, cards("/echo/.well-known/agent-card.json", both)).connect();
    expect(client.card.supportedInterfaces).toEqual([
      { url: `${base}/new`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url: base, protocolBinding: "JSONRPC", protocolVersion: "0.3" },
      { url: `${base}/rest`, protocolBinding: "HTTP+JSON", protocolVersion: "0.3" },
    ]);
    const known = codecV03.encodeCard(client.card);
    const again = await connect({ ...client.card, ...(known as typeof old) });
    expect(again.card.supportedInterfaces).toEqual(client.card.supportedInterfaces);
  });

  test.each<[string, object, string]>([
    ["of no version", {}, "url is required"],
    ["of 0.3 without an address", { ...old, url: undefined }, "url is required"],
    [
      "of 1.0 without interfaces",
      { ...old, url: undefined, supportedInterfaces: 7 },
      "supportedInterfaces must be an array",
    ],
  ])("%s: the error names the problem", async (_, value, message) => {
    await expect(served({}, cards("/echo/.well-known/agent-card.json", value)).connect()).rejects.toMatchObject({
      code: "InvalidResponse",
      message: expect.stringContaining(message) as string,
    });
  });
});

describe("streams of 0.3", () => {
  const event = (result: object): string => JSON.stringify({ jsonrpc: "2.0", id: 1, result }, undefined, 2);
  const status = (state: string, final: boolean) => ({
    kind: "status-update",
    taskId: "t",
    contextId: "c",
    status: { state },
    final,
  });
  /** Answers with a stream of these results in the format of Python's 0.3 server, which has one `data` field for each line. */
  const streaming =
    (...results: object[]): Answer =>
    (request) => {
      if (request.method === "GET") return undefined;
      const lines = results.map((result) => `${event(result).replace(/^/gm, "data: ")}\r\n\r\n`);
      return new Response(lines.join(""), { headers: { "content-type": "text/event-stream" } });
    };
  const stream = async (...results: object[]) => {
    const client = await served({ versions: ["0.3"] }, streaming(...results)).connect({ reconnect: false });
    return glances(client.sendStreamingMessage("hi"));
  };

  test("may spread an event over several lines", async () => {
    const artifact = { artifactId: "a", parts: [{ kind: "text", text: "x" }] };
    const update = { kind: "artifact-update", taskId: "t", contextId: "c", artifact };
    expect(await stream(status("working", false), update, status("completed", true))).toEqual([
      "WORKING",
      "x",
      "COMPLETED",
    ]);
  });

  test("end with `final`, whatever the state", async () => {
    expect(await stream(status("working", true), status("completed", true))).toEqual(["WORKING"]);
    expect(await stream(status("auth-required", true))).toEqual(["AUTH_REQUIRED"]);
  });

  test("end with the task if `final` is missing", async () => {
    expect(await stream(status("completed", false), status("working", false))).toEqual(["COMPLETED"]);
  });

  test.each([
    ["on its own, as JavaScript's server over REST does", "event: error\ndata: ", { code: -32004, message: "no" }],
    ["in a member", "data: ", { error: { code: 501, status: "UNIMPLEMENTED", message: "no" } }],
  ])("report the error %s", async (_, field, error) => {
    const failing: Answer = (request) =>
      request.method === "GET"
        ? undefined
        : new Response(`${field}${JSON.stringify(error)}\n\n`, { headers: { "content-type": "text/event-stream" } });
    const client = await served({ versions: ["0.3"] }, failing).connect({ binding: "HTTP+JSON", reconnect: false });
    await expect(glances(client.sendStreamingMessage("hi"))).rejects.toMatchObject({ code: "UnsupportedOperation" });
  });

  test("that break off earlier are ConnectionLost", async () => {
    await expect(stream(status("working", false))).rejects.toMatchObject({ code: "ConnectionLost" });
  });
});

test("activated extensions are read from either header", async () => {
  const activated: string[] = [];
  const { connect: connectTo } = served({ versions: ["0.3"] });
  const client = await connectTo({
    extensions: ["urn:parley:extension:stream-resume:v1"],
    interceptors: [
      (next) => ({
        async call(operation, request, context) {
          const reply = await next.call(operation, request, context);
          activated.push(...(reply.extensions ?? []));
          return reply;
        },
        stream: (...asked) => next.stream(...asked),
      }),
    ],
  });
  await client.sendMessage("hello");
  expect(activated).toEqual(["urn:parley:extension:stream-resume:v1"]);
});

describe("answers of 0.3", () => {
  test("may have the media type text/plain, which is the default in Go", async () => {
    const task = { kind: "task", id: "t", contextId: "c", status: { state: "completed" } };
    const instead: Answer = (request) =>
      request.method === "GET"
        ? undefined
        : new Response(JSON.stringify({ jsonrpc: "2.0", id: 1, result: task }), {
            headers: { "content-type": "text/plain; charset=utf-8" },
          });
    const client = await served({ versions: ["0.3"] }, instead).connect();
    expect((await client.sendMessage("hello")).task?.status.state).toBe("TASK_STATE_COMPLETED");
  });

  test.each([
    ["refused with the first event", { error: { code: -32602, message: "Task is in terminal state" } }],
    ["broken off", undefined],
  ])("a subscription to a finished task that is %s yields the task", async (_, answer) => {
    const task = { kind: "task", id: "t", contextId: "c", status: { state: "completed" } };
    const instead: Answer = async (request) => {
      if (request.method === "GET") return undefined;
      const { method, id } = (await request.json()) as { method: string; id: number };
      if (method === "tasks/get") return jsonOf({ jsonrpc: "2.0", id, result: task });
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          if (answer === undefined) return controller.error(new TypeError("terminated"));
          controller.enqueue(
            new TextEncoder().encode(`data: ${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n\n`),
          );
          controller.close();
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    };
    const { connect: connectTo } = served({ versions: ["0.3"] }, cardWithoutReplay(instead));
    expect(await glances((await connectTo()).subscribeToTask("t"))).toEqual(["task COMPLETED"]);
  });
});

describe("the extended card of an agent of 0.2, which has no method for extended cards", () => {
  const card02 = {
    name: "Old",
    description: "Of old",
    version: "1",
    url: "https://agents.example/team/echo",
    capabilities: {},
    defaultInputModes: [],
    defaultOutputModes: [],
    skills: [],
    supportsAuthenticatedExtendedCard: true,
  };
  /** Answers like a 0.2 agent, with its extended card at a path. */
  const agentOf02 =
    (at: string, status = 200): Answer =>
    async (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === at) {
        if (status !== 200) return new Response("who?", { status, headers: { "www-authenticate": "Bearer" } });
        return jsonOf({ ...card02, name: "Old, extended" });
      }
      if (request.method === "GET")
        return pathname.startsWith("/echo/.well-known/") ? jsonOf(card02) : new Response("", { status: 404 });
      const { id } = (await request.json()) as { id: number };
      return jsonOf({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } });
    };

  test.each([
    "/team/agent/authenticatedExtendedCard",
    "/team/echo/agent/authenticatedExtendedCard",
    "/agent/authenticatedExtendedCard",
  ])("is read at %s", async (at) => {
    const { seen, connect: connectTo } = served({}, agentOf02(at));
    const client = await connectTo({ headers: { authorization: "Bearer token" } });
    expect((await client.getExtendedAgentCard()).name).toBe("Old, extended");
    expect(seen.at(-1)?.headers.get("authorization")).toBe("Bearer token");
  });

  test("is rejected without credentials like any request", async () => {
    const client = await served({}, agentOf02("/agent/authenticatedExtendedCard", 401)).connect();
    await expect(client.getExtendedAgentCard()).rejects.toMatchObject({ code: "Unauthenticated", challenge: "Bearer" });
  });

  test("that does not exist is MethodNotFound", async () => {
    const client = await served({}, agentOf02("/nowhere")).connect();
    await expect(client.getExtendedAgentCard()).rejects.toMatchObject({ code: "MethodNotFound" });
  });
});

/** Returns a 0.3 card that promises nothing beyond the protocol. */
function cardWithoutReplay(then: Answer): Answer {
  const written = codecV03.encodeCard(
    card({ supportedInterfaces: [{ url: base, protocolBinding: "JSONRPC", protocolVersion: "0.3" }] }),
  );
  return (request) => (request.method === "GET" ? jsonOf(written) : then(request));
}
