import { utf8Length } from "@parley/a2a/internal/base/index";
import type { JsonValue } from "@parley/a2a/internal/model/index";
import type { TaskStateEffect } from "../../store/index.ts";
import { exceeds } from "../shared/bytes.ts";
import { agentMistake, jsonOf } from "../shared/mistakes.ts";

/** The state of a task during a run. Most agents have none: it is parsed when it is read. */
export class TaskValue {
  readonly #most: number;
  #text: string | undefined;
  #value: JsonValue | undefined;
  #change: TaskStateEffect | undefined;

  /**
   * @param stored - As JSON text.
   * @param most - Its largest size, in bytes of JSON.
   */
  constructor(stored: string | undefined, most: number) {
    this.#text = stored;
    this.#most = most;
  }

  read(): JsonValue | undefined {
    if (this.#value === undefined && this.#text !== undefined) this.#value = JSON.parse(this.#text) as JsonValue;
    return this.#value;
  }

  set(value: unknown): void {
    // A copy by way of text: the agent may go on changing its object.
    const text = value === undefined ? undefined : jsonOf(value, "turn.setState()");
    if (text !== undefined && exceeds(text, this.#most)) {
      throw agentMistake(
        `turn.setState(): the value takes ${utf8Length(text)} bytes, and limits.stateBytes is ${this.#most}`,
      );
    }
    this.#text = text;
    this.#value = undefined;
    this.#change = { effect: "taskState", value: text ?? null };
  }

  /** The effect that stores what was set since the last call; `undefined`: nothing was set. */
  takeChange(): TaskStateEffect | undefined {
    const change = this.#change;
    this.#change = undefined;
    return change;
  }
}
