import * as agents from "@mastra/core/agent";
import type { SubAgent, SubAgentGenerateResult, SubAgentStreamResult } from "@mastra/core/agent";
import type { ChunkType } from "@mastra/core/stream";
import { connect, type Client } from "@parley/a2a";
import { line } from "@parley/a2a/protocol";
import type { Message, Part, StreamResponse } from "@parley/a2a/model";
import { isObject, toPlainJson } from "../shared/json.ts";
import type { ModelPart } from "../shared/model.ts";
import { AnswerParts, partsOf } from "../shared/remote.ts";
import { idempotencyOf } from "./tools.ts";

/* A2A agents as Mastra agents. */

/** The id and description of a `remoteMastraAgent()`. */
export interface RemoteMastraOptions {
  /** Identifier of the agent. Default: `remote-agent`. */
  readonly id?: string;
  /** Tells the model when to call the agent. Default: the description on the card; for a URL, its host. */
  readonly description?: string;
}

/**
 * A remote A2A agent as a Mastra agent, for the `agents` of another Mastra agent. Each call starts a task. A question from the remote agent suspends the
 * call: `suspendPayload` has the question, `resumeSchema` the schema of the answer, and `runId` identifies the task, so any process can resume it.
 *
 * @param remote - A client, or the URL of the agent. The first call connects to the URL.
 *
 * @example
 * ```ts
 * import { Agent } from "@mastra/core/agent";
 *
 * const weather = remoteMastraAgent(await connect("https://weather.example.com"), { id: "weather" });
 * const planner = new Agent({ id: "planner", name: "Planner", model: "openai/gpt-5", instructions: "You plan.", agents: { weather } });
 * ```
 */
export function remoteMastraAgent(remote: Client | string, options: RemoteMastraOptions = {}): SubAgent {
  return new RemoteMastraAgent(remote, options);
}

interface CallOptions {
  readonly runId?: string;
  readonly abortSignal?: AbortSignal;
}

/** Selects Mastra's code path for AI SDK 5 and later. This model is never called. */
const model = {
  specificationVersion: "v2",
  provider: "a2a",
  modelId: "remote-agent",
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("A remote agent is not a model")),
  doStream: () => Promise.reject(new Error("A remote agent is not a model")),
};

class RemoteMastraAgent implements SubAgent {
  readonly id: string;
  readonly name: string;
  readonly #description: string;
  readonly #remote: Client | string;
  #connecting: Promise<Client> | undefined;

  constructor(remote: Client | string, { id = "remote-agent", description }: RemoteMastraOptions) {
    this.id = id;
    this.name = id;
    this.#remote = remote;
    // The card is untrusted.
    const own =
      typeof remote === "string" ? `The agent at ${new URL(remote).host}` : line(remote.card.description, 500);
    this.#description = description ?? own;
  }

  getDescription(): string {
    return this.#description;
  }

  getModel = (): ReturnType<SubAgent["getModel"]> => model as unknown as ReturnType<SubAgent["getModel"]>;

  getInstructions(): string {
    return "";
  }

  /** The remote agent remembers its conversations itself. */
  hasOwnMemory(): boolean {
    return true;
  }

  __setMemory(): void {}

  getMemory(): undefined {
    return undefined;
  }

  async generate(
    messages: Parameters<SubAgent["generate"]>[0],
    options?: CallOptions,
  ): Promise<SubAgentGenerateResult> {
    return generated(await this.stream(messages, options));
  }

  async resumeGenerate(resumeData: unknown, options?: CallOptions): Promise<SubAgentGenerateResult> {
    return generated(await this.resumeStream(resumeData, options));
  }

  async stream(messages: Parameters<SubAgent["stream"]>[0], options: CallOptions = {}): Promise<RemoteRun> {
    const list = new agents.MessageList().add(messages, "input").get.all.aiV5.model();
    const last = list.findLast(({ role }) => role === "user")?.content ?? "";
    return this.#send({ parts: partsOf(last as string | readonly ModelPart[]) }, options);
  }

  async resumeStream(resumeData: unknown, options: CallOptions = {}): Promise<RemoteRun> {
    const [scheme, taskId = "", contextId = ""] = String(options.runId).split(":").map(decodeURIComponent);
    if (scheme !== "a2a") throw new Error(`runId must be that of a suspended call of this agent; got ${options.runId}`);
    const given = toPlainJson(resumeData);
    const answer = isObject(given) && Object.keys(given).length === 1 ? given["answer"] : given;
    const part: Part = typeof answer === "string" ? { text: answer } : { data: given };
    return this.#send({ parts: [part], taskId, ...(contextId !== "" && { contextId }) }, options);
  }

  async #send(message: Omit<Message, "messageId" | "role">, { abortSignal }: CallOptions): Promise<RemoteRun> {
    const client = await this.#client();
    const step = abortSignal && idempotencyOf({ abortSignal });
    // In a served agent, a repeated call joins the task of the first call.
    const messageId = step?.key ?? crypto.randomUUID();
    const signal = abortSignal === undefined ? {} : { signal: abortSignal };
    const events = client.sendStreamingMessage({ message: { ...message, messageId } }, signal);
    const run = new RemoteRun(this.id, events);
    // Does not cancel in a served agent, whose turn may be aborted in order to continue on another node.
    const cancel = (): void => void (run.taskId !== undefined && client.cancelTask(run.taskId).catch(() => {}));
    if (step === undefined) abortSignal?.addEventListener("abort", cancel, { once: true });
    void run.text.catch(() => {}).then(() => abortSignal?.removeEventListener("abort", cancel));
    return run;
  }

  async #client(): Promise<Client> {
    if (typeof this.#remote !== "string") return this.#remote;
    this.#connecting ??= connect(this.#remote);
    return this.#connecting.catch((error: unknown) => {
      this.#connecting = undefined;
      throw error;
    });
  }
}

const anyAnswer = { type: "object", properties: { answer: { type: "string" } }, required: ["answer"] };

/** One call. Reads the events immediately, even if nobody reads the stream. */
class RemoteRun implements SubAgentStreamResult {
  readonly fullStream: SubAgentStreamResult["fullStream"];
  readonly text: Promise<string>;
  readonly finishReason: Promise<"stop" | "suspended" | "error">;
  readonly messageList = new agents.MessageList();
  readonly toolResults = [];
  error?: Error;
  suspendPayload: object | undefined;
  resumeSchema: string | undefined;
  readonly #reader = new AnswerParts();
  readonly #own = crypto.randomUUID();
  #contextId = "";
  #asked: Message | undefined;

  constructor(id: string, events: AsyncIterable<Partial<StreamResponse>>) {
    const { readable, writable } = new TransformStream<object, ChunkType>({}, {}, { highWaterMark: Infinity });
    this.fullStream = readable;
    this.text = this.#read(id, events, writable.getWriter());
    this.finishReason = this.text.then(() => this.#reason);
  }

  /** Identifies the task once it is known, so that `resumeStream()` can continue it in any process. */
  get runId(): string {
    const { taskId } = this;
    return taskId === undefined ? this.#own : ["a2a", taskId, this.#contextId].map(encodeURIComponent).join(":");
  }

  get taskId(): string | undefined {
    return this.#reader.taskId;
  }

  get #reason(): "stop" | "suspended" | "error" {
    if (this.error !== undefined) return "error";
    return this.suspendPayload === undefined ? "stop" : "suspended";
  }

  async #read(
    id: string,
    events: AsyncIterable<Partial<StreamResponse>>,
    writer: WritableStreamDefaultWriter<object>,
  ): Promise<string> {
    const reader = this.#reader;
    const pass = (type: string, payload: object): void =>
      void writer.write({ type, runId: this.runId, from: "AGENT", payload }).catch(() => {});
    try {
      for await (const event of events) {
        this.#note(event);
        for (const { type, ...payload } of reader.read(event)) pass(type, chunkOf(payload));
      }
      for (const part of reader.end({ contextId: this.#contextId, taskId: reader.taskId }))
        if (part.type === "error") throw part["error"];
      if (reader.state === "TASK_STATE_INPUT_REQUIRED" || reader.state === "TASK_STATE_AUTH_REQUIRED") {
        this.#suspend();
        const { suspendPayload, resumeSchema } = this;
        pass("tool-call-suspended", { toolCallId: this.runId, toolName: id, args: {}, suspendPayload, resumeSchema });
      }
      pass("finish", { stepResult: { reason: this.#reason }, output: { usage: {} }, metadata: {} });
    } catch (error) {
      this.error = error instanceof Error ? error : new Error(String(error));
      pass("error", { error: this.error });
    }
    void writer.close().catch(() => {});
    return reader.text;
  }

  #note({ task, message, statusUpdate }: Partial<StreamResponse>): void {
    this.#contextId = task?.contextId ?? statusUpdate?.contextId ?? message?.contextId ?? this.#contextId;
    const { status } = statusUpdate ?? task ?? {};
    if (status !== undefined) this.#asked = status.message;
  }

  #suspend(): void {
    const form = this.#asked?.parts.find(({ mediaType = "" }) => mediaType.startsWith("application/schema+json"));
    const schema = isObject(form?.data) ? form.data : anyAnswer;
    this.suspendPayload = { question: this.#reader.said };
    this.resumeSchema = JSON.stringify(schema);
  }
}

function chunkOf({ delta, data, mediaType, ...payload }: Readonly<Record<string, unknown>>): object {
  return {
    ...payload,
    ...(delta !== undefined && { text: delta }),
    ...(data !== undefined && { data, base64: data, mimeType: mediaType }),
  };
}

async function generated(run: RemoteRun): Promise<SubAgentGenerateResult> {
  const text = await run.text;
  if (run.error !== undefined) throw run.error;
  const { runId, suspendPayload, resumeSchema } = run;
  const asked = suspendPayload === undefined ? {} : { suspendPayload, resumeSchema };
  return { text, runId, finishReason: await run.finishReason, response: {}, toolResults: [], ...asked };
}
