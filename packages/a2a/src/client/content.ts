import type { Ids } from "../base/index.ts";
import type {
  Content,
  Message,
  Part,
  SendMessageConfiguration,
  SendMessageConfigurationDraft,
  SendMessageRequest,
} from "../model/index.ts";

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

function isParts(input: SendInput): input is readonly Part[] {
  return Array.isArray(input);
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

/** The send request for an input. */
export function toSendRequest(input: SendInput, ids: Ids): SendMessageRequest {
  if (typeof input === "string" || isParts(input) || !("message" in input)) return { message: toMessage(input, ids) };
  return { ...input, message: toMessage(input.message, ids) };
}
