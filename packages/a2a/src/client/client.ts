import type { Ids } from "../base/index.ts";
import {
  A2AError,
  checkOptions,
  stateKinds,
  type AgentCard,
  type AgentInterface,
  type CancelTaskRequest,
  type DeleteTaskPushNotificationConfigRequest,
  type GetTaskPushNotificationConfigRequest,
  type GetTaskRequest,
  type GetTaskRequestDraft,
  type ListTaskPushNotificationConfigsRequest,
  type ListTaskPushNotificationConfigsResponse,
  type ListTasksRequest,
  type StreamResponse,
  type SubscribeToTaskRequest,
  type Task,
  type TaskPushNotificationConfig,
} from "../model/index.ts";
import {
  anonymous,
  finishing,
  type AgentService,
  type AnyExtension,
  type CallContext,
  type FileContent,
  type FileFetch,
  type OperationName,
  type StreamName,
  type StreamOperations,
  type StreamReply,
  type UnaryName,
  type UnaryOperations,
} from "../protocol/index.ts";
import { bounded, type Bounded } from "../transport/client/signals.ts";
import { checkDeclared } from "./card.ts";
import { Conversation, type ConversationInit } from "./conversation.ts";
import { byId, toSendRequest, type CallOptions, type SendInput, type SubscribeOptions } from "./requests.ts";
import type { Downloadable, DownloadOptions } from "./download.ts";
import { callNames, type ClientParts, type ExtOfClient, type WaitOptions } from "./parts.ts";
import type { ReceivedAnswer, ReceivedList, ReceivedTask, ResponseTo } from "./received.ts";
import { leftOut, EventStream, waitForTask } from "./stream.ts";
import type { WatchedTask } from "./watch.ts";

/**
 * Talks to one agent. Every method throws an `A2AError`, with the same codes over every binding. If the network fails, the client retries
 * calls that are safe to repeat. It retries a send only if the card allows repeated sends, or if the server certainly never received the
 * message.
 */
export class Client<E extends AnyExtension = never> {
  /** The agent's card. `getExtendedAgentCard()` replaces it with the extended card. */
  readonly card: AgentCard;
  /** The operations as a service, with retries: for interceptors, proxies, and operations of extensions. */
  readonly service: AgentService;
  /** Makes the ids of messages. */
  readonly ids: Ids;
  /**
   * One of the client's extensions, bound to this agent. Has its `params`, its methods, and its values in stored messages, tasks and events.
   *
   * @example
   * ```ts
   * const drafts = defineExtension({ uri: "https://example.com/extensions/drafts/v1" });
   * const client = await connect("https://example.com/weather", { extensions: [drafts] });
   * console.log(client.ext(drafts).requested);
   * ```
   */
  readonly ext: ExtOfClient<E>;
  /** Type-only brand; absent at runtime. */
  declare readonly "~extensions"?: (extension: E) => void;
  readonly #parts: ClientParts;

  /** Use `connect()`. This constructor is for clients assembled by hand. */
  constructor(parts: ClientParts) {
    this.card = parts.card;
    this.service = parts.service;
    this.ids = parts.ids;
    this.ext = parts.ext as ExtOfClient<E>;
    this.#parts = parts;
  }

  /** The interface of the card that is in use. Before the first answer, the interface that the client tries first. */
  get chosen(): AgentInterface {
    return this.#parts.chosen();
  }

  /**
   * Sends a message (A2A 1.0 §3.1.1). Waits until the task is terminal or interrupted, unless
   * `configuration.returnImmediately` is set. Runtimes limit this wait; Node's `fetch` allows 5 minutes. For longer tasks, use `returnImmediately`
   * with `waitFor()`, or a stream.
   *
   * @example
   * ```ts
   * const { task, message } = await client.sendMessage("Will it rain?");
   * console.log(task?.status.state ?? message?.parts);
   * ```
   */
  sendMessage(input: SendInput, options?: CallOptions): Promise<ReceivedAnswer<E>> {
    return this.#call("SendMessage", toSendRequest(input, this.ids), options);
  }

  /**
   * Sends a message and follows its task (A2A 1.0 §3.1.2).
   *
   * @param observe - Called with each event just before the reader gets it.
   * @throws A2AError `UnsupportedOperation` at the first read, if the card does not declare streaming.
   *
   * @example
   * ```ts
   * for await (const event of client.sendStreamingMessage("Will it rain?")) {
   *   if (event.statusUpdate) console.log(event.statusUpdate.status.state);
   * }
   * for await (const { text } of client.sendStreamingMessage("And tomorrow?").text()) console.log(text);
   * ```
   */
  sendStreamingMessage(
    input: SendInput,
    options?: CallOptions,
    observe?: (event: StreamResponse) => void,
  ): EventStream<E> {
    return this.#stream("SendStreamingMessage", toSendRequest(input, this.ids), options, observe);
  }

  /**
   * Reads a task (A2A 1.0 §3.1.3).
   *
   * @throws A2AError `TaskNotFound`.
   */
  getTask(task: string | GetTaskRequest | GetTaskRequestDraft, options?: CallOptions): Promise<ReceivedTask<E>> {
    return this.#call("GetTask", byId(task), options);
  }

  /** Reads one page of the caller's tasks (A2A 1.0 §3.1.4). `tasks()` reads all pages. */
  listTasks(request: ListTasksRequest = {}, options?: CallOptions): Promise<ReceivedList<E>> {
    return this.#call("ListTasks", request, options);
  }

  /** Yields all of the caller's tasks. Reads pages on demand. */
  async *tasks(request: ListTasksRequest = {}, options?: CallOptions): AsyncGenerator<ReceivedTask<E>, void, void> {
    for (let next = request; ;) {
      const { tasks, nextPageToken: pageToken } = await this.listTasks(next, options);
      yield* tasks as readonly ReceivedTask<E>[];
      if (pageToken === "") return;
      if (pageToken === next.pageToken) throw new A2AError("InvalidResponse", "nextPageToken is the same twice");
      next = { ...request, pageToken };
    }
  }

  /**
   * Cancels a task (A2A 1.0 §3.1.5).
   *
   * @throws A2AError `TaskNotFound`; `TaskNotCancelable` if the task is terminal.
   */
  cancelTask(task: string | CancelTaskRequest, options?: CallOptions): Promise<ReceivedTask<E>> {
    return this.#call("CancelTask", byId(task), options);
  }

  /**
   * Follows a task (A2A 1.0 §3.1.6). The first event is the task, and later events are its changes. For a finished task, only the task is sent.
   */
  subscribeToTask(task: string | SubscribeToTaskRequest, options: SubscribeOptions = {}): EventStream<E> {
    return this.#stream("SubscribeToTask", byId(task), options);
  }

  /** Adds a webhook to a task (A2A 1.0 §3.1.7). */
  createTaskPushNotificationConfig(
    request: TaskPushNotificationConfig,
    options?: CallOptions,
  ): Promise<TaskPushNotificationConfig> {
    return this.#call("CreateTaskPushNotificationConfig", request, options);
  }

  /** Reads a webhook of a task (A2A 1.0 §3.1.8). */
  getTaskPushNotificationConfig(
    request: GetTaskPushNotificationConfigRequest,
    options?: CallOptions,
  ): Promise<TaskPushNotificationConfig> {
    return this.#call("GetTaskPushNotificationConfig", request, options);
  }

  /** Reads one page of the webhooks of a task (A2A 1.0 §3.1.9). */
  listTaskPushNotificationConfigs(
    request: ListTaskPushNotificationConfigsRequest,
    options?: CallOptions,
  ): Promise<ListTaskPushNotificationConfigsResponse> {
    return this.#call("ListTaskPushNotificationConfigs", request, options);
  }

  /** Deletes a webhook of a task (A2A 1.0 §3.1.10). */
  async deleteTaskPushNotificationConfig(
    request: DeleteTaskPushNotificationConfigRequest,
    options?: CallOptions,
  ): Promise<void> {
    await this.#call("DeleteTaskPushNotificationConfig", request, options);
  }

  /**
   * Reads the extended card, which is for authenticated callers. The extended card replaces `card` (A2A 1.0 §3.1.11).
   *
   * @throws A2AError `UnsupportedOperation` if the card does not declare an extended card (A2A 1.0 §3.3.4), `ExtendedAgentCardNotConfigured`.
   */
  async getExtendedAgentCard(options?: CallOptions): Promise<AgentCard> {
    return ((this as { card: AgentCard }).card = await this.#call("GetExtendedAgentCard", {}, options));
  }

  /**
   * Waits until a task is terminal or interrupted, or until `options.until` returns true, and returns the task. Follows
   * the stream of the task if the agent streams, and polls otherwise. With `options.webhook`, waits for webhooks instead, and polls slowly
   * until the first webhook arrives.
   *
   * @throws A2AError `UnsupportedOperation` when the task ends before `until` returns true.
   *
   * @example
   * ```ts
   * const { task } = await client.sendMessage({ message: "Go", configuration: { returnImmediately: true } });
   * if (task) console.log((await client.waitFor(task)).status.state);
   * ```
   */
  async waitFor(task: string | Pick<Task, "id">, options: WaitOptions = {}): Promise<ReceivedTask<E>> {
    const { id } = byId(task);
    const until = options.until ?? (({ status }: Task) => stateKinds[status.state] !== "active");
    const { signal, release } = this.#bounded(options);
    try {
      const wait = options.webhook?.waitFor ?? waitForTask;
      const call = { ...options, timeout: false, signal } as const;
      return (await wait(this, id, until, call, this.#parts)) as ReceivedTask<E>;
    } finally {
      release();
    }
  }

  /**
   * Watches a task for a user interface. Provides a snapshot, and a subscription to changes. If the agent does not stream, the client polls.
   * If you pass a `Task`, it becomes the first snapshot.
   *
   * Clients of `connectJsonRpc` throw here.
   *
   * @example
   * ```ts
   * const watched = client.watch("task-1");
   * const unsubscribe = watched.subscribe(() => console.log(watched.getSnapshot().task?.status.state));
   * ```
   */
  watch(task: string | Task, options: CallOptions = {}): WatchedTask {
    return (this.#parts.watch ?? leftOut)(this, task, options, this.#parts);
  }

  /**
   * The files of an artifact or a task, even while the task runs. Clients of `connectJsonRpc` throw: use the function `download()` instead.
   *
   * @example
   * ```ts
   * for await (const file of client.download({ taskId: "task-1" })) {
   *   for await (const bytes of file.stream()) console.log(file.name, bytes.length);
   * }
   * ```
   */
  download(what: Downloadable, options?: DownloadOptions): AsyncGenerator<FileContent, void, void> {
    return (this.#parts.download ?? leftOut)(this, what, options);
  }

  /**
   * A fetch function for files that the agent sends as URLs. Reads files at the agent's own origins without credentials. These origins are the
   * origin of the URL passed to `connect()`, and `credentialOrigins`. `other` reads all other files. `download()` uses this function.
   */
  fileFetch(other?: FileFetch): FileFetch | undefined {
    const { fileFetch } = this.#parts;
    return fileFetch ? fileFetch(other) : other;
  }

  /**
   * Starts or continues a conversation, which keeps context and task across messages.
   *
   * @example
   * ```ts
   * const conversation = client.conversation();
   * await conversation.send("Will it rain in Basel?");
   * await conversation.send("And tomorrow?");
   * ```
   */
  conversation(init?: ConversationInit): Conversation<E> {
    return new Conversation<E>(this, init);
  }

  async #call<Name extends UnaryName>(
    operation: Name,
    request: UnaryOperations[Name]["request"],
    options: CallOptions = {},
  ): Promise<ResponseTo<E, Name>> {
    const { context, release } = this.#begin(operation, options);
    try {
      return (await this.service.call(operation, request, context)).payload.value as ResponseTo<E, Name>;
    } finally {
      release();
    }
  }

  #stream<Name extends StreamName>(
    operation: Name,
    request: StreamOperations[Name]["request"],
    options: SubscribeOptions = {},
    observe?: (event: StreamResponse) => void,
  ): EventStream<E> {
    const open = async (): Promise<StreamReply> => {
      const { context, release } = this.#begin(operation, options);
      try {
        const reply = await this.service.stream(operation, request, context);
        return { ...reply, batches: finishing(reply.batches, release) };
      } catch (thrown) {
        release();
        throw thrown;
      }
    };
    const { readText } = this.#parts;
    return new EventStream(open, observe, readText, "message" in request && !!request.message.taskId);
  }

  /** The context of a call. Call `release` when the call ends. */
  #begin(operation: OperationName, options: SubscribeOptions): { readonly context: CallContext; release(): void } {
    checkOptions("a call", options, callNames);
    checkDeclared(this.card, operation);
    const { extensions = [], trace, after } = options;
    const { signal, release } = this.#bounded(options);
    const context = {
      principal: anonymous,
      version: this.chosen.protocolVersion,
      extensions: [...new Set([...this.#parts.extensions, ...extensions])],
      outgoing: options,
      signal,
      trace,
      after,
    };
    return { context, release };
  }

  #bounded({ signal, timeout = this.#parts.timeout }: CallOptions): Bounded {
    return timeout === false ? { signal, release() {} } : bounded(this.#parts.clock, signal, timeout, () => "The call");
  }
}
