import type { Mastra } from "@mastra/core";
import type { AgentDefinition } from "@parley/server";
import type { AnyModel } from "../shared/model.ts";

/* The adapter's inputs, and the parts of Mastra that it uses. The types are structural, and fit all supported versions. */

/** A Mastra `Agent`. */
export interface MastraAgent {
  /** Identifier of the agent. */
  readonly id: string;
  /** Streams the answer to messages. */
  readonly stream: (messages: never, options: never) => PromiseLike<MastraOutput>;
  /** Continues a run that a tool suspended. */
  readonly resumeStream: (resumeData: never, options: never) => PromiseLike<MastraOutput>;
}

/** The members of a `MastraModelOutput` that the adapter reads. */
export interface MastraOutput {
  /** The chunks, in order. */
  readonly fullStream: { [Symbol.asyncIterator](): AsyncIterator<{ readonly type: string }> };
  /** Identifier of the run. */
  readonly runId: string;
}

/** Description and behaviour of the agent, as for `defineAgent()`, and options of the adapter. `resumable` is true by default. */
export interface MastraDefinition extends Omit<AgentDefinition, "onMessage" | "extensions"> {
  /** Whether the model's reasoning is shown as progress. Reasoning is never kept in the history. Default false. */
  readonly reasoning?: boolean;
  /** How much of the conversation an agent without memory reads. Default: 100 entries, 256 KiB. */
  readonly history?: { readonly limit?: number; readonly bytes?: number };
}

/** A tool in the form that the loop calls, from the agent, its memory, its workflows, or another agent. */
export interface LoopTool {
  readonly execute?: unknown;
  readonly requireApproval?: unknown;
}

/** A copy of an agent for one turn. These members are private in TypeScript, or marked internal. */
export interface Fork {
  readonly id: string;
  convertTools(options: object): Promise<Record<string, LoopTool>>;
  resolveModelConfig(config: unknown, requestContext: unknown): Promise<AnyModel>;
  getMastraInstance(): Mastra | undefined;
  __registerMastra(mastra: Mastra): void;
  __setLogger?(logger: unknown): void;
  hasOwnMemory(): boolean;
  getDefaultOptions(): Promise<{ readonly structuredOutput?: unknown }>;
  listTools(): Promise<Record<string, { readonly resumeSchema?: unknown }>>;
  stream(messages: readonly object[], options: object): Promise<MastraOutput>;
  resumeStream(resumeData: unknown, options: object): Promise<MastraOutput>;
}
