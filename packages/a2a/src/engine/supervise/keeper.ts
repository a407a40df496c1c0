import { defer } from "../../base/index.ts";
import type { Runs } from "./runs.ts";

/**
 * What has to be done again and again: time limits, leases, lost runs, retention. One timer for all of it. Nothing here
 * may stop the rest: a store that fails now is asked again later.
 */
export function startKeeper(runs: Runs): () => void {
  const { settings, board } = runs;
  const { store, clock, lease, retention, pollInterval, logger } = settings;
  const heartbeat = lease.ttl / 3;
  const pause = Math.max(1, Math.min(1_000, heartbeat, pollInterval, retention.interval));
  let stopped = false;
  let takeBack = (): void => {};
  const due = { lease: -Infinity, poll: -Infinity, sweep: clock.elapsed() + retention.interval };
  const unwatch = store.watch?.((taskId) => board.wakeRemote(taskId));

  async function guarded(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!stopped) logger.error(`${what} failed and will be tried again`, { cause: error });
    }
  }

  async function tick(): Promise<void> {
    const now = clock.elapsed();
    runs.checkLimits();
    if (runs.wallJumped()) due.lease = now;
    if (now >= due.lease) {
      due.lease = now + heartbeat;
      await guarded("Renewing leases", () => runs.renew());
      await guarded("Taking over lost tasks", () => runs.recover());
    }
    if (now >= due.poll) {
      due.poll = now + pollInterval;
      // A store that can tell does so itself.
      if (unwatch === undefined) board.wakeRemote();
    }
    if (now >= due.sweep) {
      due.sweep = now + retention.interval;
      await guarded("Sweeping", sweep);
    }
    next();
  }

  async function sweep(): Promise<void> {
    const now = clock.now();
    const before = (age: number | false, name: string): object => (age === false ? {} : { [name]: now - age });
    let more = true;
    while (more && !stopped) {
      const report = await store.sweep({
        now,
        limit: 100,
        ...before(retention.terminal, "deleteBefore"),
        ...before(retention.replay, "compactBefore"),
      });
      more = report.more;
      // A long backlog must not keep requests from being read.
      if (more) await new Promise<void>((resolve) => defer(resolve));
    }
  }

  function next(): void {
    if (!stopped) takeBack = clock.after(pause, () => void tick());
  }

  void tick();
  return () => {
    stopped = true;
    takeBack();
    unwatch?.();
  };
}
