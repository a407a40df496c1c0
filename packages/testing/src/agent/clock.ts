import { defer, type Clock } from "@parley/a2a/internal/base/index";
import { fakeClock } from "../fake-clock.ts";

/** The clock of a server that a test moves. It stands still until then, so no limit of time ends a test by surprise. */
export interface TestClock extends Clock {
  /**
   * Lets `ms` milliseconds pass. Timers come due in their order, and before each one the work that is under way goes on as far as it
   * can: agents run to where they wait, what they yield is stored, streams are sent. It does not wait for what it cannot see, such as
   * a request that an agent sends to another server: give that to `track()`.
   *
   * @throws TypeError where `ms` is no number, negative or infinite.
   */
  advance(ms: number): Promise<void>;
  /**
   * Lets as much time pass as agents wait by `turn.clock.after()`, until `work` is done, and no more: while an agent waits for something
   * else, the clock stands still. Returns what `work` returns.
   *
   * @example
   * ```ts
   * const { client, clock } = await testAgent(agent);
   * const { task } = await clock.until(client.sendMessage("Bake a cake"));
   * ```
   */
  until<Value>(work: Promise<Value>): Promise<Value>;
  /** Sets the wall clock forward by `ms` milliseconds, or back, as an operator does. No time passes, so no timer comes due. */
  jump(ms: number): void;
  /** Has `advance()` and `settle()` wait for work that takes real time. Returns the work. */
  track<Work extends Promise<unknown>>(work: Work): Work;
  /** Resolves when nothing goes on by itself: all that is left waits for the clock, for a message, or for what it cannot see. */
  settle(): Promise<void>;
}

/** So many turns of the event loop without new work mean that nothing goes on by itself. */
const quietTurns = 4;
/** After so many turns the clock goes on, although an agent works without a pause. */
const maxTurns = 200;

/** A clock that goes from timer to timer, and knows those that agents wait for. */
export class SteppedClock implements TestClock {
  readonly #fake = fakeClock();
  /** How much work has begun. */
  #begun = 0;
  readonly #pending = new Set<Promise<unknown>>();
  /** When the timers of agents come due. */
  readonly #awaited = new Set<{ readonly due: number }>();

  now(): number {
    return this.#fake.now();
  }

  elapsed(): number {
    return this.#fake.elapsed();
  }

  after(ms: number, run: () => void): () => void {
    this.#begun += 1;
    return this.#fake.after(ms, run);
  }

  /** `after()` of an agent: time may pass for its sake. */
  afterForAgent(ms: number, run: () => void): () => void {
    const timer = { due: this.elapsed() + ms };
    this.#awaited.add(timer);
    const clear = this.after(ms, () => {
      this.#awaited.delete(timer);
      run();
    });
    return () => {
      this.#awaited.delete(timer);
      clear();
    };
  }

  async advance(ms: number): Promise<void> {
    if (!Number.isFinite(ms) || ms < 0)
      throw new TypeError(`A clock advances by milliseconds from 0 on, not by ${String(ms)}`);
    const end = this.elapsed() + ms;
    await this.settle();
    for (let due = this.#fake.next(); due !== undefined && due <= end; due = this.#fake.next()) {
      this.#fake.advance(Math.max(0, due - this.elapsed()));
      await this.settle();
    }
    this.#fake.advance(Math.max(0, end - this.elapsed()));
    await this.settle();
  }

  async until<Value>(work: Promise<Value>): Promise<Value> {
    let isDone = false;
    const done = work.then(
      () => (isDone = true),
      () => (isDone = true),
    );
    for (await this.settle(); !isDone; await this.settle()) {
      const due = Math.min(...[...this.#awaited].map((timer) => timer.due));
      // Nobody waits for this clock: what is done takes real time.
      if (due === Infinity) await Promise.race([done, new Promise((resolve) => setTimeout(resolve, 1))]);
      else await this.advance(Math.max(0, due - this.elapsed()));
    }
    return work;
  }

  jump(ms: number): void {
    this.#fake.jump(ms);
  }

  track<Work extends Promise<unknown>>(work: Work): Work {
    this.#begun += 1;
    const settled: Promise<unknown> = work.then(
      () => this.#pending.delete(settled),
      () => this.#pending.delete(settled),
    );
    this.#pending.add(settled);
    return work;
  }

  async settle(): Promise<void> {
    for (let quiet = 0, turns = 0; quiet < quietTurns && turns < maxTurns; turns += 1) {
      const before = this.#begun;
      await new Promise<void>((resolve) => defer(resolve));
      await Promise.all(this.#pending);
      quiet = this.#begun === before ? quiet + 1 : 0;
    }
  }
}
