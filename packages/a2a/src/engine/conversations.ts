import type { JsonValue, Message } from "../model/index.ts";
import type { TurnContext } from "../protocol/index.ts";
import type { AppendOutcome, ContextEffect, ContextKey, ConversationMessage, OnceEffect } from "../store/index.ts";
import type { Committer } from "./committer.ts";
import { BoundedMap } from "./bounded-map.ts";
import type { EngineSettings } from "./options.ts";

/** How much of a conversation a turn gets to see. */
const messageLimit = 1_000;
/** Direct replies kept in memory: so many conversations, and so many messages each. */
const rememberedContexts = 1_000;
const rememberedMessages = 100;

/** A context as one turn sees it, and what the turn has changed. */
export class ContextView implements TurnContext {
  readonly key: ContextKey;
  /** Whether the context begins with this turn's message. */
  readonly begins: boolean;
  readonly #messages: () => Promise<readonly Message[]>;
  #state: JsonValue | undefined;
  #change: string | null | undefined;

  constructor(
    key: ContextKey,
    begins: boolean,
    messages: () => Promise<readonly Message[]>,
    stored: string | undefined,
  ) {
    this.key = key;
    this.begins = begins;
    this.#messages = messages;
    this.#state = stored === undefined ? undefined : (JSON.parse(stored) as JsonValue);
  }

  get id(): string {
    return this.key.contextId;
  }

  messages(): Promise<readonly Message[]> {
    return this.#messages();
  }

  state<T extends JsonValue>(): T | undefined {
    return this.#state as T | undefined;
  }

  setState(value: JsonValue | undefined): void {
    // Through text and back: the agent may go on changing its object.
    this.#change = value === undefined ? null : JSON.stringify(value);
    this.#state = this.#change === null ? undefined : (JSON.parse(this.#change) as JsonValue);
  }

  /** The changed state as JSON text, once; `undefined` when nothing changed since it was last asked for. */
  takeChange(): string | null | undefined {
    const taken = this.#change;
    this.#change = undefined;
    return taken;
  }
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

  /** The context of a turn. */
  async open(key: ContextKey, current: Message): Promise<ContextView> {
    const { state } = await this.#settings.store.conversation(key, { limit: 0 });
    return new ContextView(key, false, () => this.#messages(key, current), state);
  }

  /** The context that begins with this message: there is nothing to read. */
  begin(key: ContextKey, current: Message): ContextView {
    return new ContextView(key, true, () => this.#messages(key, current), undefined);
  }

  /**
   * Keeps a message and its direct answer, a state that the turn left, and the idempotency key of a durable answer.
   * `undefined` where memory is the place for all of it.
   */
  keepReply(
    view: ContextView,
    asked: Message,
    answer: Message,
    once: OnceEffect | undefined,
  ): Promise<AppendOutcome> | undefined {
    const { key, begins } = view;
    const change = view.takeChange();
    const time = this.#settings.clock.now();
    if (this.#settings.conversations === "memory") {
      const name = nameOf(key);
      const known = begins ? undefined : this.#remembered.get(name);
      const added = [
        { time, message: asked },
        { time, message: answer },
      ];
      this.#remembered.set(name, known === undefined ? added : [...known, ...added].slice(-rememberedMessages));
      if (change === undefined) return undefined;
      return this.#committer.append({ context: key, effects: [{ effect: "contextState", value: change }] });
    }
    const effects: ContextEffect[] = [];
    if (change !== undefined) effects.push({ effect: "contextState", value: change });
    for (const message of [asked, answer])
      effects.push({ effect: "contextMessage", json: JSON.stringify(message), time });
    if (once !== undefined) effects.push({ ...once, answer: JSON.stringify(answer) });
    return this.#committer.append({ context: key, effects });
  }

  async #messages(key: ContextKey, current: Message): Promise<readonly Message[]> {
    const { messages } = await this.#settings.store.conversation(key, { limit: messageLimit });
    const remembered = this.#remembered.get(nameOf(key)) ?? [];
    const all = [...messages, ...remembered]
      .sort((a, b) => a.time - b.time)
      .map(({ message }) => message)
      .filter((message) => message.messageId !== current.messageId);
    return [...all, current];
  }
}

function nameOf({ agent, owner, contextId }: ContextKey): string {
  // No id holds NUL.
  return `${agent}\0${owner}\0${contextId}`;
}
