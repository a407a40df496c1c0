import type { Content } from "@parley/a2a/model";
import type { AgentDefinition, Turn } from "@parley/server";

/* What the adapter takes, and what it gives to the author of a graph. Types are structural: they hold for LangGraph 1.x. */

/** A compiled graph: `StateGraph.compile()`, `createReactAgent()`, or an object that has one as `graph`, such as `createAgent()` of langchain. */
export type LangGraph = CompiledGraph | GraphHolder;

/** An agent that has a graph, as langchain makes them. */
export interface GraphHolder {
  /** Its graph. */
  readonly graph: CompiledGraph;
}

/** What the adapter uses of a compiled graph. */
export interface CompiledGraph {
  /** The channels of its state, by name. */
  readonly channels: object;
  /** The channels that `invoke()` returns. */
  readonly outputChannels: PropertyKey | readonly PropertyKey[];
  /** Its own checkpointer. The adapter uses the task's store instead. */
  readonly checkpointer?: unknown;
  /** Runs it. */
  stream(input: unknown, config: object): PromiseLike<AsyncIterable<unknown>>;
  /** Its state after a run. */
  getState(config: object): PromiseLike<{ readonly values: unknown; readonly next: readonly string[] }>;
  /** A copy. */
  withConfig(config: object): CompiledGraph;
}

/** Makes the graph of a turn. */
export type LangGraphFactory = (durable: Durable) => LangGraph | Promise<LangGraph>;

/** Makes single calls within a node durable. The result of a node is stored in any case. */
export interface Durable {
  /**
   * A chat model whose complete answers are stored with the task. A node that runs again, after a crash or an interrupt, reads them instead of
   * calling the model. Outside of a turn it is the model itself.
   *
   * @param model - Any chat model of LangChain.
   */
  model<Model extends ChatModel>(model: Model): Model;
  /** Tools whose results are stored with the task: a stored result, or error, is not asked for again. Outside of a turn they are the tools themselves. */
  tools<Tools extends readonly object[]>(tools: readonly [...Tools]): [...Tools];
}

/** What the types of chat models have in common. */
export interface ChatModel {
  /** The kind of model. */
  _llmType(): string;
  /** The kind of language model. */
  _modelType(): string;
}

/** Description and behaviour of the agent, as `defineAgent()` takes them, and options of the adapter. `resumable` is true by default. */
export interface LangGraphDefinition extends Omit<AgentDefinition, "onMessage" | "extensions"> {
  /** The input of the graph. Default: `{ messages }`, with the new message; with the conversation if the graph has no state of it. */
  readonly input?: (turn: Turn) => object | Promise<object>;
  /** The answer, from the last values of the graph. Default: its texts are the answer; without `messages` in its state, its output as data. */
  readonly output?: (values: Readonly<Record<string, unknown>>) => Content | undefined;
  /** More of the run's config, such as `context`, `configurable` and `recursionLimit`. */
  readonly config?: (turn: Turn) => object;
  /** Whether the update of each node is shown as progress. Default false. */
  readonly updates?: boolean;
  /** How much of the conversation a graph reads that has no state of it. Default: 100 entries, 256 KiB. */
  readonly history?: { readonly limit?: number; readonly bytes?: number };
}
