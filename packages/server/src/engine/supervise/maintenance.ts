import type { HostedAgent } from "../shared/options.ts";
import type { EngineSettings } from "../shared/settings.ts";
import type { Emitter } from "../shared/collections.ts";
import { safeSentences, type Run } from "../run/index.ts";
import type { LeaseWatch, Leases } from "./leases.ts";
import type { Nodes } from "./nodes.ts";
import type { Outage } from "./outage.ts";
import type { Recovery } from "./recovery.ts";
import type { SweepTime } from "./retention.ts";
import type { Runs } from "./runs.ts";

interface MaintenanceDeps {
  readonly settings: EngineSettings;
  readonly runs: Pick<Runs, "all" | "endTask">;
  readonly agents: ReadonlyMap<string, HostedAgent>;
  readonly nodes: Pick<Nodes, "dead">;
  readonly leases: Leases;
  readonly leaseWatch: LeaseWatch;
  readonly recovery: Recovery;
  readonly outage: Outage;
  readonly workLeft: Emitter;
}

/** Milliseconds between two scans while every process is alive. */
const idleScan = 10_000;

/**
 * The periodic work of an engine, on one timer: timeouts, leases, lost runs, retention. If some work fails, the failure is logged, the
 * work is retried later, and all other work continues.
 */
export class Maintenance {
  readonly #deps: MaintenanceDeps;
  readonly #heartbeat: number;
  readonly #pause: number;
  /** When each kind of work is due next, on the monotonic clock. */
  #leasesDue = -Infinity;
  #sweepDue: number;
  /** When to search for unused files. Not at startup, because many processes may start together. */
  #collectDue: number;
  #collecting: Promise<void> | undefined;
  #distance = 0;
  #sweepTime: SweepTime | undefined;
  #recovering: Promise<void> | undefined;
  #recoverAgain = false;
  #recoverEvery = false;
  #stopped = false;
  #background = true;
  #isWorking = false;
  #working: Promise<void> | undefined;
  #clearTimer: () => void = () => {};

  constructor(deps: MaintenanceDeps) {
    this.#deps = deps;
    const { clock, lease, pollInterval, retention, store } = deps.settings;
    this.#heartbeat = store.nodes === undefined ? lease.ttl / 3 : idleScan;
    this.#pause = Math.max(1, Math.min(1_000, this.#heartbeat, pollInterval, retention.interval));
    this.#sweepDue = clock.elapsed() + retention.interval;
    this.#collectDue = clock.elapsed() + (deps.settings.blobs?.interval ?? Infinity);
  }

  start(background: boolean): void {
    const { clock } = this.#deps.settings;
    this.#background = background;
    this.#distance = clock.now() - clock.elapsed();
    void this.tick();
  }

  /** Does the due work, or all of it (`force`). Waits for a running call first. */
  async tick(force = false): Promise<void> {
    while (this.#isWorking) await this.#working;
    if (this.#stopped) return;
    this.#clearTimer();
    if (force) {
      this.#leasesDue = this.#sweepDue = this.#collectDue = -Infinity;
      this.#recoverEvery = true;
    }
    await (this.#working = this.#tick());
    if (force) await this.#collecting;
  }

  /** Waits for a running scan. Tasks that it has begun to take over are released to another process. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#clearTimer();
    await this.#recovering?.catch(() => {});
  }

  /** Looks for lost tasks now, even while other work runs. `every`: also checks tasks whose leases have not expired. */
  recoverSoon(every = false): void {
    if (every) this.#recoverEvery = true;
    if (!this.#stopped) void this.#guard("Scan for lost tasks", () => this.#recover());
  }

  /** If nothing is due, finishes synchronously and sets the next timer. */
  async #tick(): Promise<void> {
    this.#isWorking = true;
    const { settings, runs, leases, nodes, workLeft } = this.#deps;
    const { clock, retention, store } = settings;
    const now = clock.elapsed();
    endOverdueTurns(runs.all(), now);
    if (leases.clockWasSet()) this.#leasesDue = now;
    if (now >= this.#leasesDue) {
      this.#leasesDue = now + this.#heartbeat;
      if (store.nodes === undefined) await this.#guard("Lease renewal", () => leases.renew());
      await this.#guard("Scan for lost tasks", () => this.#recover());
      // If the store counts processes, claimed work need not be read unless a process is dead.
      if (store.nodes === undefined || nodes.dead.length > 0) workLeft.emit();
    }
    if (now >= this.#sweepDue) {
      this.#sweepDue = now + retention.interval;
      await this.#guard("Retention sweep", () => this.#sweep());
    }
    if (now >= this.#collectDue) this.#collect(now);
    this.#isWorking = false;
    if (!this.#stopped && this.#background) this.#clearTimer = clock.after(this.#pause, () => void this.tick());
  }

  async #guard(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (cause) {
      if (this.#stopped || (await this.#deps.outage.failed(cause))) return;
      this.#deps.settings.logger.error(`${what} failed; retrying`, { cause });
    }
  }

  /** Scans for lost tasks, one scan at a time. A call during a scan causes another scan. */
  async #recover(): Promise<void> {
    if (this.#deps.outage.isAway) return;
    if (this.#recovering !== undefined) {
      this.#recoverAgain = true;
      return this.#recovering;
    }
    this.#recovering = this.#scan().finally(() => (this.#recovering = undefined));
    await this.#recovering;
  }

  async #scan(): Promise<void> {
    const { leases, leaseWatch, recovery, settings } = this.#deps;
    const { clock, lease } = settings;
    do {
      this.#recoverAgain = false;
      // The clock may have been set while the leases were renewed.
      if (leases.clockWasSet() && settings.store.nodes === undefined) await leases.renew();
      const every = this.#recoverEvery;
      this.#recoverEvery = false;
      await recovery.scan(every);
      if (leaseWatch.watches) this.#leasesDue = Math.min(this.#leasesDue, clock.elapsed() + lease.ttl);
    } while (this.#recoverAgain && !this.#stopped);
  }

  /** Deletes unused files concurrently with the other work: listing a large bucket takes minutes, but leases must be renewed. */
  #collect(now: number): void {
    const { blobs } = this.#deps.settings;
    if (blobs === undefined || this.#collecting !== undefined) return;
    this.#collectDue = now + blobs.interval;
    const work = async (): Promise<void> => void (await (await blobs.load()).collect(() => this.#stopped));
    this.#collecting = this.#guard("Deletion of unused files", work).finally(() => (this.#collecting = undefined));
  }

  async #sweep(): Promise<void> {
    const { settings, runs, agents } = this.#deps;
    const isOver = (): boolean => this.#stopped;
    // Loaded on first use.
    const { cancelUnanswered, sweepAll, SweepTime } = await import("./retention.ts");
    const now = (this.#sweepTime ??= new SweepTime(settings, this.#distance)).now();
    await cancelUnanswered({ settings, runs, agents, now, isOver });
    await sweepAll(settings, now, isOver);
  }
}

const defaultIdleTimeout = 5 * 60_000;
const defaultTurnTimeout = 60 * 60_000;

/** Ends the turns whose `turnTimeout` or `idleTimeout` has passed. `now`: on the monotonic clock. */
function endOverdueTurns(runs: Iterable<Run>, now: number): void {
  for (const run of runs) {
    const { idleTimeout = defaultIdleTimeout, turnTimeout = defaultTurnTimeout } = run.hosted.agent;
    // While a run waits for another agent, its silence is not an idle timeout. Its client detects if that agent is gone.
    if (run.phase.resting) run.lastEventAt = now;
    if (turnTimeout !== false && now - run.startedAt >= turnTimeout) {
      const cause = new Error(`The turn went on for more than ${turnTimeout} ms`);
      run.phase.fail(safeSentences.late, cause, "turnTimeout");
    } else if (idleTimeout !== false && !run.phase.isInterrupted && now - run.lastEventAt >= idleTimeout) {
      const cause = new Error(`The agent yielded nothing for ${idleTimeout} ms`);
      run.phase.fail(safeSentences.idle, cause, "idleTimeout");
    }
  }
}
