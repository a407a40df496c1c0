import { connect, type Client } from "@parley/a2a";
import { serve, type Server } from "@parley/node";
import { memoryStore } from "@parley/server";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { afterEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { fromMastra, idempotencyOf } from "../src/mastra/index.ts";
import { calls, finish, says, Scripted } from "./scripted.ts";

const card = { name: "Test", description: "A test", version: "1.0.0", skills: [] };

let server: Server | undefined;
afterEach(() => server?.close());

type Settings = ConstructorParameters<typeof Agent>[0];

function agentOf(model: Scripted, tools: Settings["tools"] = {}, more: Partial<Settings> = {}): Agent {
  const settings = { id: "test", name: "Test", instructions: "Be brief", model, tools, ...more };
  return new Agent(settings as unknown as Settings);
}

async function served(agent: Agent, more: object = {}): Promise<Client> {
  server = await serve(fromMastra(agent, { ...card, defaultInputModes: ["*"], ...more }), {
    port: 0,
    logger: false,
    store: memoryStore(),
  });
  return connect(server.url);
}

const inputSchema = z.object({ amount: z.number() });
const pay = (execute: (input: { amount: number }, context: never) => unknown, more: object = {}): Settings["tools"] => ({
  pay: createTool({ id: "pay", description: "Pays", inputSchema, execute: execute as never, ...more }),
});

test("streams text as an artifact, and reports usage", async () => {
  const model = new Scripted(says("Hello, ", "world"));
  const client = await served(agentOf(model));
  const { task } = await client.sendMessage("Hi");
  expect(task?.artifacts).toMatchObject([{ name: "answer", parts: [{ text: "Hello, world" }] }]);
  expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
  expect(task?.status).toEqual(1);
});

test("runs tools, and gives the model their results", async () => {
  const model = new Scripted(calls(["c1", "pay", { amount: 5 }]), says("Paid"));
  const inputs: unknown[] = [];
  const client = await served(agentOf(model, pay(async (input, context) => {
    inputs.push(input, idempotencyOf(context)?.attempt);
    return { receipt: 1 };
  })));
  const states: string[] = [];
  for await (const { statusUpdate } of client.sendStreamingMessage("Pay 5"))
    states.push(String(statusUpdate?.status.message?.parts[0]?.text));
  expect(states).toContain("Calling pay");
  expect(inputs).toEqual([{ amount: 5 }, 1]);
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain("receipt");
});

test("asks for approval", async () => {
  const model = new Scripted(calls(["c1", "pay", { amount: 5 }]), says("Paid"));
  const paid: unknown[] = [];
  const client = await served(agentOf(model, pay(async (input) => { paid.push(input); return "paid" }, { requireApproval: true })));
  const conversation = client.conversation();
  const asked = await conversation.send("Pay");
  expect(asked.task?.status.message?.parts).toMatchObject([{text: 'Approve pay {"amount":5}?'}, {}, {}]);
  const done = await conversation.send("yes");
  expect(done.task?.artifacts?.[0]?.parts[0]?.text).toBe("Paid");
  expect(paid).toEqual([{ amount: 5 }]);
  expect(model.calls).toHaveLength(2);
});

test("suspends", async () => {
  const model = new Scripted(calls(["c1", "pay", { amount: 5 }]), says("Paid"));
  const paid: unknown[] = [];
  const client = await served(agentOf(model, pay(async (input, context: { agent: { resumeData?: unknown, suspend(x: unknown): unknown } }) => {
    if (context.agent.resumeData === undefined) return context.agent.suspend({ why: "From which account?" });
    paid.push(input, context.agent.resumeData);
    return "paid" }, { suspendSchema: z.object({why: z.string()}), resumeSchema: z.object({ account: z.string().min(2) }) })));
  const conversation = client.conversation();
  const asked = await conversation.send("Pay");
  console.log(JSON.stringify(asked.task?.status, null, 1));
  const again = await conversation.send("x");
  console.log(JSON.stringify(again.task?.status, null, 1));
  const done = await conversation.send("main");
  expect(done.task?.artifacts?.[0]?.parts[0]?.text).toBe("Paid");
  expect(paid).toEqual([{ amount: 5 }, {account: "main"}]);
  expect(model.calls).toHaveLength(2);
});
