import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { A2AError, connect, type Client, type ConnectOptions } from "@parley/a2a";
import {
  defineAgent,
  jsonRpcBinding,
  memoryStore,
  restBinding,
  serve,
  type Agent,
  type ServeOptions,
  type Server,
} from "@parley/node";
import { wireErrorCodes, type A2AErrorCode } from "@parley/a2a/model";
import { bearer } from "@parley/a2a/auth";
import type { Interceptor } from "@parley/a2a/protocol";
import { conform } from "@parley/conform";
import { actsAgent } from "../../../kits/agents/acts.ts";
import { webSocketBinding as webSocketClient } from "../src/client.ts";
import { errorTable, printedTable } from "../src/errors.ts";
import { bindingName, window } from "../src/frames.ts";
import { webSocketBinding } from "../src/server.ts";
import { Proxy } from "./proxy.ts";
import { RawClient } from "./raw-client.ts";

/** A binding that no package knows, built only on their public interfaces (A2A 1.0 §5.8, §12). */

const running: Server[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close({ grace: 0 })));
});

async function start(agent: Agent, options: ServeOptions = {}): Promise<Server> {
  const server = await serve(agent, {
    port: 0,
    signals: false,
    logger: false,
    store: memoryStore(),
    bindings: [jsonRpcBinding(), restBinding(), webSocketBinding()],
    ...options,
  });
  running.push(server);
  return server;
}

const open = ({ url }: Server, options: ConnectOptions = {}): Promise<Client> =>
  connect(url, { bindings: [webSocketClient()], binding: bindingName, ...options });

const words = { version: "1.0.0", description: "For tests.", skills: [] };

const echo = defineAgent({ ...words, name: "Echo", onMessage: (turn) => turn.reply(turn.text) });

/** Emits chunks of an artifact as fast as they are stored, and counts them. */
function chunks(count: number, length: number): { readonly agent: Agent; readonly emitted: () => number } {
  let emitted = 0;
  const agent = defineAgent({
    ...words,
    name: "Chunks",
    mayReplyDirectly: false,
    async *onMessage(turn) {
      for (; emitted < count && !turn.signal.aborted; emitted++) {
        const parts = [{ text: "x".repeat(length) }];
        yield emitted === 0 ? turn.artifact({ artifactId: "a", parts, open: true }) : turn.append("a", parts);
        await turn.flush();
      }
    },
  });
  return { agent, emitted: () => emitted };
}

const ask = (text: string) => ({ message: { messageId: text, role: "ROLE_USER", parts: [{ text }] } });

describe("the binding", () => {
  it("passes the conformance suite", { timeout: 240_000 }, async () => {
    const { url } = await start(actsAgent({ work: 1_000 }));
    const report = await conform(url, { bindings: [bindingName], clientBindings: [webSocketClient()], level: "must" });
    const tests = report.bindings.flatMap(({ suites }) => suites.flatMap((suite) => suite.tests));
    expect(report.bindings.map(({ binding, version }) => [binding, version])).toContainEqual([bindingName, "1.0"]);
    expect(tests.filter(({ result }) => result === "fail" || result === "error")).toEqual([]);
    expect(tests.filter(({ result }) => result === "pass").length).toBeGreaterThan(30);
  });

  it("is on the card by its URI, beside the standard bindings (A2A 1.0 §12.7)", async () => {
    const server = await start(echo);
    const [{ card }] = server.agents as [(typeof server.agents)[0]];
    const own = card.supportedInterfaces.filter(({ protocolBinding }) => protocolBinding === bindingName);
    expect(own[0]).toEqual({
      url: `ws://127.0.0.1:${server.port}/ws`,
      protocolBinding: bindingName,
      protocolVersion: "1.0",
    });
    expect(card.supportedInterfaces.length).toBeGreaterThan(own.length);
  });

  it("has calls of several versions on one connection at the same time", async () => {
    const server = await start(echo);
    using raw = await RawClient.to(server);
    for (let id = 1; id <= 20; id++) raw.send({ id, method: "SendMessage", params: ask(`m${id}`) });
    raw.send({ id: 21, method: "SendMessage", params: ask("old"), headers: { "a2a-version": "9.9" } });
    await raw.until(({ id }) => id === 21);
    await vi.waitFor(() => expect(raw.frames.filter(({ result }) => result !== undefined)).toHaveLength(20));
    expect(raw.frames.find(({ id }) => id === 21)).toMatchObject({
      status: 400,
      error: { error: { status: "FAILED_PRECONDITION" } },
    });
    for (const version of ["1.0", "0.3"]) {
      const client = await open(server, { version });
      const { message } = await client.sendMessage("hello");
      expect(message?.parts).toEqual([{ text: "hello" }]);
    }
  });

  it("gives each client a separate connection, with its limits and headers", async () => {
    const large = defineAgent({ ...words, name: "Large", onMessage: (turn) => turn.reply("x".repeat(50_000)) });
    const { url } = await start(large);
    const options = { bindings: [webSocketClient()], binding: bindingName };
    const wide = await connect(url, options);
    const narrow = await connect(url, { ...options, maxResponseBytes: 10_000, maxEventBytes: 10_000 });
    expect((await wide.sendMessage("Please")).message?.parts[0]?.text?.length).toBe(50_000);
    await expect(narrow.sendMessage("Please")).rejects.toMatchObject({ code: "InvalidResponse" });
  });

  it("authenticates each call, by its own headers or by those of the handshake (A2A 1.0 §12.6)", async () => {
    const server = await start(echo, { authenticator: bearer({ secret: { subject: "ada" } }) });
    const stranger = await open(server);
    await expect(stranger.sendMessage("hi")).rejects.toMatchObject({ code: "Unauthenticated", challenge: "Bearer" });
    const ada = await open(server, { headers: { authorization: "Bearer secret" } });
    expect((await ada.sendMessage("hi")).message?.parts).toEqual([{ text: "hi" }]);
  });

  it("sends each error as in the table of README.md, which the program prints (A2A 1.0 §12.4)", async () => {
    const rows = errorTable();
    expect(rows.map(({ error }) => error)).toEqual(wireErrorCodes);
    const throwing: Interceptor = (next) => ({
      stream: (operation, asked, context) => next.stream(operation, asked, context),
      call(operation, asked) {
        throw new A2AError(("id" in asked ? asked.id : operation) as A2AErrorCode);
      },
    });
    const server = await start(echo, { interceptors: [throwing] });
    using raw = await RawClient.to(server);
    for (const [id, { error, status, name, reason }] of rows.entries()) {
      raw.send({ id, method: "GetTask", params: { id: error } });
      const frame = await raw.until((each) => each.id === id);
      const details = reason === "" ? [] : [expect.objectContaining({ reason })];
      expect(frame, error).toMatchObject({ status, error: { error: { status: name } } });
      expect((frame.error as { error: { details?: object[] } }).error.details ?? [], error).toEqual(details);
    }
    expect(await readFile(join(import.meta.dirname, "../README.md"), "utf8")).toContain(printedTable());
  });

  it("reports errors with their details", async () => {
    const client = await open(await start(echo));
    await expect(client.getTask("none")).rejects.toMatchObject({ code: "TaskNotFound" });
    await expect(client.listTasks({ pageSize: -1 })).rejects.toMatchObject({ code: "InvalidParams" });
  });
});

describe("a stream", () => {
  it("continues after the last event that its reader received", async () => {
    const server = await start(chunks(40, 10).agent);
    const client = await open(server);
    const { task } = await client.sendMessage("go");
    using raw = await RawClient.to(server);
    raw.send({ id: 1, method: "SubscribeToTask", params: { id: task?.id }, headers: { "last-event-id": "30" } });
    await raw.until(({ end }) => end === true);
    const seqs = raw.frames.flatMap(({ seq }) => seq ?? []);
    expect([seqs[0], seqs.every((seq, at) => seq === 31 + at)]).toEqual([31, true]);
    expect(raw.frames.filter(({ event }) => (event as { task?: object } | undefined)?.task !== undefined)).toEqual([]);
  });

  it("continues automatically at a client whose connection is lost, and loses and repeats nothing", async () => {
    await using proxy = await Proxy.open();
    const server = await start(chunks(40, 32 * 1024).agent, { publicUrl: proxy.url });
    proxy.target = server.port;
    const client = await connect(proxy.url, { bindings: [webSocketClient()], binding: bindingName });
    let seen = 0;
    let last: string | undefined;
    for await (const { artifactUpdate, statusUpdate } of client.sendStreamingMessage("go")) {
      last = statusUpdate?.status.state ?? last;
      if (artifactUpdate !== undefined && ++seen === 5) proxy.cut();
    }
    expect([seen, last, proxy.cuts]).toEqual([40, "TASK_STATE_COMPLETED", 1]);
  });

  it("is sent no faster than it is read, in bytes, and does not delay its agent or other calls", async () => {
    const { agent, emitted } = chunks(100, 32 * 1024);
    const server = await start(agent);
    using raw = await RawClient.to(server);
    raw.send({ id: 1, method: "SendStreamingMessage", params: ask("go") });
    const sent = (): number => raw.frames.filter(({ id, event }) => id === 1 && event !== undefined).length;
    await vi.waitFor(() => expect(emitted()).toBe(100));
    for (let id = 2; id < 12; id++) {
      raw.send({ id, method: "GetTask", params: { id: "none" } });
      await raw.until((frame) => frame.id === id && frame.error !== undefined);
    }
    expect(sent() * 32 * 1024).toBeLessThan(2 * window);
    const before = sent();
    raw.send({ id: 1, taken: before });
    await vi.waitFor(() => expect(sent()).toBeGreaterThan(before));
  });

  it.each(["a frame", "its connection"])("is released when its reader leaves by %s", async (by) => {
    const returned = vi.fn<() => void>();
    const watch: Interceptor = (next) => ({
      call: (operation, asked, context) => next.call(operation, asked, context),
      async stream(operation, asked, context) {
        const reply = await next.stream(operation, asked, context);
        const batches = reply.batches[Symbol.asyncIterator]();
        const watched = {
          next: () => batches.next(),
          return: () => (returned(), batches.return?.() ?? Promise.resolve({ done: true as const, value: undefined })),
        };
        return { ...reply, batches: { [Symbol.asyncIterator]: () => watched } };
      },
    });
    const server = await start(chunks(Infinity, 10).agent, { interceptors: [watch] });
    using raw = await RawClient.to(server);
    raw.send({ id: 1, method: "SendStreamingMessage", params: ask("go") });
    await raw.until(({ event }) => event !== undefined);
    expect(returned).not.toHaveBeenCalled();
    if (by === "a frame") raw.send({ id: 1, leave: true });
    else raw.ws.terminate();
    await vi.waitFor(() => expect(returned).toHaveBeenCalled());
  });

  it("is left by a client that stops reading, and its connection continues", async () => {
    const server = await start(chunks(Infinity, 10).agent);
    const client = await open(server);
    for await (const event of client.sendStreamingMessage("go")) if (event.artifactUpdate !== undefined) break;
    expect((await client.listTasks({})).tasks).toHaveLength(1);
  });
});

it("is used by the command line as a module (`parley conform --client`)", async () => {
  const { default: client } = await import("../src/parley-client.ts");
  expect(client.name).toBe(bindingName);
});

it("is shown by the example's program", async () => {
  await import("../src/main.ts");
});

describe("a connection", () => {
  it.each([
    ["no JSON", "{", 1007],
    ["nested too deeply", "[".repeat(200), 1007],
    ["without an id", '{"method":"ListTasks"}', 1008],
    ["of no kind", '{"id":1}', 1008],
    ["twice as large as a request may be", `{"id":1,"method":"${"x".repeat(2050)}"}`, 1009],
  ])("with a frame that is %s is closed", async (_what, frame, code) => {
    const server = await start(echo, { limits: { bodyBytes: 1024 } });
    using raw = await RawClient.to(server);
    raw.ws.send(frame);
    expect(await raw.closed).toBe(code);
  });

  it("limits its open calls", async () => {
    const { agent } = chunks(Infinity, 10);
    const server = await start(agent);
    using raw = await RawClient.to(server);
    for (let id = 1; id <= 65; id++) raw.send({ id, method: "SendStreamingMessage", params: ask(`m${id}`) });
    expect(await raw.until(({ error }) => error !== undefined)).toMatchObject({ id: 65, status: 503 });
  });

  it("whose client answers no ping is closed", async () => {
    const server = await start(echo, { keepAlive: 50 });
    using raw = await RawClient.to(server, { autoPong: false });
    expect(await raw.closed).toBe(1006);
  });

  it("ends when its server stops, with a message that says so", async () => {
    const server = await start(echo);
    using raw = await RawClient.to(server);
    await server.close({ grace: 0 });
    expect(await raw.closed).toBe(1001);
  });

  it("of a page of another origin is rejected, and a request without an upgrade gets a hint", async () => {
    const server = await start(echo);
    const ws = server.url.replace("http", "ws");
    expect((await fetch(`${server.url}/ws`)).status).toBe(426);
    const status = await new Promise((resolve, reject) => {
      const headers = { connection: "upgrade", upgrade: "websocket", origin: "https://evil.example" };
      const asked = request(`${server.url}/ws`, { headers }, (answer) => resolve(answer.statusCode));
      asked.on("upgrade", () => reject(new Error(`${ws} was upgraded`))).on("error", reject);
      asked.end();
    });
    expect(status).toBe(403);
  });
});
