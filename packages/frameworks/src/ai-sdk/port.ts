import type { LanguageModel } from "ai";
import type { AgentDefinition, Turn } from "@parley/server";

/* The adapter's inputs, and what it passes to an agent factory. The types are structural, and fit AI SDK 6 and 7. */

/** An AI SDK agent without call options: a `ToolLoopAgent`, or any object with `version: "agent-v1"`. */
export interface AISDKAgent {
  /** Version of the interface. */
  readonly version: "agent-v1";
  /** The tools of the agent, by name. */
  readonly tools: object;
  /** Streams the answer to messages. */
  readonly stream: (options: AISDKCall) => PromiseLike<AISDKResult>;
}

/** How the adapter calls an agent. */
export interface AISDKCall {
  /** `ModelMessage[]` of the installed version. */
  readonly messages: never[];
  /** Aborted when the turn is no longer wanted, such as after a cancel, a timeout or a lost lease. */
  readonly abortSignal: AbortSignal;
}

/** The members of a `StreamTextResult` that the adapter reads. */
export interface AISDKResult {
  /** The parts, in order. */
  readonly fullStream: AsyncIterable<{ readonly type: string }>;
  /** The parsed output, if the agent has an `output`. */
  readonly output: PromiseLike<unknown>;
  /** Has the messages of the loop in version 6. */
  readonly response: PromiseLike<object>;
  /** The messages of the loop in version 7. */
  readonly responseMessages?: PromiseLike<readonly unknown[]>;
}

/** Makes the calls of a turn durable. An agent factory gets one for each turn. */
export interface Durable {
  /**
   * A model whose answers are steps of the turn. A complete answer is stored before the agent sees its tool calls. A resumed turn reads the
   * stored answer instead of calling the model.
   *
   * @param model - A model of specification V2, V3 or V4, or a model id of the default provider, such as `openai/gpt-5`.
   */
  model(model: LanguageModel): DurableModel;
  /** Tools whose results are steps of the turn. A call with a stored result or error does not run again. Tools without `execute` stay unchanged. */
  tools<Tools extends object>(tools: Tools): Tools;
}

/** A model that `Durable.model()` makes. */
export type DurableModel = Exclude<LanguageModel, string>;

/** Creates the agent for a turn. Pass `turn` to tools that are already steps, such as the tools of `mcpTools()`. */
export type AISDKAgentFactory = (durable: Durable, turn: Turn) => AISDKAgent | Promise<AISDKAgent>;

/** Description and behaviour of the agent, as for `defineAgent()`, and options of the adapter. `resumable` is true by default. */
export interface AISDKDefinition extends Omit<AgentDefinition, "onMessage" | "extensions"> {
  /** Whether the model's reasoning is shown as progress. Reasoning is never kept in the history. Default false. */
  readonly reasoning?: boolean;
  /** How much of the conversation the model reads. Default: 100 entries, 256 KiB. */
  readonly history?: { readonly limit?: number; readonly bytes?: number };
}
