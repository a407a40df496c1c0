import type { AgentInputItem, Model, StreamEvent } from "@openai/agents";

type Output = Extract<StreamEvent, { readonly type: "response_done" }>["response"]["output"];

const usage = { inputTokens: 10, outputTokens: 10, totalTokens: 20 };
const done = (...output: Output): StreamEvent => ({ type: "response_done", response: { id: "script", usage, output } });

const call = (name: string, input: object): readonly StreamEvent[] => [
  done({ type: "function_call", callId: crypto.randomUUID(), name, arguments: JSON.stringify(input) }),
];

const say = (text: string): readonly StreamEvent[] => [
  ...text.split(/(?<= )/).map((delta): StreamEvent => ({ type: "output_text_delta", delta })),
  done({ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text }] }),
];

/** Answers like a model: looks up the invoice, pays it, and reports the receipt. */
function answer(input: readonly AgentInputItem[]): readonly StreamEvent[] {
  const at = input.findLastIndex((item) => "role" in item && item.role === "user");
  const number = Number(/\d+/.exec(JSON.stringify(input[at]))?.[0] ?? 1);
  const results = input.slice(at).flatMap((item) => (item.type === "function_call_result" ? [item.output] : []));
  const [found, paid] = results.map((output) => JSON.stringify(output));
  if (found === undefined) return call("invoice", { number });
  if (paid === undefined) return call("pay", { number, amount: number * 10 });
  const receipt = /receipt\D+(\d+)/.exec(paid)?.[1];
  return say(receipt === undefined ? "I have paid nothing." : `Invoice ${number} is paid: receipt ${receipt}`);
}

/** Stands in for a model. The same conversation always gets the same answer. */
export const scriptedModel: Model = {
  getResponse: () => Promise.reject(new Error("The script only streams")),
  async *getStreamedResponse({ input }) {
    yield* answer(typeof input === "string" ? [] : input);
  },
};
