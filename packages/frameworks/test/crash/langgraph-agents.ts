import { setTimeout } from "node:timers/promises";
import type { BaseMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { durable, fromLangGraph, type LangGraph } from "@parley/frameworks/langgraph";
import * as z from "zod";
import { calls, ScriptedChat, type Piece } from "../graphs.ts";
import { called, card, jobIn } from "./life.ts";

// Three graphs look something up, ask, and pay: a stock LangGraph agent, one with durable calls,
// and a subgraph that makes all of its calls in one node.

async function* slowly(pieces: readonly Piece[]): AsyncGenerator<Piece> {
  for (const piece of pieces) {
    await setTimeout(15);
    yield piece;
  }
}

/** The script: the answer by the number of results in the messages. */
const model = new ScriptedChat((messages) => {
  const job = jobIn(messages[0]?.text);
  const done = messages.filter(({ type }) => type === "tool").length;
  called(job, done * 2 + 1);
  const script: readonly (readonly Piece[])[] = [
    ["Loo", "king ", "it ", "up.", calls([`look ${job}`, "look", { job }])],
    ["I ", "would ", "pay.", calls([`pay ${job}`, "pay", { job }])],
    ["I ", "have ", "paid ", "it."],
  ];
  return slowly(script[done] ?? []);
});

const schema = z.object({ job: z.string() });
const look = tool(
  async ({ job }: { job: string }) => {
    called(job, 2);
    await setTimeout(15);
    return "10";
  },
  { name: "look", schema },
);
const pay = tool(
  async ({ job }: { job: string }) => {
    if (interrupt({ question: "Pay 10?" }) !== "yes") return "denied";
    called(job, 4);
    await setTimeout(15);
    return "paid";
  },
  { name: "pay", schema },
);

const llm = durable.model(model);
const [lookUp, payIt] = durable.tools([look, pay]);

/** A node that makes all calls. Without their stored results it would repeat them. */
const all = async ({ messages }: typeof MessagesAnnotation.State): Promise<typeof MessagesAnnotation.Update> => {
  const added: BaseMessage[] = [];
  for (;;) {
    const answer = await llm.invoke([...messages, ...added]);
    added.push(answer);
    const [call] = answer.tool_calls ?? [];
    if (call === undefined) return { messages: added };
    added.push(await (call.name === "look" ? lookUp : payIt).invoke({ ...call, type: "tool_call" }));
  }
};
const inner = new StateGraph(MessagesAnnotation).addNode("all", all).addEdge(START, "all").addEdge("all", END);
const outer = new StateGraph(MessagesAnnotation)
  .addNode("before", () => ({}))
  .addNode("inner", inner.compile())
  .addEdge(START, "before")
  .addEdge("before", "inner")
  .addEdge("inner", END);

const graphs: Readonly<Record<string, LangGraph>> = {
  plain: createReactAgent({ llm: model, tools: [look, pay] }),
  durable: createReactAgent({ llm, tools: [lookUp, payIt] }),
  nested: outer.compile(),
};

export const agents = Object.fromEntries(
  Object.entries(graphs).map(([name, graph]) => [name, fromLangGraph(graph, card)] as const),
);
