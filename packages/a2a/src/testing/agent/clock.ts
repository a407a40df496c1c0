import { defer, type Clock } from "../../base/index.ts";
import { fakeClock, type FakeClock } from "../fake-clock.ts";

/** So many turns of the event loop without new work mean that nothing goes on by itself. */
const quietTurns = 4;
/** After so many turns the clock goes on, although an agent works without a pause. */
const mostTurns = 200;

/** The clock of a server that a test moves. It stands still until then, so no limit of time ends a test by surprise. */
export class TestClock implements Clock {
  readonly #fake: FakeClock;
  /** How much work has begun. */
  #begun = 0;
  readonly #pending = new Set<Promise<unknown>>();

  /** `testAgent()` makes one. */
  constructor(start?: number) {
    this.#fake = fakeClock(start);
  }

  /** Wall time, in milliseconds since the Unix epoch. It begins with the year 2026. */
  now(): number {
    return this.#fake.now();
  }

  /** Monotonic time, in milliseconds. */
  elapsed(): number {
    return this.#fake.elapsed();
  }

  /** Calls `run` once, when `advance()` has come so far. The returned function cancels it. */
  after(ms: number, run: () => void): () => void {
    this.#begun += 1;
    return this.#fake.after(ms, run);
  }

  /**
   * Lets `ms` milliseconds pass. Timers come due in their order, and before each one the work that is under way goes on as far as it
   * can: agents run to where they wait, what they yield is stored, streams are sent. It does not wait for what it cannot see, such as
   * a request that an agent sends to another server: give that to `track()`.
   */
  async advance(ms: number): Promise<void> {
    const end = this.#fake.elapsed() + ms;
    await this.settle();
    for (let due = this.#fake.next(); due !== undefined && due <= end; due = this.#fake.next()) {
      this.#fake.advance(Math.max(0, due - this.#fake.elapsed()));
      await this.settle();
    }
    this.#fake.advance(Math.max(0, end - this.#fake.elapsed()));
    await this.settle();
  }

  /** Sets the wall clock forward by `ms` milliseconds, or back, as an operator does. No time passes, so no timer comes due. */
  jump(ms: number): void {
    this.#fake.jump(ms);
  }

  /** Has `advance()` and `settle()` wait for work that takes real time. Returns the work. */
  track<Work extends Promise<unknown>>(work: Work): Work {
    this.#begun += 1;
    const settled: Promise<unknown> = work.then(
      () => this.#pending.delete(settled),
      () => this.#pending.delete(settled),
    );
    this.#pending.add(settled);
    return work;
  }

  /** Resolves when nothing goes on by itself: all that is left waits for the clock, for a message, or for what it cannot see. */
  async settle(): Promise<void> {
    for (let quiet = 0, turns = 0; quiet < quietTurns && turns < mostTurns; turns += 1) {
      const before = this.#begun;
      await new Promise<void>((resolve) => defer(resolve));
      await Promise.all(this.#pending);
      quiet = this.#begun === before ? quiet + 1 : 0;
    }
  }
}
