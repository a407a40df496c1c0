import { utf8Length } from "@parley/a2a/internal/base/index";
import type { Turn } from "@parley/server";
import type { JsonValue } from "@parley/a2a/model";
import { fromJson, toJsonText } from "../shared/json.ts";
import type { Budget } from "./budget.ts";
import type { ToolStep } from "./port.ts";

/* Tools whose results are steps. */

interface ToolOptions {
  readonly toolCallId: string;
  readonly abortSignal?: AbortSignal;
}

type Execute = (input: unknown, options: ToolOptions) => unknown;

/** A stored result: the output, or the error. */
interface Stored {
  readonly output?: JsonValue;
  readonly error?: { readonly name: string; readonly message: string };
}

const steps = new WeakMap<object, ToolStep>();

/**
 * The step of a tool call: an idempotency key for the service that the tool calls, and whether an earlier call may have had its effect.
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
  const had = new Map<string, number>();

  /** Models use an id twice. The calls of one answer start in its order, so the numbers are the same in each attempt. */
  function nameOf(toolCallId: string): string {
    const id = utf8Length(toolCallId) > 200 ? toolCallId.slice(0, 60) : toolCallId;
    const number = (had.get(id) ?? 0) + 1;
    had.set(id, number);
    return `tool ${id}${number === 1 ? "" : ` #${number}`}`;
  }

  /** Calls a tool once, and returns what is stored. `preliminary` gets each value of a generator. */
  async function once(
    execute: Execute,
    input: unknown,
    options: ToolOptions,
    preliminary: (value: unknown) => Promise<void>,
  ): Promise<unknown> {
    let isCounted = false;
    const stored = await turn.step(nameOf(options.toolCallId), async ({ key, uncertain, attempt, signal }) => {
      const { abortSignal } = options;
      const both = abortSignal === undefined ? signal : AbortSignal.any([signal, abortSignal]);
      const own = { ...options, abortSignal: both };
      steps.set(own, { key, uncertain, attempt });
      const text = await untilAborted(both, run(execute, input, own, preliminary)).catch((error: unknown) => {
        // A call that was aborted has no result: a resumed turn calls the tool again.
        if (both.aborted) throw error;
        return toJsonText({ error: errorOf(error) });
      });
      const bytes = utf8Length(text);
      const fits = bytes <= budget.room;
      const result = fits ? text : toJsonText({ error: errorOf(tooLarge(bytes, budget.room)) });
      // At once, for calls that run at the same time.
      budget.add(result);
      isCounted = true;
      return JSON.parse(result) as JsonValue;
    });
    if (!isCounted) budget.add(JSON.stringify(stored));
    const { error, output } = stored as Stored;
    if (error !== undefined) throw Object.assign(new Error(error.message), { name: error.name });
    return fromJson(output);
  }

  /** Passes on preliminary results while the tool runs, and the stored one last. */
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
    if (typeof tool !== "object" || tool === null || !("execute" in tool)) return tool;
    const execute = tool.execute;
    if (typeof execute !== "function") return tool;
    const call: Execute = (input, options) => Reflect.apply(execute, tool, [input, options]);
    // The AI SDK has to know before the call whether there are preliminary results.
    const streams = Object.prototype.toString.call(execute) === "[object AsyncGeneratorFunction]";
    return {
      ...tool,
      execute: streams
        ? (input: unknown, options: ToolOptions) => streamed(call, input, options)
        : (input: unknown, options: ToolOptions) => once(call, input, options, async () => {}),
    };
  }

  return (tools) =>
    Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, wrapped(tool)])) as typeof tools;
}

async function run(
  execute: Execute,
  input: unknown,
  options: ToolOptions,
  preliminary: (value: unknown) => Promise<void>,
): Promise<string> {
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
  return toJsonText({ output });
}

function isIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

/** A tool that ignores its signal ends with it nevertheless. */
function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error("aborted"));
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

function errorOf(error: unknown): { readonly name: string; readonly message: string } {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  return { name: name.slice(0, 200), message: message.slice(0, 4000) };
}

function tooLarge(bytes: number, room: number): Error {
  return new Error(`The result has ${bytes} bytes; this task keeps at most ${room}. Ask the tool for less.`);
}
