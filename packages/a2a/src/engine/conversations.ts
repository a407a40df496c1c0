import { BoundedMap } from "../base/bounded-map.ts";
import { utf8Length } from "../base/index.ts";
import { textOf, type JsonValue, type Message } from "../model/index.ts";
import type { HistoryEntry, HistoryOptions, TurnContext } from "../protocol/index.ts";
import {
  fitting,
  type AppendOutcome,
  type ContextEffect,
  type ContextKey,
  type OnceEffect,
  type SaidArtifact,
  type SaidMessage,
} from "../store/index.ts";
import type { Committer } from "./log/committer.ts";
import { exceeds, sizeOf } from "./bytes.ts";
import { agentMistake, jsonOf } from "./mistakes.ts";
import { replyWindow, type EngineSettings } from "./options.ts";

/** How much of a conversation a turn gets to see, where it does not say. */
const defaultLimit = 100;
const defaultBytes = 256 << 10;
/** Direct replies kept in memory: so many conversations, so many messages each, and so many bytes of all of them. */
const rememberedContexts = 1_000;
const rememberedMessages = 100;
const rememberedBytes = 32 << 20;
/** A message of a conversation that is kept in memory. */
interface RememberedMessage extends SaidMessage {
  /** About: counting them exactly for each reply costs more than the rest of keeping it. */
  readonly bytes: number;
}

interface RememberedConversation {
  readonly messages: readonly RememberedMessage[];
  readonly bytes: number;
}

/** The turn that asks for the conversation. */
export interface AskingTurn {
  readonly taskId: string;
  readonly turn: number;
  /** `seq` of its message. */
  readonly seq: number;
  readonly message: Message;
}

type ReadHistory = (options: HistoryOptions) => Promise<readonly HistoryEntry[]>;

/** A context as one turn sees it, and what the turn has changed. */
export class ContextView implements TurnContext {
  readonly key: ContextKey;
  /** Whether the context begins with this turn's message. */
  readonly begins: boolean;
  readonly #history: ReadHistory;
  readonly #stateBytes: number;
  #state: JsonValue | undefined;
  #change: string | null | undefined;

  constructor(key: ContextKey, begins: boolean, history: ReadHistory, stored: string | undefined, stateBytes: number) {
    this.key = key;
    this.#stateBytes = stateBytes;
    this.begins = begins;
    this.#history = history;
    this.#state = stored === undefined ? undefined : (JSON.parse(stored) as JsonValue);
  }

  get id(): string {
    return this.key.contextId;
  }

  history(options: HistoryOptions = {}): Promise<readonly HistoryEntry[]> {
    return this.#history(options);
  }

  state<T extends JsonValue>(): T | undefined {
    return this.#state as T | undefined;
  }

  setState(value: JsonValue | undefined): void {
    // Through text and back: the agent may go on changing its object.
    const json = value === undefined ? null : jsonOf(value, "context.setState()");
    if (json !== null && exceeds(json, this.#stateBytes)) {
      throw agentMistake(
        `context.setState(): the value takes ${utf8Length(json)} bytes, and limits.stateBytes is ${this.#stateBytes}`,
      );
    }
    this.#change = json;
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
  readonly #remembered = new BoundedMap<RememberedConversation>({
    bytes: rememberedBytes,
    entries: rememberedContexts,
    bytesOf: (_name, { bytes }) => bytes,
  });

  constructor(settings: EngineSettings, committer: Committer) {
    this.#settings = settings;
    this.#committer = committer;
  }

  /** The context of a turn. */
  async open(key: ContextKey, asking: AskingTurn): Promise<ContextView> {
    const { state } = await this.#settings.store.conversation(key, { limit: 0 });
    const { stateBytes } = this.#settings.limits;
    return new ContextView(key, false, (options) => this.#history(key, asking, options), state, stateBytes);
  }

  /** The context that begins with this message: there is nothing to read. */
  begin(key: ContextKey, { message }: AskingTurn): ContextView {
    const current = [entryOf({ time: this.#settings.clock.now(), message })];
    return new ContextView(key, true, () => Promise.resolve(current), undefined, this.#settings.limits.stateBytes);
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
      const added = [asked, answer].map((message) => ({ time, message, bytes: sizeOf(message) }));
      const messages = newestOf([...(known?.messages ?? []), ...added], rememberedMessages, rememberedBytes / 2);
      this.#remembered.set(name, { messages, bytes: messages.reduce((sum, { bytes }) => sum + bytes, 0) });
      if (change === undefined) return undefined;
      return this.#committer.append({ context: key, effects: [{ effect: "contextState", value: change }] });
    }
    const effects: ContextEffect[] = [];
    if (change !== undefined) effects.push({ effect: "contextState", value: change });
    for (const message of [asked, answer])
      effects.push({ effect: "contextMessage", json: JSON.stringify(message), time });
    if (once !== undefined)
      effects.push({ until: time + replyWindow(this.#settings), ...once, answer: JSON.stringify(answer) });
    return this.#committer.append({ context: key, effects });
  }

  async #history(
    key: ContextKey,
    { taskId, turn, seq, message }: AskingTurn,
    { limit = defaultLimit, bytes = defaultBytes }: HistoryOptions,
  ): Promise<readonly HistoryEntry[]> {
    const before = { taskId, turn, seq };
    const { entries } = await this.#settings.store.conversation(key, { limit: Math.max(0, limit - 1), bytes, before });
    const remembered = this.#remembered.get(nameOf(key))?.messages ?? [];
    // What is remembered stands between what is stored; the bounds are those of both together.
    const all =
      remembered.length === 0
        ? entries
        : newestOf(
            [
              ...remembered.map((each) => ({ ...each, bytes: utf8Length(JSON.stringify(each.message)) })),
              ...entries.map((entry) => Object.assign({ bytes: utf8Length(JSON.stringify(entry)) }, entry)),
            ].sort((a, b) => a.time - b.time),
            limit - 1,
            bytes,
          );
    return [...all, { time: this.#settings.clock.now(), message }].map(entryOf);
  }
}

/** The last ones that are within both bounds. */
function newestOf<Item extends { readonly bytes: number }>(
  items: readonly Item[],
  limit: number,
  bytes: number,
): readonly Item[] {
  if (limit <= 0) return [];
  return fitting(items.slice(-limit).reverse(), bytes, (item) => item.bytes).reverse();
}

function entryOf(said: SaidMessage | SaidArtifact): HistoryEntry {
  const { time } = said;
  if ("message" in said) {
    const { messageId, role, parts, taskId, metadata } = said.message;
    return {
      role: role === "ROLE_USER" ? "user" : "agent",
      text: textOf(said.message),
      parts,
      time,
      messageId,
      ...(taskId !== undefined && { taskId }),
      ...(metadata !== undefined && { metadata }),
    };
  }
  const { artifactId, name, description, parts, metadata } = said.artifact;
  return {
    role: "agent",
    text: textOf(said.artifact),
    parts,
    time,
    taskId: said.taskId,
    artifactId,
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    ...(metadata !== undefined && { metadata }),
    ...(said.cut === true && { cut: true as const }),
  };
}

function nameOf({ agent, owner, contextId }: ContextKey): string {
  // No id holds NUL.
  return `${agent}\0${owner}\0${contextId}`;
}
