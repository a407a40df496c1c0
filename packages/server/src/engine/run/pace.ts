import { defer, type Clock } from "@parley/a2a/internal/base/index";

/** Milliseconds that all agents together may run in one turn of the event loop. */
const timeSlice = 1;

/**
 * Keeps agents from blocking the event loop. An agent that yields without waiting goes on from one microtask to the next,
 * and meanwhile no request is read and no answer written. Once the time slice is used up, agents wait for the next turn of
 * the event loop.
 *
 * The window of a writer bounds one agent, but not many: without the slice, 32 agents at full speed take 160 ms of CPU in one
 * turn instead of 2 (docs/decisions/hot-path.md, and "many agents at full speed" in test/engine/cost.test.ts).
 */
export class Pace {
  readonly #clock: Clock;
  /** When the first agent went on in this turn of the event loop; monotonic time. */
  #since: number | undefined;
  #resting: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves in the next turn of the event loop; `undefined` while this one has time left. */
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
