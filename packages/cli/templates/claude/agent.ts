import { createSdkMcpServer, query, tool, type Options } from "@anthropic-ai/claude-agent-sdk";
import { fromClaude, type ClaudeQuery } from "@parley/frameworks/claude";
import type { Agent } from "@parley/node";
import * as z from "zod";
import { scriptedQuery } from "./model.ts";

const schema = { count: z.number().int().min(1).max(100), sides: z.number().int().min(1).max(999) };

export const roll = tool("roll", "Rolls dice, and returns each roll", schema, async ({ count, sides }) => {
  const rolls = Array.from({ length: count }, () => 1 + Math.floor(Math.random() * sides));
  return { content: [{ type: "text", text: JSON.stringify(rolls) }] };
});

function options(): Options {
  return {
    model: process.env["AI_MODEL"],
    systemPrompt: "You roll dice with the tool, and tell the total.",
    mcpServers: { dice: createSdkMcpServer({ name: "dice", tools: [roll] }) },
    // The user must approve so many dice.
    canUseTool: async (name, dice) =>
      name === "mcp__dice__roll" && Number(dice["count"]) <= 10 ? { behavior: "allow", updatedInput: dice } : null,
  };
}

/** Makes the agent with `query()` of the SDK, or with a script in its place. */
export function createAgent(ask: ClaudeQuery): Agent {
  return fromClaude(ask, {
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
    options,
  });
}

export default createAgent(process.env["AI_MODEL"] === undefined ? scriptedQuery(roll) : query);
