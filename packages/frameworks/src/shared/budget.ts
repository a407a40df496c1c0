import { utf8Length } from "@parley/a2a/internal/base/index";
import { stepBounds } from "@parley/a2a/internal/protocol/index";

/** Bytes reserved for the model's next answer. Tool results must not use these bytes. */
const reserved = stepBounds.result;

/** Counts the bytes of the steps of a turn. */
export class Budget {
  #used = 0;

  /** Adds the JSON text of a stored result, from this attempt of the turn or an earlier attempt. */
  add(json: string): void {
    this.#used += utf8Length(json) + stepBounds.name;
  }

  /** Maximum bytes of the next tool result. */
  get room(): number {
    return Math.max(0, Math.min(stepBounds.result, stepBounds.results - reserved - this.#used));
  }
}
