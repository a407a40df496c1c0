import type { Clock } from "@parley/a2a/internal/base/index";
import type { TaskHead } from "../../store/index.ts";
import { patience, type Nodes } from "./nodes.ts";

/** A task of a process that nobody knows is watched for so long, in milliseconds. */
const unknownFor = 30_000;
/** How many leases are watched at a time. Others are watched in later scans. */
const maxWatched = 10_000;
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
 * Where the store counts its processes, a lease lasts as long as its process, and that one is asked for.
 *
 * The wall clock is not relied on for `ttl` after it was set, for a lease that ends later than any lease can, and for a lease
 * that has long expired although the previous scan did not find it.
 */
export class LeaseWatch {
  readonly #clock: Clock;
  readonly #nodes: Pick<Nodes, "silence" | "isSilent" | "dead"> | undefined;
  /** The name of this process. It is made when it is first asked for, and platforms give no random bytes before a request. */
  readonly #self: () => string;
  readonly #ttl: number;
  readonly #isGone: (holder: string) => boolean;
  readonly #mayResume: (head: TaskHead) => boolean | undefined;
  #seen = new Map<string, Seen>();
  /** The same for the scan that is under way. */
  #found = new Map<string, Seen>();
  #scans = 0;
  /** A scan of all leases has begun, and has not come to their end. */
  #isOpen = false;
  #trustedFrom = -Infinity;
  /** Wall time of this scan, and of the previous one. */
  #now = Infinity;
  #before = -Infinity;

  /**
   * `nodes`: those that are known to be alive or dead, where the store counts them. `mayResume`: whether a task that this process has given
   * up may be taken over; `undefined` for others.
   */
  constructor(
    clock: Clock,
    lease: {
      readonly ttl: number;
      readonly holder: string;
      readonly isGone: (holder: string) => boolean;
    },
    nodes?: Pick<Nodes, "silence" | "isSilent" | "dead">,
    mayResume: (head: TaskHead) => boolean | undefined = () => undefined,
  ) {
    this.#clock = clock;
    this.#nodes = nodes;
    this.#self = () => lease.holder;
    this.#ttl = lease.ttl;
    this.#isGone = lease.isGone;
    this.#mayResume = mayResume;
  }

  /** Whether leases are watched: the next scan should come soon. */
  get watches(): boolean {
    return this.#seen.size > 0;
  }

  /** The wall clock was set: for `ttl` it says nothing about leases. */
  distrustWallClock(): void {
    this.#trustedFrom = this.#clock.elapsed() + this.#ttl;
    this.#before = -Infinity;
  }

  /**
   * Begins a scan. It has to read all leases, as where `every` is true, or those that have expired by the wall clock at `now`, and those
   * of `holders`.
   */
  begin(every = false): { readonly all: boolean; readonly now: number; readonly holders: readonly string[] } {
    this.#now = this.#clock.now();
    this.#found = new Map();
    // The first scan reads all, because `isGone` may know that a holder is dead before its lease expires.
    const isDoubtful = every || this.#isOpen || this.#seen.size > 0 || !this.#isTrusted();
    const all = isDoubtful || this.#scans % fullScanEvery === 0;
    this.#isOpen = all;
    this.#scans += 1;
    return { all, now: this.#now, holders: all ? [] : (this.#nodes?.dead ?? []) };
  }

  /** Whether no process holds the task any more. */
  isExpired(head: TaskHead): boolean {
    const { holder, leaseUntil: until = -Infinity, fence } = head;
    if (holder === undefined) return true;
    const mayResume = holder === this.#self() ? this.#mayResume(head) : undefined;
    if (mayResume !== undefined) return mayResume;
    if (this.#isSurelyGone(holder)) return true;
    if (this.#nodes !== undefined) return this.#isLeft(this.#nodes, holder, head);
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
    if (!isRunning && this.#found.size < maxWatched) {
      // A lease that has expired stays expired: the task may have to wait before it is taken over.
      this.#found.set(key, { until, fence, since: isExpired ? -Infinity : elapsed });
    }
    return isExpired;
  }

  /** Whether the holder of a task that was found expired has been heard of since: many are taken over, one after the other. */
  isBack({ holder }: TaskHead): boolean {
    if (this.#nodes === undefined || holder === undefined || holder === this.#self()) return false;
    return (this.#nodes.silence(holder) ?? Infinity) < this.#ttl && !this.#isSurelyGone(holder);
  }

  /** Whether its holder has been gone for so long that a task which cannot be resumed is given up. */
  isLongExpired({ holder }: TaskHead): boolean {
    if (this.#nodes === undefined || holder === undefined || this.#isSurelyGone(holder)) return true;
    // This process has no such run, and nobody else will take it while this one lives.
    if (holder === this.#self()) return true;
    return (this.#nodes.silence(holder) ?? Infinity) >= patience * this.#ttl;
  }

  /** Whether a process is gone, so that what it has claimed is nobody's. One that nobody knows may live. */
  isLost(holder: string): boolean {
    if (holder === this.#self()) return false;
    return this.#isSurelyGone(holder) || (this.#nodes?.silence(holder) ?? 0) >= this.#ttl;
  }

  /** Where processes are counted, one that still beats is not gone: two machines may have the same name. */
  #isSurelyGone(holder: string): boolean {
    return this.#isGone(holder) && (this.#nodes === undefined || this.#nodes.isSilent(holder));
  }

  /** Whether a task is left, where its lease lasts as long as its process. */
  #isLeft(nodes: Pick<Nodes, "silence">, holder: string, head: TaskHead): boolean {
    const isOwn = holder === this.#self();
    const silence = isOwn ? undefined : nodes.silence(holder);
    if (silence !== undefined) return silence >= this.#ttl;
    // Nobody knows the process, or this one has lost sight of its task, as after a commit whose answer was lost.
    const { leaseUntil: until = -Infinity, fence, task } = head;
    const key = `${task.agent}\0${task.taskId}`;
    const known = this.#seen.get(key);
    const elapsed = this.#clock.elapsed();
    const isSame = known !== undefined && known.until === until && known.fence === fence;
    const seen = isSame ? known : { until, fence, since: elapsed };
    if (this.#found.size < maxWatched) this.#found.set(key, seen);
    return elapsed - seen.since >= (isOwn ? this.#ttl : unknownFor);
  }

  /** Ends the scan. Leases that it did not find are no longer watched. */
  end(): void {
    this.#isOpen = false;
    this.#seen = this.#found;
    this.#before = this.#now;
  }

  #isExpiredByWallClock(until: number): boolean {
    if (until > this.#now || !this.#isTrusted()) return false;
    // The previous scan should have found a lease that had expired by then.
    return until >= this.#before || this.#seen.size >= maxWatched;
  }

  #isTrusted(): boolean {
    return this.#clock.elapsed() >= this.#trustedFrom;
  }
}
