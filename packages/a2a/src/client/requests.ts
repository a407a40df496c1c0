import type { Ids } from "../base/index.ts";
import type {
  Content,
  DeleteTaskPushNotificationConfigRequest,
  Message,
  Part,
  SendMessageConfiguration,
  SendMessageConfigurationDraft,
  SendMessageRequest,
  StreamResponse,
  Task,
  TaskPushNotificationConfig,
} from "../model/index.ts";
import type { Outgoing } from "../protocol/index.ts";
import type { ConversationClient } from "./conversation.ts";

/** Options of one call. The client's own options apply where one is absent. */
export interface CallOptions extends Outgoing {
  /** Ends the call when it is aborted. The call then throws `Aborted`. */
  readonly signal?: AbortSignal | undefined;
  /** Longest call, with its retries and the whole of a stream, in milliseconds. `false`: no limit. */
  readonly timeout?: number | false;
  /** URIs of extensions to ask for, beside those of the client (A2A 1.0 §4.6). */
  readonly extensions?: readonly string[];
  /** W3C `traceparent` to send. */
  readonly trace?: string;
}

/** Options of a subscription. */
export interface SubscribeOptions extends CallOptions {
  /** Continue after the event of this number (`EventStream.seq`). It has an effect only where the agent's card promises it. */
  readonly after?: number;
}

/** Options of `Client.waitFor()`. */
export interface WaitOptions extends CallOptions {
  /** Whether to stop waiting. Called with the task after each change of its status. Default: it is terminal or interrupted. */
  readonly until?: (task: Task) => boolean;
  /**
   * Waits by webhook, in place of a stream: no connection is open meanwhile, so it suits tasks that take long. The agent must have push
   * notifications. While no webhook comes, the task is polled after 10 s, and then less and less often, up to once a minute.
   */
  readonly webhook?: WebhookInbox;
}

/** A message without its id and its role: the client adds them. */
export interface MessageInit extends Partial<Message> {
  /** The content, at least one part. */
  readonly parts: readonly Part[];
}

/** Receives webhooks for a client: a `webhookReceiver()` of `@parley/a2a/webhooks`. It is passed in, so that clients without it stay small. */
export interface WebhookInbox {
  /**
   * A client for a conversation: it adds a webhook to each message whose task has none yet. `listener` gets their events, and `note`
   * gets those of the last message's task.
   */
  onUpdate(
    client: ConversationClient,
    listener: UpdateListener,
    note: (event: StreamResponse) => void,
  ): ConversationClient & Updates;
  /** Waits for a task with a webhook of its own. */
  waitFor(
    client: PushClient,
    taskId: string,
    until: (task: Task) => boolean,
    options: { readonly signal?: AbortSignal | undefined },
    /** `received` is called with each task that came in a delivery, and returns what is used in its place. */
    reading: { readonly received?: ((task: Task, extensions: readonly string[] | undefined) => Task) | undefined },
  ): Promise<Task>;
}

/** Called with the events of tasks, one at a time for each task. Where it throws, the agent sends the event again. */
export type UpdateListener = (event: StreamResponse) => void | Promise<void>;

/** Webhooks of a conversation. */
export interface Updates {
  /** Ends them: later messages get none, and later events are refused. */
  close(this: void): void;
}

/** What `WebhookInbox.waitFor()` needs of a client. A `Client` has it. */
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

/** What a send takes: a text, a part, parts, a message, or a request around any of them (A2A 1.0 §3.2.1). */
export type SendInput = Content | MessageInit | SendInit;

/** A send request whose message may be a text, a part, parts or a message. The client adds the `tenant`. */
export interface SendInit extends Omit<SendMessageRequest, "message" | "tenant" | "configuration"> {
  /** The message. */
  readonly message: Content | MessageInit;
  /** How it is to be answered. */
  readonly configuration?: SendMessageConfiguration | SendMessageConfigurationDraft;
}

/** The send request for an input. */
export function toSendRequest(input: SendInput, ids: Ids): SendMessageRequest {
  if (typeof input === "string" || isParts(input) || !("message" in input)) return { message: toMessage(input, ids) };
  return { ...input, message: toMessage(input.message, ids) };
}

function toMessage(input: Content | MessageInit, ids: Ids): Message {
  const init: MessageInit =
    typeof input === "string"
      ? { parts: [{ text: input }] }
      : isParts(input)
        ? { parts: input }
        : "parts" in input
          ? input
          : { parts: [input] };
  return { ...init, messageId: init.messageId ?? ids.next(), role: init.role ?? "ROLE_USER" };
}

function isParts(input: SendInput): input is readonly Part[] {
  return Array.isArray(input);
}

/** The request for a task that is given as its id, or as the request. */
export function byId<T extends { readonly id: string }>(task: string | T): T | { readonly id: string } {
  return typeof task === "string" ? { id: task } : task;
}
