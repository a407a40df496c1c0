import { once } from "node:events";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { bearer } from "@parley/a2a/auth";
import { defineAgent, memoryStore, serve } from "@parley/node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { parleyHere } from "./support/in-process.ts";
import { parleyCommand, start } from "./support/parley.ts";

/** `parley mcp`, with the official client of MCP in both eras. */

const agent = defineAgent({
  name: "Echo",
  description: "Repeats.",
  version: "1.0.0",
  skills: [{ id: "echo", name: "Echo", description: "Repeats what you say", tags: [] }],
  async *onMessage(turn) {
    if (turn.text === "ask" || turn.number > 1) {
      if (turn.number === 1) yield turn.inputRequired("Really?");
      else yield turn.completed(`You said ${turn.text}`);
    } else yield turn.reply(turn.text);
  },
});

let server: Awaited<ReturnType<typeof serve>>;
beforeAll(async () => {
  const authenticator = bearer({ "secret-of-the-bridge": { subject: "ada" } });
  server = await serve(agent, { port: 0, store: memoryStore(), logger: false, authenticator });
});
afterAll(() => server.close());

const modes = [
  { era: "2025-11-25", mode: "legacy" },
  { era: "2026-07-28", mode: "auto" },
] as const;

const [command = "", ...program] = parleyCommand;
const credentials = ["--token", "secret-of-the-bridge"];

/** The text of a result. */
const textOf = ({ content }: { content: readonly { type: string; text?: string }[] }) =>
  content.map((each) => each.text).join("\n");
const handleIn = (text: string) => /taskId: (\S+)/.exec(text)?.[1] ?? "";

describe.each(modes)("the official client of $era", ({ era, mode }) => {
  test("calls an agent over stdio, and continues a task after the bridge was killed", async () => {
    const begin = async () => {
      const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode } });
      const transport = new StdioClientTransport({
        command,
        args: [...program, "mcp", server.url, ...credentials],
        stderr: "ignore",
      });
      await client.connect(transport);
      onTestFinished(() => client.close());
      return { client, pid: transport.pid ?? 0 };
    };
    const first = await begin();
    expect(first.client.getNegotiatedProtocolVersion()).toBe(era);
    expect((await first.client.listTools()).tools.map(({ name }) => name)).toEqual([
      "echo",
      "get_task",
      "answer_task",
      "cancel_task",
    ]);
    expect(textOf(await first.client.callTool({ name: "echo", arguments: { message: "hello" } }))).toContain("hello");
    const taskId = handleIn(textOf(await first.client.callTool({ name: "echo", arguments: { message: "ask" } })));
    process.kill(first.pid, "SIGKILL");
    const { client } = await begin();
    const done = await client.callTool({ name: "answer_task", arguments: { taskId, message: "yes" } });
    expect(textOf(done)).toContain("You said yes");
  });

  test("calls an agent over HTTP", async () => {
    const running = start(["mcp", server.url, ...credentials, "--http", "0", "--skill", "echo"]);
    onTestFinished(async () => {
      running.child.kill("SIGTERM");
      expect((await running.done).code).toBe(0);
    });
    const [, url = ""] = await running.until("out", /(http:\S+\/mcp)\n/);
    const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode } });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    expect(client.getNegotiatedProtocolVersion()).toBe(era);
    expect(textOf(await client.callTool({ name: "echo", arguments: { message: "hello" } }))).toContain("hello");
    await client.close();
    const headers = { origin: "https://evil.example", "content-type": "application/json" };
    expect((await fetch(url, { method: "POST", headers, body: "{}" })).status).toBe(403);
    expect((await fetch(url.replace("/mcp", "/other"))).status).toBe(404);
  });
});

test("writes only MCP to standard output, and ends with its client", async () => {
  const child = spawn(command, [...program, "mcp", server.url, ...credentials]);
  const lines = createInterface({ input: child.stdout });
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } };
  child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })}\n`);
  const [line] = (await once(lines, "line")) as [string];
  expect(JSON.parse(line)).toMatchObject({
    id: 1,
    result: { protocolVersion: "2025-11-25", serverInfo: { name: "Echo" } },
  });
  child.stdin.end();
  expect(await once(child, "exit")).toEqual([0, null]);
});

test("says what is wrong", async () => {
  const unknown = await parleyHere(["mcp", server.url, ...credentials, "--skill", "sing"]);
  expect(unknown).toMatchObject({
    code: 2,
    err: expect.stringContaining('--skill <id>: skills names "sing"; the card has ["echo"]'),
  });
  const gone = await parleyHere(["mcp", "http://127.0.0.1:9"]);
  expect(gone).toMatchObject({ code: 1, out: "" });
  const bad = await parleyHere(["mcp", server.url, "--http", "x"]);
  expect(bad).toMatchObject({ code: 2, err: expect.stringContaining("--http <port>") });
});
