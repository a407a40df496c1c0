import { once } from "node:events";
import { mkdtemp, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { defineAgent, type AgentEvent, type Turn } from "@parley/node";
import { testAgent, type TestAgent } from "@parley/testing";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { bundled } from "../../../test/programs.ts";
import {
  mcpPool,
  mcpTools,
  memoryPins,
  type McpPool,
  type McpPoolOptions,
  type McpTools,
  type McpToolsOptions,
} from "../src/tools/index.ts";

const script = await bundled(join(import.meta.dirname, "tools-server.ts"));

function poolOf(mode: string, options: Partial<McpPoolOptions> = {}, env: Record<string, string> = {}): McpPool {
  const workshop = { command: process.execPath, args: [script], env: { MODE: mode, ...env } };
  const pool = mcpPool({ servers: { workshop, second: workshop }, ...options });
  onTestFinished(() => pool.close());
  return pool;
}

type Use = (tools: McpTools, turn: Turn) => AsyncGenerator<AgentEvent | readonly AgentEvent[], void, void>;

/** An agent with the tools of a pool. */
async function agentWith(pool: McpPool, use: Use, options: McpToolsOptions = {}): Promise<TestAgent> {
  const agent = defineAgent({
    name: "Mechanic",
    description: "Uses tools.",
    version: "1.0.0",
    skills: [],
    defaultInputModes: ["text/plain", "application/json"],
    resumable: true,
    async *onMessage(turn) {
      yield* use(await mcpTools(turn, pool.server("workshop"), options), turn);
    },
  });
  const under = await testAgent(agent);
  onTestFinished(() => under.close());
  return under;
}

const textOf = (task: { status: { message?: { parts: readonly { text?: string }[] } } } | undefined) =>
  task?.status.message?.parts[0]?.text;

/** The result of a tool, as the text of the task. */
async function answer(pool: McpPool, name: string, options: McpToolsOptions = {}): Promise<string | undefined> {
  const agent = await agentWith(
    pool,
    async function* (tools, turn) {
      try {
        const { text, isError } = yield* tools.call("one", name, {});
        yield turn.completed(`${isError} ${text}`);
      } catch (error) {
        yield turn.completed(`${(error as Error).name}: ${(error as Error).message}`);
      }
    },
    options,
  );
  return textOf((await agent.client.sendMessage("Go")).task);
}

test("lists tools, shows progress, and calls each once per id, even after a crash", async () => {
  const log = join(await mkdtemp(join(tmpdir(), "mcp-")), "log");
  const pool = poolOf("kind", {}, { LOG: log });
  const said: string[] = [];
  let crash = true;
  const agent = await agentWith(pool, async function* (tools, turn) {
    expect(tools.tools[0]).toMatchObject({
      name: "add",
      description: expect.stringMatching(/^Description by the tool.*Adds one$/),
    });
    const first = yield* tools.call("first", "add", { n: 1 });
    expect(first.structuredContent).toEqual({ sum: 2 });
    if (crash) {
      crash = false;
      await agent.crash();
      return;
    }
    const call = tools.call("second", "add", { n: Number(first.text) });
    let next = await call.next();
    for (; next.done !== true; next = await call.next()) {
      said.push(JSON.stringify(next.value));
      yield next.value;
    }
    const second = next.value;
    const again = await tools.run("third", "add", { n: Number(second.text) });
    yield turn.completed(again.text);
  });
  const { task } = await agent.client.sendMessage({ message: "Go", configuration: { returnImmediately: true } });
  await expect.poll(() => crash).toBe(false);
  await agent.restart();
  const done = await agent.clock.until(agent.client.waitFor(task!));
  expect(textOf(done)).toBe("4");
  expect(said.join("\n")).toContain("add: Adding");
  const calls = (await readFile(log, "utf8")).trim().split("\n");
  expect(calls.map((line) => line.split(" ")[0])).toEqual(["add", "add", "add"]);
  expect(new Set(calls).size).toBe(3);
  expect(calls.every((line) => /^add [0-9a-f]{32}$/.test(line))).toBe(true);
});

test("passes a tool's question to the user, and continues the call with the answer", async () => {
  const log = join(await mkdtemp(join(tmpdir(), "mcp-")), "log");
  const agent = await agentWith(poolOf("kind", {}, { LOG: log }), async function* (tools, turn) {
    const { text: before } = yield* tools.call("before", "add", { n: 1 });
    const { text } = yield* tools.call("paint", "color");
    yield turn.completed(`${text} ${before}`);
  });
  const { task } = await agent.client.sendMessage("Go");
  expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  expect(task?.status.message?.parts).toMatchObject([
    { text: "workshop asks: Which color?" },
    { mediaType: "application/schema+json", data: { properties: { color: { type: "string" } } } },
  ]);
  await agent.crash();
  await agent.restart();
  const { task: done } = await agent.client.sendMessage({ message: { taskId: task!.id, parts: [{ text: "blue" }] } });
  expect(textOf(done)).toBe("Painted blue 2");
  const calls = (await readFile(log, "utf8")).trim().split("\n");
  expect(calls.map((line) => line.split(" ")[0])).toEqual(["add", "color", "color"]);
});

test("keeps a tool's question that a framework caught", async () => {
  const agent = await agentWith(poolOf("kind"), async function* (tools, turn) {
    const { color } = tools.forModel();
    const result = await color?.execute({}, { toolCallId: "call_1" }).catch(() => undefined);
    if (tools.question !== undefined) throw tools.question;
    yield turn.completed(result?.text ?? "nothing");
  });
  const { task } = await agent.client.sendMessage("Go");
  expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  const { task: done } = await agent.client.sendMessage({
    message: { taskId: task!.id, parts: [{ data: { color: "red" } }] },
  });
  expect(textOf(done)).toBe("Painted red");
});

describe("a hostile server", () => {
  it("returns tool errors as results, and throws its other failures", async () => {
    expect(await answer(poolOf("kind"), "fail")).toBe("true There is no bread");
    expect(await answer(poolOf("kind"), "nothing")).toBe(
      "McpToolError: Cannot call nothing: the server has no such tool",
    );
  });

  it("cannot use a model unless allowed", async () => {
    expect(await answer(poolOf("kind"), "think")).toMatch(/^(true|McpToolError).*(sampling|capabilit)/i);
  });

  it("can use a model that the pool allows, once per call", async () => {
    const asked: unknown[] = [];
    const pool = poolOf("kind", {
      sampling: async ({ messages }) => {
        asked.push(messages);
        return { role: "assistant", model: "test", content: { type: "text", text: "Hello" } };
      },
    });
    expect(await answer(pool, "think")).toBe("false Thought Hello");
    expect(asked).toHaveLength(1);
  });

  it.each(["asks", "asks-long"])("cannot ask more than fits into a task (%s)", async (name) => {
    expect(await answer(poolOf("kind"), name)).toBe(
      `McpToolError: ${name} of workshop asked too many questions, or questions that are too long`,
    );
  });

  it("can hang only until the timeout of the call", async () => {
    expect(await answer(poolOf("kind"), "hang", { timeoutMs: 200 })).toMatch(
      /^McpToolError: hang of workshop failed: .*timed out/i,
    );
  });

  it("cannot return 20 MB, and its process is restarted", async () => {
    const pool = poolOf("kind");
    expect(await answer(pool, "flood")).toMatch(/^McpToolError: flood of workshop failed: /);
    expect(await answer(pool, "add")).toBe("false 1");
  });

  it("has its long answers truncated", async () => {
    const text = await answer(poolOf("kind"), "long");
    expect(text).toMatch(/^false ü+…\n\[Truncated: the result has 1000025 bytes\]$/);
    expect(new TextEncoder().encode(text).length).toBeLessThan(64 << 10);
  });

  it("is restarted after its process ends", async () => {
    const pool = poolOf("kind");
    expect(await answer(pool, "die")).toMatch(/^McpToolError: die of workshop failed: /);
    expect(await answer(pool, "add")).toBe("false 1");
    expect(pool.size).toBe(1);
  });

  it("cannot flood a model with tools, schemas or descriptions", async () => {
    let many: McpTools | undefined;
    const see: Use = async function* (tools, turn) {
      many = tools;
      yield turn.completed("Seen");
    };
    await (await agentWith(poolOf("many"), see)).client.sendMessage("Go");
    expect(many).toMatchObject({ omitted: 10_010 - 128, tools: { length: 128 } });
    await (await agentWith(poolOf("wide"), see)).client.sendMessage("Go");
    expect(many?.held).toEqual([
      { name: "wide", reason: expect.stringMatching(/^its schema has \d+ bytes; at most 16384 are accepted$/) },
    ]);
    await (await agentWith(poolOf("wide"), see, { maxSchemaBytes: 1 << 20 })).client.sendMessage("Go");
    const { description = "" } = many?.tools.find(({ name }) => name === "wide") ?? {};
    expect(new TextEncoder().encode(description).length).toBeLessThanOrEqual(1024);
    expect(description).not.toContain("\u202e");
  });

  it("cannot list tools forever", async () => {
    await expect(poolOf("endless").server("workshop").listTools()).rejects.toThrow("listMaxPages (16)");
  });

  it("loses only its unreadable tools", async () => {
    const levels = 100_000;
    const deep: unknown = JSON.parse(`${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`);
    const listed = {
      tools: [
        { name: "deep", inputSchema: deep },
        { name: "half", description: "\ud800", inputSchema: {} },
        { name: "good", inputSchema: {} },
      ],
    };
    const server = { listTools: async () => listed, callTool: async () => ({}), getServerVersion: () => undefined };
    const pool: McpPool = { server: () => server, size: 1, close: async () => undefined };
    let seen: McpTools | undefined;
    const agent = await agentWith(
      pool,
      async function* (tools, turn) {
        seen = tools;
        yield turn.completed("Seen");
      },
      { pins: memoryPins(), server: "workshop" },
    );
    await agent.client.sendMessage("Go");
    expect(seen?.tools.map(({ name }) => name)).toEqual(["good"]);
    expect(seen?.held).toEqual([
      { name: "deep", reason: "its schema is nested too deeply" },
      { name: "half", reason: "its description or schema has no canonical form" },
    ]);
  });

  it("cannot change a tool after it was approved", async () => {
    const pins = memoryPins();
    expect(await answer(poolOf("kind"), "add", { pins })).toBe("false 1");
    const why = "McpToolError: Cannot call add: its description or schema changed after it was approved";
    expect(await answer(poolOf("changed"), "add", { pins })).toBe(why);
    expect(await answer(poolOf("changed"), "fail", { pins })).toBe("true There is no bread");
    let digest = "";
    await (
      await agentWith(
        poolOf("changed"),
        async function* (tools, turn) {
          digest = tools.held[0]?.digest ?? "";
          yield turn.completed("Seen");
        },
        { pins },
      )
    ).client.sendMessage("Go");
    pins.approve("workshop", "add", digest);
    expect(await answer(poolOf("changed"), "add", { pins })).toBe("false 1");
  });
});

describe("the pool", () => {
  it("shares a connection, closes it when idle, and has a limit", async () => {
    const agent = await agentWith(poolOf("kind"), async function* (_, turn) {
      yield turn.completed("");
    });
    const { clock } = agent;
    const pool = poolOf("kind", { clock, idleMs: 1000, maxConnections: 1 });
    await Promise.all([pool.server("workshop").listTools(), pool.server("workshop").listTools()]);
    expect(pool.size).toBe(1);
    // Replaces the idle connection.
    await pool.server("second").listTools();
    expect(pool.size).toBe(1);
    const busy = pool.server("second").callTool({ name: "hang" }, { timeout: 30_000 });
    busy.catch(() => undefined);
    await expect(pool.server("workshop").listTools()).rejects.toThrow("All 1 connections to MCP servers are in use");
    await pool.close();
    await expect(busy).rejects.toThrow(/not connected|closed/i);
    const other = poolOf("kind", { clock, idleMs: 1000 });
    await other.server("workshop").listTools();
    await clock.advance(1001);
    await expect.poll(() => other.size).toBe(0);
    expect(() => other.server("nothing")).toThrow('The pool has no server "nothing"; it has ["workshop","second"]');
  });

  it("keeps its limit when turns connect in parallel, and opens no connection after close()", async () => {
    const pool = poolOf("kind", { maxConnections: 1 });
    const lists = [pool.server("workshop").listTools(), pool.server("second").listTools()];
    expect(pool.size).toBe(1);
    const [first, second] = await Promise.allSettled(lists);
    expect(first?.status).toBe("fulfilled");
    expect(second).toMatchObject({ reason: { message: "All 1 connections to MCP servers are in use" } });
    // Replaces the idle connection, which is still closing.
    const late = pool.server("second").listTools();
    await pool.close();
    await expect(late).rejects.toThrow("The pool is closed");
    expect(pool.size).toBe(0);
  });

  it("reconnects to a server that lost the session (2025-11-25)", async () => {
    let session = 0;
    const server = createServer((request, response) => {
      void text(request).then((body) => {
        const { id, method } = (body === "" ? {} : JSON.parse(body)) as { id?: number; method?: string };
        const send = (result: object): void => {
          response.setHeader("content-type", "application/json").end(JSON.stringify({ jsonrpc: "2.0", id, ...result }));
        };
        if (method === "initialize") {
          session += 1;
          response.setHeader("mcp-session-id", String(session));
          const serverInfo = { name: "old", version: "1.0.0" };
          send({ result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo } });
        } else if (method === "server/discover") send({ error: { code: -32601, message: "Method not found" } });
        else if (request.headers["mcp-session-id"] !== String(session)) response.writeHead(404).end();
        else if (method === "tools/list") send({ result: { tools: [] } });
        else response.writeHead(method === undefined ? 405 : 202).end();
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
    const pool = mcpPool({ servers: { old: { url } }, policy: { allowLoopback: true } });
    onTestFinished(() => pool.close());
    expect((await pool.server("old").listTools()).tools).toEqual([]);
    session += 1;
    await expect(pool.server("old").listTools()).rejects.toThrow("Error POSTing");
    expect((await pool.server("old").listTools()).tools).toEqual([]);
  });

  it("does not call internal network addresses", async () => {
    const pool = mcpPool({ servers: { inside: { url: "http://169.254.169.254/mcp" } } });
    await expect(pool.server("inside").listTools()).rejects.toThrow(
      /Cannot connect to the MCP server inside: .*link-local/,
    );
  });
});
