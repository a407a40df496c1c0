import type { Clock } from "@parley/a2a/internal/base/index";

/** A clock that a test moves. */
export interface FakeClock extends Clock {
  /** Advances by `ms` milliseconds. Due timers fire in order, including new ones. */
  advance(ms: number): void;
  /** Changes the wall clock by `ms` milliseconds. No time passes, so no timer fires. */
  jump(ms: number): void;
  /** When the next timer is due, on `elapsed()`; `undefined` if there is none. */
  next(): number | undefined;
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

/**
 * Creates a clock that stands still until moved.
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
