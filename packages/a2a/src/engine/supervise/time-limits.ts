import { safeSentences, type Run } from "../run/index.ts";

const defaultIdleTimeout = 5 * 60_000;
const defaultTurnTimeout = 60 * 60_000;

/** Ends turns that have gone on, or have been silent, for too long. `now`: on the monotonic clock. */
export function endOverdueTurns(runs: Iterable<Run>, now: number): void {
  for (const run of runs) {
    const { idleTimeout = defaultIdleTimeout, turnTimeout = defaultTurnTimeout } = run.hosted.agent;
    if (turnTimeout !== false && now - run.startedAt >= turnTimeout) {
      const cause = new Error(`The turn went on for more than ${turnTimeout} ms`);
      run.phase.fail(safeSentences.late, cause, "turnTimeout");
    } else if (idleTimeout !== false && !run.phase.isInterrupted && now - run.lastEventAt >= idleTimeout) {
      const cause = new Error(`The agent yielded nothing for ${idleTimeout} ms`);
      run.phase.fail(safeSentences.idle, cause, "idleTimeout");
    }
  }
}
