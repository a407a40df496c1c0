import type { LanguageModel } from "ai";

type Model = Exclude<LanguageModel, string> & { readonly specificationVersion: "v3" };
type Call = Parameters<Model["doStream"]>[0];
type Part = Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer Each> ? Each : never;

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 10, text: 10, reasoning: 0 },
};

const say = (text: string): readonly Part[] => [
  { type: "text-start", id: "1" },
  { type: "text-delta", id: "1", delta: text },
  { type: "text-end", id: "1" },
  { type: "finish", finishReason: { unified: "stop", raw: undefined }, usage },
];

const call = (toolName: string, input: object): readonly Part[] => [
  { type: "tool-call", toolCallId: crypto.randomUUID(), toolName, input: JSON.stringify(input) },
  { type: "finish", finishReason: { unified: "tool-calls", raw: undefined }, usage },
];

/** Rolls the dice of the user's message, such as `2d6`, and tells the total. */
function answer({ prompt }: Call): readonly Part[] {
  const last = prompt.findLastIndex(({ role }) => role === "user");
  const [result] = prompt
    .slice(last)
    .flatMap(({ role, content }) => (role === "tool" ? content : []))
    .flatMap((part) => (part.type === "tool-result" ? [part.output] : []));
  if (result === undefined) {
    const [, count, sides] = /(\d*)d(\d+)/.exec(JSON.stringify(prompt[last])) ?? [];
    if (sides === undefined) return say("Which dice? For example 2d6.");
    return call("roll", { count: Number(count || 1), sides: Number(sides) });
  }
  if (result.type !== "json" || !Array.isArray(result.value)) return say("I have not rolled.");
  const rolls = result.value.map(Number);
  return say(`${rolls.join(" + ")} = ${rolls.reduce((sum, roll) => sum + roll, 0)}`);
}

/** Stands in for a model: its answers depend only on the conversation. */
export const scriptedModel: Model = {
  specificationVersion: "v3",
  provider: "script",
  modelId: "script",
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("The script only streams")),
  doStream: async (options) => ({
    stream: new ReadableStream({
      start(controller) {
        for (const part of answer(options)) controller.enqueue(part);
        controller.close();
      },
    }),
  }),
};
