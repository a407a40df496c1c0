import { lossOf, type Committer } from "../log/index.ts";
import type { EngineSettings } from "../options.ts";
import type { Run } from "../run/index.ts";
import type { LeaseWatch } from "./lease-watch.ts";
import type { Runs } from "./runs.ts";
import { WallClockWatch } from "./wall-clock.ts";

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

  /** Whether the wall clock was set since the last call. Leases are wall time: those of this process are to be renewed then. */
  clockWasSet(): boolean {
    const { settings, watch } = this.#init;
    const jump = this.#wallClock.jump();
    if (jump === 0) return false;
    settings.logger.warn("The wall clock was set", { jump: Math.round(jump) });
    watch.distrustWallClock();
    return true;
  }

  /** Renews all leases. A run that has lost its own ends now, if it has not noticed before. */
  async renew(): Promise<void> {
    const { clock, lease } = this.#init.settings;
    const until = clock.now() + lease.ttl;
    await Promise.all([...this.#init.runs.all()].map((run) => this.#renewOne(run, until)));
  }

  async #renewOne(run: Run, until: number): Promise<void> {
    const { fence } = run.phase;
    if (fence === undefined) return;
    const effects = [{ effect: "lease", op: "renew", until }] as const;
    // A store that fails now may be back before the lease runs out.
    const outcome = await this.#init.committer
      .append({ task: run.key, fence, records: [], effects })
      .catch(() => undefined);
    if (outcome?.ok === false) run.phase.lose(lossOf(outcome));
  }
}
