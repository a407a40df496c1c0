import type { Turn } from "@parley/server";
import type { Budget } from "../shared/budget.ts";
import { Results, type ToolStep } from "../shared/results.ts";
import type { LoopTool } from "./port.ts";

/* Tools whose results are steps. */

/** The options that the loop passes to a tool. */
interface LoopOptions {
  readonly toolCallId: string;
  readonly abortSignal?: AbortSignal;
  readonly suspend?: (...args: unknown[]) => Promise<unknown>;
  readonly resumeData?: unknown;
}

type Execute = (input: unknown, options: LoopOptions) => unknown;

/** Steps by the signal of the call, because Mastra recreates the context of a tool but passes its signal on. */
const steps = new WeakMap<AbortSignal, ToolStep>();

/**
 * The step of a tool call: an idempotency key for the service that the tool calls, and whether an earlier attempt may have taken effect.
 *
 * @param context - The second argument of the tool's `execute`.
 * @returns `undefined` outside of a turn, such as in a test of the tool.
 *
 * @example
 * ```ts
 * import { createTool } from "@mastra/core/tools";
 * import * as z from "zod";
 *
 * const refund = createTool({
 *   id: "refund",
 *   description: "Refunds an order",
 *   inputSchema: z.object({ order: z.string() }),
 *   execute: async ({ order }, context) => `Refund of ${order} under ${idempotencyOf(context)?.key}`,
 * });
 * ```
 */
export function idempotencyOf(context: { readonly abortSignal?: AbortSignal | undefined }): ToolStep | undefined {
  return context.abortSignal === undefined ? undefined : steps.get(context.abortSignal);
}

/**
 * Makes the durable tools of one turn.
 *
 * @param resumed - Ids of calls that the user answered. Mastra also reads `resumeData` from the arguments, so otherwise the model could answer.
 */
export function durableTools(turn: Turn, budget: Budget, resumed: Set<string>): (tool: LoopTool) => LoopTool {
  const results = new Results(turn, budget);

  /** Calls a tool once, and returns the stored result. A suspended call has no result. */
  async function once(execute: Execute, input: unknown, options: LoopOptions): Promise<unknown> {
    const { toolCallId, abortSignal, suspend } = options;
    const resumeData = resumed.delete(toolCallId) ? options.resumeData : undefined;
    const suspension = new AbortController();
    let isSuspended = false;
    const suspending =
      suspend &&
      (async (...args: unknown[]): Promise<unknown> => {
        isSuspended = true;
        return suspend(...args);
      });
    const abort = AbortSignal.any([suspension.signal, ...(abortSignal === undefined ? [] : [abortSignal])]);
    try {
      const output = await results.of(toolCallId, abort, async (step, signal) => {
        steps.set(signal, step);
        try {
          const own = { ...options, resumeData, abortSignal: signal, ...(suspending && { suspend: suspending }) };
          return await execute(input, own);
        } finally {
          if (isSuspended) suspension.abort();
        }
      });
      // Mastra treats `undefined` as a tool call that never ran.
      return output ?? null;
    } catch (error) {
      if (isSuspended) return undefined;
      throw error;
    }
  }

  return (tool) => {
    const { execute } = tool;
    if (typeof execute !== "function") return tool;
    const call: Execute = (input, options) => Reflect.apply(execute, tool, [input, options]);
    return { ...tool, execute: (input: unknown, options: LoopOptions) => once(call, input, options) };
  };
}
