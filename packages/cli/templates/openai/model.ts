import type { AgentInputItem, Model, StreamEvent } from "@openai/agents";

type Output = Extract<StreamEvent, { readonly type: "response_done" }>["response"]["output"];

const usage = { inputTokens: 10, outputTokens: 10, totalTokens: 20 };
const done = (...output: Output): StreamEvent => ({ type: "response_done", response: { id: "script", usage, output } });

const say = (text: string): readonly StreamEvent[] => [
  { type: "output_text_delta", delta: text },
  done({ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text }] }),
];

const call = (name: string, input: object): readonly StreamEvent[] => [
  done({ type: "function_call", callId: crypto.randomUUID(), name, arguments: JSON.stringify(input) }),
];

/** Rolls the dice of the user's message, such as `2d6`, and tells the total. */
function answer(input: readonly AgentInputItem[]): readonly StreamEvent[] {
  const last = input.findLastIndex((item) => "role" in item && item.role === "user");
  const [result] = input.slice(last).flatMap((item) => (item.type === "function_call_result" ? [item.output] : []));
  if (result === undefined) {
    const [, count, sides] = /(\d*)d(\d+)/.exec(JSON.stringify(input[last])) ?? [];
    if (sides === undefined) return say("Which dice? For example 2d6.");
    return call("roll", { count: Number(count || 1), sides: Number(sides) });
  }
  const [list] = /\[[\d,]+\]/.exec(typeof result === "string" ? result : JSON.stringify(result)) ?? [];
  if (list === undefined) return say("I have not rolled.");
  const rolls = list.slice(1, -1).split(",").map(Number);
  return say(`${rolls.join(" + ")} = ${rolls.reduce((sum, roll) => sum + roll, 0)}`);
}

/** Stands in for a model: its answers depend only on the conversation. */
export const scriptedModel: Model = {
  getResponse: () => Promise.reject(new Error("The script only streams")),
  async *getStreamedResponse({ input }) {
    yield* answer(typeof input === "string" ? [{ role: "user", content: input }] : input);
  },
};
