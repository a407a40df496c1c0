import { setTimeout } from "node:timers/promises";
import { Agent, tool as toolOf, type ModelRequest, type StreamEvent } from "@openai/agents";
import { fromOpenAIAgent } from "@parley/frameworks/openai-agents";
import * as z from "zod";
import { calls, says, saysAndCalls, Scripted } from "../scripted-openai.ts";
import { called, card, jobIn } from "./life.ts";

// Agents look something up, and pay after an approval: one alone, one that hands over to another, and
// one that uses an agent as a tool.

type Script = (job: string) => readonly (readonly StreamEvent[])[];

const looks = (job: string, name = "look") =>
  saysAndCalls(["Loo", "king ", "it ", "up."], [`1 ${job}`, name, { input: job }]);
const pays = (job: string) => saysAndCalls(["I ", "would ", "pay."], [`2 ${job}`, "pay", { input: job }]);
const paid = says("I ", "have ", "paid ", "it.");

/** Answers by the number of results in the input. The first answer has the number `first`; each later number follows that of a tool. */
function modelOf(script: Script, first = 1): Scripted {
  return new Scripted(async function* ({ input }: ModelRequest): AsyncGenerator<StreamEvent> {
    const job = jobIn(input);
    const results = Array.isArray(input) ? input.filter(({ type }) => type === "function_call_result") : [];
    const done = results.filter((item) => !("name" in item && item.name.startsWith("transfer"))).length;
    const answers = script(job);
    called(job, first + (answers.length === 1 ? 0 : done * 2));
    for (const event of answers[Math.min(done, answers.length - 1)] ?? []) {
      await setTimeout(15);
      yield event;
    }
  });
}

function tool(name: string, number: number, needsApproval: boolean) {
  const parameters = z.object({ input: z.string() });
  const execute = async ({ input }: { input: string }): Promise<string> => {
    called(input, number);
    await setTimeout(15);
    return "done";
  };
  return toolOf({ name, description: name, parameters, needsApproval, execute });
}

const look = tool("look", 2, false);
const pay = tool("pay", 4, true);

const alone = new Agent({
  name: "alone",
  model: modelOf((job) => [looks(job), pays(job), paid]),
  tools: [look, pay],
});

const payer = new Agent({
  name: "payer",
  model: modelOf((job) => [[], pays(job), paid], 2),
  tools: [tool("pay", 5, true)],
});
const hands = new Agent({
  name: "hands",
  model: modelOf((job) => [looks(job), calls([`3 ${job}`, "transfer_to_payer", {}])]),
  tools: [look],
  handoffs: [payer],
});

const looker = new Agent({ name: "looker", model: modelOf(() => [says("It is 7.")], 2) });
const asks = new Agent({
  name: "asks",
  model: modelOf((job) => [looks(job, "looker"), pays(job), paid]),
  tools: [looker.asTool({ toolName: "looker", toolDescription: "Looks up" }), pay],
});

export const agents = {
  alone: fromOpenAIAgent(alone, card),
  hands: fromOpenAIAgent(hands, card),
  asks: fromOpenAIAgent(asks, card),
};
