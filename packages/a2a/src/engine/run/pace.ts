import { defer, type Clock } from "../../base/index.ts";

/** Milliseconds that all agents together take of a turn of the event loop. */
const share = 1;

/**
 * Gives everybody else a turn. An agent whose steps need nothing from outside goes on from one microtask to the next, and as
 * long as it does no request is read and no answer written: here it stops until the event loop has been around.
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
    else if (this.#clock.elapsed() - this.#since >= share) return new Promise((resolve) => this.#resting.push(resolve));
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
