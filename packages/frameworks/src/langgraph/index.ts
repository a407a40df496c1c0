/**
 * LangGraph graphs as durable A2A agents.
 * @packageDocumentation
 */
import { AIMessage, HumanMessage, type BaseMessage } from "@langchain/core/messages";
import { defineAgent, type Agent, type Turn } from "@parley/server";
import { adapterDefaults, checkDefinition } from "../shared/defaults.ts";
import { messagesOf, type ChatMessage } from "../shared/messages.ts";
import { viewOf } from "../shared/view.ts";
import { durable } from "./durable.ts";
import type { CompiledGraph, LangGraph, LangGraphDefinition, LangGraphFactory } from "./port.ts";
import { resume } from "./questions.ts";
import { runGraph } from "./run.ts";
import type { StoredThread } from "./thread.ts";

export { durable, idempotencyOf } from "./durable.ts";
export type { ToolStep } from "../shared/results.ts";
export type {
  ChatModel,
  CompiledGraph,
  Durable,
  GraphHolder,
  LangGraph,
  LangGraphDefinition,
  LangGraphFactory,
} from "./port.ts";

/**
 * Turns a LangGraph graph into a Parley agent. The graph's checkpoints are stored with the task, its state with the context (the graph's thread).
 * After a crash the turn continues from the last checkpoint, so completed nodes do not run again. Interrupts become questions to the user.
 *
 * @param graph - A compiled graph, an agent of `createReactAgent()` or `createAgent()`, or a function that creates one for each turn.
 * @param definition - Description and behaviour, as for `defineAgent()`. By default `resumable` is true, and data parts are accepted.
 * @returns An agent for `serve()`.
 * @throws Error if `graph` is not a compiled graph. Importing the module throws for a version of `@langchain/langgraph` or `@langchain/core` other than 1.
 *
 * @example
 * ```ts
 * import { createReactAgent } from "@langchain/langgraph/prebuilt";
 * import { FakeListChatModel } from "@langchain/core/utils/testing";
 * import { serve } from "@parley/node";
 *
 * const graph = createReactAgent({ llm: new FakeListChatModel({ responses: ["Hello"] }), tools: [] });
 * await serve(fromLangGraph(graph, { name: "Travel", description: "Plans trips.", version: "1.0.0", skills: [] }));
 * ```
 */
export function fromLangGraph(graph: LangGraph | LangGraphFactory, definition: LangGraphDefinition): Agent {
  checkDefinition("fromLangGraph()", definition, { input: 1, output: 1, config: 1, updates: 1, history: 1 });
  const { input, output, config, updates = false, history, ...rest } = definition;
  const options = { output, config, updates };
  const make = typeof graph === "function" ? graph : undefined;
  const made = typeof graph === "function" ? undefined : compiledOf(graph, definition);
  let hasWarned = false;
  return defineAgent({
    ...adapterDefaults,
    ...rest,
    async *onMessage(turn: Turn) {
      const resumed = resume(turn);
      if (resumed !== undefined && "event" in resumed) {
        yield resumed.event;
        return;
      }
      const own = made ?? compiledOf(await make?.(durable), definition);
      if (typeof own.checkpointer === "object" && own.checkpointer !== null && !hasWarned) {
        hasWarned = true;
        turn.logger.warn("Ignoring the graph's checkpointer; its checkpoints are stored with the task");
      }
      const { langGraph: thread } = viewOf<{ langGraph: StoredThread }>(turn.context.state());
      const start = resumed ?? { thread };
      yield* runGraph(turn, own, start, options, (isNew) => inputOf(turn, { input, history }, isNew));
    },
  });
}

function compiledOf(given: unknown, { input }: LangGraphDefinition): CompiledGraph {
  const { graph = given } = viewOf<{ graph: unknown }>(given);
  if (!isCompiled(graph))
    throw new TypeError("fromLangGraph() needs a compiled graph: call compile() on the StateGraph");
  if (input === undefined && !("messages" in graph.channels))
    throw new TypeError("fromLangGraph() needs `input` for a graph whose state has no messages");
  return graph;
}

function isCompiled(graph: unknown): graph is CompiledGraph {
  const methods = ["stream", "getState", "withConfig"];
  return (
    typeof graph === "object" &&
    graph !== null &&
    "channels" in graph &&
    methods.every((name) => typeof Reflect.get(graph, name) === "function")
  );
}

/** The input of a turn. `isNew` means that the graph has no state for the conversation yet. */
async function inputOf(
  turn: Turn,
  { input, history }: { readonly [Name in "input" | "history"]: LangGraphDefinition[Name] | undefined },
  isNew: boolean,
): Promise<object> {
  if (input !== undefined) return input(turn);
  const entries = await turn.context.history(isNew ? history : { ...history, limit: 1 });
  return { messages: messagesOf(entries).map(messageOf) };
}

/** Files become LangChain 1 content blocks, which each provider translates. */
function messageOf({ role, content }: ChatMessage): BaseMessage {
  const texts = content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  if (role === "assistant") return new AIMessage(texts.join("\n"));
  if (texts.length === content.length) return new HumanMessage(texts.join("\n"));
  return new HumanMessage({
    contentBlocks: content.map((part) => {
      if (part.type === "text") return { type: "text", text: part.text };
      const type = /^(image|audio|video)\//.exec(part.mediaType)?.[1] ?? "file";
      return { type: type as "file", mimeType: part.mediaType, data: part.data };
    }),
  });
}
