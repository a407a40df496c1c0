import type { Clock } from "../base/index.ts";

export interface FakeClock extends Clock {
  /** Lets `ms` milliseconds pass: everything that was due runs, in its order, and what that set up in the meantime too. */
  advance(ms: number): void;
  /** Sets the wall clock forward, or back, by `ms` milliseconds. No time passes: nothing comes due. */
  jump(ms: number): void;
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

/** A clock that stands still until a test moves it. Its wall begins at `start`, milliseconds since the Unix epoch. */
export function fakeClock(start: number = Date.UTC(2026, 0, 1)): FakeClock {
  let elapsed = 0;
  /** Wall time when none had passed. */
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
  };
}
