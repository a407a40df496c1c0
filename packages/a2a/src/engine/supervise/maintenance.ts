import { defer } from "../../base/index.ts";
import type { LiveLogs } from "../log/index.ts";
import type { EngineSettings } from "../options.ts";
import type { Leases } from "./leases.ts";
import type { Recovery } from "./recovery.ts";
import type { Runs } from "./runs.ts";
import { endOverdueTurns } from "./time-limits.ts";

interface MaintenanceInit {
  readonly settings: EngineSettings;
  readonly liveLogs: LiveLogs;
  readonly runs: Pick<Runs, "all">;
  readonly leases: Leases;
  readonly recovery: Recovery;
}

/** The most tasks that one call of the store deletes or compacts. */
const sweepLimit = 100;

/**
 * The periodic work of an engine: time limits, leases, lost runs, remote changes, retention. One timer for all of it.
 * What fails is logged and tried again later; it does not stop the rest.
 */
export class Maintenance {
  readonly #init: MaintenanceInit;
  readonly #heartbeat: number;
  /** Milliseconds between two rounds. */
  readonly #pause: number;
  /** When each kind of work is due next, on the monotonic clock. */
  #leasesDue = -Infinity;
  #pollDue = -Infinity;
  #sweepDue: number;
  readonly #unwatch: (() => void) | undefined;
  #stopped = false;
  #clearTimer: () => void = () => {};

  constructor(init: MaintenanceInit) {
    this.#init = init;
    const { store, clock, lease, pollInterval, retention } = init.settings;
    this.#heartbeat = lease.ttl / 3;
    this.#pause = Math.max(1, Math.min(1_000, this.#heartbeat, pollInterval, retention.interval));
    this.#sweepDue = clock.elapsed() + retention.interval;
    this.#unwatch = store.watch?.((taskId) => init.liveLogs.notifyRemote(taskId));
  }

  start(): void {
    void this.#round();
  }

  stop(): void {
    this.#stopped = true;
    this.#clearTimer();
    this.#unwatch?.();
  }

  async #round(): Promise<void> {
    const { settings, runs, leases } = this.#init;
    const { clock, pollInterval, retention } = settings;
    const now = clock.elapsed();
    endOverdueTurns(runs.all(), now);
    if (leases.clockWasSet()) this.#leasesDue = now;
    if (now >= this.#leasesDue) {
      this.#leasesDue = now + this.#heartbeat;
      await this.#guard("Renewing leases", () => leases.renew());
      await this.#guard("Taking over lost tasks", () => this.#recover());
    }
    if (now >= this.#pollDue) {
      this.#pollDue = now + pollInterval;
      this.#poll();
    }
    if (now >= this.#sweepDue) {
      this.#sweepDue = now + retention.interval;
      await this.#guard("Sweeping", () => this.#sweep());
    }
    if (!this.#stopped) this.#clearTimer = clock.after(this.#pause, () => void this.#round());
  }

  async #guard(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (cause) {
      if (!this.#stopped) this.#init.settings.logger.error(`${what} failed and will be tried again`, { cause });
    }
  }

  async #recover(): Promise<void> {
    const { leases, recovery } = this.#init;
    // Renewing may have taken long.
    if (leases.clockWasSet()) await leases.renew();
    await recovery.scan();
  }

  #poll(): void {
    // A store that can be watched tells of remote changes itself.
    if (this.#unwatch === undefined) this.#init.liveLogs.notifyRemote();
  }

  async #sweep(): Promise<void> {
    const { store, clock, retention } = this.#init.settings;
    const { terminal, replay } = retention;
    const now = clock.now();
    const options = {
      now,
      limit: sweepLimit,
      ...(terminal !== false && { deleteBefore: now - terminal }),
      ...(replay !== false && { compactBefore: now - replay }),
    };
    for (let more = true; more && !this.#stopped;) {
      ({ more } = await store.sweep(options));
      // A long backlog must not keep requests from being read.
      if (more) await new Promise<void>((resolve) => defer(resolve));
    }
  }
}
