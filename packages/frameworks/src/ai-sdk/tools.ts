import type { Turn } from "@parley/server";
import type { Budget } from "../shared/budget.ts";
import { Results, type ToolStep } from "../shared/results.ts";

/* Tools whose results are steps. */

interface ToolOptions {
  readonly toolCallId: string;
  readonly abortSignal?: AbortSignal;
  readonly messages?: readonly unknown[];
}

export type Execute = (input: unknown, options: ToolOptions) => unknown;

const steps = new WeakMap<object, ToolStep>();

/**
 * The step of a tool call: an idempotency key for the service that the tool calls, and whether an earlier attempt may have taken effect.
 *
 * @param options - The second argument of the tool's `execute`.
 * @returns `undefined` outside of a turn, such as in a test of the tool.
 *
 * @example
 * ```ts
 * import { tool } from "ai";
 * import * as z from "zod";
 *
 * const refund = tool({
 *   inputSchema: z.object({ order: z.string() }),
 *   execute: ({ order }, options) => `Refund of ${order} under ${idempotencyOf(options)?.key}`,
 * });
 * ```
 */
export function idempotencyOf(options: object): ToolStep | undefined {
  return steps.get(options);
}

/** Makes the durable tools of one turn. */
export function durableTools(turn: Turn, budget: Budget): <Tools extends object>(tools: Tools) => Tools {
  const results = new Results(turn, budget);
  const known = new WeakSet<object>();

  /** Calls a tool once, and returns the stored result. `preliminary` gets each value of a generator. */
  function once(
    execute: Execute,
    input: unknown,
    options: ToolOptions,
    preliminary: (value: unknown) => Promise<void>,
  ): Promise<unknown> {
    return results.of(options.toolCallId, options.abortSignal, (step, signal) => {
      const own = { ...options, abortSignal: signal };
      steps.set(own, step);
      return run(execute, input, own, preliminary);
    });
  }

  /** Yields preliminary results while the tool runs, then the stored result. */
  async function* streamed(execute: Execute, input: unknown, options: ToolOptions): AsyncGenerator<unknown> {
    const { readable, writable } = new TransformStream<{ readonly value: unknown }>();
    const writer = writable.getWriter();
    const done = once(execute, input, options, (value) => writer.write({ value })).finally(() => {
      void writer.close().catch(() => {});
    });
    done.catch(() => {});
    for await (const { value } of readable) yield value;
    yield await done;
  }

  function wrapped(tool: unknown): unknown {
    if (typeof tool !== "object" || tool === null || !("execute" in tool) || known.has(tool)) return tool;
    const execute = tool.execute;
    if (typeof execute !== "function") return tool;
    const call: Execute = (input, options) => Reflect.apply(execute, tool, [input, options]);
    // The AI SDK must know before the call whether there are preliminary results.
    const streams = Object.prototype.toString.call(execute) === "[object AsyncGeneratorFunction]";
    const made = {
      ...tool,
      execute: streams
        ? (input: unknown, options: ToolOptions) => streamed(call, input, options)
        : (input: unknown, options: ToolOptions) => once(call, input, options, async () => {}),
    };
    known.add(made);
    return made;
  }

  return (tools) => {
    const made = Object.entries(tools).map(([name, tool]) => [name, wrapped(tool)]);
    // No prototype, because a model may call an unknown tool named `constructor`.
    return Object.assign(Object.create(null), Object.fromEntries(made)) as typeof tools;
  };
}

/** Calls a tool. `preliminary` gets each value of a generator; the last value is the result. */
export async function run(
  execute: Execute,
  input: unknown,
  options: ToolOptions,
  preliminary: (value: unknown) => Promise<void>,
): Promise<unknown> {
  let output = await execute(input, options);
  if (isIterable(output)) {
    const values = output;
    output = undefined;
    for await (const value of values) {
      options.abortSignal?.throwIfAborted();
      output = value;
      await preliminary(value);
    }
  }
  return output;
}

function isIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}
