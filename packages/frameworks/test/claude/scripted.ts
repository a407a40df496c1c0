import type { ClaudePrompt, ClaudeStream } from "../../src/claude/index.ts";

/* A `query()` that sends the SDK's messages, with functions as its model and tools. Like the SDK, it passes its transcript to the session store. */

export type Block =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly thinking: string }
  | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly input: Record<string, unknown> };

/** The input of the model: the lines of the transcript, and the number of tool results in it. */
export interface Asked {
  readonly lines: readonly Line[];
  readonly results: number;
  readonly prompt: string;
}

interface Line {
  readonly type: string;
  readonly uuid: string;
  readonly message: { readonly role: string; readonly content: readonly unknown[] };
}

interface Key {
  projectKey: string;
  sessionId: string;
}

/** Some of the options, with the SDK's types. */
export interface Options {
  model?: string;
  systemPrompt?: string;
  allowedTools?: string[];
  resume?: string;
  sessionId?: string;
  maxTurns?: number;
  abortController?: AbortController;
  canUseTool?: (
    toolName: string,
    input: Record<string, unknown>,
    options: { signal: AbortSignal; toolUseID: string },
  ) => Promise<
    | { behavior: "allow"; updatedInput?: Record<string, unknown> }
    | { behavior: "deny"; message: string; interrupt?: boolean }
    | null
  >;
  hooks?: Partial<Record<"PostToolBatch", { hooks: ((input: object) => Promise<object>)[] }[]>>;
  sessionStore?: {
    append(key: Key, entries: { type: string }[]): Promise<void>;
    load(key: Key): Promise<{ type: string }[] | null>;
  };
}

export interface Script {
  /** The next answer of the model. An answer without tool calls is the last one. */
  model(asked: Asked): readonly Block[] | Promise<readonly Block[]>;
  /** Runs a tool. */
  tool?(name: string, input: Record<string, unknown>): unknown;
  /** Waits before each piece of a text. */
  pause?(): Promise<unknown>;
  /** Sees the options of each call. */
  options?(options: Options): void;
}

type Scripted = (parameters: { prompt: AsyncIterable<ClaudePrompt> | string; options?: Options }) => ClaudeStream;

export const usage = { input_tokens: 5, output_tokens: 7 };

/** The streamed pieces of a text. */
const piecesOf = (text: string): readonly string[] => text.match(/\S+\s*|\s+/g) ?? [];

export function scriptedQuery(script: Script): Scripted {
  return ({ prompt, options = {} }) => {
    script.options?.(options);
    const session = new ScriptedSession(script, prompt, options);
    return Object.assign(session.messages(), { interrupt: async () => session.interrupt() });
  };
}

class ScriptedSession {
  readonly #script: Script;
  readonly #prompt: AsyncIterable<ClaudePrompt> | string;
  readonly #options: Options;
  readonly #key: Key;
  #lines: Line[] = [];
  #isInterrupted = false;
  #stop: () => void = () => {};
  readonly #stopped = new Promise<void>((resolve) => {
    this.#stop = resolve;
  });

  constructor(script: Script, prompt: AsyncIterable<ClaudePrompt> | string, options: Options) {
    this.#script = script;
    this.#prompt = prompt;
    this.#options = options;
    this.#key = { projectKey: "scripted", sessionId: options.resume ?? options.sessionId ?? "" };
  }

  interrupt(): void {
    this.#isInterrupted = true;
    this.#stop();
  }

  async *messages(): AsyncGenerator<object, void, void> {
    const { resume, sessionStore } = this.#options;
    if (resume !== undefined) {
      const loaded = await sessionStore?.load(this.#key);
      if (!loaded) throw new Error(`No conversation found with session ID: ${resume}`);
      this.#lines = loaded as Line[];
    }
    const said = await first(this.#prompt);
    await this.#append("user", said.message.content);
    yield { type: "system", subtype: "init", session_id: this.#key.sessionId };
    const text = said.message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
    for (let turn = 0; ; turn += 1) {
      if (turn === this.#options.maxTurns)
        return yield this.#result({ subtype: "error_max_turns", errors: ["Too many"] });
      const results = this.#lines.flatMap(({ message }) => message.content).filter(isResult).length;
      const asked = { lines: this.#lines, results, prompt: text };
      const blocks = await Promise.race([this.#script.model(asked), this.#stopped]);
      if (this.#isInterrupted || blocks === undefined) return yield this.#aborted();
      yield* this.#answer(blocks, String(this.#lines.length));
      const calls = blocks.filter((block) => block.type === "tool_use");
      if (calls.length === 0)
        return yield this.#result({ subtype: "success", is_error: false, stop_reason: "end_turn" });
      for (const call of calls) yield* this.#call(call);
      if (this.#isInterrupted) return yield this.#aborted();
      const batch = { tool_calls: calls.map(({ id }) => ({ tool_use_id: id })) };
      for (const { hooks } of this.#options.hooks?.PostToolBatch ?? []) for (const hook of hooks) await hook(batch);
    }
  }

  async *#answer(blocks: readonly Block[], id: string): AsyncGenerator<object, void, void> {
    const piece = (event: object): object => ({ type: "stream_event", parent_tool_use_id: null, event });
    yield piece({ type: "message_start", message: { id } });
    for (const [index, block] of blocks.entries()) {
      yield piece({ type: "content_block_start", index, content_block: block });
      for (const text of block.type === "text" ? piecesOf(block.text) : []) {
        await this.#script.pause?.();
        yield piece({ type: "content_block_delta", index, delta: { type: "text_delta", text } });
      }
      if (block.type === "thinking")
        yield piece({
          type: "content_block_delta",
          index,
          delta: { type: "thinking_delta", thinking: block.thinking },
        });
      await this.#append("assistant", [block]);
      yield { type: "assistant", parent_tool_use_id: null, message: { id, content: [block] } };
      yield piece({ type: "content_block_stop", index });
    }
    yield piece({ type: "message_stop" });
  }

  async *#call({ id, name, input }: Block & { readonly type: "tool_use" }): AsyncGenerator<object, void, void> {
    const { canUseTool, allowedTools = [], abortController } = this.#options;
    const { signal } = abortController ?? new AbortController();
    let content: unknown = "interrupted";
    const isAllowed = allowedTools.includes(name);
    const given = isAllowed || this.#isInterrupted ? null : await canUseTool?.(name, input, { signal, toolUseID: id });
    if (given?.behavior === "deny") content = given.message;
    if (given?.behavior === "deny" && given.interrupt === true) this.interrupt();
    if (!this.#isInterrupted && (isAllowed || given?.behavior === "allow"))
      content = await Promise.race([this.#script.tool?.(name, input), this.#stopped]).catch(String);
    const result = { type: "tool_result", tool_use_id: id, content };
    await this.#append("user", [result]);
    yield { type: "user", parent_tool_use_id: null, message: { role: "user", content: [result] } };
  }

  #aborted(): object {
    return this.#result({
      subtype: "error_during_execution",
      is_error: true,
      terminal_reason: "aborted_tools",
      errors: ["x"],
    });
  }

  #result(more: object): object {
    return { type: "result", usage, session_id: this.#key.sessionId, ...more };
  }

  async #append(role: "user" | "assistant", content: readonly unknown[]): Promise<void> {
    const line: Line = { type: role, uuid: crypto.randomUUID(), message: { role, content } };
    this.#lines = [...this.#lines, line];
    await this.#options.sessionStore?.append(this.#key, [line]);
  }
}

function isResult(block: unknown): boolean {
  return (block as { readonly type?: unknown }).type === "tool_result";
}

async function first(prompt: AsyncIterable<ClaudePrompt> | string): Promise<ClaudePrompt> {
  if (typeof prompt === "string") throw new Error("The adapter sends messages");
  for await (const message of prompt) return message;
  throw new Error("The prompt is empty");
}
