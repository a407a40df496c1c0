import { setTimeout } from "node:timers/promises";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { fromMastra, type MastraAgent } from "@parley/frameworks/mastra";
import * as z from "zod";
import { calls, says, Scripted, type ModelCall, type ModelPart } from "../scripted.ts";
import { called, card, jobIn } from "./life.ts";

// Two agents look something up, and pay: one after an approval, and one whose tool suspends itself.

/** The script: the model's answer by the number of results in the prompt. */
const script = (job: string): readonly (readonly ModelPart[])[] => [
  [...says("Loo", "king ", "it ", "up.").slice(0, -1), ...calls([`look ${job}`, "look", { job }])],
  [...says("I ", "would ", "pay.").slice(0, -1), ...calls([`pay ${job}`, "pay", { job }])],
  says("I ", "have ", "paid ", "it."),
];

async function* model({ prompt }: ModelCall): AsyncGenerator<ModelPart> {
  const job = jobIn(prompt);
  const results = prompt.filter(({ role }) => role === "tool").flatMap(({ content }) => content as ModelPart[]);
  const done = results.filter(({ type }) => type === "tool-result").length;
  called(job, done * 2 + 1);
  for (const part of script(job)[done] ?? []) {
    await setTimeout(15);
    yield part;
  }
}

async function ran(job: string, number: number): Promise<{ done: string }> {
  called(job, number);
  await setTimeout(15);
  return { done: job };
}

const inputSchema = z.object({ job: z.string() });
const description = "A step of the job";
const look = createTool({ id: "look", description, inputSchema, execute: ({ job }) => ran(job, 2) });
const approved = createTool({
  id: "pay",
  description,
  inputSchema,
  requireApproval: true,
  execute: ({ job }) => ran(job, 4),
});
const suspended = createTool({
  id: "pay",
  description,
  inputSchema,
  suspendSchema: z.object({ why: z.string() }),
  resumeSchema: z.object({ answer: z.string() }),
  execute: async ({ job }, { agent }) =>
    agent?.resumeData === undefined ? agent?.suspend({ why: "Pay?" }) : ran(job, 4),
});

const Stock = Agent as unknown as new (settings: object) => MastraAgent;
const made = Object.entries({ approved, suspended }).map(([id, pay]) => {
  const agent = new Stock({ id, name: id, instructions: "Pay", model: new Scripted(model), tools: { look, pay } });
  return [id, fromMastra(agent, card)] as const;
});

export const agents = Object.fromEntries(made);
