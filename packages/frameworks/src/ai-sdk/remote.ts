import type { LanguageModel, Tool, ToolLoopAgent } from "ai";
import type { Client, Conversation } from "@parley/a2a";
import { utf8Length } from "@parley/a2a/internal/base/index";
import {
  toBase64,
  type Artifact,
  type Message,
  type Part,
  type StreamResponse,
  type TaskState,
} from "@parley/a2a/model";
import { digestOf, toJson } from "../shared/json.ts";
import type { ModelPart } from "./model.ts";
import { aiSDK } from "./peer.ts";
import { idempotencyOf } from "./tools.ts";

/* A2A agents as agents and tools of the AI SDK. */

/** Where `remoteAgent()` continues, and how the agent is named. */
export interface RemoteAgentOptions {
  /** Identifier of the agent. */
  readonly id?: string;
  /** A conversation to continue. Default: the remote agent begins one. */
  readonly contextId?: string;
  /** A task of that conversation to continue. */
  readonly taskId?: string;
}

/** An agent of the AI SDK that is a conversation with a remote agent. */
export type RemoteAgent = ToolLoopAgent & {
  /** The conversation: its `contextId` and `taskId` continue it later. */
  readonly conversation: Conversation;
};

/**
 * A remote A2A agent as an `Agent` of the AI SDK. It is one conversation: a call sends the last message of the user, in the context and the
 * unfinished task of the calls before, so a question of the remote agent is answered by the next call. Use one for each conversation.
 *
 * @throws Error for a version of `ai` other than 6 and 7.
 *
 * @example
 * ```ts
 * const agent = remoteAgent(await connect("https://agent.example.com"));
 * const { text } = await agent.generate({ prompt: "Weather in Basel?" });
 * ```
 */
export function remoteAgent(client: Client, { id, ...init }: RemoteAgentOptions = {}): RemoteAgent {
  const conversation = client.conversation(init);
  const model = new RemoteModel(client, conversation) as unknown as LanguageModel;
  // One message is one call: a second one would be a second task.
  const { ToolLoopAgent: Loop } = aiSDK();
  const agent = new Loop({ model, maxRetries: 0, ...(id !== undefined && { id }) });
  return Object.assign(agent, { conversation });
}

interface PromptMessage {
  readonly role: string;
  readonly content: string | readonly ModelPart[];
}

interface ModelCall {
  readonly prompt: readonly PromptMessage[];
  readonly abortSignal?: AbortSignal;
}

const noUsage = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
};

/** A conversation as a model: versions 6 and 7 both read specification V3. */
class RemoteModel {
  readonly specificationVersion = "v3";
  readonly provider = "a2a";
  readonly modelId = "remote-agent";
  readonly supportedUrls = { "*/*": [/^https?:/] };
  /** The message that was sent last, and failed: the same prompt sends it again, under its id. */
  #failed: { readonly digest: string; readonly messageId: string } | undefined;
  readonly #client: Client;
  readonly #conversation: Conversation;

  constructor(client: Client, conversation: Conversation) {
    this.#client = client;
    this.#conversation = conversation;
  }

  async doStream(call: ModelCall): Promise<{ stream: ReadableStream<ModelPart> }> {
    const parts = this.#parts(call);
    return {
      stream: new ReadableStream({
        async pull(controller) {
          const next = await parts.next();
          if (next.done === true) controller.close();
          else controller.enqueue(next.value);
        },
        async cancel() {
          await parts.return();
        },
      }),
    };
  }

  async doGenerate(call: ModelCall): Promise<object> {
    const texts = new Map<unknown, { type: string; text: string }>();
    const content: object[] = [];
    let finish: ModelPart | undefined;
    for await (const part of this.#parts(call)) {
      const [kind = "", moment] = part.type.split("-");
      if (part.type === "error") throw part["error"];
      if (moment === "start") {
        const block = { type: kind, text: "" };
        texts.set(part["id"], block);
        content.push(block);
      }
      const block = texts.get(part["id"]);
      if (moment === "delta" && block !== undefined) block.text += String(part["delta"]);
      if (part.type === "file") content.push(part);
      if (part.type === "finish") finish = part;
    }
    return { content, ...finish, warnings: [] };
  }

  async *#parts({ prompt, abortSignal }: ModelCall): AsyncGenerator<ModelPart, void, void> {
    const last = prompt.findLast(({ role }) => role === "user");
    const parts = partsOf(last?.content ?? "");
    const digest = await digestOf(toJson([prompt.length, parts]));
    const messageId = this.#failed?.digest === digest ? this.#failed.messageId : crypto.randomUUID();
    const reader = new AnswerParts();
    yield { type: "stream-start", warnings: [] };
    try {
      const signal = abortSignal === undefined ? {} : { signal: abortSignal };
      for await (const event of this.#conversation.stream({ message: { messageId, parts } }, signal))
        yield* reader.read(event);
      this.#failed = undefined;
    } catch (error) {
      this.#failed = { digest, messageId };
      const { taskId } = this.#conversation;
      if (abortSignal?.aborted === true && taskId !== undefined) await this.#client.cancelTask(taskId).catch(() => {});
      yield { type: "error", error };
      return;
    }
    const { contextId } = this.#conversation;
    yield* reader.end({ contextId, taskId: reader.taskId });
  }
}

function partsOf(content: string | readonly ModelPart[]): readonly Part[] {
  if (typeof content === "string") return [{ text: content }];
  return content.flatMap((part): Part[] => {
    if (part.type === "text") return [{ text: String(part["text"]) }];
    if (part.type !== "file") return [];
    const { data: given, mediaType, filename } = part;
    const named = {
      mediaType: String(mediaType),
      ...(typeof filename === "string" && { filename }),
    };
    // Specification V4 wraps the data.
    const tagged = typeof given === "object" && given !== null && "type" in given ? given : undefined;
    const data: unknown = tagged === undefined ? given : Reflect.get(tagged, String(tagged.type));
    if (data instanceof URL) return [{ url: data.href, ...named }];
    return [{ raw: data instanceof Uint8Array ? toBase64(data) : String(data), ...named }];
  });
}

const states: Partial<Record<TaskState, string>> = {
  TASK_STATE_FAILED: "failed",
  TASK_STATE_REJECTED: "rejected",
  TASK_STATE_CANCELED: "canceled",
};

/** What is read of one answer: as much as a task of Parley holds. */
const maxBytes = 32 << 20;

/** The events of a task as parts of a model: artifacts and messages are text and files, progress is reasoning. */
class AnswerParts {
  taskId: string | undefined;
  state: TaskState | undefined;
  /** All text so far. */
  text = "";
  /** Of each artifact: its text, and how many files were shown. */
  readonly #shown = new Map<string, { readonly text: string; readonly files: number }>();
  /** Ids of messages. A client that reconnects gets the latest one again. */
  readonly #heard = new Set<string>();
  #count = 0;
  #said = "";
  #bytes = 0;

  *read({ task, message, statusUpdate, artifactUpdate }: Partial<StreamResponse>): Generator<ModelPart, void, void> {
    this.taskId = task?.id ?? statusUpdate?.taskId ?? artifactUpdate?.taskId ?? this.taskId;
    for (const artifact of task?.artifacts ?? []) yield* this.#artifact(artifact, false);
    if (artifactUpdate !== undefined) yield* this.#artifact(artifactUpdate.artifact, artifactUpdate.append === true);
    if (message !== undefined) yield* this.#message(message, "text");
    const status = statusUpdate?.status ?? task?.status;
    if (status === undefined) return;
    this.state = status.state;
    if (status.message === undefined) return;
    const isProgress = status.state === "TASK_STATE_WORKING" || status.state === "TASK_STATE_SUBMITTED";
    yield* this.#message(status.message, isProgress ? "reasoning" : "text");
  }

  *end(ids: {
    readonly contextId: string | undefined;
    readonly taskId: string | undefined;
  }): Generator<ModelPart, void, void> {
    const ended = this.state === undefined ? undefined : states[this.state];
    if (ended !== undefined)
      return yield { type: "error", error: new Error(`The remote task has ${ended}: ${this.#said}`) };
    const providerMetadata = { a2a: toJson({ ...ids, state: this.state }) };
    yield { type: "finish", finishReason: { unified: "stop", raw: this.state }, usage: noUsage, providerMetadata };
  }

  /** An artifact that begins again shows only what is new of it; text that was shown cannot be taken back. */
  *#artifact({ artifactId, parts }: Artifact, append: boolean): Generator<ModelPart, void, void> {
    const before = this.#shown.get(artifactId) ?? { text: "", files: 0 };
    const text = parts.map(textOf).join("");
    const files = parts.filter(({ raw }) => raw !== undefined);
    const had = append ? before : { text: "", files: 0 };
    this.#shown.set(artifactId, {
      text: had.text + text,
      files: Math.max(before.files, had.files + files.length),
    });
    yield* this.#text(!append && text.startsWith(before.text) ? text.slice(before.text.length) : text, "text");
    yield* this.#files(append ? files : files.slice(before.files));
  }

  *#message({ messageId, parts }: Message, kind: "text" | "reasoning"): Generator<ModelPart, void, void> {
    this.#said = parts.map((part) => part.text ?? "").join("");
    if (this.#heard.has(messageId)) return;
    this.#heard.add(messageId);
    if (kind === "reasoning" || !this.#mirrors(this.#said)) yield* this.#text(this.#said, kind);
    yield* this.#files(parts);
  }

  /** Whether a text repeats what the artifacts have, as some agents do for clients that show no artifacts. */
  #mirrors(said: string): boolean {
    const shown = [...this.#shown.values()].map(({ text }) => text);
    return [...shown, shown.join(""), shown.join("\n")].some((text) => text.trim() === said.trim());
  }

  *#files(parts: readonly Part[]): Generator<ModelPart, void, void> {
    for (const part of parts) {
      if (part.raw === undefined) continue;
      this.#add(part.raw);
      yield fileOf(part.raw, part);
    }
  }

  /** An agent that never ends must not fill the memory. */
  #add(text: string): void {
    this.#bytes += utf8Length(text);
    if (this.#bytes > maxBytes) throw new Error(`The answer of the remote agent takes more than ${maxBytes} bytes`);
  }

  *#text(delta: string, kind: "text" | "reasoning"): Generator<ModelPart, void, void> {
    if (delta === "") return;
    this.#add(delta);
    if (kind === "text") this.text += delta;
    const id = `${(this.#count += 1)}`;
    yield { type: `${kind}-start`, id };
    yield { type: `${kind}-delta`, id, delta };
    yield { type: `${kind}-end`, id };
  }
}

function textOf({ text, data, url, mediaType = "" }: Part): string {
  if (data !== undefined && !mediaType.startsWith("application/schema+json")) return JSON.stringify(data);
  return text ?? url ?? "";
}

function fileOf(data: string, { mediaType = "application/octet-stream" }: Part): ModelPart {
  return { type: "file", mediaType, data };
}

/** What the model passes to a tool of `a2aTool()`. */
export interface RemoteToolInput {
  /** The message for the agent. */
  readonly message: string;
  /** A task that has asked something: the message answers it. */
  readonly taskId?: string;
}

/** What a tool of `a2aTool()` returns, while it runs and at its end. */
export interface RemoteToolOutput {
  /** The state of the task. `TASK_STATE_INPUT_REQUIRED`: the text ends with a question. Absent for a direct reply. */
  readonly state?: TaskState;
  /** The text so far: artifacts, replies, and the question. */
  readonly text: string;
  /** To answer a question with. */
  readonly taskId?: string;
}

const interval = 250;

/**
 * A remote A2A agent as a tool of the AI SDK, with preliminary results while the agent works. The id of the tool call is the id of the message (in a
 * served agent the key of its step), so a repeated call joins its task. Throws, for the model to read, if the task fails.
 *
 * @throws Error for a version of `ai` other than 6 and 7.
 *
 * @example
 * ```ts
 * const tools = { weather: a2aTool(await connect("https://weather.example.com"), { description: "Tells the weather of a city" }) };
 * ```
 */
export function a2aTool(
  client: Client,
  { description }: { readonly description: string },
): Tool<RemoteToolInput, RemoteToolOutput> {
  const { jsonSchema, tool } = aiSDK();
  const inputSchema = jsonSchema<RemoteToolInput>({
    type: "object",
    properties: {
      message: { type: "string", description: "The message for the agent" },
      taskId: { type: "string", description: "Only to answer a question of the agent: the taskId of that result" },
    },
    required: ["message"],
    additionalProperties: false,
  });
  return tool({
    description,
    inputSchema,
    async *execute({ message, taskId }: RemoteToolInput, options: { toolCallId: string; abortSignal?: AbortSignal }) {
      const reader = new AnswerParts();
      const output = (): RemoteToolOutput => ({
        text: reader.text,
        ...(reader.state !== undefined && { state: reader.state }),
        ...(reader.taskId !== undefined && { taskId: reader.taskId }),
      });
      const messageId = idempotencyOf(options)?.key ?? options.toolCallId;
      const asked = { messageId, parts: [{ text: message }], ...(taskId !== undefined && { taskId }) };
      const signal = options.abortSignal === undefined ? {} : { signal: options.abortSignal };
      let shownAt = 0;
      for await (const event of client.sendStreamingMessage({ message: asked }, signal)) {
        for (const part of reader.read(event)) if (part.type === "error") throw part["error"];
        if (Date.now() - shownAt < interval) continue;
        shownAt = Date.now();
        yield output();
      }
      for (const part of reader.end({ contextId: undefined, taskId: reader.taskId }))
        if (part.type === "error") throw part["error"];
      yield output();
    },
  });
}
