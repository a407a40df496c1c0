import type { Clock } from "../../base/index.ts";
import type { TaskHead } from "../../store/index.ts";
import { lossOf, type Committer } from "../log/index.ts";
import type { EngineSettings } from "../options.ts";
import type { Run } from "../run/index.ts";
import type { Runs } from "./runs.ts";

/*
 * The end of a lease is wall time, because two processes share no other clock. A wall clock can be set. So leases are renewed
 * when it was, and `LeaseWatch` relies on it only where it can.
 */

interface LeasesInit {
  readonly settings: Pick<EngineSettings, "clock" | "lease" | "logger">;
  readonly committer: Committer;
  readonly runs: Pick<Runs, "all">;
  readonly watch: LeaseWatch;
}

/** The leases of the runs of this process. */
export class Leases {
  readonly #init: LeasesInit;
  readonly #wallClock: WallClockWatch;

  constructor(init: LeasesInit) {
    this.#init = init;
    this.#wallClock = new WallClockWatch(init.settings.clock);
  }

  /** Whether the wall clock was set since the last call. The leases of this process must be renewed then. */
  clockWasSet(): boolean {
    const { settings, watch } = this.#init;
    const jump = this.#wallClock.jump();
    if (jump === 0) return false;
    settings.logger.warn("The wall clock was set", { jump: Math.round(jump) });
    watch.distrustWallClock();
    return true;
  }

  /** Renews all leases. A run that has lost its lease ends. */
  async renew(): Promise<void> {
    const { clock, lease } = this.#init.settings;
    const until = clock.now() + lease.ttl;
    await Promise.all([...this.#init.runs.all()].map((run) => this.#renewOne(run, until)));
  }

  async #renewOne(run: Run, until: number): Promise<void> {
    const { fence } = run.phase;
    if (fence === undefined) return;
    const effects = [{ effect: "lease", op: "renew", until }] as const;
    // A store that fails now may work again before the lease expires.
    const outcome = await this.#init.committer
      .append({ task: run.key, fence, records: [], effects })
      .catch(() => undefined);
    if (outcome?.ok === false) run.phase.lose(lossOf(outcome));
  }
}

/** A wall clock that moved by more than this against the monotonic clock was set. Milliseconds. */
const tolerance = 1_000;

/** Detects that the wall clock was set: by an operator, by time synchronization, or after the machine was asleep. */
class WallClockWatch {
  readonly #clock: Clock;
  /** Wall time minus monotonic time, when it was last measured. */
  #distance: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#distance = this.#measure();
  }

  /** Milliseconds by which the wall clock was set since the last call, or 0. */
  jump(): number {
    const distance = this.#measure();
    const moved = distance - this.#distance;
    // A slow correction is no jump, whatever it adds up to.
    this.#distance = distance;
    return Math.abs(moved) > tolerance ? moved : 0;
  }

  #measure(): number {
    for (let tries = 0; ; tries += 1) {
      const before = this.#clock.elapsed();
      const wall = this.#clock.now();
      const after = this.#clock.elapsed();
      // If the process was suspended between the two readings, their difference includes the pause.
      if (after - before < tolerance / 10 || tries === 5) return wall - after;
    }
  }
}

/** How many leases are watched at a time. Others are watched in later scans. */
const mostWatched = 10_000;
/** Each tenth scan reads all leases. The others read those that have expired by the wall clock. */
const fullScanEvery = 10;

/** A lease as it was found, and since when it has not changed, on the monotonic clock. */
interface Seen {
  readonly until: number;
  readonly fence: number;
  readonly since: number;
}

/**
 * Decides whether a lease has expired, so that its holder counts as dead. Where the wall clock cannot be relied on, a lease
 * has expired once it has not changed for `ttl` on the monotonic clock of this process: a live holder renews it three times
 * in that time.
 *
 * The wall clock is not relied on for `ttl` after it was set, for a lease that ends later than any lease can, and for a lease
 * that has long expired although the previous scan did not find it.
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
  /** Wall time of this scan, and of the previous one. */
  #now = Infinity;
  #before = -Infinity;

  constructor(clock: Clock, lease: { readonly ttl: number; readonly isGone: (holder: string) => boolean }) {
    this.#clock = clock;
    this.#ttl = lease.ttl;
    this.#isGone = lease.isGone;
  }

  /** The wall clock was set: for `ttl` it says nothing about leases. */
  distrustWallClock(): void {
    this.#trustedFrom = this.#clock.elapsed() + this.#ttl;
    this.#before = -Infinity;
  }

  /** Begins a scan. It has to read all leases, as where `every` is true, or those that have expired by the wall clock at `now`. */
  begin(every = false): { readonly all: boolean; readonly now: number } {
    this.#now = this.#clock.now();
    this.#found = new Map();
    // The first scan reads all, because `isGone` may know that a holder is dead before its lease expires.
    const all = every || this.#scans % fullScanEvery === 0 || !this.#isTrusted() || this.#seen.size > 0;
    this.#scans += 1;
    return { all, now: this.#now };
  }

  /** Whether no process holds the task any more. */
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
    // A lease that has changed was renewed, so its holder is alive.
    const isExpired = known === undefined && this.#isExpiredByWallClock(until);
    const left = until - this.#now;
    const isRunning = left > 0 && left <= this.#ttl;
    if (!isRunning && this.#found.size < mostWatched) {
      // A lease that has expired stays expired: the task may have to wait before it is taken over.
      this.#found.set(key, { until, fence, since: isExpired ? -Infinity : elapsed });
    }
    return isExpired;
  }

  /** Ends the scan. Leases that it did not find are no longer watched. */
  end(): void {
    this.#seen = this.#found;
    this.#before = this.#now;
  }

  #isExpiredByWallClock(until: number): boolean {
    if (until > this.#now || !this.#isTrusted()) return false;
    // The previous scan should have found a lease that had expired by then.
    return until >= this.#before || this.#seen.size >= mostWatched;
  }

  #isTrusted(): boolean {
    return this.#clock.elapsed() >= this.#trustedFrom;
  }
}
