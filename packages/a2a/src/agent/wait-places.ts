import type { TurnBase } from "../protocol/index.ts";

/**
 * Tells the waits of a turn apart, in the same way in each attempt. One after the other, they are known by their order. The generators of
 * `turn.all()` race: steps that are remembered change who comes first. There a wait is known by what it waits for.
 */
export class WaitPlaces {
  readonly #base: Pick<TurnBase, "count">;
  /** How many `turn.all()` are under way, one within the other. */
  #depth = 0;

  constructor(base: Pick<TurnBase, "count">) {
    this.#base = base;
  }

  /** A `turn.all()` begins. The result is called when it is over. */
  race(): () => void {
    this.#depth += 1;
    return () => {
      this.#depth -= 1;
      if (this.#depth === 0) this.#base.count(races, 1);
    };
  }

  /**
   * What a wait is known by. It is numbered when that is asked for, which is when its function begins to wait: a checkpoint that is saved
   * before does not count it.
   *
   * @param ordered - What it is, where the order tells the rest.
   * @param raced - What it is, in `turn.all()`.
   * @param key - Of the agent.
   */
  place(ordered: string, raced: string, key: string | undefined): () => string {
    if (key !== undefined) return () => `=${key}`;
    const base = this.#base;
    // Each `turn.all()` has numbers of its own: how far another one came is not the same in each attempt.
    const of = this.#depth === 0 ? ordered : `a${base.count(races, 0) + 1}.${raced}`;
    return () => `${of}#${base.count(of, 1)}`;
  }
}

/** Counts the `turn.all()` that are over. */
const races = "a";
