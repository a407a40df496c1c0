import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, type AIMessageChunkFields, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";

/** A piece of an answer: text, or a chunk of any other kind. */
export type Piece = string | (Omit<AIMessageChunkFields, "usage_metadata"> & { readonly usage_metadata?: object });

/** Makes the pieces of an answer from the messages of the call. */
export type Script = (messages: readonly BaseMessage[], signal?: AbortSignal) => Iterable<Piece> | AsyncIterable<Piece>;

/** A piece that calls tools: their ids, names and arguments. */
export const calls = (...of: readonly (readonly [id: string, name: string, args: object | string])[]): Piece => ({
  content: "",
  tool_call_chunks: of.map(([id, name, args], index) => ({
    id,
    name,
    index,
    args: typeof args === "string" ? args : JSON.stringify(args),
    type: "tool_call_chunk" as const,
  })),
});

/** A chat model that gives its answers in order, and records its calls. */
export class ScriptedChat extends BaseChatModel {
  readonly calls: (readonly BaseMessage[])[] = [];
  readonly #scripts: readonly (Script | readonly Piece[])[];

  constructor(...scripts: readonly (Script | readonly Piece[])[]) {
    super({ maxRetries: 0 });
    this.#scripts = scripts;
  }

  override _llmType(): string {
    return "scripted";
  }

  /** Returns another object, as LangChain models do. */
  override bindTools(tools: unknown[]): ReturnType<BaseChatModel["withConfig"]> {
    return Object.assign(new ScriptedChat(...this.#scripts), { calls: this.calls }).withConfig({ tools } as object);
  }

  override async _generate(messages: BaseMessage[], options: this["ParsedCallOptions"]): Promise<ChatResult> {
    let whole: ChatGenerationChunk | undefined;
    for await (const chunk of this.#answer(messages, options.signal)) whole = whole?.concat(chunk) ?? chunk;
    if (whole === undefined) throw new Error("No answer");
    return { generations: [whole] };
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    manager?: { handleLLMNewToken(text: string, ...more: unknown[]): Promise<void> },
  ): AsyncGenerator<ChatGenerationChunk> {
    for await (const chunk of this.#answer(messages, options.signal)) {
      yield chunk;
      await manager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
    }
  }

  async *#answer(messages: readonly BaseMessage[], signal?: AbortSignal): AsyncGenerator<ChatGenerationChunk> {
    const script = this.#scripts[this.calls.length] ?? this.#scripts.at(-1) ?? [];
    this.calls.push(messages);
    for await (const piece of typeof script === "function" ? script(messages, signal) : script) {
      const message = new AIMessageChunk(piece as AIMessageChunkFields);
      yield new ChatGenerationChunk({ message, text: message.text });
    }
  }
}
