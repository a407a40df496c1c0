import type { Clock } from "../../base/index.ts";
import type { TaskHead } from "../../store/index.ts";

/** Leases that are watched at a time. Others are watched once some of these are decided. */
const mostWatched = 10_000;
/** One scan in so many reads all leases, the others those that have run out by the wall clock. */
const fullScanEvery = 10;

/** A lease as it was found, and since when it has not changed; on the monotonic clock. */
interface Seen {
  readonly until: number;
  readonly fence: number;
  readonly since: number;
}

/**
 * Says whether a lease has expired, so that its holder is taken for dead. `until` is wall time, since two processes share no
 * other clock; but a wall clock can be set. Where it cannot be trusted, a lease has expired once it has not changed for
 * `ttl` on this process's own monotonic clock: a live holder renews it three times in that time.
 *
 * The wall clock is not trusted for `ttl` after it was set, for a lease that ends later than any lease can, and for one that
 * has long expired although the previous scan did not find it.
 */
export class LeaseWatch {
  readonly #clock: Clock;
  readonly #ttl: number;
  readonly #isGone: (holder: string) => boolean;
  #seen = new Map<string, Seen>();
  /** The same for the scan that is under way. */
  #found = new Map<string, Seen>();
  #scans = 0;
  #trustedFrom = -Infinity;
  /** Wall time of this scan, and of the one before. */
  #now = Infinity;
  #before = -Infinity;

  constructor(clock: Clock, lease: { readonly ttl: number; readonly isGone: (holder: string) => boolean }) {
    this.#clock = clock;
    this.#ttl = lease.ttl;
    this.#isGone = lease.isGone;
  }

  /** The wall clock was set: for a while it says nothing about leases. */
  distrustWallClock(): void {
    this.#trustedFrom = this.#clock.elapsed() + this.#ttl;
    this.#before = -Infinity;
  }

  /** Begins a scan, and says which leases it has to read: all, or those that have expired by the wall clock at `now`. */
  begin(): { readonly all: boolean; readonly now: number } {
    this.#now = this.#clock.now();
    this.#found = new Map();
    // The first scan reads all: the lease of a holder that is known to be gone need not expire.
    const all = this.#scans % fullScanEvery === 0 || !this.#isTrusted() || this.#seen.size > 0;
    this.#scans += 1;
    return { all, now: this.#now };
  }

  /** Whether the task has no holder any more. */
  isExpired(head: TaskHead): boolean {
    const { holder, leaseUntil: until = -Infinity, fence } = head;
    if (holder === undefined || this.#isGone(holder)) return true;
    const key = `${head.task.agent}\0${head.task.taskId}`;
    const known = this.#seen.get(key);
    const elapsed = this.#clock.elapsed();
    if (known !== undefined && known.until === until && known.fence === fence) {
      this.#found.set(key, known);
      return elapsed - known.since >= this.#ttl;
    }
    // One that has changed was renewed: its holder lives.
    const isExpired = known === undefined && this.#isExpiredByWallClock(until);
    const left = until - this.#now;
    const isRunning = left > 0 && left <= this.#ttl;
    if (!isRunning && this.#found.size < mostWatched) {
      // What the wall clock has decided stays decided: it may not be possible to take the task over now.
      this.#found.set(key, { until, fence, since: isExpired ? -Infinity : elapsed });
    }
    return isExpired;
  }

  /** Ends the scan: what it did not find is no longer watched. */
  end(): void {
    this.#seen = this.#found;
    this.#before = this.#now;
  }

  #isExpiredByWallClock(until: number): boolean {
    if (until > this.#now || !this.#isTrusted()) return false;
    // One that had expired before the previous scan should have been found by it.
    return until >= this.#before || this.#seen.size >= mostWatched;
  }

  #isTrusted(): boolean {
    return this.#clock.elapsed() >= this.#trustedFrom;
  }
}
