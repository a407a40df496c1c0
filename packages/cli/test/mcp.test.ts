import { once } from "node:events";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { connect, type Task } from "@parley/a2a";
import { bearer } from "@parley/a2a/auth";
import { defineAgent, memoryStore, serve } from "@parley/node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { parleyHere } from "./support/in-process.ts";
import { clientNames, connected, type Connected } from "./support/mcp-clients.ts";
import { parleyCommand, start } from "./support/parley.ts";

/** `parley mcp`, with the official clients of MCP in both eras. */

const agent = defineAgent({
  name: "Echo",
  description: "Repeats.",
  version: "1.0.0",
  skills: [{ id: "echo", name: "Echo", description: "Repeats what you say", tags: [] }],
  async *onMessage(turn) {
    if (turn.text === "ask" || turn.number > 1) {
      if (turn.number === 1) yield turn.inputRequired("Really?");
      else yield turn.completed(`You said ${turn.text}`);
    } else if (turn.text === "work") {
      yield turn.working("Working");
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    } else if (turn.text === "approve") {
      yield* turn.authorize({ form: "approval", reason: "Pay?" });
    } else yield turn.reply(turn.text);
  },
});

let server: Awaited<ReturnType<typeof serve>>;
beforeAll(async () => {
  const authenticator = bearer({ "secret-of-the-bridge": { subject: "ada" } });
  server = await serve(agent, { port: 0, store: memoryStore(), logger: false, authenticator });
});
afterAll(() => server.close());

const [command = "", ...program] = parleyCommand;
const credentials = ["--token", "secret-of-the-bridge"];

const handleIn = (text: string) => /taskId: (\S+)/.exec(text)?.[1] ?? "";
const onStdio = [command, ...program, "mcp"];

/** The steps that each client takes with each transport. */
async function uses(client: Connected): Promise<void> {
  expect(await client.tools()).toEqual(["echo", "get_task", "answer_task", "cancel_task"]);
  expect(await client.call("echo", { message: "hello" })).toContain("hello");
  expect(await client.call("echo", { message: "ask" })).toMatch(/^You said blue\nTask completed/);
  const [card = ""] = await client.resources();
  expect(await client.read(card)).toMatchObject({ uri: card, text: expect.stringContaining('"name":"Echo"') });
  const controller = new AbortController();
  const progress: unknown[] = [];
  const onprogress = ({ message }: { readonly message?: string | undefined }) => void progress.push(message);
  const work = client.call("echo", { message: "work" }, { signal: controller.signal, onprogress });
  work.catch(() => undefined);
  await expect.poll(() => progress).toEqual(["Working"]);
  controller.abort();
  await expect(work).rejects.toThrow(/abort/i);
  await expect
    .poll(async () => (await agentTasks()).map(({ status }) => status.state))
    .not.toContain("TASK_STATE_WORKING");
  // The client shows the link, and the call waits up to `--max-wait 1` for the user to open it.
  const approval = await client.call("echo", { message: "approve" });
  expect(approval).toMatch(/Task auth required\..*call get_task/s);
  expect(client.asked).toEqual(["Really?", expect.stringContaining(server.url)]);
  await client.call("cancel_task", { taskId: handleIn(approval) });
}

const agentHeaders = { headers: { authorization: "Bearer secret-of-the-bridge" } };

async function agentTasks(): Promise<readonly Task[]> {
  return (await (await connect(server.url, agentHeaders)).listTasks()).tasks;
}

describe.each(clientNames)("the official client, %s", (name) => {
  const options = [...credentials, "--max-wait", "1"];
  const expected = name === "version 2 (2026-07-28)" ? "2026-07-28" : "2025-11-25";

  test("does all over stdio, and continues a task after the bridge was killed", async () => {
    const first = await connected(name, [...onStdio, server.url, ...options]);
    expect(first.version).toBe(expected);
    await uses(first);
    const asked = await (await connect(server.url, agentHeaders)).sendMessage("ask");
    process.kill(first.pid, "SIGKILL");
    const next = await connected(name, [...onStdio, server.url, ...credentials]);
    const taskId = asked.task?.id ?? "";
    expect(await next.call("answer_task", { taskId, message: "yes" })).toContain("You said yes");
  });

  test("does all over HTTP", async () => {
    const running = start(["mcp", server.url, ...options, "--http", "0", "--skill", "echo"]);
    onTestFinished(async () => {
      running.child.kill("SIGTERM");
      expect((await running.done).code).toBe(0);
    });
    const [, url = ""] = await running.until("out", /(http:\S+\/mcp)\n/);
    const client = await connected(name, url);
    expect(client.version).toBe(expected);
    await uses(client);
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

test("ends with a message that is too large", async () => {
  const child = spawn(command, [...program, "mcp", server.url, ...credentials]);
  child.stdin.on("error", () => undefined);
  child.stdout.resume();
  child.stderr.resume();
  child.stdin.write(`"${"x".repeat(17 << 20)}`);
  expect(await once(child, "exit")).toEqual([0, null]);
});

test("reports mistakes", async () => {
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
