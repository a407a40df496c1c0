import type { LanguageModel } from "ai";
import type { AgentDefinition, Turn } from "@parley/server";

/* What the adapter takes, and what it gives to a factory of agents. Types are structural: they hold for AI SDK 6 and 7. */

/** An agent of the AI SDK that needs no call options: a `ToolLoopAgent`, or any object with `version: "agent-v1"`. */
export interface AISDKAgent {
  /** Version of the interface. */
  readonly version: "agent-v1";
  /** Its tools, by name. */
  readonly tools: object;
  /** Answers messages as a stream. */
  readonly stream: (options: AISDKCall) => PromiseLike<AISDKResult>;
}

/** How the adapter calls an agent. */
export interface AISDKCall {
  /** `ModelMessage[]` of the installed version. */
  readonly messages: never[];
  /** Aborted when the turn is no longer wanted: a cancel, a timeout, a lost lease. */
  readonly abortSignal: AbortSignal;
}

/** What the adapter reads of a `StreamTextResult`. */
export interface AISDKResult {
  /** The parts, in order. */
  readonly fullStream: AsyncIterable<{ readonly type: string }>;
  /** The parsed output, if the agent has an `output`. */
  readonly output: PromiseLike<unknown>;
  /** With the messages of the loop, in version 6. */
  readonly response: PromiseLike<object>;
  /** The messages of the loop, in version 7. */
  readonly responseMessages?: PromiseLike<readonly unknown[]>;
}

/** Makes calls of a turn durable. An agent's factory gets one for each turn. */
export interface Durable {
  /**
   * A model whose answers are steps of the turn: a complete answer is stored before the agent sees its tool calls, and a resumed turn reads it
   * instead of calling the model.
   *
   * @param model - A model of specification V2, V3 or V4, or the id of one, such as `openai/gpt-5`, at the default provider.
   */
  model(model: LanguageModel): DurableModel;
  /** Tools whose results are steps of the turn: a stored result, or error, is not asked for again. Tools without `execute` are returned as they are. */
  tools<Tools extends object>(tools: Tools): Tools;
}

/** A model that `Durable.model()` makes. */
export type DurableModel = Exclude<LanguageModel, string>;

/** Makes the agent of a turn. The turn is for tools that are steps already, such as those of `mcpTools()`. */
export type AISDKAgentFactory = (durable: Durable, turn: Turn) => AISDKAgent | Promise<AISDKAgent>;

/** Description and behaviour of the agent, as `defineAgent()` takes them, and options of the adapter. `resumable` is true by default. */
export interface AISDKDefinition extends Omit<AgentDefinition, "onMessage" | "extensions"> {
  /** Whether the model's reasoning is shown as progress. It is never kept in the history. Default false. */
  readonly reasoning?: boolean;
  /** How much of the conversation the model reads. Default: 100 entries, 256 KiB. */
  readonly history?: { readonly limit?: number; readonly bytes?: number };
}
