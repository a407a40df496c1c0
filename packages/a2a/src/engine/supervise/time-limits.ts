import type { Run } from "../run/run.ts";

const defaultIdleTimeout = 5 * 60_000;
const defaultTurnTimeout = 60 * 60_000;

/** Ends turns that have gone on, or have been silent, for too long. `now`: on the monotonic clock. */
export function endOverdueTurns(runs: Iterable<Run>, now: number): void {
  for (const run of runs) {
    const { idleTimeout = defaultIdleTimeout, turnTimeout = defaultTurnTimeout } = run.hosted.agent;
    if (turnTimeout !== false && now - run.startedAt >= turnTimeout) {
      run.expire("turnTimeout", `The turn went on for more than ${turnTimeout} ms`);
    } else if (idleTimeout !== false && !run.isInterrupted && now - run.lastEventAt >= idleTimeout) {
      run.expire("idleTimeout", `The agent yielded nothing for ${idleTimeout} ms`);
    }
  }
}
