import { fromAISDK } from "@parley/frameworks/ai-sdk";
import type { Agent } from "@parley/node";
import { tool, ToolLoopAgent, type LanguageModel } from "ai";
import * as z from "zod";
import { scriptedModel } from "./model.ts";

/** Makes the agent with a model: one of the AI SDK, or its id at the AI Gateway. */
export function createAgent(model: LanguageModel): Agent {
  const roller = new ToolLoopAgent({
    model,
    instructions: "You roll dice with the tool, and tell the total.",
    tools: {
      roll: tool({
        description: "Rolls dice, and returns each roll",
        inputSchema: z.object({ count: z.number().int().min(1).max(100), sides: z.number().int().min(1).max(999) }),
        // The user must approve so many dice.
        needsApproval: ({ count }) => count > 10,
        execute: ({ count, sides }) => Array.from({ length: count }, () => 1 + Math.floor(Math.random() * sides)),
      }),
    },
  });
  return fromAISDK(roller, {
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
