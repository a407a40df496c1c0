import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type Client, type Task } from "@parley/a2a";
import { mcpPool, mcpTools, toAISDK, type McpClient } from "@parley/mcp/tools";
import { serve } from "@parley/node";
import { memoryStore, type Turn } from "@parley/server";
import type { LanguageModel } from "ai";
import { describe, expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { compiled } from "../../../test/programs.ts";
import { fromAISDK, type AISDKAgent, type AISDKAgentFactory } from "../src/ai-sdk/index.ts";
import { calls, says, Scripted } from "./scripted.ts";
import { versions } from "./versions.ts";

const card = { name: "Test", description: "A test", version: "1.0.0", skills: [] };

async function served(make: AISDKAgentFactory): Promise<Client> {
  const server = await serve(fromAISDK(make, card), { port: 0, logger: false, store: memoryStore() });
  onTestFinished(() => server.close());
  return connect(server.url);
}

const question = (task: Task | undefined): unknown[] =>
  task?.status.state === "TASK_STATE_INPUT_REQUIRED"
    ? (task.status.message?.parts ?? []).map(({ text, data }) => text ?? data)
    : [task?.status.state];

const answer = (task: Task | undefined): unknown => task?.artifacts?.at(-1)?.parts[0]?.text;

const script = compiled(join(import.meta.dirname, "../../mcp/test/tools-server.ts"));

/** A real MCP server, whose calls are logged. */
async function workshop() {
  const log = join(await mkdtemp(join(tmpdir(), "mcp-")), "log");
  const env = { MODE: "kind", LOG: log };
  const pool = mcpPool({ servers: { workshop: { command: process.execPath, args: [script], env } } });
  onTestFinished(() => pool.close());
  const made = async (): Promise<string[]> => (await readFile(log, "utf8")).match(/^\S+/gm) ?? [];
  return { server: pool.server("workshop"), made };
}

describe.each(versions)("$name", ({ ToolLoopAgent, tool, jsonSchema, stepCountIs }) => {
  const agentOf = (settings: object): AISDKAgent => new ToolLoopAgent(settings);
  const inputSchema = jsonSchema({ type: "object", properties: {} });

  test("asks the user the question of an MCP tool, and continues the loop at its call", async () => {
    const { server, made } = await workshop();
    const model = new Scripted(
      calls(["a1", "add", { n: 1 }]),
      calls(["c1", "color", {}], ["a2", "add", { n: 5 }]),
      says("Done"),
    );
    const client = await served(async (durable, turn) =>
      agentOf({
        model: durable.model(model as unknown as LanguageModel),
        tools: toAISDK(await mcpTools(turn, server)),
      }),
    );
    const conversation = client.conversation();
    const first = await conversation.send("Paint");
    expect(question(first.task)).toEqual(["workshop asks: Which color?", expect.objectContaining({ type: "object" })]);
    expect(model.calls).toHaveLength(2);
    // An answer that does not fit is no answer: the question again.
    expect(question((await conversation.send({ parts: [{ data: [] }] })).task)[0]).toBe("workshop asks: Which color?");
    const { task } = await conversation.send({ parts: [{ data: { color: "red" } }] });
    expect([task?.status.state, answer(task)]).toEqual(["TASK_STATE_COMPLETED", "Done"]);
    expect(model.calls).toHaveLength(3);
    const results = model.calls[2]?.prompt.filter(({ role }) => role === "tool");
    const outputs = results?.flatMap(({ content }) => content as { toolCallId: string; output: { value: string } }[]);
    expect(outputs?.map(({ toolCallId, output }) => [toolCallId, output.value])).toEqual([
      ["a1", "2"],
      ["a2", "6"],
      ["c1", "Painted red"],
    ]);
    expect((await made()).toSorted()).toEqual(["add", "add", "color", "color"]);
  });

  test("asks one question after the other, and for approvals last", async () => {
    const ran: string[] = [];
    const paint = (durable: { tools: <T extends object>(tools: T) => T }, data: (name: string) => Promise<string>) =>
      durable.tools({
        ...Object.fromEntries(["wall", "door"].map((name) => [name, tool({ inputSchema, execute: () => data(name) })])),
        pay: tool({ inputSchema, needsApproval: true, execute: async () => `${ran.push("pay")}` }),
        other: tool({ inputSchema, execute: async () => `${ran.push("other")}` }),
      });
    const model = new Scripted(
      calls(["w", "wall", {}], ["d", "door", {}], ["p", "pay", {}], ["o", "other", {}]),
      says("Done"),
    );
    const client = await served((durable, turn) => {
      const data = async (name: string): Promise<string> => {
        const given = await turn.data(z.object({ [name]: z.string() }), { ask: `Color of the ${name}?` });
        ran.push(`${name} ${given[name]}`);
        return "painted";
      };
      return agentOf({ model: durable.model(model as unknown as LanguageModel), tools: paint(durable, data) });
    });
    const conversation = client.conversation();
    expect(question((await conversation.send("Paint")).task)[0]).toBe("Color of the wall?");
    expect(question((await conversation.send({ parts: [{ data: { wall: "red" } }] })).task)[0]).toBe(
      "Color of the door?",
    );
    expect(question((await conversation.send({ parts: [{ data: { door: "blue" } }] })).task)[0]).toBe(
      "Approve pay {}?",
    );
    const { task } = await conversation.send("yes");
    expect(answer(task)).toBe("Done");
    expect(ran).toEqual(["other", "wall red", "door blue", "pay"]);
    expect(model.calls).toHaveLength(2);
  });

  test("takes an answer for the question that was shown, and not for the same question of another call", async () => {
    const paid: unknown[] = [];
    let askOfBob = (): void => {};
    const bobAsks = new Promise<void>((resolve) => (askOfBob = () => setImmediate(resolve)));
    const schema = z.object({ approved: z.literal(true) });
    const model = new Scripted(calls(["a", "pay", { to: "Ann" }], ["b", "pay", { to: "Bob" }]), says("Done"));
    const client = await served((durable, turn) => {
      const execute = async ({ to }: { to: string }): Promise<string> => {
        // The first call asks last.
        if (to === "Ann") await bobAsks;
        askOfBob();
        await turn.data(schema, { ask: `Pay ${to}?` });
        return `paid ${paid.push(to)}`;
      };
      const tools = durable.tools({ pay: tool({ inputSchema, execute }) });
      return agentOf({ model: durable.model(model as unknown as LanguageModel), tools });
    });
    const conversation = client.conversation();
    const yes = { parts: [{ data: { approved: true } }] };
    expect(question((await conversation.send("Pay both")).task)[0]).toBe("Pay Ann?");
    expect(question((await conversation.send(yes)).task)[0]).toBe("Pay Bob?");
    expect(paid).toEqual(["Ann"]);
    expect(answer((await conversation.send(yes)).task)).toBe("Done");
    expect(paid).toEqual(["Ann", "Bob"]);
  });

  test("keeps the limit of steps, and asks although `prepareCall` has replaced the end of the loop", async () => {
    const schema = z.object({ color: z.string() });
    const asking = (turn: Turn) => tool({ inputSchema, execute: () => turn.data(schema, { ask: "Which color?" }) });
    const model = new Scripted(calls(["c1", "paint", {}]), says("It asks"), says("Done"));
    const client = await served((durable, turn) =>
      agentOf({
        model: durable.model(model as unknown as LanguageModel),
        tools: durable.tools({ paint: asking(turn) }),
        prepareCall: (call: object) => ({ ...call, stopWhen: stepCountIs(5) }),
      }),
    );
    const conversation = client.conversation();
    expect(question((await conversation.send("Paint")).task)[0]).toBe("Which color?");
    const { task } = await conversation.send({ parts: [{ data: { color: "red" } }] });
    expect(answer(task)).toBe("Done");
    expect(JSON.stringify(model.calls[2]?.prompt)).not.toContain("It asks");
    const endless = new Scripted(calls(["same", "look", {}]));
    const looking = await served((durable) =>
      agentOf({
        model: durable.model(endless as unknown as LanguageModel),
        tools: durable.tools({ look: tool({ inputSchema, execute: () => "seen" }) }),
      }),
    );
    expect((await looking.sendMessage("Look")).task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(endless.calls).toHaveLength(20);
  });

  test("takes no answer that was sent before the question", async () => {
    let open = (): void => {};
    const opened = new Promise<void>((resolve) => (open = resolve));
    const given: unknown[] = [];
    const requestedSchema = { type: "object", properties: { color: { type: "string" } }, required: ["color"] };
    const elicit = { method: "elicitation/create", params: { message: "Which color?", requestedSchema } };
    const server: McpClient = {
      listTools: async () => ({ tools: [{ name: "paint", description: "Paints", inputSchema: { type: "object" } }] }),
      async callTool({ inputResponses }) {
        if (inputResponses !== undefined) return { content: [{ type: "text", text: `${given.push(inputResponses)}` }] };
        if (given.length > 0) await opened;
        return { resultType: "input_required", inputRequests: { color: elicit }, requestState: "" };
      },
      getServerVersion: () => ({ name: "workshop" }),
    };
    const model = new Scripted(calls(["c1", "paint", {}]), calls(["c2", "paint", {}]), says("Done"));
    const client = await served(async (durable, turn) =>
      agentOf({
        model: durable.model(model as unknown as LanguageModel),
        tools: toAISDK(await mcpTools(turn, server)),
      }),
    );
    const { task } = await client.sendMessage("Paint");
    const id = task?.id ?? "";
    const send = (color: string) =>
      client.sendMessage({
        message: { messageId: crypto.randomUUID(), taskId: id, parts: [{ data: { color } }] },
        configuration: { returnImmediately: true },
      });
    await send("red");
    await expect.poll(() => model.calls.length).toBe(2);
    await send("red");
    open();
    await expect.poll(async () => (await client.getTask(id)).history?.length).toBeGreaterThan(5);
    await expect.poll(async () => question(await client.getTask(id))[0]).toBe("workshop asks: Which color?");
    const red = { color: { action: "accept", content: { color: "red" } } };
    expect(given).toEqual([red]);
    await send("blue");
    await expect.poll(() => given).toEqual([red, { color: { action: "accept", content: { color: "blue" } } }]);
  });
});
