import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import type { Message } from "@parley/a2a/internal/model/index";
import { Payload } from "@parley/a2a/internal/protocol/index";
import { fitting, type ContextKey, type Owner, type SaidMessage } from "../../store/index.ts";
import { sizeOf } from "../shared/bytes.ts";
import { jsonOf } from "../shared/mistakes.ts";

/** A direct reply of an agent. The answer and what is kept of the reply share its text. */
export class DirectReply extends Payload<{ readonly message: Message }> {
  /** JSON of the message. */
  readonly text: string;

  /** Throws `InvalidAgentResponse` where the message is no JSON. */
  constructor(message: Message) {
    super({ message });
    this.text = jsonOf(message, "turn.reply()", null);
  }

  override get json(): string {
    return `{"message":${this.text}}`;
  }
}

/** Most conversations, most exchanges of each, and most bytes of all of them. */
const maxContexts = 1_000;
const maxExchanges = 50;
const maxBytes = 32 << 20;

/** A message and the direct reply to it. */
export interface Exchange {
  /** Wall time of the reply, in milliseconds. */
  readonly time: number;
  readonly asked: Message;
  /** JSON of the reply: one object for the garbage collector, where the message is ten. Row `message` of the benchmarks. */
  readonly answer: string;
}

/** Keeps direct replies in memory with the messages that they answer, where the store does not keep them. */
export class RememberedReplies {
  readonly #conversations = new BoundedMap<readonly Exchange[]>({
    bytes: maxBytes,
    entries: maxContexts,
    bytesOf: (_name, exchanges) => exchanges.reduce((sum, exchange) => sum + bytesOf(exchange), 0),
  });

  /** The messages of one conversation, the oldest first. */
  messagesOf(key: ContextKey): readonly SaidMessage[] {
    return (this.#conversations.get(nameOf(key)) ?? []).flatMap(({ time, asked, answer }) => [
      { time, message: asked },
      { time, message: JSON.parse(answer) as Message },
    ]);
  }

  /** Forgets the conversations of an owner. */
  forget({ agent, owner }: Owner): void {
    this.#conversations.drop(nameOf({ agent, owner, contextId: "" }));
  }

  /** `begins`: whether the conversation begins with this exchange. */
  add(key: ContextKey, begins: boolean, exchange: Exchange): void {
    const name = nameOf(key);
    const known = begins ? undefined : this.#conversations.get(name);
    const all = known === undefined ? [exchange] : newestOf([...known, exchange], maxExchanges, maxBytes / 2, bytesOf);
    this.#conversations.set(name, all);
  }
}

/** An estimate, because an exact count costs more than everything else that is done to keep a reply. */
function bytesOf({ asked, answer }: Exchange): number {
  return sizeOf(asked) + memoryOf(answer);
}

/** The last items that are within both bounds. */
export function newestOf<Item>(
  items: readonly Item[],
  limit: number,
  bytes: number,
  bytesOf: (item: Item) => number,
): readonly Item[] {
  if (limit <= 0) return [];
  return fitting(items.slice(-limit).reverse(), bytes, bytesOf).reverse();
}

function nameOf({ agent, owner, contextId }: ContextKey): string {
  // No id contains NUL.
  return `${agent}\0${owner}\0${contextId}`;
}
