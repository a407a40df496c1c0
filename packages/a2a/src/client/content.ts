import type { Ids } from "../base/index.ts";
import type {
  Content,
  Message,
  Part,
  SendMessageConfiguration,
  SendMessageConfigurationDraft,
  SendMessageRequest,
} from "../model/index.ts";

/** A message as its writer thinks of it; the client adds what is missing: an id, and that it is the user's. */
export interface MessageInit extends Partial<Message> {
  readonly parts: readonly Part[];
}

/** What a send takes: text, a part, parts, a message, or a whole request around any of them (A2A 1.0 §3.2.1). */
export type SendInput = Content | MessageInit | SendInit;

export interface SendInit extends Omit<SendMessageRequest, "message" | "tenant" | "configuration"> {
  readonly message: Content | MessageInit;
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

/** A send request out of whatever was given. */
export function toSendRequest(input: SendInput, ids: Ids): SendMessageRequest {
  if (typeof input === "string" || isParts(input) || !("message" in input)) return { message: toMessage(input, ids) };
  return { ...input, message: toMessage(input.message, ids) };
}
