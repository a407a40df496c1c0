import { Agent as OpenAIAgent, tool, type Model } from "@openai/agents";
import { fromOpenAIAgent } from "@parley/frameworks/openai-agents";
import type { Agent } from "@parley/node";
import * as z from "zod";
import { scriptedModel } from "./model.ts";

/** Creates the agent with a model, or with the id of an OpenAI model. */
export function createAgent(model: Model | string): Agent {
  const roll = tool({
    name: "roll",
    description: "Rolls dice, and returns each roll",
    parameters: z.object({ count: z.number().int().min(1).max(100), sides: z.number().int().min(1).max(999) }),
    // More than ten dice need the user's approval.
    needsApproval: async (_context, { count }) => count > 10,
    execute: ({ count, sides }) => Array.from({ length: count }, () => 1 + Math.floor(Math.random() * sides)),
  });
  const roller = new OpenAIAgent({
    name: "Roller",
    model,
    instructions: "You roll dice with the tool, and tell the total.",
    tools: [roll],
  });
  return fromOpenAIAgent(roller, {
    name: "{{NAME}}",
    description: "Rolls dice.",
    version: "0.1.0",
    skills: [
      {
        id: "roll",
        name: "Roll dice",
        description: "Rolls dice such as 2d6 or d20.",
        tags: ["dice"],
        examples: ["2d6"],
      },
    ],
  });
}

export default createAgent(process.env["AI_MODEL"] ?? scriptedModel);
