import { utf8Length } from "../base/index.ts";
import type { JsonValue, Message } from "../model/index.ts";
import type { HistoryEntry, HistoryOptions, TurnContext } from "../protocol/index.ts";
import type { ContextKey } from "../store/index.ts";
import { exceeds } from "./bytes.ts";
import { agentMistake, jsonOf } from "./mistakes.ts";

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
