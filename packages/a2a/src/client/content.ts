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
  if (typeof input === "string") return toMessage([{ text: input }], ids);
  if (isParts(input)) return { messageId: ids.next(), role: "ROLE_USER", parts: input };
  if ("parts" in input) return { ...input, messageId: input.messageId ?? ids.next(), role: input.role ?? "ROLE_USER" };
  return toMessage([input], ids);
}

/** A send request out of whatever was given. */
export function toSendRequest(input: SendInput, ids: Ids): SendMessageRequest {
  if (typeof input === "string" || isParts(input) || !("message" in input)) return { message: toMessage(input, ids) };
  return { ...input, message: toMessage(input.message, ids) };
}
