import type { JsonValue, Message } from "../model/index.ts";
import type { TurnContext } from "../protocol/index.ts";
import type { ContextEffect, ContextKey, ConversationMessage, OnceEffect } from "../store/index.ts";
import type { Committer } from "./committer.ts";
import { BoundedMap } from "./bounded-map.ts";
import type { EngineSettings } from "./options.ts";

/** How much of a conversation a turn gets to see. */
const messageLimit = 1_000;
/** Direct replies kept in memory: so many conversations, and so many messages each. */
const rememberedContexts = 1_000;
const rememberedMessages = 100;

/** A context as one turn sees it, and what the turn has changed. */
export interface ContextView extends TurnContext {
  /** The changed state as JSON text, once; `undefined` when nothing changed since it was last asked for. */
  takeChange(): string | null | undefined;
}

/** What belongs to conversations and to none of their tasks (D11). */
export class Conversations {
  readonly #settings: EngineSettings;
  readonly #committer: Committer;
  readonly #remembered = new BoundedMap<string, readonly ConversationMessage[]>(rememberedContexts);

  constructor(settings: EngineSettings, committer: Committer) {
    this.#settings = settings;
    this.#committer = committer;
  }

  /** The context of a turn. `fresh`: it begins with this message, so there is nothing to read. */
  async open(key: ContextKey, current: Message, fresh: boolean): Promise<ContextView> {
    const stored = fresh ? undefined : (await this.#settings.store.conversation(key, 0)).state;
    let state = stored === undefined ? undefined : (JSON.parse(stored) as JsonValue);
    let change: string | null | undefined;
    return {
      id: key.contextId,
      messages: () => this.#messages(key, current),
      state: <T extends JsonValue>() => state as T | undefined,
      setState(value) {
        // Through text and back: the agent may go on changing its object.
        change = value === undefined ? null : JSON.stringify(value);
        state = change === null ? undefined : (JSON.parse(change) as JsonValue);
      },
      takeChange() {
        const taken = change;
        change = undefined;
        return taken;
      },
    };
  }

  /** Keeps a message and its direct answer, a state that the turn left, and the idempotency key of a durable answer. */
  async keepReply(
    key: ContextKey,
    asked: Message,
    answer: Message,
    change: string | null | undefined,
    once: OnceEffect | undefined,
  ): Promise<void> {
    const time = this.#settings.clock.now();
    const effects: ContextEffect[] = [];
    if (change !== undefined) effects.push({ effect: "contextState", value: change });
    if (this.#settings.conversations === "store") {
      for (const message of [asked, answer])
        effects.push({ effect: "contextMessage", json: JSON.stringify(message), time });
      if (once !== undefined) effects.push({ ...once, answer: JSON.stringify(answer) });
    } else {
      const name = nameOf(key);
      const known = this.#remembered.get(name) ?? [];
      const added = [asked, answer].map((message) => ({ time, message }));
      this.#remembered.set(name, [...known, ...added].slice(-rememberedMessages));
    }
    if (effects.length > 0) await this.#committer.append({ context: key, effects });
  }

  async #messages(key: ContextKey, current: Message): Promise<readonly Message[]> {
    const { messages } = await this.#settings.store.conversation(key, messageLimit);
    const remembered = this.#remembered.get(nameOf(key)) ?? [];
    const all = [...messages, ...remembered]
      .sort((a, b) => a.time - b.time)
      .map(({ message }) => message)
      .filter((message) => message.messageId !== current.messageId);
    return [...all, current];
  }
}

function nameOf({ agent, owner, contextId }: ContextKey): string {
  return JSON.stringify([agent, owner, contextId]);
}
