import { Agent as MastraAgent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { fromMastra } from "@parley/frameworks/mastra";
import type { Agent } from "@parley/node";
import * as z from "zod";
import { scriptedModel, type Model } from "./model.ts";

/** Makes the agent with a model, or with the id of one, such as `openai/gpt-5`. */
export function createAgent(model: Model | string): Agent {
  const roll = createTool({
    id: "roll",
    description: "Rolls dice, and returns each roll",
    inputSchema: z.object({ count: z.number().int().min(1).max(100), sides: z.number().int().min(1).max(999) }),
    // The user must approve so many dice.
    requireApproval: async ({ count }) => count > 10,
    execute: async ({ count, sides }) => Array.from({ length: count }, () => 1 + Math.floor(Math.random() * sides)),
  });
  const roller = new MastraAgent({
    id: "roller",
    name: "Roller",
    model,
    instructions: "You roll dice with the tool, and tell the total.",
    tools: { roll },
  });
  return fromMastra(roller, {
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
