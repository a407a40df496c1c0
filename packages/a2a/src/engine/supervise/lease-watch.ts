import type { Clock } from "../../base/index.ts";
import type { TaskHead } from "../../store/index.ts";

/** Leases that are watched at a time. Further ones are looked at once some of these are decided. */
const mostWatched = 10_000;
/** One look in so many is at all leases; the others are at those that have run out by the wall clock. */
const allEvery = 10;

interface Seen {
  readonly until: number;
  readonly fence: number;
  /** Monotonic time since when it has stood like that. */
  readonly since: number;
}

/**
 * Says whether the holder of a lease is to be taken for dead. `until` is wall time, which is all that two processes have in
 * common; but a wall clock can be set. Where it cannot be trusted, a lease counts as run out once it has not changed for `ttl`
 * on this process's own monotonic clock: a live holder renews it three times in that time.
 *
 * The wall clock is not trusted for `ttl` after it was set, for a lease that ends later than any lease can, and for one that
 * is long over although the previous look did not see it.
 */
export class LeaseWatch {
  readonly #clock: Clock;
  readonly #ttl: number;
  readonly #isGone: (holder: string) => boolean;
  #seen = new Map<string, Seen>();
  /** What this look has found of `#seen`, and what it adds. */
  #found = new Map<string, Seen>();
  #looks = 0;
  #all = true;
  #trustedFrom = -Infinity;
  /** Wall time of this look, and of the one before. */
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

  /** Begins a look at leases, and says whether it is to be at all of them or at those that have run out by the wall clock. */
  begin(): { readonly all: boolean; readonly now: number } {
    this.#now = this.#clock.now();
    this.#found = new Map();
    // The first look too: the lease of a holder that is known to be gone need not run out.
    this.#all = this.#looks % allEvery === 0 || !this.#isTrusted() || this.#seen.size > 0;
    this.#looks += 1;
    return { all: this.#all, now: this.#now };
  }

  /** Whether the task has no holder any more. */
  isOver(head: TaskHead): boolean {
    const { holder, leaseUntil: until = -Infinity, fence } = head;
    if (holder === undefined || this.#isGone(holder)) return true;
    const key = `${head.task.agent}\0${head.task.taskId}`;
    const known = this.#seen.get(key);
    const elapsed = this.#clock.elapsed();
    if (known !== undefined && known.until === until && known.fence === fence) {
      this.#found.set(key, known);
      return elapsed - known.since >= this.#ttl;
    }
    const left = until - this.#now;
    // It moved: its holder lives.
    const moved = known !== undefined;
    const isNews = until >= this.#before || this.#seen.size >= mostWatched;
    const isOver = !moved && left <= 0 && this.#isTrusted() && isNews;
    const isPlain = left > 0 && left <= this.#ttl;
    if (!isPlain && this.#found.size < mostWatched) {
      // What the wall clock has decided stays decided: it may not be possible to take the task over now.
      this.#found.set(key, { until, fence, since: isOver ? -Infinity : elapsed });
    }
    return isOver;
  }

  /** Ends the look: what it did not find is no longer watched. */
  end(): void {
    this.#seen = this.#found;
    this.#before = this.#now;
  }

  #isTrusted(): boolean {
    return this.#clock.elapsed() >= this.#trustedFrom;
  }
}
