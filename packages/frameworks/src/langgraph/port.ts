import type { Content } from "@parley/a2a/model";
import type { AgentDefinition, Turn } from "@parley/server";

/* The adapter's inputs, and what it passes to the author of a graph. The types are structural, and fit LangGraph 1.x. */

/** A compiled graph from `StateGraph.compile()` or `createReactAgent()`, or an agent of langchain's `createAgent()`, whose `graph` is compiled. */
export type LangGraph = CompiledGraph | GraphHolder;

/** An agent that holds a graph, such as langchain's. */
export interface GraphHolder {
  /** The graph of the agent. */
  readonly graph: CompiledGraph;
}

/** The members of a compiled graph that the adapter uses. */
export interface CompiledGraph {
  /** The channels of its state, by name. */
  readonly channels: object;
  /** The channels that `invoke()` returns. */
  readonly outputChannels: PropertyKey | readonly PropertyKey[];
  /** The graph's own checkpointer. Ignored, because the adapter stores checkpoints with the task. */
  readonly checkpointer?: unknown;
  /** Runs the graph. */
  stream(input: unknown, config: object): PromiseLike<AsyncIterable<unknown>>;
  /** The state after a run. */
  getState(config: object): PromiseLike<{ readonly values: unknown; readonly next: readonly string[] }>;
  /** Copies the graph. */
  withConfig(config: object): CompiledGraph;
}

/** Creates the graph for a turn. */
export type LangGraphFactory = (durable: Durable) => LangGraph | Promise<LangGraph>;

/** Makes individual calls within a node durable. The result of a node is stored anyway. */
export interface Durable {
  /**
   * A chat model whose complete answers are stored with the task. A node that runs again after a crash or an interrupt reads the stored answers
   * instead of calling the model. Outside of a turn, the durable model behaves like the original.
   *
   * @param model - Any LangChain chat model.
   */
  model<Model extends ChatModel>(model: Model): Model;
  /** Tools whose results are stored with the task. A call with a stored result or error does not run again. Outside of a turn they are unchanged. */
  tools<Tools extends readonly object[]>(tools: readonly [...Tools]): [...Tools];
}

/** The common members of chat models. */
export interface ChatModel {
  /** The kind of model. */
  _llmType(): string;
  /** The kind of language model. */
  _modelType(): string;
}

/** Description and behaviour of the agent, as for `defineAgent()`, and options of the adapter. `resumable` is true by default. */
export interface LangGraphDefinition extends Omit<AgentDefinition, "onMessage" | "extensions"> {
  /** The input of the graph. Default: `{ messages }` with the new message, or with the whole conversation if the graph has not seen it yet. */
  readonly input?: (turn: Turn) => object | Promise<object>;
  /** Makes the answer from the final values of the graph. Default: the texts; or the output as data if the state has no `messages`. */
  readonly output?: (values: Readonly<Record<string, unknown>>) => Content | undefined;
  /** Additional run config, such as `context`, `configurable` and `recursionLimit`. */
  readonly config?: (turn: Turn) => object;
  /** Whether node updates are shown as progress. Default: false. */
  readonly updates?: boolean;
  /** How much of the conversation a graph reads if it has no state for the conversation. Default: 100 entries, 256 KiB. */
  readonly history?: { readonly limit?: number; readonly bytes?: number };
}
