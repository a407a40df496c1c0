import type { ChatTransport } from "ai";
import type { Client, ConnectOptions, EventStream } from "@parley/a2a";
import { untilAborted } from "@parley/a2a/internal/base/async";
import { defined } from "@parley/a2a/internal/base/defined";
import { isInterrupted, type Task } from "@parley/a2a/model";
import { Answer } from "../shared/answer.ts";
import { AnswerChunks } from "../shared/chunks.ts";
import { Connection } from "../shared/connection.ts";
import { defaultFileBytes } from "../shared/files.ts";
import { answerId, isRunning } from "../shared/turns.ts";
import type { ApprovalAnswer } from "../shared/questions.ts";
import type { A2AChunk, A2AMetadata, A2AUIMessage } from "../shared/types.ts";
import { messagesOf } from "./history.ts";
import { decisionsIn, toSend } from "./outgoing.ts";

/** Options of an `A2AChatTransport`. */
export interface A2AChatTransportOptions {
  /** The agent: its URL, or a client. The first message connects to the URL. */
  readonly agent: string | Client;
  /** Options of `connect()`, for a URL. */
  readonly connect?: ConnectOptions;
  /**
   * What `stop()` of `useChat()` does: `"cancel"` cancels the task; `"leave"` only stops reading, and the task continues. Default: `"cancel"`.
   */
  readonly onStop?: "cancel" | "leave";
  /** Maximum size of a file that a message embeds as a `data:` URL, in bytes. A larger file becomes a `data-file` part. Default: 8 MiB. */
  readonly maxFileBytes?: number;
}

interface MessagesOptions {
  readonly limit?: number;
  readonly signal?: AbortSignal;
}

interface Call {
  readonly chatId: string;
  readonly abortSignal?: AbortSignal | undefined;
}

/** A message that was sent, and its events. */
interface Asked {
  readonly events: EventStream;
  readonly chatId: string;
  /** The id of the chat message for the answer. */
  readonly messageId: string;
  readonly known: A2AMetadata["a2a"];
  readonly isReplay: boolean;
  /** The approvals that the message decides. */
  readonly decided: readonly ApprovalAnswer[];
}

/**
 * Lets `useChat()` of the AI SDK talk to an A2A agent, without a server route in between. The chat id is the `contextId`, so the tasks of a chat
 * share their context. If the agent asks a question, the next message answers it.
 *
 * To continue an answer in progress after a page reload, give `useChat()` the messages of `messages()`, and `resume: true`.
 *
 * @example
 * ```ts
 * import { useChat } from "@ai-sdk/react";
 *
 * const transport = new A2AChatTransport({ agent: "https://agents.example.com/travel" });
 * const { messages, sendMessage } = useChat({ id: "trip-7", transport });
 * ```
 */
export class A2AChatTransport implements ChatTransport<A2AUIMessage> {
  /** A resumed stream replays the answer from its start. */
  readonly resumeStreamIsReplay = true;
  readonly #options: A2AChatTransportOptions;
  readonly #connection: Connection;
  /** For each chat, the task whose answer the page has not read to the end. */
  readonly #unread = new Map<string, string>();
  /** For each chat, the answer that ended with a question. Without that answer, the next answer would repeat the whole task. */
  readonly #asking = new Map<string, AnswerChunks>();

  /** Does not connect before the first message. */
  constructor(options: A2AChatTransportOptions) {
    this.#options = options;
    this.#connection = new Connection(options.agent, options.connect);
  }

  /** Sends the last message, and streams the answer. */
  async sendMessages({
    trigger,
    chatId,
    messages,
    abortSignal,
  }: Call & {
    readonly trigger: "submit-message" | "regenerate-message";
    readonly messages: readonly A2AUIMessage[];
  }): Promise<ReadableStream<A2AChunk>> {
    const client = await untilAborted(this.#connection.client(), abortSignal);
    const message = toSend(chatId, messages, trigger === "regenerate-message");
    const { contextId } = message;
    const last = messages.at(-1);
    // After an approval, the rest of the answer extends the message that asked for it.
    const messageId = last?.role === "assistant" ? last.id : answerId(message.messageId);
    const events = client.sendStreamingMessage({ message });
    const decided = decisionsIn(last);
    const asked = { events, chatId, messageId, known: { contextId }, isReplay: false, decided };
    const before = this.#asking.get(chatId);
    return this.#answer(asked, abortSignal, before?.metadata.taskId === message.taskId ? before : undefined);
  }

  /** The answer in progress, from its start. `null` if no answer is in progress. */
  async reconnectToStream({ chatId, abortSignal }: Call): Promise<ReadableStream<A2AChunk> | null> {
    const client = await untilAborted(this.#connection.client(), abortSignal);
    const task = await this.#running(client, chatId, abortSignal);
    if (task === undefined) return null;
    const asked = task.history?.findLast(({ role }) => role === "ROLE_USER");
    const known = defined({ taskId: task.id, contextId: task.contextId });
    const events = client.subscribeToTask(task.id, { after: 0 });
    const messageId = answerId(asked?.messageId ?? task.id);
    return this.#answer({ events, chatId, messageId, known, isReplay: true, decided: [] }, abortSignal);
  }

  /**
   * The messages of a chat as the agent has them, oldest first. Omits an answer in progress; `resume: true` adds that answer.
   *
   * @param chatId - The chat: the `contextId` of any conversation with this agent.
   * @param options - `limit`: maximum number of tasks to read, newest first. Default: 100.
   * @throws A2AError `UnsupportedOperation` if the agent does not list tasks; and the errors of any call.
   *
   * @example
   * ```ts
   * import { useChat } from "@ai-sdk/react";
   *
   * const transport = new A2AChatTransport({ agent: "https://agents.example.com/travel" });
   * const messages = await transport.messages("trip-7");
   * const chat = useChat({ id: "trip-7", transport, messages, resume: true });
   * ```
   */
  async messages(chatId: string, options: MessagesOptions = {}): Promise<A2AUIMessage[]> {
    const client = await this.#connection.client();
    const { limit = 100, ...call } = options;
    const tasks: Task[] = [];
    for await (const task of client.tasks(
      { contextId: chatId, includeArtifacts: true, pageSize: Math.min(limit, 20) },
      call,
    )) {
      tasks.unshift(task);
      if (tasks.length >= limit) break;
    }
    const newest = tasks.at(-1);
    if (newest && isRunning(newest)) note(this.#unread, chatId, newest.id);
    if (newest && isInterrupted(newest.status.state)) {
      const chunks = new AnswerChunks({ messageId: "", maxFileBytes: this.#maxFileBytes }, () => {});
      chunks.apply({ task: newest });
      note(this.#asking, chatId, chunks);
    }
    return tasks.flatMap((task) => messagesOf(task, this.#maxFileBytes));
  }

  get #maxFileBytes(): number {
    return this.#options.maxFileBytes ?? defaultFileBytes;
  }

  /** The newest task of a chat, if its answer is in progress, or was when the page last read it. */
  async #running(client: Client, chatId: string, signal: AbortSignal | undefined): Promise<Task | undefined> {
    const options = signal && { signal };
    const unread = this.#unread.get(chatId);
    if (unread !== undefined) return client.getTask(unread, options);
    const { tasks } = await client.listTasks({ contextId: chatId, pageSize: 1 }, options);
    return tasks.find(isRunning);
  }

  async #answer(
    { events, chatId, messageId, known, isReplay, decided }: Asked,
    signal: AbortSignal | undefined,
    before?: AnswerChunks,
  ): Promise<ReadableStream<A2AChunk>> {
    const pieces: A2AChunk[] = [];
    const init = { messageId, maxFileBytes: this.#maxFileBytes, isReplay };
    const chunks = new AnswerChunks(init, (chunk) => void pieces.push(chunk), before);
    chunks.start(known);
    for (const { approvalId, digest } of decided) {
      const data = defined({ approvalId, digest, answered: true });
      pieces.push({ type: "data-approval", id: approvalId, data });
    }
    const answer = new Answer(events, chunks, pieces, () => {
      const { taskId, state } = chunks.metadata;
      note(this.#unread, chatId, answer.ended ? undefined : taskId);
      note(this.#asking, chatId, state && isInterrupted(state) ? chunks : undefined);
    });
    signal?.addEventListener("abort", () => void this.#stop(answer), { once: true });
    return (await untilAborted(answer.begin(), signal)).stream();
  }

  /** Ignores errors, such as an ended task or a failed connection, because the page no longer waits. */
  async #stop(answer: Answer): Promise<void> {
    const cancels = this.#options.onStop !== "leave" && !answer.ended;
    try {
      const taskId = cancels ? await answer.task() : undefined;
      await answer.close();
      if (taskId !== undefined) await (await this.#connection.client()).cancelTask(taskId);
    } catch {
      await answer.close().catch(() => {});
    }
  }
}

const maxChats = 100;

/** Sets the value of a chat, and keeps only the newest chats. */
function note<T>(chats: Map<string, T>, id: string, value: T | undefined): void {
  chats.delete(id);
  if (value !== undefined) chats.set(id, value);
  for (const [oldest] of chats) if (chats.size > maxChats) chats.delete(oldest);
}
