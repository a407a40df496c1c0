import { BoundedMap, memoryOf } from "../base/bounded-map.ts";
import type { Message } from "../model/index.ts";
import { Payload } from "../protocol/index.ts";
import { fitting, type ContextKey, type SaidMessage } from "../store/index.ts";
import { sizeOf } from "./bytes.ts";

/** A direct reply of an agent. Its text is made once: for the answer, and for what is kept of it. */
export class DirectReply extends Payload<{ readonly message: Message }> {
  /** JSON of the message. */
  readonly text: string;

  constructor(message: Message) {
    super({ message });
    this.text = JSON.stringify(message);
  }

  override get json(): string {
    return `{"message":${this.text}}`;
  }
}

/** Most conversations, most exchanges of each, and most bytes of all of them. */
const mostContexts = 1_000;
const mostExchanges = 50;
const mostBytes = 32 << 20;

/** A message and the direct reply to it. */
export interface Exchange {
  /** Wall time of the reply, in milliseconds. */
  readonly time: number;
  readonly asked: Message;
  /** JSON of the reply: one object for the garbage collector, where the message is ten. Row `message` of the benchmarks. */
  readonly answer: string;
}

/** Direct replies, and what they answer, where they are kept in memory and not in the store. */
export class RememberedReplies {
  readonly #conversations = new BoundedMap<readonly Exchange[]>({
    bytes: mostBytes,
    entries: mostContexts,
    bytesOf: (_name, exchanges) => exchanges.reduce((sum, exchange) => sum + bytesOf(exchange), 0),
  });

  /** Of one conversation, the oldest first. */
  messagesOf(key: ContextKey): readonly SaidMessage[] {
    return (this.#conversations.get(nameOf(key)) ?? []).flatMap(({ time, asked, answer }) => [
      { time, message: asked },
      { time, message: JSON.parse(answer) as Message },
    ]);
  }

  /** `begins`: whether the conversation begins with this exchange. */
  add(key: ContextKey, begins: boolean, exchange: Exchange): void {
    const name = nameOf(key);
    const known = begins ? undefined : this.#conversations.get(name);
    const all =
      known === undefined ? [exchange] : newestOf([...known, exchange], mostExchanges, mostBytes / 2, bytesOf);
    this.#conversations.set(name, all);
  }
}

/** About: counting them exactly for each reply costs more than the rest of keeping it. */
function bytesOf({ asked, answer }: Exchange): number {
  return sizeOf(asked) + memoryOf(answer);
}

/** The last ones that are within both bounds. */
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
  // No id holds NUL.
  return `${agent}\0${owner}\0${contextId}`;
}
