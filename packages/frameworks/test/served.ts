import type { BaseMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { connect, type Client, type Part, type Task } from "@parley/a2a";
import { serve, type ServeOptions, type Server } from "@parley/node";
import { memoryStore, type Store } from "@parley/server";
import { expect, onTestFinished } from "vitest";
import * as z from "zod";
import {
  fromLangGraph,
  type CompiledGraph,
  type LangGraph,
  type LangGraphDefinition,
  type LangGraphFactory,
} from "../src/langgraph/index.ts";

/* Serves graphs, and reads their results. */

const card = { name: "Test", description: "A test", version: "1.0.0", skills: [], defaultInputModes: ["*"] };

interface Options extends Partial<LangGraphDefinition> {
  readonly store?: Store;
  readonly logger?: ServeOptions["logger"];
}

export async function served(
  graph: LangGraph | LangGraphFactory,
  { store = memoryStore(), logger, ...more }: Options = {},
): Promise<Client & { readonly server: Server }> {
  const server = await serve(fromLangGraph(graph, { ...card, ...more }), { port: 0, logger: logger ?? false, store });
  onTestFinished(() => server.close());
  return Object.assign(await connect(server.url), { server });
}

/** The content of each artifact. */
export const texts = (task: Task | undefined): string[] =>
  (task?.artifacts ?? []).map(({ parts }) => parts.map(({ text, data }) => text ?? JSON.stringify(data)).join(""));

export const byText = (one: string, other: string): number => (one < other ? -1 : 1);

export const state = (task: Task | undefined): string | undefined => task?.status.state.replace("TASK_STATE_", "");

/** The parts of a question. */
export function asked(task: Task | undefined): readonly Part[] {
  expect(state(task)).toBe("INPUT_REQUIRED");
  return task?.status.message?.parts ?? [];
}

/** The messages that a model received. */
export const read = (messages: readonly BaseMessage[] | undefined): readonly string[] =>
  (messages ?? []).map(({ text }) => text);

type Pay = (input: { readonly amount: number }, config: { readonly signal?: AbortSignal }) => unknown;

export const paying = (pay: Pay): ReturnType<typeof payTool> => payTool(pay);
const payTool = (pay: Pay) => tool(pay, { name: "pay", description: "Pays", schema: z.object({ amount: z.number() }) });

type Messages = typeof MessagesAnnotation.State;
type Node = (state: Messages, config: { readonly context?: unknown }) => unknown;

/** A graph of one node. */
export function nodeOf(node: Node): CompiledGraph {
  return new StateGraph(MessagesAnnotation)
    .addNode("node", node as () => Partial<Messages>)
    .addEdge(START, "node")
    .addEdge("node", END)
    .compile();
}
