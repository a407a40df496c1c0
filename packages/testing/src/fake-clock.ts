import { defer, type Clock } from "@parley/a2a/internal/base/index";

/** A clock that advances only when a test moves it. */
export interface FakeClock extends Clock {
  /** Advances by `ms` milliseconds. Due timers fire in order, including new ones. */
  advance(ms: number): void;
  /** Changes the wall clock by `ms` milliseconds. No time passes, so no timer fires. */
  jump(ms: number): void;
  /** Due time of the next timer, on the scale of `elapsed()`; `undefined` without timers. */
  next(): number | undefined;
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

/**
 * Creates a clock that does not advance until moved.
 *
 * @param start - Its wall time, in milliseconds since the Unix epoch. Default: the beginning of 2026.
 *
 * @example
 * ```ts
 * const clock = fakeClock();
 * const handler = createHandler(agent, { publicUrl: "https://agents.example.com", store: memoryStore(), clock });
 * clock.advance(5 * 60_000); // the idle timeout of a turn
 * ```
 */
export function fakeClock(start: number = Date.UTC(2026, 0, 1)): FakeClock {
  let elapsed = 0;
  /** Wall time at the start, including jumps. */
  let wall = start;
  const timers = new Set<Timer>();

  function nextBy(end: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of timers) if (timer.at <= end && (next === undefined || timer.at < next.at)) next = timer;
    return next;
  }

  return {
    now: () => wall + elapsed,
    elapsed: () => elapsed,
    after(ms, run) {
      const timer = { at: elapsed + ms, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance(ms) {
      const end = elapsed + ms;
      for (let timer = nextBy(end); timer !== undefined; timer = nextBy(end)) {
        timers.delete(timer);
        elapsed = Math.max(elapsed, timer.at);
        timer.run();
      }
      elapsed = end;
    },
    jump(ms) {
      wall += ms;
    },
    next: () => nextBy(Infinity)?.at,
  };
}

/** The clock of a server under test. It does not advance until moved, so no timeout fires unexpectedly. */
export interface TestClock extends Clock {
  /**
   * Advances by `ms` milliseconds. Timers fire in order, each after running work has settled: agents run until they
   * wait, their output is stored, streams are sent. It cannot see requests that an agent sends to another server: pass their
   * promises to `track()`.
   *
   * @throws TypeError if `ms` is negative or not finite.
   */
  advance(ms: number): Promise<void>;
  /**
   * Advances only while agents wait with `turn.clock.after()`, until `work` is done. While an agent waits for anything
   * else, the clock does not advance. Returns the result of `work`.
   *
   * @example
   * ```ts
   * const { client, clock } = await testAgent(agent);
   * const { task } = await clock.until(client.sendMessage("Bake a cake"));
   * ```
   */
  until<Value>(work: Promise<Value>): Promise<Value>;
  /** Changes the wall clock by `ms` milliseconds, as an operator does. No time passes, so no timer fires. */
  jump(ms: number): void;
  /** Makes `advance()` and `settle()` wait for work that takes real time. Returns the work. */
  track<Work extends Promise<unknown>>(work: Work): Work;
  /** Resolves when all remaining work waits for the clock, a message, or something that the clock cannot see. */
  settle(): Promise<void>;
}

/** Number of event loop turns without new work after which work counts as settled. */
const quietTurns = 4;
/** Maximum event loop turns to wait for an agent that never pauses. */
const maxTurns = 200;

/** A clock that advances from timer to timer, and knows the timers that agents wait for. */
export class SteppedClock implements TestClock {
  readonly #fake = fakeClock();
  /** Number of started operations. */
  #begun = 0;
  readonly #pending = new Set<Promise<unknown>>();
  /** Due times of agents' timers. */
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

  /** `after()` for an agent, which `until()` waits for. */
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
    if (!Number.isFinite(ms) || ms < 0) throw new TypeError(`ms must be a number, 0 or more; got ${String(ms)}`);
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
      // No agent waits for this clock, so the work takes real time.
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
