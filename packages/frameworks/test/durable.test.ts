import { describe, expect, test } from "vitest";
import type { LanguageModel } from "ai";
import type { Turn } from "@parley/server";
import { durableModels } from "../src/ai-sdk/model.ts";
import { durableTools } from "../src/ai-sdk/tools.ts";
import { Budget } from "../src/shared/budget.ts";
import { Gate, Results } from "../src/shared/results.ts";
import { calls, says, Scripted, type ModelCall } from "./scripted.ts";

/** A turn that stores its steps in a map. A second turn with the same map resumes it. */
function turnOf(steps: Map<string, unknown>, warnings: unknown[] = []): Turn {
  const { signal } = new AbortController();
  const turn = {
    signal,
    clock: { elapsed: () => 0 },
    logger: { warn: (...line: unknown[]) => warnings.push(line) },
    step: async (name: string, run: (call: object) => unknown) => {
      if (!steps.has(name)) steps.set(name, await run({ key: "k", uncertain: false, attempt: 1, signal }));
      return steps.get(name);
    },
  };
  return turn as unknown as Turn;
}

describe("doGenerate", () => {
  const asked: ModelCall[] = [];
  const model = {
    specificationVersion: "v3",
    provider: "test",
    modelId: "test",
    supportedUrls: {},
    doStream: () => Promise.reject(new Error("It only generates")),
    async doGenerate(call: ModelCall) {
      asked.push(call);
      return {
        content: [{ type: "text", text: "Hello" }],
        finishReason: { unified: "stop", raw: "stop" },
        usage: { inputTokens: { total: 1 }, outputTokens: { total: 2 } },
        response: { id: "r", timestamp: new Date(0), headers: { secret: "s" } },
        warnings: [],
      };
    },
  };
  const generate = async (turn: Turn, text: string): Promise<unknown> => {
    const durable = durableModels(turn, new Budget())(model as unknown as LanguageModel);
    const content = [{ type: "text", text }];
    const prompt = [
      { role: "system", content: String(Math.random()) },
      { role: "user", content },
    ];
    return Reflect.apply(Reflect.get(durable, "doGenerate"), durable, [{ prompt }]);
  };

  test("asks once, and returns the stored answer in a resumed turn, with a warning if the messages differ", async () => {
    const steps = new Map<string, unknown>();
    const warnings: unknown[] = [];
    const first = await generate(turnOf(steps, warnings), "Hi");
    expect(first).toMatchObject({
      content: [{ type: "text", text: "Hello" }],
      usage: { outputTokens: { total: 2 } },
      response: { id: "r", timestamp: new Date(0) },
    });
    expect(JSON.stringify([...steps.values()])).not.toContain("secret");
    expect(await generate(turnOf(steps, warnings), "Hi")).toEqual(first);
    expect(warnings).toEqual([]);
    expect(await generate(turnOf(steps, warnings), "Bye")).toEqual(first);
    expect(warnings).toEqual([["Replaying a model answer to different messages", { number: 1 }]]);
    expect(asked).toHaveLength(1);
  });
});

test("a retry keeps its number among parallel calls, so each call finds its own answer in a resumed turn", async () => {
  const asked: string[] = [];
  let isDown = true;
  const model = {
    specificationVersion: "v3",
    async doGenerate({ prompt }: ModelCall) {
      const text = String(prompt[0]?.content);
      asked.push(text);
      if (text === "one" && isDown) throw new Error("Overloaded");
      return { content: [{ type: "text", text: `answer to ${text}` }], finishReason: {}, usage: {} };
    },
  };
  const steps = new Map<string, unknown>();
  const turn = async (): Promise<string> => {
    const durable = durableModels(turnOf(steps), new Budget())(model as unknown as LanguageModel);
    const ask = async (content: string): Promise<unknown> =>
      Reflect.apply(Reflect.get(durable, "doGenerate"), durable, [{ prompt: [{ role: "user", content }] }]);
    const retried = ask("one").catch(async () => {
      isDown = false;
      const later = await ask("three");
      return [await ask("one"), later];
    });
    return JSON.stringify(await Promise.all([retried, ask("two")]));
  };
  const first = await turn();
  expect(asked).toEqual(["one", "two", "three", "one"]);
  expect([...steps.keys()].toSorted()).toEqual(["model 1", "model 2", "model 3"]);
  const [one] = JSON.parse(await turn()) as unknown[];
  expect(one).toMatchObject({ content: [{ text: "answer to one" }] });
  expect(first).toContain("answer to three");
  expect(asked).toHaveLength(4);
});

test("a resumed turn streams reasoning, sources, files, calls and usage as the model did", async () => {
  const thought = says("Hm, ", "paid").map((part) => ({ ...part, type: part.type.replace("text", "reasoning") }));
  const model = new Scripted([
    { type: "stream-start", warnings: [] },
    { type: "response-metadata", id: "r", modelId: "m", timestamp: new Date(0) },
    ...thought.slice(0, -1),
    { type: "source", sourceType: "url", id: "s", url: "https://example.com/" },
    ...says("Half ", "done").slice(0, -1),
    { type: "file", mediaType: "image/png", data: new Uint8Array([1, 2]) },
    ...calls(["c1", "pay", { amount: 5 }]),
  ]);
  const steps = new Map<string, unknown>();
  const stream = async (): Promise<readonly object[]> => {
    const durable = durableModels(turnOf(steps), new Budget())(model as unknown as LanguageModel);
    const call = Reflect.apply(Reflect.get(durable, "doStream"), durable, [{ prompt: [] }]);
    const parts: object[] = [];
    for await (const part of ((await call) as { stream: AsyncIterable<{ type: string; id?: string }> }).stream) {
      // In a replay, text ids count the blocks.
      const { id: _, ...text } = part;
      if (part.type !== "stream-start") parts.push(/^(text|reasoning)-/.test(part.type) ? text : part);
    }
    return parts;
  };
  const live = await stream();
  expect(live).toMatchObject([
    { type: "response-metadata", id: "r" },
    { type: "reasoning-start" },
    { delta: "Hm, " },
    { delta: "paid" },
    { type: "reasoning-end" },
    { type: "source", url: "https://example.com/" },
    { type: "text-start" },
    { delta: "Half " },
    { delta: "done" },
    { type: "text-end" },
    { type: "file", data: new Uint8Array([1, 2]) },
    { type: "tool-call", toolCallId: "c1" },
    { type: "finish", usage: { inputTokens: { total: 7 } } },
  ]);
  expect(await stream()).toEqual(live);
  expect(model.calls).toHaveLength(1);
});

test("a resumed turn has as much room for results as the lost turn", async () => {
  const result = "x".repeat(250 << 10);
  const calls = async (turn: Turn, ids: readonly string[], budget = new Budget()): Promise<string[]> => {
    const { big } = durableTools(turn, budget)({ big: { execute: () => result } });
    const outputs: string[] = [];
    for (const toolCallId of ids) {
      const called: Promise<string> = Reflect.apply(big.execute, undefined, [{}, { toolCallId }]);
      outputs.push(await called.catch((error: unknown) => String(error)));
    }
    return outputs.map((output) => output.slice(0, 20));
  };
  const all = ["a", "b", "c", "d"];
  const whole = await calls(turnOf(new Map()), all);
  expect(whole.map((output) => output.startsWith("xx"))).toEqual([true, true, true, false]);
  const steps = new Map<string, unknown>();
  await calls(turnOf(steps), all.slice(0, 3));
  expect(await calls(turnOf(steps), all)).toEqual(whole);
});

test("tools that are made durable twice are one step", async () => {
  const steps = new Map<string, unknown>();
  const durable = durableTools(turnOf(steps), new Budget());
  const { look } = durable(durable({ look: { execute: () => "found" } }));
  await Reflect.apply(look.execute, undefined, [{}, { toolCallId: "c1" }]);
  expect([...steps.keys()]).toEqual(["tool c1"]);
});

test("quotes in results are counted once", async () => {
  const { big } = durableTools(turnOf(new Map()), new Budget())({ big: { execute: () => '"'.repeat(120 << 10) } });
  for (const toolCallId of ["a", "b", "c"])
    await expect(Reflect.apply(big.execute, undefined, [{}, { toolCallId }])).resolves.toHaveLength(120 << 10);
});

test("a gated result is returned immediately, and stored when the gate opens", async () => {
  const steps = new Map<string, unknown>();
  const results = new Results(turnOf(steps), new Budget());
  const gate = new Gate();
  const run = async (): Promise<string> => "found";
  expect(await results.of("a", undefined, run, gate)).toBe("found");
  expect(steps.size).toBe(0);
  await gate.open();
  expect([...steps]).toEqual([["tool a", { output: "found" }]]);
  expect(await results.of("b", undefined, run, gate)).toBe("found");
  gate.close();
  await expect(gate.open()).rejects.toThrow("not complete");
  expect(steps.size).toBe(1);
});
