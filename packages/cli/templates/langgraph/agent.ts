import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { tool } from "@langchain/core/tools";
import { interrupt } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { durable, fromLangGraph } from "@parley/frameworks/langgraph";
import type { Agent } from "@parley/node";
import * as z from "zod";
import { realModel, scriptedModel } from "./model.ts";

const roll = tool(
  ({ count, sides }) => {
    // The user must approve so many dice.
    if (count > 10) {
      const isApproved: unknown = interrupt(`Roll ${count} dice?`, { responseSchema: z.boolean() });
      if (isApproved !== true) return "The user has refused.";
    }
    return Array.from({ length: count }, () => 1 + Math.floor(Math.random() * sides));
  },
  {
    name: "roll",
    description: "Rolls dice, and returns each roll",
    schema: z.object({ count: z.number().int().min(1).max(100), sides: z.number().int().min(1).max(999) }),
  },
);

/** Makes the agent with a chat model of LangChain. */
export function createAgent(model: BaseChatModel): Agent {
  const graph = createReactAgent({
    llm: durable.model(model),
    tools: durable.tools([roll]),
    prompt: "You roll dice with the tool, and tell the total.",
  });
  return fromLangGraph(graph, {
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

const name = process.env["AI_MODEL"];
export default createAgent(name === undefined ? scriptedModel : await realModel(name));
