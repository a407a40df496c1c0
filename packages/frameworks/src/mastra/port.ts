import type { Mastra } from "@mastra/core";
import type { AgentDefinition } from "@parley/server";
import type { AnyModel } from "../shared/model.ts";

/* What the adapter takes, and what it uses of Mastra. Types are structural: they hold for all versions of the range. */

/** An `Agent` of Mastra. */
export interface MastraAgent {
  /** Identifier of the agent. */
  readonly id: string;
  /** Answers messages as a stream. */
  readonly stream: (messages: never, options: never) => PromiseLike<MastraOutput>;
  /** Continues a run that a tool has suspended. */
  readonly resumeStream: (resumeData: never, options: never) => PromiseLike<MastraOutput>;
}

/** What the adapter reads of a `MastraModelOutput`. */
export interface MastraOutput {
  /** The chunks, in order. */
  readonly fullStream: { [Symbol.asyncIterator](): AsyncIterator<{ readonly type: string }> };
  /** Identifier of the run. */
  readonly runId: string;
}

/** Description and behaviour of the agent, as `defineAgent()` takes them, and options of the adapter. `resumable` is true by default. */
export interface MastraDefinition extends Omit<AgentDefinition, "onMessage" | "extensions"> {
  /** Whether the model's reasoning is shown as progress. It is never kept in the history. Default false. */
  readonly reasoning?: boolean;
  /** How much of the conversation an agent without a memory reads. Default: 100 entries, 256 KiB. */
  readonly history?: { readonly limit?: number; readonly bytes?: number };
}

/** A tool as the loop calls it: of the agent, its memory, its workflows, or another agent. */
export interface LoopTool {
  readonly execute?: unknown;
  readonly requireApproval?: unknown;
}

/** A copy of an agent, for one turn. Its members are private to TypeScript, or marked internal. */
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
