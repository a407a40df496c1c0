import type { Ids } from "../base/index.ts";
import {
  isTerminal,
  type DeleteTaskPushNotificationConfigRequest,
  type Message,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
  type TaskPushNotificationConfig,
} from "../model/index.ts";
import type { AnyExtension } from "../protocol/index.ts";
import type { ReceivedAnswer } from "./received.ts";
import { type CallOptions, type SendInput, toSendRequest } from "./requests.ts";
import type { EventStream } from "./stream.ts";

/** The members of a client that a conversation uses. A `Client` has them. */
export interface ConversationClient<E extends AnyExtension = never> {
  /** Makes the ids of messages. */
  readonly ids: Ids;
  /** Reads a task, in case a webhook delivery was lost. */
  getTask(id: string): Promise<Task>;
  /** Sends a message and waits for its answer. */
  sendMessage(input: SendInput, options?: CallOptions): Promise<ReceivedAnswer<E>>;
  /** Sends a message and follows its task. `observe` is called with each event just before the reader gets it. */
  sendStreamingMessage(
    input: SendInput,
    options?: CallOptions,
    observe?: (event: StreamResponse) => void,
  ): EventStream<E>;
}

/** The context and task with which a conversation continues. */
export interface ConversationInit {
  /** The context of an earlier conversation. Default: the agent creates a new context. */
  readonly contextId?: string;
  /** An unfinished task of that context. */
  readonly taskId?: string;
}

/**
 * Tracks the ids that join messages into a conversation (A2A 1.0 §3.4.3). Each message has the context that the agent chose. While a task is active
 * or interrupted, messages belong to that task. After it ends, the next message starts a new task and lists the old task in `referenceTaskIds`.
 * Ids that you set in a message take precedence.
 *
 * Wait for the first answer or event before you send again, because until then the client does not know the context.
 * `client.conversation()` returns a `Conversation`.
 */
export class Conversation<E extends AnyExtension = never> {
  #client: ConversationClient<E>;
  #contextId: string | undefined;
  #taskId: string | undefined;
  #finishedTaskId: string | undefined;

  /** Use `client.conversation()`. */
  constructor(client: ConversationClient<E>, init: ConversationInit = {}) {
    this.#client = client;
    this.#contextId = init.contextId;
    this.#taskId = init.taskId;
  }

  /** The context; `undefined` before the first answer. */
  get contextId(): string | undefined {
    return this.#contextId;
  }

  /** The task that the next message belongs to; `undefined` if the message will start a new task. */
  get taskId(): string | undefined {
    return this.#taskId;
  }

  /** Sends a message and waits until its task is terminal or interrupted, or for a direct reply. */
  async send(input: SendInput, options?: CallOptions): Promise<ReceivedAnswer<E>> {
    const response = await this.#client.sendMessage(this.#place(input), options);
    this.#note(response);
    return response;
  }

  /** Sends a message and follows its task. */
  stream(input: SendInput, options?: CallOptions): EventStream<E> {
    return this.#client.sendStreamingMessage(this.#place(input), options, (event) => this.#note(event));
  }

  /**
   * Reports the conversation's tasks by webhook instead of a stream. Each later message registers a webhook for the task that it starts or continues,
   * unless the message already has a webhook. Send with `returnImmediately`; `listener` receives the events.
   *
   * @param webhook - A `webhookReceiver()` of `@parley/a2a/webhooks`.
   */
  onUpdate(webhook: WebhookInbox, listener: UpdateListener): Updates {
    return (this.#client = webhook.onUpdate(this.#client, listener, (event) => this.#note(event)));
  }

  #place(input: SendInput): SendMessageRequest {
    const request = toSendRequest(input, this.#client.ids);
    const contextId = this.#contextId;
    const given = request.message;
    const taskId = given.taskId ?? ((given.contextId ?? contextId) === contextId ? this.#taskId : undefined);
    const finished = taskId === undefined && this.#finishedTaskId;
    const message: Message = {
      ...(contextId && { contextId }),
      ...(taskId && { taskId }),
      ...(finished && { referenceTaskIds: [finished] }),
      ...given,
    };
    return { ...request, message };
  }

  #note({ task, message, statusUpdate }: Partial<StreamResponse>): void {
    const update = task ?? statusUpdate;
    this.#contextId = (update ?? message)?.contextId ?? this.#contextId;
    if (update) {
      const taskId = task?.id ?? statusUpdate?.taskId;
      const over = isTerminal(update.status.state);
      this.#taskId = over ? undefined : taskId;
      if (over) this.#finishedTaskId = taskId;
    }
    // A direct reply ends the task of the conversation, unless it names that task.
    if (message && message.taskId !== this.#taskId) this.#taskId = undefined;
  }
}

/** Receives webhooks for a client, such as `webhookReceiver()` of `@parley/a2a/webhooks`. Passed by the caller, so that other clients stay small. */
export interface WebhookInbox {
  /**
   * Wraps the client of a conversation. Adds a webhook to each message whose task has no webhook yet. `listener` receives the events of
   * these tasks, and `note` receives the events of the last message's task.
   */
  onUpdate(
    client: ConversationClient,
    listener: UpdateListener,
    note: (event: StreamResponse) => void,
  ): ConversationClient & Updates;
  /** Waits for a task with a dedicated webhook. */
  waitFor(
    client: PushClient,
    taskId: string,
    until: (task: Task) => boolean,
    options: { readonly signal?: AbortSignal | undefined },
    /** `received` is called with each delivered task. Its result replaces that task. */
    reading: { readonly received?: ((task: Task, extensions: readonly string[] | undefined) => Task) | undefined },
  ): Promise<Task>;
}

/** Called with the events of tasks, one at a time for each task. If it throws, the agent sends the event again. */
export type UpdateListener = (event: StreamResponse) => void | Promise<void>;

/** Webhooks of a conversation. */
export interface Updates {
  /** Stops the updates. Later messages get no webhook, and later deliveries are rejected. */
  close(this: void): void;
}

/** The members of a client that `WebhookInbox.waitFor()` uses. A `Client` has them. */
export interface PushClient {
  /** Reads a task. */
  getTask(id: string, options?: CallOptions): Promise<Task>;
  /** Adds a webhook to a task. */
  createTaskPushNotificationConfig(
    request: TaskPushNotificationConfig,
    options?: CallOptions,
  ): Promise<TaskPushNotificationConfig>;
  /** Deletes a webhook of a task. */
  deleteTaskPushNotificationConfig(request: DeleteTaskPushNotificationConfigRequest): Promise<void>;
}
