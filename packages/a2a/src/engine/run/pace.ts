import { defer, type Clock } from "../../base/index.ts";

/** Milliseconds that all agents together run in one turn of the event loop. */
const timeSlice = 1;

/**
 * Keeps agents from blocking the event loop. An agent whose steps wait for nothing goes on from one microtask to the next,
 * and meanwhile no request is read and no answer written. Once the time slice is used up, agents wait for the next turn.
 */
export class Pace {
  readonly #clock: Clock;
  /** When the first agent went on in this turn of the event loop. */
  #since: number | undefined;
  #resting: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** To be awaited before the agent goes on; `undefined` while there is time left in this turn. */
  rest(): Promise<void> | undefined {
    if (this.#since === undefined) this.#begin();
    else if (this.#clock.elapsed() - this.#since >= timeSlice)
      return new Promise((resolve) => this.#resting.push(resolve));
    return undefined;
  }

  #begin(): void {
    this.#since = this.#clock.elapsed();
    defer(() => {
      this.#since = undefined;
      const resting = this.#resting;
      if (resting.length === 0) return;
      this.#resting = [];
      this.#begin();
      for (const resolve of resting) resolve();
    });
  }
}
