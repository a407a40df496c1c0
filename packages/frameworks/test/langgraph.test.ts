import { tool } from "@langchain/core/tools";
import { interrupt } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { connect, type Client } from "@parley/a2a";
import { serve, type Server } from "@parley/node";
import { memoryStore } from "@parley/server";
import { afterEach, expect, test } from "vitest";
import * as z from "zod";
import { durable, fromLangGraph, type LangGraph, type LangGraphFactory } from "../src/langgraph/index.ts";
import { calls, ScriptedChat } from "./graphs.ts";

const card = { name: "Test", description: "A test", version: "1.0.0", skills: [] };

let server: Server | undefined;
afterEach(() => server?.close());

async function served(graph: LangGraph | LangGraphFactory, more: object = {}): Promise<Client> {
  server = await serve(fromLangGraph(graph, { ...card, ...more }), {
    port: 0,
    logger: console as never,
    store: memoryStore(),
  });
  return connect(server.url);
}

test("streams", async () => {
  const llm = new ScriptedChat(["Hello, ", "world"], ["Again"]);
  const client = await served(createReactAgent({ llm: durable.model(llm), tools: [] }));
  const conversation = client.conversation();
  const { task } = await conversation.send("Hi");
  console.log(JSON.stringify(task, null, 1));
  expect(task?.artifacts).toMatchObject([{ name: "answer", parts: [{ text: "Hello, world" }] }]);
  const second = await conversation.send("Hi 2");
  console.log(JSON.stringify(second.task, null, 1));
  console.log(llm.calls.map((m) => m.map((x) => x.text)));
});

test("tools", async () => {
  const llm = new ScriptedChat(["I pay ", calls(["c1", "pay", { amount: 5 }], ["c2", "steal", {}])], ["Paid"]);
  const pay = tool(({ amount }) => { const ok = interrupt({ question: "Sure?" }); return `paid ${amount} ${ok}`; }, {
    name: "pay",
    schema: z.object({ amount: z.number() }),
  });
  const client = await served(createReactAgent({ llm: durable.model(llm), tools: durable.tools([pay]) }));
  const conversation = client.conversation();
  const { task } = await conversation.send("Hi");
  console.log(JSON.stringify(task, null, 1));
  const second = await conversation.send("yes please");
  console.log(JSON.stringify(second.task, null, 1));
  console.log(llm.calls.map((m) => m.map((x) => x.text)));
});
