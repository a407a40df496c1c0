import { utf8Length } from "../base/index.ts";
import { textOf, type Message } from "../model/index.ts";
import type { HistoryEntry, HistoryOptions } from "../protocol/index.ts";
import type {
  AppendOutcome,
  ContextEffect,
  ContextKey,
  OnceEffect,
  SaidArtifact,
  SaidMessage,
} from "../store/index.ts";
import { ContextView, type AskingTurn } from "./context-view.ts";
import type { Committer } from "./log/index.ts";
import { replyWindow, type EngineSettings } from "./options.ts";
import { newestOf, RememberedReplies } from "./direct-replies.ts";

/** How much of a conversation a turn gets to see by default: messages, and bytes. */
const defaultLimit = 100;
const defaultBytes = 256 << 10;

/** What belongs to conversations and to none of their tasks. */
export class Conversations {
  readonly #settings: EngineSettings;
  readonly #committer: Committer;
  readonly #remembered = new RememberedReplies();

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
    const { clock, limits } = this.#settings;
    const history = (): Promise<HistoryEntry[]> => Promise.resolve([entryOf({ time: clock.now(), message })]);
    return new ContextView(key, true, history, undefined, limits.stateBytes);
  }

  /**
   * Keeps a message and the JSON text of its direct answer, a state that the turn left, and the idempotency key of a durable answer.
   * `undefined` where memory is the place for all of it.
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
      return this.#committer.append({ context: key, effects: [{ effect: "contextState", value: change }] });
    }
    const effects: ContextEffect[] = [];
    if (change !== undefined) effects.push({ effect: "contextState", value: change });
    for (const json of [JSON.stringify(asked), answer]) effects.push({ effect: "contextMessage", json, time });
    if (once !== undefined) effects.push({ until: time + replyWindow(this.#settings), ...once, answer });
    return this.#committer.append({ context: key, effects });
  }

  async #history(
    key: ContextKey,
    { taskId, turn, seq, message }: AskingTurn,
    { limit = defaultLimit, bytes = defaultBytes }: HistoryOptions,
  ): Promise<readonly HistoryEntry[]> {
    const before = { taskId, turn, seq };
    const { entries } = await this.#settings.store.conversation(key, { limit: Math.max(0, limit - 1), bytes, before });
    const remembered = this.#remembered.messagesOf(key);
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
            (each) => each.bytes,
          );
    return [...all, { time: this.#settings.clock.now(), message }].map(entryOf);
  }
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
