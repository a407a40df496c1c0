import { BoundedMap } from "../base/bounded-map.ts";
import type { Message } from "../model/index.ts";
import { fitting, type ContextKey, type SaidMessage } from "../store/index.ts";
import { sizeOf } from "./bytes.ts";

/** Most conversations, most messages of each, and most bytes of all of them. */
const mostContexts = 1_000;
const mostMessages = 100;
const mostBytes = 32 << 20;

/** A message of a conversation that is kept in memory. */
interface RememberedMessage extends SaidMessage {
  /** About: counting them exactly for each reply costs more than the rest of keeping it. */
  readonly bytes: number;
}

interface RememberedConversation {
  readonly messages: readonly RememberedMessage[];
  readonly bytes: number;
}

/** Direct replies, and what they answer, where they are kept in memory and not in the store. */
export class RememberedReplies {
  readonly #conversations = new BoundedMap<RememberedConversation>({
    bytes: mostBytes,
    entries: mostContexts,
    bytesOf: (_name, { bytes }) => bytes,
  });

  /** Of one conversation, the oldest first. */
  messagesOf(key: ContextKey): readonly SaidMessage[] {
    return this.#conversations.get(nameOf(key))?.messages ?? [];
  }

  /** `begins`: whether the conversation begins with these messages. */
  add(key: ContextKey, begins: boolean, time: number, messages: readonly Message[]): void {
    const name = nameOf(key);
    const known = begins ? undefined : this.#conversations.get(name);
    const added = messages.map((message) => ({ time, message, bytes: sizeOf(message) }));
    const kept = newestOf([...(known?.messages ?? []), ...added], mostMessages, mostBytes / 2);
    this.#conversations.set(name, { messages: kept, bytes: kept.reduce((sum, { bytes }) => sum + bytes, 0) });
  }
}

/** The last ones that are within both bounds. */
export function newestOf<Item extends { readonly bytes: number }>(
  items: readonly Item[],
  limit: number,
  bytes: number,
): readonly Item[] {
  if (limit <= 0) return [];
  return fitting(items.slice(-limit).reverse(), bytes, (item) => item.bytes).reverse();
}

function nameOf({ agent, owner, contextId }: ContextKey): string {
  // No id holds NUL.
  return `${agent}\0${owner}\0${contextId}`;
}
