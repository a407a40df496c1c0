import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import { utf8Length } from "@parley/a2a/internal/base/index";
import { stepBounds } from "@parley/a2a/internal/protocol/index";
import type { ToolStep } from "../shared/results.ts";
import { viewOf } from "../shared/view.ts";
import { isCommand, isGraphBubbleUp } from "./peer.ts";
import type { ChatModel, Durable } from "./port.ts";
import { Reader, taskOf } from "./reader.ts";

/* Chat models and tools whose results are stored with the task. They find the turn by the callback handler of the run. */

type Generate = BaseChatModel["_generate"];
type Stream = BaseChatModel["_streamResponseChunks"];
type Manager = Parameters<Generate>[2];

const wrapped = new WeakSet<object>();

/** Makes individual calls within a node durable. The result of a node is stored anyway. */
export const durable: Durable = {
  model: durableModel,
  tools: <Tools extends readonly object[]>(tools: readonly [...Tools]) => tools.map(durableTool) as [...Tools],
};

function readerOf(manager: { readonly handlers: readonly unknown[] } | undefined): Reader | undefined {
  return manager?.handlers.find((handler) => handler instanceof Reader);
}

function durableModel<Model extends ChatModel>(given: Model): Model {
  if (wrapped.has(given)) return given;
  if (!(given instanceof BaseChatModel)) throw new TypeError("durable.model() needs a LangChain chat model");
  const model: BaseChatModel = given;
  const streams = model._streamResponseChunks !== BaseChatModel.prototype._streamResponseChunks;
  const replaced = new Map<PropertyKey, unknown>([["_generate", generateOf(model)]]);
  if (streams) replaced.set("_streamResponseChunks", streamOf(model));
  const durable: Model = new Proxy(given, {
    get(target, name, receiver) {
      const own = replaced.get(name);
      if (own !== undefined) return own;
      const member: unknown = Reflect.get(target, name, receiver);
      if (name !== "bindTools" || typeof member !== "function") return member;
      return (...args: unknown[]) => withDurable(Reflect.apply(member, target, args));
    },
  });
  wrapped.add(durable);
  return durable;
}

/** Makes a model or a binding of a model durable. */
function withDurable(bound: unknown): unknown {
  if (bound instanceof BaseChatModel) return durableModel(bound);
  if (typeof bound !== "object" || bound === null || !("bound" in bound)) return bound;
  return Object.assign(bound, { bound: withDurable(bound.bound) });
}

interface Call {
  readonly reader: Reader;
  readonly name: string;
  /** Called when the call fails, so that the next call takes its name. */
  readonly fails: () => void;
}

function callOf(manager: Manager): Call | undefined {
  const reader = readerOf(manager);
  const task = taskOf(manager);
  if (reader === undefined || task === "") return undefined;
  return { reader, name: reader.calls.name(task, "model"), fails: () => reader.calls.unname(task, "model") };
}

function generateOf(model: BaseChatModel): Generate {
  return async (messages, options, manager) => {
    const call = callOf(manager);
    if (call === undefined) return model._generate(messages, options, manager);
    const { reader, name, fails } = call;
    const known = await reader.calls.find(name);
    if (known !== undefined) {
      reader.replays(manager?.runId ?? "");
      return known as ChatResult;
    }
    try {
      const result = await model._generate(messages, options, manager);
      checkSize(result.generations.reduce((sum, { message }) => sum + sizeOf(message), 0));
      for (const { message } of result.generations)
        if (message.id === undefined) message._updateId(`run-${manager?.runId}`);
      const { generations } = result;
      await reader.calls.keep(name, { generations });
      return result;
    } catch (error) {
      fails();
      throw error;
    }
  };
}

function streamOf(model: BaseChatModel): Stream {
  return async function* stream(messages, options, manager) {
    const call = callOf(manager);
    if (call === undefined) {
      yield* model._streamResponseChunks(messages, options, manager);
      return;
    }
    const { reader, name, fails } = call;
    const runId = manager?.runId ?? "";
    const known = await reader.calls.find(name);
    if (known !== undefined) {
      reader.replays(runId);
      yield chunkOf(known);
      return;
    }
    // Holds tool calls back until the whole answer is stored.
    const held: ChatGenerationChunk[] = [];
    try {
      let whole: ChatGenerationChunk | undefined;
      let bytes = 0;
      for await (const chunk of model._streamResponseChunks(messages, options)) {
        options.signal?.throwIfAborted();
        bytes += sizeOf(chunk.message);
        checkSize(bytes);
        if (chunk.message.id === undefined) chunk.message._updateId(`run-${runId}`);
        whole = whole?.concat(chunk) ?? chunk;
        if (held.length > 0 || callsTools(chunk)) held.push(chunk);
        else yield chunk;
        await manager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
      }
      if (whole === undefined) throw new Error("The model's answer is empty");
      reader.ended(runId);
      const { text, message, generationInfo } = whole;
      await reader.calls.keep(name, { text, message, generationInfo });
    } catch (error) {
      fails();
      throw error;
    }
    yield* held;
  };
}

type Calling = Record<"tool_call_chunks" | "tool_calls", readonly { readonly args?: unknown }[]>;

function callsTools({ message }: ChatGenerationChunk): boolean {
  const { tool_call_chunks: chunks = [], tool_calls: made = [] } = viewOf<Calling>(message);
  return chunks.length + made.length > 0;
}

/** Approximate size of a message or a message chunk, in bytes. */
function sizeOf(message: BaseMessage): number {
  const { content, additional_kwargs: more } = message;
  const { tool_call_chunks: chunks = [], tool_calls: made = [] } = viewOf<Calling>(message);
  const args = (chunks.length > 0 ? chunks : made).map((call) => call.args);
  const texts = [content, more, ...args].map((value) =>
    typeof value === "string" ? value : JSON.stringify(value ?? ""),
  );
  return texts.reduce((sum, text) => sum + utf8Length(text), 0);
}

function chunkOf(known: unknown): ChatGenerationChunk {
  return new ChatGenerationChunk(known as ConstructorParameters<typeof ChatGenerationChunk>[0]);
}

/** Throws for an oversized answer, because an endless answer must not exhaust the memory. */
function checkSize(bytes: number): void {
  if (bytes > stepBounds.result) throw new Error(`The model's answer exceeds ${stepBounds.result} bytes`);
}

/** The member of `configurable` that has the step of a tool. */
const stepKey = "__parley_step";

interface ToolConfig {
  readonly configurable?: { readonly [stepKey]?: ToolStep };
  readonly toolCall?: { readonly id?: string };
  readonly signal?: AbortSignal;
}

/**
 * The step of a tool call: an idempotency key for the service that the tool calls, and whether an earlier attempt may have taken effect.
 *
 * @param config - The second argument of the tool's function.
 * @returns `undefined` for a tool that is not durable, or outside of a turn.
 *
 * @example
 * ```ts
 * import { tool } from "@langchain/core/tools";
 * import * as z from "zod";
 *
 * const refund = tool(({ order }, config) => `Refund of ${order} under ${idempotencyOf(config)?.key}`, {
 *   name: "refund",
 *   schema: z.object({ order: z.string() }),
 * });
 * ```
 */
export function idempotencyOf(config: object): ToolStep | undefined {
  return viewOf<ToolConfig>(config).configurable?.[stepKey];
}

function durableTool(tool: object): object {
  if (wrapped.has(tool) || !("_call" in tool) || typeof tool._call !== "function") return tool;
  const inner = tool._call;
  const call = (input: unknown, manager: Manager, config: ToolConfig = {}): unknown => {
    const reader = readerOf(manager);
    const task = taskOf(manager);
    if (reader === undefined || task === "") return Reflect.apply(inner, tool, [input, manager, config]);
    const name = reader.calls.name(task, `tool ${config.toolCall?.id ?? Reflect.get(tool, "name")}`);
    const run = async (step: ToolStep, signal: AbortSignal): Promise<unknown> => {
      const own = { ...config, signal, configurable: { ...config.configurable, [stepKey]: step } };
      const output: unknown = await Reflect.apply(inner, tool, [input, manager, own]);
      return isGenerator(output) ? lastOf(output, (value) => reader.progress(value)) : output;
    };
    // Interrupts and graph commands are not results, because the node stores their effect.
    return reader.calls.once(name, config.signal, run, (value) => isGraphBubbleUp(Object(value)) || hasCommand(value));
  };
  const durable = new Proxy(tool, {
    get: (target, name, receiver): unknown => (name === "_call" ? call : Reflect.get(target, name, receiver)),
  });
  wrapped.add(durable);
  return durable;
}

function hasCommand(value: unknown): boolean {
  return Array.isArray(value) ? value.some(isCommand) : isCommand(value);
}

function isGenerator(value: unknown): value is AsyncIterator<unknown, unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value && "next" in value;
}

/** Shows the values that a generator yields, and returns its result. */
async function lastOf(values: AsyncIterator<unknown, unknown>, show: (value: unknown) => void): Promise<unknown> {
  for (;;) {
    const next: IteratorResult<unknown, unknown> = await values.next();
    if (next.done === true) return next.value;
    show(next.value);
  }
}
