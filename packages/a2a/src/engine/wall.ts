import type { Clock } from "../base/index.ts";

/** A wall clock that moved by more than this against the monotonic one was set. Milliseconds. */
const tolerance = 1_000;

/** Notices when somebody sets the wall clock: an operator, a daemon that had lost the time, a machine that was asleep. */
export class WallWatch {
  readonly #clock: Clock;
  /** Wall time less monotonic time, at the last look. */
  #distance: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#distance = this.#measure();
  }

  /** Milliseconds by which the wall clock was set since the last call; 0: it was not. */
  notice(): number {
    const distance = this.#measure();
    const jump = distance - this.#distance;
    // What is slowly corrected is no jump, however much it comes to.
    this.#distance = distance;
    return Math.abs(jump) > tolerance ? jump : 0;
  }

  #measure(): number {
    for (let tries = 0; ; tries += 1) {
      const before = this.#clock.elapsed();
      const wall = this.#clock.now();
      const after = this.#clock.elapsed();
      // A process that was held up between the two has measured the wait.
      if (after - before < tolerance / 10 || tries === 5) return wall - after;
    }
  }
}
