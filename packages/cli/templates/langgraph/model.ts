import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";

/** A model of OpenAI. It needs the package @langchain/openai; for others, import their packages. */
export async function realModel(model: string): Promise<BaseChatModel> {
  const name = "@langchain/openai";
  const { ChatOpenAI } = (await import(name)) as { ChatOpenAI: new (fields: { model: string }) => BaseChatModel };
  return new ChatOpenAI({ model });
}

const call = (name: string, args: Record<string, unknown>): AIMessage =>
  new AIMessage({ content: "", tool_calls: [{ id: crypto.randomUUID(), name, args, type: "tool_call" }] });

/** Rolls the dice of the user's message, such as `2d6`, and tells the total. */
function answer(messages: readonly BaseMessage[]): AIMessage {
  const last = messages.findLastIndex(({ type }) => type === "human");
  const result = messages.slice(last).find(({ type }) => type === "tool")?.text;
  if (result === undefined) {
    const [, count, sides] = /(\d*)d(\d+)/.exec(messages[last]?.text ?? "") ?? [];
    if (sides === undefined) return new AIMessage("Which dice? For example 2d6.");
    return call("roll", { count: Number(count || 1), sides: Number(sides) });
  }
  const [list] = /\[[\d,]+\]/.exec(result) ?? [];
  if (list === undefined) return new AIMessage("I have not rolled.");
  const rolls = list.slice(1, -1).split(",").map(Number);
  return new AIMessage(`${rolls.join(" + ")} = ${rolls.reduce((sum, roll) => sum + roll, 0)}`);
}

class ScriptedModel extends BaseChatModel {
  override _llmType(): string {
    return "script";
  }

  override bindTools(): this {
    return this;
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const message = answer(messages);
    return { generations: [{ text: message.text, message }] };
  }
}

/** Stands in for a model: its answers depend only on the conversation. */
export const scriptedModel: BaseChatModel = new ScriptedModel({});
