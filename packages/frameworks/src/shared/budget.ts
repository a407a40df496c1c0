import { utf8Length } from "@parley/a2a/internal/base/index";
import { stepBounds } from "@parley/a2a/internal/protocol/index";

/** What is left for the model's next answer: a tool may not take it. */
const reserved = stepBounds.result;

/** How many bytes the steps of a turn take. */
export class Budget {
  #used = 0;

  /** Adds a result that is stored, as JSON text: in this attempt of the turn, or in an earlier one. */
  add(json: string): void {
    this.#used += utf8Length(json) + stepBounds.name;
  }

  /** How many bytes the result of a tool may take. */
  get room(): number {
    return Math.max(0, Math.min(stepBounds.result, stepBounds.results - reserved - this.#used));
  }
}
