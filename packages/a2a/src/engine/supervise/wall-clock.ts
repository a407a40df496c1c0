import type { Clock } from "../../base/index.ts";

/** A wall clock that moved by more than this against the monotonic one was set. Milliseconds. */
const tolerance = 1_000;

/** Notices when the wall clock is set: by an operator, by time synchronization, after the machine was asleep. */
export class WallClockWatch {
  readonly #clock: Clock;
  /** Wall time minus monotonic time, when it was last measured. */
  #distance: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#distance = this.#measure();
  }

  /** Milliseconds by which the wall clock was set since the last call; 0: it was not. */
  jump(): number {
    const distance = this.#measure();
    const moved = distance - this.#distance;
    // A slow correction is no jump, whatever it adds up to.
    this.#distance = distance;
    return Math.abs(moved) > tolerance ? moved : 0;
  }

  #measure(): number {
    for (let tries = 0; ; tries += 1) {
      const before = this.#clock.elapsed();
      const wall = this.#clock.now();
      const after = this.#clock.elapsed();
      // If the process was suspended between the two readings, their difference includes the pause.
      if (after - before < tolerance / 10 || tries === 5) return wall - after;
    }
  }
}
