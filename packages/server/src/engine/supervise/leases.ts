import type { Clock } from "@parley/a2a/internal/base/index";
import type { ClaimPosition, TaskHead, TaskKey } from "../../store/index.ts";
import { lossOf, type Committer } from "../log/index.ts";
import type { HostedAgent } from "../shared/options.ts";
import type { EngineSettings } from "../shared/settings.ts";
import type { Run } from "../run/index.ts";
import { patience, type Nodes } from "./nodes.ts";
import type { Runs } from "./runs.ts";

/*
 * The end of a lease is wall time, because two processes share no other clock. If an operator sets the wall clock, this process
 * renews its leases, and `LeaseWatch` ignores the wall clock for a while.
 */

/** How long a task of an unknown process is watched, in milliseconds. */
const unknownFor = 30_000;
/** Maximum leases that are watched at the same time. Further leases are watched in later scans. */
const maxWatched = 10_000;
/** Every tenth scan reads all leases. The other scans read only leases that have expired by the wall clock. */
const fullScanEvery = 10;

/** A lease as it was read, and since when it has not changed, on the monotonic clock. */
interface Seen {
  readonly until: number;
  readonly fence: number;
  readonly since: number;
}

/**
 * Decides whether a lease has expired, so that its holder counts as dead. If the wall clock cannot be relied on, a lease
 * has expired once it has not changed for `ttl` on the monotonic clock of this process, because a live holder renews its lease
 * three times in that time.
 *
 * If the store counts processes, a lease lasts as long as its holder, so the holder's heartbeats are checked instead.
 *
 * The wall clock is not trusted in three cases: for `ttl` after a jump, if a lease ends more than a full lease from now, and
 * if a lease expired long ago although the previous scan did not find it.
 */
export class LeaseWatch {
  readonly #clock: Clock;
  readonly #nodes: Pick<Nodes, "silence" | "isSilent" | "dead"> | undefined;
  /** The name of this process. Created on first use, because some platforms have no random bytes before the first request. */
  readonly #self: () => string;
  readonly #ttl: number;
  readonly #isGone: (holder: string) => boolean;
  readonly #mayResume: (head: TaskHead) => boolean | undefined;
  #seen = new Map<string, Seen>();
  #found = new Map<string, Seen>();
  #scans = 0;
  /** Whether a scan of all leases has started and not finished. */
  #isOpen = false;
  #trustedFrom = -Infinity;
  /** Wall time of this scan, and of the previous one. */
  #now = Infinity;
  #before = -Infinity;

  /**
   * `nodes`: the known processes, if the store counts them. `mayResume`: whether this process may resume a task that it gave
   * up in an outage; `undefined` for other tasks.
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

  /** Whether leases are watched, so that the next scan should come soon. */
  get watches(): boolean {
    return this.#seen.size > 0;
  }

  /** Called when the wall clock has jumped. It is then not trusted for `ttl`. */
  distrustWallClock(): void {
    this.#trustedFrom = this.#clock.elapsed() + this.#ttl;
    this.#before = -Infinity;
  }

  /**
   * Starts a scan. The caller must read all leases if `all` is true, as with `every`. Otherwise it must read the leases that have expired by
   * the wall clock at `now`, and all leases of `holders`.
   */
  begin(every = false): { readonly all: boolean; readonly now: number; readonly holders: readonly string[] } {
    this.#now = this.#clock.now();
    this.#found = new Map();
    // The first scan reads all leases, because `isGone` may know that a holder is dead before its lease expires.
    const isDoubtful = every || this.#isOpen || this.#seen.size > 0 || !this.#isTrusted();
    const all = isDoubtful || this.#scans % fullScanEvery === 0;
    this.#isOpen = all;
    this.#scans += 1;
    return { all, now: this.#now, holders: all ? [] : (this.#nodes?.dead ?? []) };
  }

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
      // An expired lease stays expired, because the task may have to wait before it is taken over.
      this.#found.set(key, { until, fence, since: isExpired ? -Infinity : elapsed });
    }
    return isExpired;
  }

  /** Whether the holder of an expired lease has shown a sign of life since the scan, which may be a while ago. */
  isBack({ holder }: TaskHead): boolean {
    if (this.#nodes === undefined || holder === undefined || holder === this.#self()) return false;
    return (this.#nodes.silence(holder) ?? Infinity) < this.#ttl && !this.#isSurelyGone(holder);
  }

  /** Whether a task's holder has been gone so long that the task fails if it cannot be resumed. */
  isLongExpired({ holder }: TaskHead): boolean {
    if (this.#nodes === undefined || holder === undefined || this.#isSurelyGone(holder)) return true;
    // This process has lost track of the task, and no other process takes it over while this process lives.
    if (holder === this.#self()) return true;
    return (this.#nodes.silence(holder) ?? Infinity) >= patience * this.#ttl;
  }

  /** Whether a process is gone, so that its claims are void. A process without a known last heartbeat counts as alive. */
  isLost(holder: string): boolean {
    if (holder === this.#self()) return false;
    return this.#isSurelyGone(holder) || (this.#nodes?.silence(holder) ?? 0) >= this.#ttl;
  }

  /** If the store counts processes, a process that still sends heartbeats is not gone, even if `isGone` reports it: machines may share a name. */
  #isSurelyGone(holder: string): boolean {
    return this.#isGone(holder) && (this.#nodes === undefined || this.#nodes.isSilent(holder));
  }

  /** Whether a task is abandoned, if leases last as long as their process. */
  #isLeft(nodes: Pick<Nodes, "silence">, holder: string, head: TaskHead): boolean {
    const isOwn = holder === this.#self();
    const silence = isOwn ? undefined : nodes.silence(holder);
    if (silence !== undefined) return silence >= this.#ttl;
    // The holder is unknown, or it is this process and has lost track of the task, for example because the answer to a commit was lost.
    const { leaseUntil: until = -Infinity, fence, task } = head;
    const key = `${task.agent}\0${task.taskId}`;
    const known = this.#seen.get(key);
    const elapsed = this.#clock.elapsed();
    const isSame = known !== undefined && known.until === until && known.fence === fence;
    const seen = isSame ? known : { until, fence, since: elapsed };
    if (this.#found.size < maxWatched) this.#found.set(key, seen);
    return elapsed - seen.since >= (isOwn ? this.#ttl : unknownFor);
  }

  end(): void {
    this.#isOpen = false;
    this.#seen = this.#found;
    this.#before = this.#now;
  }

  #isExpiredByWallClock(until: number): boolean {
    if (until > this.#now || !this.#isTrusted()) return false;
    // The previous scan would have found a lease that expired before that scan. If it did not, the wall clock jumped.
    return until >= this.#before || this.#seen.size >= maxWatched;
  }

  #isTrusted(): boolean {
    return this.#clock.elapsed() >= this.#trustedFrom;
  }
}

const comparedAtOnce = 500;

interface LeasesDeps {
  readonly settings: Pick<EngineSettings, "clock" | "lease" | "logger" | "store">;
  readonly agents: ReadonlyMap<string, HostedAgent>;
  readonly committer: Committer;
  readonly runs: Pick<Runs, "all" | "find">;
  readonly watch: LeaseWatch;
}

export class Leases {
  readonly #deps: LeasesDeps;
  readonly #wallClock: WallClockWatch;

  constructor(deps: LeasesDeps) {
    this.#deps = deps;
    this.#wallClock = new WallClockWatch(deps.settings.clock);
  }

  /** Whether the wall clock was set since the last call. The leases of this process must be renewed then. */
  clockWasSet(): boolean {
    const { settings, watch } = this.#deps;
    const jump = this.#wallClock.jump();
    if (jump === 0) return false;
    settings.logger.warn("Wall clock jumped", { jump: Math.round(jump) });
    watch.distrustWallClock();
    return true;
  }

  async renew(): Promise<void> {
    await Promise.all([...this.#deps.runs.all()].map((run) => this.#renewOne(run)));
  }

  /** Called when another process has changed a task. If that process revoked the lease, as a cancel does, the run ends immediately. */
  async changedElsewhere(taskId: string): Promise<void> {
    const run = this.#deps.runs.find(taskId);
    if (run === undefined) return;
    const { fence } = run.phase;
    const { store } = this.#deps.settings;
    const head = fence === undefined ? undefined : await store.head(run.key, taskId).catch(() => undefined);
    if (head !== undefined && head.fence !== fence) await this.#renewOne(run);
  }

  /** Called when other processes may have changed any task. Needs only a few queries, however many runs there are. */
  async compare(): Promise<void> {
    const { runs, settings, agents } = this.#deps;
    const { store } = settings;
    const fences = new Map<string, number>();
    for (const run of runs.all()) if (run.phase.fence !== undefined) fences.set(nameOf(run.key), run.phase.fence);
    if (fences.size === 0) return;
    const query = { now: Number.MAX_SAFE_INTEGER, agents: [...agents.keys()], limit: comparedAtOnce };
    let after: ClaimPosition | undefined;
    do {
      const page = await store.claimable({ ...query, ...(after && { after }) });
      for (const { task, fence } of page.heads) if (fences.get(nameOf(task)) === fence) fences.delete(nameOf(task));
      after = page.next;
    } while (after !== undefined);
    const changed = [...runs.all()].filter(({ key }) => fences.has(nameOf(key)));
    await Promise.all(changed.map((run) => this.#renewOne(run)));
  }

  /** Renews the lease of a run, and ends the run if it has lost the lease. This append is ordered after the run's own appends. */
  async #renewOne(run: Run): Promise<void> {
    const { fence } = run.phase;
    if (fence === undefined) return;
    const { clock, lease } = this.#deps.settings;
    const until = clock.now() + lease.term;
    const effects = [{ effect: "lease", op: "renew", until }] as const;
    // If the store fails now, it may recover before the lease expires.
    const outcome = await this.#deps.committer
      .append({ task: run.key, fence, records: [], effects })
      .catch(() => undefined);
    if (outcome?.ok === false) run.phase.lose(lossOf(outcome));
  }
}

/** If the wall clock moves by more than this against the monotonic clock, it was set. In milliseconds. */
const tolerance = 1_000;

/** Detects that the wall clock was set by an operator, by time synchronization, or after the machine was asleep. */
class WallClockWatch {
  readonly #clock: Clock;
  #distance: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#distance = this.#measure();
  }

  /** Milliseconds by which the wall clock was set since the last call, or 0. */
  jump(): number {
    const distance = this.#measure();
    const moved = distance - this.#distance;
    // A slow correction is not a jump, even if it adds up.
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

function nameOf({ agent, taskId }: TaskKey): string {
  return `${agent}\0${taskId}`;
}
