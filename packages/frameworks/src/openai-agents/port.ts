import type { Agent, AgentOutputType, RunConfig } from "@openai/agents";
import type { AgentDefinition, Turn } from "@parley/server";

/* The adapter's inputs. */

/** Description and behaviour of the agent, as for `defineAgent()`, and options of the adapter. `resumable` is true by default. */
export type OpenAIAgentDefinition<Context = unknown> = BaseDefinition &
  (unknown extends Context
    ? {
        /** The context of the run, for tools and instructions. It is not stored. */ readonly context?: (
          turn: Turn,
        ) => Context;
      }
    : {
        /** The context of the run, for tools and instructions. It is not stored. */ readonly context: (
          turn: Turn,
        ) => Context;
      });

interface BaseDefinition extends Omit<AgentDefinition, "onMessage" | "extensions"> {
  /** Whether the model's reasoning is shown as progress. Reasoning is never kept in the history. Default false. */
  readonly reasoning?: boolean;
  /** How much of the conversation the model reads. Default: 100 entries, 256 KiB. */
  readonly history?: { readonly limit?: number; readonly bytes?: number };
  /** Maximum model calls for one message. Exceeding it fails the task. Default: 10, as in the SDK. */
  readonly maxTurns?: number;
  /**
   * Configuration of the `Runner`, such as a `modelProvider`. Tracing is off unless `tracingDisabled` is false, because the SDK sends traces to
   * OpenAI. By default a call to an unknown tool returns an error to the model; `toolNotFoundBehavior` changes this default.
   */
  readonly runConfig?: Partial<RunConfig>;
}

/** Any agent. */
export type AnyAgent = Agent<unknown, AgentOutputType>;
