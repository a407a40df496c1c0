import { execFile } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Interceptor } from "@parley/a2a/protocol";
import { defineAgent, memoryStore, serve } from "@parley/node";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { start } from "../../packages/cli/test/support/parley.ts";
import { peers } from "./environments.ts";
import { command } from "./project.ts";

/* The command line of MCP's inspector with `parley mcp`, over both transports and in both MCP versions. */

const agent = defineAgent({
  name: "Echo",
  description: "Repeats.",
  version: "1.0.0",
  skills: [{ id: "echo", name: "Echo", description: "Repeats what you say", tags: [] }],
  async *onMessage(turn) {
    if (turn.text === "slow") {
      yield turn.working("Working");
      yield* turn.sleep(1500);
      yield turn.completed("Done");
    } else yield turn.reply(turn.text);
  },
});

/** A2A operations that the bridge called. */
let operations: string[] = [];
const noted: Interceptor = (next) => ({
  call(operation, asked, context) {
    operations.push(operation);
    return next.call(operation, asked, context);
  },
  stream: (operation, asked, context) => next.stream(operation, asked, context),
});

let server: Awaited<ReturnType<typeof serve>>;
beforeAll(async () => {
  server = await serve(agent, { port: 0, store: memoryStore(), logger: false, interceptors: [noted] });
});
afterAll(() => server.close());

/** Runs the inspector. Returns its JSON output. */
async function inspect(target: readonly string[], ...options: string[]): Promise<unknown> {
  const made = inject("environments").node;
  if ("missing" in made) throw new Error(made.missing);
  const inspector = join(peers, "node/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
  // Isolated from the settings of this machine.
  const env = { PATH: process.env["PATH"] ?? "", HOME: await mkdtemp(join(tmpdir(), "inspector-")) };
  // On a busy machine, `parley mcp` may start more slowly than the inspector's default timeout.
  const args = [inspector, "--cli", ...target, "--quiet", "--connect-timeout", "100000", ...options];
  const { stdout } = await promisify(execFile)(join(made.programs, "node"), args, { env });
  return JSON.parse(stdout);
}

const targets: Readonly<Record<string, () => Promise<readonly string[]>>> = {
  stdio: async () => [process.execPath, command, "mcp", server.url],
  async HTTP() {
    const running = start(["mcp", server.url, "--http", "0"]);
    onTestFinished(async () => {
      running.child.kill("SIGTERM");
      await running.done;
    });
    return [(await running.until("out", /(http:\S+\/mcp)\n/))[1] ?? ""];
  },
};

describe.each(Object.keys(targets))("over %s", (transport) => {
  test.each(["legacy", "modern"])("lists and calls tools, and reads resources, in the %s era", async (era) => {
    const target = (await targets[transport]?.()) ?? [];
    const ask = (...options: string[]) => inspect(target, "--protocol-era", era, ...options);
    expect(await ask("--method", "tools/list", "--strict")).toMatchObject({
      tools: [{ name: "echo" }, { name: "get_task" }, { name: "answer_task" }, { name: "cancel_task" }],
    });
    const call = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hello"];
    expect(await ask(...call)).toMatchObject({ content: [{ type: "text", text: "hello" }, {}] });
    // In 2026-07-28 the inspector uses the tasks extension: it gets a task handle, and polls it.
    operations = [];
    const slow = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=slow"];
    expect(await ask(...slow)).toMatchObject({ content: [{ type: "text", text: "Done" }, {}] });
    expect(operations.includes("GetTask")).toBe(era === "modern");
    expect(await ask("--method", "skills/list", "--verify", "--require-digests")).toMatchObject({
      uri: "skill://echo/SKILL.md",
      outcome: "verified",
    });
    const uri = `a2a://${new URL(server.url).host}/agent-card`;
    expect(await ask("--method", "resources/read", "--uri", uri)).toMatchObject({ contents: [{ uri }] });
  });
});
