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

/** Options of one call. The client's own options apply where one is absent. */
export interface CallOptions extends Outgoing {
  /** Ends the call when it is aborted. The call then throws `Aborted`. */
  readonly signal?: AbortSignal | undefined;
  /** Longest call, with its retries and the whole of a stream, in milliseconds. `false`: no limit. */
  readonly timeout?: number | false;
  /** URIs of extensions to request, in addition to the client's (A2A 1.0 §4.6). */
  readonly extensions?: readonly string[];
  /** W3C `traceparent` to send. */
  readonly trace?: string;
}

/** Options of a subscription. */
export interface SubscribeOptions extends CallOptions {
  /** Continue after the event of this number (`EventStream.seq`). It has an effect only if the agent's card promises it. */
  readonly after?: number;
}

/** A message without its id and its role: the client adds them. */
export interface MessageInit extends Partial<Message> {
  /** The content, at least one part. */
  readonly parts: readonly Part[];
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

/** The request for a task that is given as its id, or as the request. */
export function byId<T extends { readonly id: string }>(task: string | T): T | { readonly id: string } {
  return typeof task === "string" ? { id: task } : task;
}
