import { setTimeout } from "node:timers/promises";
import { fromAISDK } from "@parley/frameworks/ai-sdk";
import { calls, says, Scripted, type ModelCall, type ModelPart } from "../scripted.ts";
import { versions } from "../versions.ts";
import { called, card, jobIn, life } from "./life.ts";

// Agents of both versions look something up, and pay after an approval.

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
  called(job, done * 2 + 1);
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

export const agents = Object.fromEntries(
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
