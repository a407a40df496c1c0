import { tool } from "@langchain/core/tools";
import { Annotation, END, getWriter, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { memoryStore } from "@parley/server";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { durable, fromLangGraph, idempotencyOf, type LangGraph } from "../src/langgraph/index.ts";
import { gate } from "./gate.ts";
import { calls, ScriptedChat } from "./graphs.ts";
import { byText, nodeOf, paying, read, served, state, texts } from "./served.ts";

test("streams text as an artifact, and continues the conversation", async () => {
  const usage_metadata = { input_tokens: 7, output_tokens: 11, total_tokens: 18 };
  const llm = new ScriptedChat(["Hello, ", "world", { content: "", usage_metadata }], ["Again"]);
  const client = await served(createReactAgent({ llm, tools: [], prompt: "Be brief" }));
  const conversation = client.conversation();
  const stream = conversation.stream("Hi");
  const metadata: unknown[] = [];
  for await (const { statusUpdate } of stream) if (statusUpdate?.metadata) metadata.push(statusUpdate.metadata);
  expect(metadata).toEqual([{ "gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 11 }]);
  const { task } = await conversation.send("And now?");
  expect(texts(task)).toEqual(["Again"]);
  expect(task?.artifacts?.[0]?.name).toBe("answer");
  expect(read(llm.calls[1])).toEqual(["Be brief", "Hi", "Hello, world", "And now?"]);
});

test("runs tools, and passes their results and errors to the model, even for unknown tools and invalid arguments", async () => {
  const llm = new ScriptedChat(
    [
      calls(
        ["c1", "pay", { amount: 5 }],
        ["c2", "steal", {}],
        ["c3", "pay", { amount: "much" }],
        ["c4", "pay", { amount: 0 }],
      ),
    ],
    ["Done"],
  );
  const pay = paying(({ amount }) => {
    if (amount === 0) throw new Error("No funds");
    return `Paid ${amount}`;
  });
  const client = await served(createReactAgent({ llm: durable.model(llm), tools: durable.tools([pay]) }));
  const said: string[] = [];
  for await (const { statusUpdate } of client.sendStreamingMessage("Pay 5"))
    said.push(String(statusUpdate?.status.message?.parts[0]?.text));
  expect(said).toContain("Calling pay");
  const [, , paid, unknown, invalid, failed] = read(llm.calls[1]);
  expect(paid).toBe("Paid 5");
  expect(unknown).toContain('"steal" not found');
  expect(invalid).toContain("did not match expected schema");
  expect(failed).toContain("No funds");
});

test("shows progress of nodes and tools, and updates on request", async () => {
  const look = tool(
    async function* look() {
      yield "half";
      yield { share: 1 };
      return "whole";
    },
    { name: "look", schema: z.object({}) },
  );
  const llm = new ScriptedChat([calls(["c1", "look", {}])], ["Done"]);
  const agent = createReactAgent({ llm, tools: durable.tools([look]) });
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("first", () => {
      getWriter()?.("Looking");
      return {};
    })
    .addNode("agent", agent)
    .addEdge(START, "first")
    .addEdge("first", "agent")
    .addEdge("agent", END)
    .compile();
  const client = await served(graph, { updates: true });
  const said: unknown[] = [];
  for await (const { statusUpdate } of client.sendStreamingMessage("Hi")) {
    const [part] = statusUpdate?.status.message?.parts ?? [];
    if (part !== undefined) said.push(part.text ?? part.data);
  }
  expect(said).toEqual(expect.arrayContaining(["Looking", "Calling look", "half", { share: 1 }]));
  expect(said).toContainEqual(expect.objectContaining({ agent: expect.anything() }));
  expect(read(llm.calls[1]).at(-1)).toBe("whole");
});

test("shows a message that was not streamed, and each message once", async () => {
  const llm = new ScriptedChat([" Hello "], ["Hidden"]);
  const inner = nodeOf(async ({ messages }) => ({
    messages: [await llm.invoke(messages), { role: "ai", content: "Canned" }],
  }));
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("inner", inner as never)
    // Returns all messages again.
    .addNode("all", ({ messages }) => ({ messages }))
    .addNode("quiet", async ({ messages }) => {
      await llm.invoke(messages, { tags: ["nostream"] });
      return {};
    })
    .addEdge(START, "inner")
    .addEdge("inner", "all")
    .addEdge("all", "quiet")
    .compile();
  const client = await served(graph);
  const conversation = client.conversation();
  expect(texts((await conversation.send("Hi")).task)).toEqual([" Hello ", "Canned"]);
});

test("accepts a graph without messages: with its output, or with a text made from its values", async () => {
  const State = Annotation.Root({ question: Annotation<string>, answer: Annotation<string> });
  const graph = new StateGraph({ stateSchema: State, output: Annotation.Root({ answer: Annotation<string> }) } as never)
    .addNode("node", (({ question }: typeof State.State) => ({ answer: `${question}!` })) as never)
    .addEdge(START, "node")
    .compile() as LangGraph;
  expect(() => fromLangGraph(graph, { name: "A", description: "B", version: "1", skills: [] })).toThrow(
    "needs `input`",
  );
  const input = ({ text }: { readonly text: string }) => ({ question: text });
  const client = await served(graph, { input });
  expect(texts((await client.sendMessage("Hi")).task)).toEqual(['{"answer":"Hi!"}']);
  const other = await served(graph, { input, output: ({ answer }) => `It is ${String(answer)}` });
  expect(texts((await other.sendMessage("Hi")).task)).toEqual(["It is Hi!"]);
});

test("creates a graph for each turn, with the turn's config, and passes files to the model", async () => {
  const llm = new ScriptedChat(["Done"]);
  const seen: unknown[] = [];
  const client = await served(
    async ({ model }) =>
      nodeOf(async ({ messages }, { context }) => {
        seen.push(context);
        return { messages: [await model(llm).invoke(messages)] };
      }),
    { config: ({ text }) => ({ context: { said: text } }) },
  );
  const parts = [{ text: "See" }, { raw: btoa("png"), mediaType: "image/png", filename: "a.png" }];
  const { task } = await client.sendMessage({ message: { parts } });
  expect(texts(task)).toEqual(["Done"]);
  expect(seen).toEqual([{ said: "See" }]);
  expect(llm.calls[0]?.[0]?.contentBlocks).toMatchObject([
    { type: "text", text: "See" },
    { type: "image", mimeType: "image/png", data: btoa("png") },
  ]);
});

test("ends a loop of calls at the graph's limit, even if the model repeats an id", async () => {
  let paid = 0;
  const llm = new ScriptedChat([calls(["same", "pay", { amount: 1 }])]);
  const tools = durable.tools([paying(() => `${(paid += 1)}`)]);
  const client = await served(createReactAgent({ llm: durable.model(llm), tools }), {
    config: () => ({ recursionLimit: 5 }),
  });
  const { task } = await client.sendMessage("Hi");
  expect(state(task)).toBe("FAILED");
  expect(task?.status.message?.parts[0]?.text).toBe("The graph exceeded its step limit");
  expect([paid, llm.calls.length]).toEqual([1, 3]);
});

test("ignores the graph's checkpointer, and logs a warning", async () => {
  const warnings: string[] = [];
  const note = (message: string): void => void warnings.push(message);
  const logger = { debug: () => {}, info: () => {}, warn: note, error: note };
  const own = new MemorySaver();
  const graph = createReactAgent({ llm: new ScriptedChat(["Hi"]), tools: [], checkpointer: own });
  const client = await served(graph, { logger });
  await client.sendMessage("Hi");
  await client.sendMessage("Hi");
  expect(warnings).toEqual(["Ignoring the graph's checkpointer; its checkpoints are stored with the task"]);
  expect(own.storage).toEqual({});
});

test("rejects anything except a compiled graph or a chat model", () => {
  const definition = { name: "A", description: "B", version: "1", skills: [] };
  expect(() => fromLangGraph(new StateGraph(MessagesAnnotation) as never, definition)).toThrow("call compile()");
  expect(() => durable.model("openai:gpt-5" as never)).toThrow("needs a LangChain chat model");
});

describe("bad models and tools", () => {
  test("stores no lone surrogates", async () => {
    const llm = new ScriptedChat(["\ud83d", calls(["c1", "pay", { amount: 5 }])], ["\ude00 end"]);
    const pay = paying(() => "\udfff");
    const client = await served(createReactAgent({ llm: durable.model(llm), tools: durable.tools([pay]) }));
    const conversation = client.conversation();
    expect(state((await conversation.send("Hi")).task)).toBe("COMPLETED");
    await conversation.send("Again");
    expect(read(llm.calls[2])).toEqual(["Hi", "\ufffd", "\ufffd", "\ufffd end", "Again"]);
  });

  test.each([
    [
      "an endless answer",
      async function* () {
        for (;;) yield "x".repeat(10_000);
      },
    ],
    ["no answer", () => []],
    [
      "an error",
      () => {
        throw new Error("Overloaded");
      },
    ],
  ])("fails the task for %s", async (_, script) => {
    const llm = new ScriptedChat(script as never);
    const client = await served(createReactAgent({ llm: durable.model(llm), tools: [] }));
    expect(state((await client.sendMessage("Hi")).task)).toBe("FAILED");
  });

  test("does not run a tool with incomplete arguments", async () => {
    let paid = 0;
    const llm = new ScriptedChat(["I pay", calls(["c1", "pay", '{"amount":'])], ["Done"]);
    const tools = durable.tools([paying(() => `${(paid += 1)}`)]);
    const client = await served(createReactAgent({ llm: durable.model(llm), tools }));
    expect(state((await client.sendMessage("Hi")).task)).toBe("COMPLETED");
    expect(paid).toBe(0);
  });
});

test("outside of a turn, durable models and tools behave as the originals", async () => {
  const llm = durable.model(new ScriptedChat(["Hi"]));
  const [pay] = durable.tools([paying(({ amount }, config) => `${amount} ${idempotencyOf(config)?.key}`)]);
  expect((await llm.invoke("Hi")).text).toBe("Hi");
  expect(await pay.invoke({ amount: 5 })).toBe("5 undefined");
  expect(durable.model(llm)).toBe(llm);
  expect(llm).toBeInstanceOf(ScriptedChat);
});

describe("a resumed turn", () => {
  /** Runs a graph that blocks, stops the server, and continues on another one. */
  async function resumed(make: (block: () => Promise<void>) => LangGraph): Promise<ReturnType<typeof texts>> {
    const store = memoryStore();
    const blocked = gate();
    let isFirst = true;
    const block = async (): Promise<void> => {
      blocked.open();
      if (isFirst) await new Promise(() => {});
    };
    const graph = make(block);
    const first = await served(graph, { store });
    const message = { messageId: "m", parts: [{ text: "Hi" }] };
    const { task } = await first.sendMessage({ message, configuration: { returnImmediately: true } });
    await blocked.opened;
    await first.server.close({ grace: 0 });
    isFirst = false;
    const second = await served(graph, { store });
    const { task: ended } = await second.sendMessage({ message });
    expect(ended?.id).toBe(task?.id);
    expect(state(ended)).toBe("COMPLETED");
    return texts(ended);
  }

  test("repeats no node, call or text of a parallel step", async () => {
    const llm = new ScriptedChat(["One"], ["Two"], ["Three"]);
    const model = durable.model(llm);
    let other = 0;
    const shown = await resumed((block) => {
      const fast = gate();
      return new StateGraph(MessagesAnnotation)
        .addNode("fast", () => {
          other += 1;
          fast.open();
          return { messages: [{ role: "ai", content: "Fast" }] };
        })
        .addNode("slow", async ({ messages }) => {
          const one = await model.invoke(messages);
          await fast.opened;
          const two = await model.invoke([...messages, one]);
          await block();
          return { messages: [one, two, await model.invoke([...messages, one, two])] };
        })
        .addEdge(START, "fast")
        .addEdge(START, "slow")
        .compile();
    });
    expect(other).toBe(1);
    expect(llm.calls).toHaveLength(3);
    expect(shown.toSorted(byText)).toEqual(["Fast", "One", "Three", "Two"]);
  });

  test("repeats no result within a tool node, and passes keys to tools", async () => {
    const llm = new ScriptedChat([calls(["c1", "pay", { amount: 1 }], ["c2", "pay", { amount: 2 }])], ["Done"]);
    const paid: unknown[][] = [];
    const shown = await resumed((block) => {
      const first = gate();
      const pay = paying(async ({ amount }, config) => {
        const { key, uncertain } = idempotencyOf(config) ?? {};
        paid.push([amount, key, uncertain]);
        if (amount === 1) first.open();
        else await first.opened.then(block);
        return `Paid ${amount}`;
      });
      return createReactAgent({ llm, tools: durable.tools([pay]), version: "v1" });
    });
    const key = expect.stringMatching(/^[0-9a-f]{32}$/);
    // The two calls of the first attempt begin in any order.
    const order = paid.toSorted(([one], [other]) => Number(one) - Number(other));
    expect(order).toEqual([
      [1, key, false],
      [2, key, false],
      [2, key, true],
    ]);
    expect(order.map(([, each]) => each === order[2]?.[1])).toEqual([false, true, true]);
    expect(shown).toEqual(["Done"]);
    expect(read(llm.calls[1]).slice(-2)).toEqual(["Paid 1", "Paid 2"]);
  });

  test("repeats no stored call in a subgraph, nor one before a retry", async () => {
    const llm = new ScriptedChat(["One"], ["Two"], ["Three"]);
    const model = durable.model(llm);
    let failures = 0;
    const shown = await resumed((block) => {
      const inner = new StateGraph(MessagesAnnotation)
        .addNode("one", async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
        .addNode(
          "two",
          async ({ messages }) => {
            const two = await model.invoke(messages);
            if ((failures += 1) === 1) throw new Error("Not yet");
            await block();
            return { messages: [two, await model.invoke([...messages, two])] };
          },
          { retryPolicy: { maxAttempts: 2, initialInterval: 1, logWarning: false } },
        )
        .addEdge(START, "one")
        .addEdge("one", "two")
        .compile();
      return new StateGraph(MessagesAnnotation).addNode("inner", inner).addEdge(START, "inner").compile();
    });
    expect(llm.calls.map(read)).toEqual([["Hi"], ["Hi", "One"], ["Hi", "One", "Two"]]);
    expect(shown).toEqual(["One", "Two", "Three"]);
  });
});
