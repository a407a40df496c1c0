import type { LanguageModel, Tool, ToolLoopAgent } from "ai";
import type { Client, Conversation } from "@parley/a2a";
import type { TaskState } from "@parley/a2a/model";
import { digestOf, toJson } from "../shared/json.ts";
import type { ModelPart } from "../shared/model.ts";
import { AnswerParts, partsOf } from "../shared/remote.ts";
import { aiSDK } from "./peer.ts";
import { idempotencyOf } from "./tools.ts";

/* A2A agents as AI SDK agents and tools. */

/** The id of a `remoteAgent()`, and the conversation that it continues. */
export interface RemoteAgentOptions {
  /** Identifier of the agent. */
  readonly id?: string;
  /** A conversation to continue. Default: the remote agent starts a new conversation. */
  readonly contextId?: string;
  /** A task of that conversation to continue. */
  readonly taskId?: string;
}

/** An AI SDK agent that holds one conversation with a remote agent. */
export type RemoteAgent = ToolLoopAgent & {
  /** The conversation. Save its `contextId` and `taskId` to continue it later. */
  readonly conversation: Conversation;
};

/**
 * A remote A2A agent as an AI SDK `Agent`, for one conversation. Each call sends the user's last message to the context and the unfinished task
 * of earlier calls, so the next call answers a question from the remote agent. Create a new `Agent` for each conversation.
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
  // Limits the loop to one call per message, because a second call would create a second task.
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

/** A conversation as a model of specification V3, which versions 6 and 7 both accept. */
class RemoteModel {
  readonly specificationVersion = "v3";
  readonly provider = "a2a";
  readonly modelId = "remote-agent";
  readonly supportedUrls = { "*/*": [/^https?:/] };
  /** The last message, if sending failed. A call with the same prompt sends it again with the same id. */
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

/** The input of a tool from `a2aTool()`. */
export interface RemoteToolInput {
  /** The message for the agent. */
  readonly message: string;
  /** The task whose question the message answers. */
  readonly taskId?: string;
}

/** The preliminary and final results of a tool from `a2aTool()`. */
export interface RemoteToolOutput {
  /** The state of the task. With `TASK_STATE_INPUT_REQUIRED`, the text ends with a question. Absent for a direct reply. */
  readonly state?: TaskState;
  /** The text so far of artifacts, replies and the question. */
  readonly text: string;
  /** Pass it with the answer to a question. */
  readonly taskId?: string;
}

const interval = 250;

/**
 * A remote A2A agent as an AI SDK tool, with preliminary results while the agent works. The message id is the tool call id (in a served agent, the
 * key of its step), so a repeated call joins the task of the first call. Throws if the task fails, so that the model reads the error.
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
