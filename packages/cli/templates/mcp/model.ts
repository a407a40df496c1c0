import type { McpTool } from "@parley/mcp/tools";
import * as z from "zod";

const Answer = z.object({
  role: z.literal("assistant"),
  content: z.string().nullish(),
  tool_calls: z
    .array(
      z.object({
        id: z.string(),
        type: z.literal("function"),
        function: z.object({ name: z.string(), arguments: z.string() }),
      }),
    )
    .nonempty()
    .optional(),
});

/** An answer of a model, as the chat completions of OpenAI have it. */
export type Answer = z.infer<typeof Answer>;

export type ModelMessage =
  | { readonly role: "user"; readonly content: string }
  | { readonly role: "tool"; readonly tool_call_id: string; readonly content: string }
  | Answer;

export type Model = (
  messages: readonly ModelMessage[],
  tools: readonly McpTool[],
  signal: AbortSignal,
) => Promise<Answer>;

/** A model at OpenAI, or at the compatible API of OPENAI_BASE_URL. */
export function realModel(model: string): Model {
  const { OPENAI_BASE_URL: url = "https://api.openai.com/v1", OPENAI_API_KEY: key } = process.env;
  return async (messages, mcpTools, signal) => {
    const tools = mcpTools.map(({ name, description, inputSchema }) => ({
      type: "function",
      function: { name, description, parameters: inputSchema },
    }));
    const response = await fetch(`${url}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages, tools }),
      signal,
    });
    if (!response.ok) throw new Error(`The model's API answered ${response.status}: ${await response.text()}`);
    const { choices } = z.object({ choices: z.tuple([z.object({ message: Answer })]) }).parse(await response.json());
    return choices[0].message;
  };
}

/** Stands in for a model: it rolls the dice of the user's message, such as `2d6`, and tells the result. */
export const scriptedModel: Model = async (messages) => {
  const last = messages.at(-1);
  if (last?.role === "tool") return { role: "assistant", content: last.content };
  const [, count, sides] = /(\d*)d(\d+)/.exec(last?.content ?? "") ?? [];
  if (sides === undefined) return { role: "assistant", content: "Which dice? For example 2d6." };
  const roll = { name: "roll_dice", arguments: JSON.stringify({ count: Number(count || 1), sides: Number(sides) }) };
  return { role: "assistant", tool_calls: [{ id: crypto.randomUUID(), type: "function", function: roll }] };
};
