import type { Ids } from "../base/index.ts";
import type {
  Content,
  Message,
  Part,
  SendMessageConfiguration,
  SendMessageConfigurationDraft,
  SendMessageRequest,
} from "../model/index.ts";
import type { Outgoing } from "../protocol/index.ts";

/** Options of one call. If an option is absent, the client's value applies. */
export interface CallOptions extends Outgoing {
  /** Aborts the call, which then throws `Aborted`. */
  readonly signal?: AbortSignal | undefined;
  /** Maximum duration of the call in milliseconds, including its retries and a whole stream. `false` means no limit. */
  readonly timeout?: number | false;
  /** URIs of extensions to request, in addition to the extensions of the client (A2A 1.0 §4.6). */
  readonly extensions?: readonly string[];
  /** W3C `traceparent` to send. */
  readonly trace?: string;
}

/** Options of a subscription. */
export interface SubscribeOptions extends CallOptions {
  /** Continue after the event with this number (`EventStream.seq`). Works only if the agent's card declares resumable streams. */
  readonly after?: number;
}

/** A message without id and role, which the client adds. */
export interface MessageInit extends Partial<Message> {
  /** The content, at least one part. */
  readonly parts: readonly Part[];
}

/** The input of a send: a text, a part, parts, a message, or a request with any of these as its message (A2A 1.0 §3.2.1). */
export type SendInput = Content | MessageInit | SendInit;

/** A send request whose message may be a text, a part, parts or a message. The client adds the `tenant`. */
export interface SendInit extends Omit<SendMessageRequest, "message" | "tenant" | "configuration"> {
  /** The message. */
  readonly message: Content | MessageInit;
  /** Options for the answer: accepted media types, history length, webhook, immediate return. */
  readonly configuration?: SendMessageConfiguration | SendMessageConfigurationDraft;
}

/** The send request for an input. */
export function toSendRequest(input: SendInput, ids: Ids): SendMessageRequest {
  return typeof input === "object" && "message" in input
    ? { ...input, message: toMessage(input.message, ids) }
    : { message: toMessage(input, ids) };
}

function toMessage(input: Content | MessageInit, ids: Ids): Message {
  const init: MessageInit =
    typeof input === "object" && "parts" in input
      ? input
      : { parts: [input].flat().map((part) => (typeof part === "string" ? { text: part } : part)) };
  return { ...init, messageId: init.messageId ?? ids.next(), role: init.role ?? "ROLE_USER" };
}

/** The request for a task, made from a task id or passed through unchanged. */
export function byId<T extends { readonly id: string }>(task: string | T): T | { readonly id: string } {
  return typeof task === "string" ? { id: task } : task;
}
