import type { MastraModelConfig } from "@mastra/core/llm";

type Model = Extract<MastraModelConfig, { readonly specificationVersion: "v3" }>;
type Call = Parameters<Model["doStream"]>[0];
type Part = Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer Each> ? Each : never;

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 10, text: 10, reasoning: 0 },
};

const call = (toolName: string, input: object): readonly Part[] => [
  { type: "tool-call", toolCallId: crypto.randomUUID(), toolName, input: JSON.stringify(input) },
  { type: "finish", finishReason: { unified: "tool-calls", raw: undefined }, usage },
];

const say = (text: string): readonly Part[] => [
  { type: "text-start", id: "1" },
  ...text.split(/(?<= )/).map((delta): Part => ({ type: "text-delta", id: "1", delta })),
  { type: "text-end", id: "1" },
  { type: "finish", finishReason: { unified: "stop", raw: undefined }, usage },
];

/** Answers like a model: looks up the invoice, pays it, and reports the receipt. */
function answer({ prompt }: Call): readonly Part[] {
  const number = Number(/\d+/.exec(JSON.stringify(prompt.findLast(({ role }) => role === "user")))?.[0] ?? 1);
  const results = prompt
    .slice(prompt.findLastIndex(({ role }) => role === "user"))
    .flatMap(({ role, content }) => (role === "tool" ? content : []))
    .flatMap((part) => (part.type === "tool-result" ? [part] : []));
  const [found, paid] = results;
  if (found === undefined) return call("invoice", { number });
  if (paid === undefined) return call("pay", { number, amount: number * 10 });
  if (paid.output.type !== "json") return say("I have paid nothing.");
  return say(`Invoice ${number} is paid: ${JSON.stringify(paid.output)}`);
}

/** Stands in for a model. The same conversation always gets the same answer. */
export const scriptedModel: Model = {
  specificationVersion: "v3",
  provider: "example",
  modelId: "script",
  supportedUrls: {},
  async doGenerate() {
    throw new Error("The script only streams");
  },
  doStream: async (options: Call) => ({
    stream: new ReadableStream({
      start(controller) {
        for (const part of answer(options)) controller.enqueue(part);
        controller.close();
      },
    }),
  }),
};
