import { spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, type Client, type Message, type Task } from "@parley/a2a";
import type { Agent } from "@parley/server";
import { testAgent } from "@parley/testing";
import { afterAll, beforeAll, beforeEach, expect, inject, onTestFinished, test, vi } from "vitest";
import { reservePort, Supervisor, type Life } from "../crash/supervisor.ts";
import { diskFolder } from "../temporary.ts";
import { startApi, type Asked, type Block } from "./claude/api.ts";

/* The real Claude Agent SDK and its program, with a scripted model on loopback, in a server that the test kills. */

const made = inject("environments").claude;
if ("missing" in made) throw new Error(made.missing);
const sdk = made.programs;
const template = fileURLToPath(new URL("../../packages/cli/templates/claude", import.meta.url));
const tsc = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));
const folder = await mkdtemp(join(diskFolder(), "parley-claude-"));
const path = join(folder, "tasks.db");

/** Calls of the model and of tools, in order. */
let calls: string[];
/** The prompts of the model. */
const all: Asked[] = [];
/** The first time such a call is made, the server is killed and the call gets no answer. */
let deadly: Set<string>;
/** This call gets no answer. */
let silent: string;
let life: Life;
let restarted: Promise<void> | undefined;

const contentsOf = ({ messages }: Asked) =>
  messages.flatMap(({ content }) => (typeof content === "string" ? [] : content));

/** The model's answer to the last prompt: it looks something up, pays, and reports that. */
function answerTo(asked: Asked): { readonly call: string; readonly blocks: readonly Block[] } {
  const use = (name: string): Block => ({
    type: "tool_use",
    id: `toolu_${crypto.randomUUID()}`,
    name: `mcp__bank__${name}`,
    input: {},
  });
  const contents = contentsOf(asked);
  const said =
    contents.findLast(({ type, text = "" }) => type === "text" && /^(Hello|Again|Ask|Pay|The user|Continue)/.test(text))
      ?.text ?? "";
  const result = JSON.stringify(contents.findLast(({ type }) => type === "tool_result")?.content ?? "");
  if (/^(Hello|Again)/.test(said)) return { call: said, blocks: [{ type: "text", text: `You said ${said}` }] };
  if (said === "Ask") {
    const questions = [
      {
        question: "Where to?",
        header: "City",
        options: ["Basel", "Bern"].map((label) => ({ label, description: label })),
        multiSelect: false,
      },
    ];
    return {
      call: "ask",
      blocks: [{ type: "tool_use", id: "toolu_ask", name: "AskUserQuestion", input: { questions } }],
    };
  }
  if (said.startsWith("The user answered"))
    return { call: "answered", blocks: [{ type: "text", text: said.slice(-5) }] };
  if (result.includes("paid it")) return { call: "model 4", blocks: [{ type: "text", text: "I have paid it." }] };
  if (result.includes("looked up"))
    return { call: "model 2", blocks: [{ type: "text", text: "I would pay." }, use("pay")] };
  if (said.startsWith("Pay"))
    return { call: "model 1", blocks: [{ type: "text", text: "Looking it up." }, use("look")] };
  return { call: "model 3", blocks: [use("pay")] };
}

async function isAlive(call: string): Promise<boolean> {
  calls.push(call);
  if (!deadly.delete(call)) return call !== silent;
  restarted = restart();
  return false;
}

async function restart(): Promise<void> {
  life.kill("SIGKILL");
  expect(await life.end).toBe("SIGKILL");
  life = await supervisor.start();
}

const api = await startApi({
  async model(asked) {
    all.push(asked);
    const { call, blocks } = answerTo(asked);
    return (await isAlive(call)) ? blocks : undefined;
  },
  tool: async (name) => ((await isAlive(name)) ? { look: "looked up", pay: "paid it" }[name] : undefined),
});

const supervisor = new Supervisor(
  path,
  await reservePort(),
  fileURLToPath(new URL("claude/server.ts", import.meta.url)),
);

beforeAll(async () => {
  await mkdir(join(folder, "home"));
  await writeFile(`${path}.lives`, "0");
  Object.assign(process.env, { SDK: sdk, API: api.url });
  vi.stubEnv("HOME", join(folder, "home"));
  life = await supervisor.start();
});

afterAll(async () => {
  supervisor.stop();
  vi.unstubAllEnvs();
  api.close();
  await rm(folder, { recursive: true, force: true, maxRetries: 20 });
});

beforeEach(() => {
  calls = [];
  deadly = new Set();
  silent = "";
});

const program = `
import { createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { fromClaude } from "@parley/frameworks/claude";
const card = { name: "A", description: "A", version: "1.0.0", skills: [] };
const pay = tool("pay", "Pays", {}, async () => ({ content: [{ type: "text", text: "Paid" }] }));
fromClaude(query, {
  ...card,
  options: () => ({
    model: "claude-sonnet-4-5",
    mcpServers: { bank: createSdkMcpServer({ name: "bank", tools: [pay] }) },
    canUseTool: async (name, input) => (name === "pay" ? { behavior: "allow", updatedInput: input } : null),
  }),
});
fromClaude(query, { ...card, options: { maxTurns: 3, permissionMode: "plan" } });
// @ts-expect-error -- the wrong type
fromClaude(query, { ...card, options: { model: 7 } });
// @ts-expect-error -- the adapter resumes
fromClaude(query, { ...card, options: { resume: "x" } });
// @ts-expect-error -- no such option
fromClaude(query, { ...card, options: { modell: "x" } });
// @ts-expect-error -- no such mode, in a function
fromClaude(query, { ...card, options: () => ({ permissionMode: "nonsense" }) });
// @ts-expect-error -- not a query
fromClaude({ query }, card);
`;

test("accepts the SDK's own types, and wrong options do not compile", async () => {
  const project = await mkdtemp(join(sdk, ".types-"));
  onTestFinished(() => rm(project, { recursive: true, force: true }));
  const compilerOptions = {
    noEmit: true,
    strict: true,
    skipLibCheck: true,
    target: "es2023",
    module: "nodenext",
    types: ["node"],
  };
  await writeFile(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.mts"] }));
  await writeFile(join(project, "program.mts"), program);
  const { stdout } = spawnSync(process.execPath, [tsc, "-p", project, "--pretty", "false"], { encoding: "utf8" });
  expect(stdout).toBe("");
});

test("a project of parley init compiles, and calls Claude with AI_MODEL", async () => {
  const project = await mkdtemp(join(sdk, ".project-"));
  onTestFinished(() => rm(project, { recursive: true, force: true }));
  await cp(template, project, { recursive: true });
  await writeFile(join(project, "package.json"), '{ "type": "module" }');
  const { stdout } = spawnSync(process.execPath, [tsc, "-p", project, "--pretty", "false"], { encoding: "utf8" });
  expect(stdout).toBe("");
  const { url, close } = await startApi({
    async model(asked) {
      all.push(asked);
      const result = contentsOf(asked).findLast(({ type }) => type === "tool_result");
      const input = { count: 2, sides: 1 };
      if (result === undefined) return [{ type: "tool_use", id: "toolu_roll", name: "mcp__dice__roll", input }];
      return [{ type: "text", text: `The dice: ${JSON.stringify(result.content)}` }];
    },
    tool: async () => undefined,
  });
  onTestFinished(close);
  const home = join(folder, "home");
  const env = {
    AI_MODEL: "claude-sonnet-4-5",
    ANTHROPIC_API_KEY: "x",
    ANTHROPIC_BASE_URL: url,
    CLAUDE_CONFIG_DIR: home,
  };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  vi.stubEnv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
  const { default: agent } = (await import(join(project, "agent.ts"))) as { readonly default: Agent };
  const { client, close: end } = await testAgent(agent);
  onTestFinished(end);
  const { task } = await client.sendMessage("roll 2d1");
  expect(textsOf(task!)).toEqual([expect.stringMatching(/^The dice: .*\[1,1\]/)]);
  expect(all.at(-1)?.model).toBe("claude-sonnet-4-5");
});

const open = (): Promise<Client> => connect(`${supervisor.url}/claude`, { retry: false, reconnect: false });

/** Retries a message until its task asks or ends. A repeated message joins its task. */
async function send(text: string, to: Partial<Message> = {}): Promise<Task> {
  const message = { messageId: crypto.randomUUID(), parts: [{ text }], ...to };
  return vi.waitFor(
    async () => {
      await restarted;
      const client = await open();
      const { task } = await client.sendMessage({ message, configuration: { returnImmediately: true } });
      const now = await client.getTask(task?.id ?? "");
      expect(now.status.state).not.toMatch(/SUBMITTED|WORKING/);
      expect(now.history?.some(({ messageId }) => messageId === message.messageId)).toBe(true);
      return now;
    },
    { timeout: 300_000, interval: 50 },
  );
}

const textsOf = (task: Task): unknown => task.artifacts?.map(({ parts }) => parts.map(({ text }) => text).join(""));
const answerOf = ({ id, contextId = "" }: Task): Partial<Message> => ({ taskId: id, contextId });

test("a conversation is a session, on any node", async () => {
  const first = await send("Hello");
  expect(textsOf(first)).toEqual(["You said Hello"]);
  await restart();
  // Another node does not share the disk.
  await rm(join(folder, "home"), { recursive: true, maxRetries: 20 });
  await mkdir(join(folder, "home"));
  const second = await send("Again", { contextId: first.contextId ?? "" });
  expect(textsOf(second)).toEqual(["You said Again"]);
  expect(second.status.state).toBe("TASK_STATE_COMPLETED");
  expect(calls).toEqual(["Hello", "Again"]);
});

test("file names and commands in a message are plain text", async () => {
  await writeFile(join(folder, "home", "secret.txt"), "TOP SECRET");
  const task = await send("Hello @secret.txt");
  expect(textsOf(task)).toEqual(["You said Hello @secret.txt"]);
  expect(textsOf(await send("Hello /clear"))).toEqual(["You said Hello /clear"]);
  expect(JSON.stringify(all)).not.toContain("TOP SECRET");
});

test("a question from the model is passed to the user", async () => {
  const asked = await send("Ask");
  expect(asked.status.message?.parts[0]?.text).toBe("Where to?\n- Basel\n- Bern");
  const done = await send("Basel", answerOf(asked));
  expect(textsOf(done)).toEqual(["Basel"]);
  expect(calls).toEqual(["ask", "answered"]);
});

test("a server killed during a model call, a tool call and a question repeats no stored call", async () => {
  deadly = new Set(["model 1", "look", "model 2", "pay", "model 4"]);
  let task = await send("Pay");
  let questions = 0;
  while (task.status.state === "TASK_STATE_INPUT_REQUIRED") {
    expect(task.status.message?.parts[0]?.text).toBe("Approve mcp__bank__pay {}?");
    questions += 1;
    await restart();
    task = await send("yes", answerOf(task));
  }
  expect(task.status.state).toBe("TASK_STATE_COMPLETED");
  expect(textsOf(task)).toEqual(["Looking it up.", "I would pay.", "I have paid it."]);
  expect(deadly).toEqual(new Set());
  // The call during which the server was killed had already consumed its approval.
  expect(questions).toBe(2);
  expect(calls.join()).toBe(
    "model 1,model 1,look,model 1,look,model 2,model 2,model 3,pay,model 3,model 3,pay,model 4,model 4",
  );
  // The SDK's programs ended with their servers.
  await Promise.all(api.left);
});

test("a cancel ends the program", async () => {
  silent = "Hello forever";
  const client = await open();
  const message = { messageId: crypto.randomUUID(), parts: [{ text: silent }] };
  const { task } = await client.sendMessage({ message, configuration: { returnImmediately: true } });
  await vi.waitFor(() => expect(calls).toEqual([silent]), { timeout: 300_000 });
  const { status } = await client.cancelTask(task?.id ?? "");
  expect(status.state).toBe("TASK_STATE_CANCELED");
  await Promise.all(api.left);
  expect(calls).toEqual([silent]);
});
