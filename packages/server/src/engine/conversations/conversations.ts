import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import { utf8Length } from "@parley/a2a/internal/base/index";
import { textOf, type JsonLike, type JsonValue, type Message } from "@parley/a2a/internal/model/index";
import { Payload, type HistoryEntry, type HistoryOptions, type TurnContext } from "@parley/a2a/internal/protocol/index";
import {
  fitting,
  type AppendOutcome,
  type ContextEffect,
  type ContextKey,
  type ContextStateEffect,
  type OnceEffect,
  type Owner,
  type SaidArtifact,
  type SaidMessage,
} from "../../store/index.ts";
import { isMirror, type Committer } from "../log/index.ts";
import { exceeds, sizeOf } from "../shared/bytes.ts";
import { agentMistake, jsonOf } from "../shared/mistakes.ts";
import { replyWindow, type RunSettings } from "../shared/settings.ts";
import { messageJson, valueJson } from "../../store/json.ts";
import { defined } from "@parley/a2a/internal/base/defined";

/** A direct reply of an agent. Its JSON text is used for both the answer and the stored reply. */
export class DirectReply extends Payload<{ readonly message: Message }> {
  readonly text: string;

  /** Throws `InvalidAgentResponse` if the message is not JSON. */
  constructor(message: Message) {
    super({ message });
    this.text = jsonOf(message, "turn.reply()", null);
  }

  override get json(): string {
    return `{"message":${this.text}}`;
  }
}

/** Maximum conversations, maximum exchanges of each conversation, and maximum bytes in all. */
const maxContexts = 1_000;
const maxExchanges = 50;
const maxBytes = 32 << 20;

/** A message and its direct reply. */
export interface Exchange {
  /** Wall time of the reply, in milliseconds. */
  readonly time: number;
  readonly asked: Message;
  /** The reply as JSON: one object for the garbage collector instead of ten (row `message` of the benchmarks). */
  readonly answer: string;
}

/** If the store does not keep direct replies, keeps each reply in memory with the message that it answers. */
export class RememberedReplies {
  readonly #conversations = new BoundedMap<readonly Exchange[]>({
    bytes: maxBytes,
    entries: maxContexts,
    bytesOf: (_name, exchanges) => exchanges.reduce((sum, exchange) => sum + bytesOf(exchange), 0),
  });

  messagesOf(key: ContextKey): readonly SaidMessage[] {
    return (this.#conversations.get(nameOf(key)) ?? []).flatMap(({ time, asked, answer }) => [
      { time, message: asked },
      { time, message: messageJson.read(answer) },
    ]);
  }

  forget({ agent, owner }: Owner): void {
    this.#conversations.drop(nameOf({ agent, owner, contextId: "" }));
  }

  /** `begins`: this exchange is the first of its conversation. */
  add(key: ContextKey, begins: boolean, exchange: Exchange): void {
    const name = nameOf(key);
    const known = begins ? undefined : this.#conversations.get(name);
    const all = known === undefined ? [exchange] : newestOf([...known, exchange], maxExchanges, maxBytes / 2, bytesOf);
    this.#conversations.set(name, all);
  }
}

/** An estimate, because an exact count would cost more than storing the reply. */
function bytesOf({ asked, answer }: Exchange): number {
  return sizeOf(asked) + memoryOf(answer);
}

/** The newest items, up to both limits. */
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

/** Maximum messages and bytes that `turn.context.history()` returns by default. */
const defaultLimit = 100;
const defaultBytes = 256 << 10;

/** The conversations of an engine: their state, their history, and direct replies, which belong to no task. */
export class Conversations {
  readonly #settings: RunSettings;
  readonly #committer: Committer;
  readonly #remembered = new RememberedReplies();

  constructor(settings: RunSettings, committer: Committer) {
    this.#settings = settings;
    this.#committer = committer;
  }

  async open(key: ContextKey, asking: AskingTurn): Promise<ContextView> {
    const { state } = await this.#settings.store.conversation(key, { limit: 0 });
    const { stateBytes } = this.#settings.limits;
    return new ContextView(key, false, (options) => this.#history(key, asking, options), state, stateBytes);
  }

  /** The context of a turn whose message starts the conversation, so nothing has to be read. */
  begin(key: ContextKey, { message }: AskingTurn): ContextView {
    const { clock, limits } = this.#settings;
    const history = (): Promise<HistoryEntry[]> => Promise.resolve([entryOf({ time: clock.now(), message })]);
    return new ContextView(key, true, history, undefined, limits.stateBytes);
  }

  /**
   * Stores a message and the JSON of its direct reply, together with the state that the turn has set and, if answers are durable, the
   * idempotency key. Returns `undefined` if nothing has to be stored, because everything stays in memory.
   */
  keepReply(
    view: ContextView,
    asked: Message,
    answer: string,
    once: OnceEffect | undefined,
  ): Promise<AppendOutcome> | undefined {
    const { key, begins } = view;
    const change = view.takeChange();
    const time = this.#settings.clock.now();
    if (this.#settings.conversations === "memory") {
      this.#remembered.add(key, begins, { time, asked, answer });
      if (change === undefined) return undefined;
      return this.#committer.append({ context: key, effects: [change] });
    }
    const effects: ContextEffect[] = change === undefined ? [] : [change];
    for (const json of [JSON.stringify(asked), answer]) effects.push({ effect: "contextMessage", json, time });
    if (once !== undefined) effects.push({ until: time + replyWindow(this.#settings), ...once, answer });
    return this.#committer.append({ context: key, effects });
  }

  forget(owner: Owner): void {
    this.#remembered.forget(owner);
  }

  async #history(
    key: ContextKey,
    { taskId, turn, seq, message }: AskingTurn,
    { limit = defaultLimit, bytes = defaultBytes }: HistoryOptions,
  ): Promise<readonly HistoryEntry[]> {
    const before = { taskId, turn, seq };
    const { entries } = await this.#settings.store.conversation(key, { limit: Math.max(0, limit - 1), bytes, before });
    const remembered = this.#remembered.messagesOf(key);
    // Replies in memory and stored entries are sorted by time, and limited together.
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
            (each) => each.bytes,
          );
    const said = all.filter((entry) => !("message" in entry && isMirror(entry.message)));
    return [...said, { time: this.#settings.clock.now(), message }].map(entryOf);
  }
}

export interface AskingTurn {
  readonly taskId: string;
  readonly turn: number;
  /** `seq` of the turn's message. */
  readonly seq: number;
  readonly message: Message;
}

type ReadHistory = (options: HistoryOptions) => Promise<readonly HistoryEntry[]>;

/** The context of one turn, and the state that the turn has set. */
export class ContextView implements TurnContext {
  readonly key: ContextKey;
  /** Whether the conversation begins with this turn's message. */
  readonly begins: boolean;
  readonly #history: ReadHistory;
  readonly #state: StateValue;

  constructor(key: ContextKey, begins: boolean, history: ReadHistory, stored: string | undefined, stateBytes: number) {
    this.key = key;
    this.begins = begins;
    this.#history = history;
    this.#state = new StateValue("context.setState()", stored, stateBytes);
  }

  get id(): string {
    return this.key.contextId;
  }

  history(options: HistoryOptions = {}): Promise<readonly HistoryEntry[]> {
    return this.#history(options);
  }

  state<Value = JsonValue>(): Value | undefined {
    return this.#state.read() as Value | undefined;
  }

  setState<Value extends JsonLike<Value>>(value: Value | undefined): void {
    this.#state.set(value);
  }

  /** The effect that stores the change since the last call; `undefined`: no change. */
  takeChange(): ContextStateEffect | undefined {
    const value = this.#state.takeChange();
    return value === undefined ? undefined : { effect: "contextState", value };
  }
}

/** The state of a task or a context during a turn. The state is parsed only when an agent reads it, because most agents have no state. */
export class StateValue {
  readonly #call: string;
  readonly #maxBytes: number;
  #text: string | undefined;
  #value: JsonValue | undefined;
  #change: string | null | undefined;

  /** `call`: the method that sets the state, for errors. `stored`: the stored state as JSON text. */
  constructor(call: string, stored: string | undefined, maxBytes: number) {
    this.#call = call;
    this.#text = stored;
    this.#maxBytes = maxBytes;
  }

  read(): JsonValue | undefined {
    if (this.#value === undefined && this.#text !== undefined) this.#value = valueJson.read(this.#text);
    return this.#value;
  }

  set(value: unknown): void {
    // Copied through JSON, because the agent may change its object later.
    const text = value === undefined ? undefined : jsonOf(value, this.#call);
    if (text !== undefined && exceeds(text, this.#maxBytes)) {
      throw agentMistake(
        `${this.#call}: the value takes ${utf8Length(text)} bytes, and limits.stateBytes is ${this.#maxBytes}`,
      );
    }
    this.#text = text;
    this.#value = undefined;
    this.#change = text ?? null;
  }

  /** The value set since the last call, as JSON text. `null`: the state was deleted. `undefined`: no change. */
  takeChange(): string | null | undefined {
    const change = this.#change;
    this.#change = undefined;
    return change;
  }
}

function entryOf(said: SaidMessage | SaidArtifact): HistoryEntry {
  const { time } = said;
  if ("message" in said) {
    const { messageId, role, parts, taskId, metadata } = said.message;
    const sender = role === "ROLE_USER" ? "user" : "agent";
    return { role: sender, text: textOf(said.message), parts, time, messageId, ...defined({ taskId, metadata }) };
  }
  const { artifactId, name, description, parts, metadata } = said.artifact;
  return {
    role: "agent",
    text: textOf(said.artifact),
    parts,
    time,
    taskId: said.taskId,
    artifactId,
    ...defined({ name, description, metadata }),
    ...(said.cut === true && { cut: true as const }),
  };
}
