import { setTimeout } from "node:timers/promises";
import { fromAISDK } from "@parley/frameworks/ai-sdk";
import { mcpTools, toAISDK, type McpClient } from "@parley/mcp/tools";
import * as ai7 from "ai";
import type { LanguageModel } from "ai";
import { calls, says, Scripted, type ModelCall, type ModelPart } from "../scripted.ts";
import { versions } from "../versions.ts";
import { called, card, jobIn, life } from "./life.ts";

// Agents of both versions look something up, and pay after an approval; one pays by an MCP tool that asks.

/** The script: the model's answer by the number of results in the prompt. */
const script = (job: string): readonly (readonly ModelPart[])[] => [
  [...says("Loo", "king ", "it ", "up.").slice(0, -1), ...calls([`look ${job}`, "look", { job }])],
  [...says("I ", "would ", "pay.").slice(0, -1), ...calls([`pay ${job}`, "pay", { job }])],
  says("I ", "have ", "paid ", "it."),
];

/** The script of a job that is read across kills: one step after the other, for as many process lives as its name says. */
function step(job: string, done: number): readonly ModelPart[] {
  const said = says("Step ", `${done} `, "is ", "done.");
  if (life > Number(/\d+$/.exec(job)?.[0])) return said;
  return [...said.slice(0, -1), ...calls([`look ${done}`, "look", { job, number: done * 2 + 2 }])];
}

async function* model({ prompt }: ModelCall): AsyncGenerator<ModelPart> {
  const job = jobIn(prompt);
  const results = prompt.filter(({ role }) => role === "tool").flatMap(({ content }) => content as ModelPart[]);
  const done = results.filter(({ type }) => type === "tool-result").length;
  // A tool that asks is called twice.
  called(job, done * 2 + (done === 2 && job.startsWith("job-elicits") ? 2 : 1));
  for (const part of job.startsWith("job-read") ? step(job, done) : (script(job)[done] ?? [])) {
    await setTimeout(15);
    yield part;
  }
}

const tool =
  (usual: number) =>
  async ({ job, number = usual }: { job: string; number?: number }): Promise<{ done: string }> => {
    called(job, number);
    await setTimeout(15);
    return { done: job };
  };

const inputSchema = { type: "object", properties: { job: { type: "string" } } };

const byVersion = Object.fromEntries(
  versions.map(({ name, ToolLoopAgent, jsonSchema, tool: toolOf, stepCountIs }) => {
    const schema = jsonSchema(inputSchema);
    const tools = {
      look: toolOf({ inputSchema: schema, execute: tool(2) }),
      pay: toolOf({ inputSchema: schema, needsApproval: true, execute: tool(4) }),
    };
    const agent = new ToolLoopAgent({ model: new Scripted(model), tools, stopWhen: stepCountIs(500) });
    return [name.replace(" ", "-"), fromAISDK(agent, card)];
  }),
);

const elicit = {
  method: "elicitation/create",
  params: {
    message: "Pay?",
    requestedSchema: { type: "object", properties: { answer: { type: "string" } }, required: ["answer"] },
  },
};

/** An MCP server whose tool asks before it pays. */
const bank: McpClient = {
  name: "bank",
  listTools: async () => ({ tools: [{ name: "pay", description: "Pays", inputSchema }] }),
  async callTool({ arguments: { job } = {}, inputResponses }) {
    called(String(job), inputResponses === undefined ? 4 : 5);
    await setTimeout(15);
    if (inputResponses !== undefined) return { content: [{ type: "text", text: "paid" }] };
    return { resultType: "input_required", inputRequests: { answer: elicit }, requestState: String(job) };
  },
  getServerVersion: () => ({ name: "bank" }),
};

const elicits = fromAISDK(async (durable, turn) => {
  const schema = ai7.jsonSchema<{ job: string }>({ type: "object", properties: { job: { type: "string" } } });
  const look = ai7.tool({ inputSchema: schema, execute: tool(2) });
  return new ai7.ToolLoopAgent({
    model: durable.model(new Scripted(model) as unknown as LanguageModel),
    tools: { ...durable.tools({ look }), ...toAISDK(await mcpTools(turn, bank)) },
  });
}, card);

export const agents = { ...byVersion, elicits };
