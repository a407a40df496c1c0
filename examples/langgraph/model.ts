import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";

/** The class MODEL_CLASS of the package MODEL_PACKAGE, such as ChatOpenAI of @langchain/openai. Without them, a script. */
export async function chatModel(): Promise<BaseChatModel> {
  const { MODEL_PACKAGE, MODEL_CLASS = "", MODEL } = process.env;
  if (MODEL_PACKAGE === undefined) return new ScriptedModel({});
  const module = (await import(MODEL_PACKAGE)) as Readonly<Record<string, new (fields: object) => BaseChatModel>>;
  const Model = module[MODEL_CLASS];
  if (Model === undefined) throw new Error(`${MODEL_PACKAGE} has no class ${MODEL_CLASS}`);
  return new Model({ model: MODEL });
}

/** Stands in for a model. The same conversation always gets the same answer. */
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

const call = (name: string, args: Record<string, unknown>): AIMessage =>
  new AIMessage({ content: "", tool_calls: [{ id: crypto.randomUUID(), name, args, type: "tool_call" }] });

/** Answers like a model: looks up the invoice, pays it, and reports the receipt. */
function answer(messages: readonly BaseMessage[]): AIMessage {
  const from = messages.findLastIndex(({ type }) => type === "human");
  const number = Number(/\d+/.exec(messages[from]?.text ?? "")?.[0] ?? 1);
  const [found, paid] = messages.slice(from).filter(({ type }) => type === "tool");
  if (found === undefined) return call("invoice", { number });
  if (paid === undefined) return call("pay", { number, amount: number * 10 });
  if (paid.text.includes("refused")) return new AIMessage("I have paid nothing.");
  return new AIMessage(`Invoice ${number} is paid: ${paid.text}`);
}
