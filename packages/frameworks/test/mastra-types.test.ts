import { Agent, type SubAgent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { connect } from "@parley/a2a";
import { expect, test } from "vitest";
import * as z from "zod";
import { fromMastra, idempotencyOf, remoteMastraAgent, type MastraDefinition } from "../src/mastra/index.ts";

/* Tests of types: `tsc` checks that each line below `@ts-expect-error` does not compile. */

const definition: MastraDefinition = { name: "A", description: "A test", version: "1.0.0", skills: [] };
const stock = { id: "a", name: "A", instructions: "Be brief", model: "openai/gpt-5" };

const pay = createTool({
  id: "pay",
  description: "Pays",
  inputSchema: z.object({ amount: z.number() }),
  execute: async ({ amount }, context) => ({ amount, key: idempotencyOf(context)?.key }),
});

test("accepts agents with tools, outputs and remote agents", () => {
  expect(fromMastra(new Agent({ ...stock, tools: { pay } }), definition)).toBeDefined();
  const schema = z.object({ amount: z.number() });
  expect(
    fromMastra(new Agent({ ...stock, defaultOptions: { structuredOutput: { schema } } }), definition),
  ).toBeDefined();
  const weather: SubAgent = remoteMastraAgent("https://agent.example.com");
  expect(fromMastra(new Agent({ ...stock, agents: { weather } }), definition)).toBeDefined();
});

test("rejects anything except an agent", () => {
  const agent = new Agent(stock);
  const wrong = (): unknown[] => [
    // @ts-expect-error -- not an agent
    fromMastra({ id: "a" }, definition),
    // @ts-expect-error -- a model is not an agent
    fromMastra("openai/gpt-5", definition),
    // @ts-expect-error -- a tool is not an agent
    fromMastra(pay, definition),
    // @ts-expect-error -- the description lacks a version
    fromMastra(agent, { name: "A", description: "A test", skills: [] }),
    // @ts-expect-error -- no such option
    fromMastra(agent, { ...definition, reasonings: true }),
    // @ts-expect-error -- the adapter writes onMessage
    fromMastra(agent, { ...definition, onMessage: () => undefined }),
    // @ts-expect-error -- a client, not the promise of one
    remoteMastraAgent(connect("https://agent.example.com")),
    // @ts-expect-error -- a name is not a context
    idempotencyOf("pay"),
  ];
  expect(wrong).toBeTypeOf("function");
});
