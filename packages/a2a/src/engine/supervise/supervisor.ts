import { defer } from "../../base/index.ts";
import type { ByteBudget } from "../../protocol/index.ts";
import type { Conversations } from "../conversations.ts";
import type { Committer, LiveLogs } from "../log/index.ts";
import type { EngineSettings, HostedAgent } from "../options.ts";
import { safeSentences, type Run } from "../run/index.ts";
import type { TaskKey } from "../../store/index.ts";
import { freeRuns } from "../../store/wakeup.ts";
import { Leases, LeaseWatch } from "./leases.ts";
import { Recovery } from "./recovery.ts";
import { Runs } from "./runs.ts";
import { Takeover } from "./takeover.ts";
import { Waker } from "./waker.ts";

interface SupervisorInit {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly liveLogs: LiveLogs;
  readonly conversations: Conversations;
  readonly budget: ByteBudget;
  readonly agents: ReadonlyMap<string, HostedAgent>;
}

/** The runs of this process, with the periodic work for them. */
export interface Supervisor {
  readonly runs: Runs;
  /** Starts the periodic work. The first round begins at once. `byItself` false: further ones are those that `round` is called for. */
  start(byItself: boolean): void;
  /** Does the periodic work that is due. `all`: also what is not due yet. */
  round(all?: boolean): Promise<void>;
  /** An event of a task was stored: where it waits for that, it goes on. */
  settle(task: TaskKey): Promise<unknown>;
  /** Lets turns go on for `grace` milliseconds, stops those that have not ended, and ends all periodic work. */
  stop(grace: number): Promise<void>;
}

export function createSupervisor({ agents, ...rooms }: SupervisorInit): Supervisor {
  const { settings, committer, liveLogs, budget } = rooms;
  const leaseWatch = new LeaseWatch(settings.clock, settings.lease);
  const runs = new Runs(rooms, (run) => waker.over(run.key, run.phase.waits));
  const leases = new Leases({ settings, committer, runs, watch: leaseWatch });
  const takeover = new Takeover({ settings, committer, agents, runs, budget });
  const isTrial = (): boolean => recovery.isTrial;
  const waker = new Waker({ settings, committer, agents, runs, takeover, isTrial });
  const onTried = (): void => void waker.look();
  const recovery: Recovery = new Recovery({ settings, agents, runs, takeover, leaseWatch, onTried });
  const maintenance = new Maintenance({ settings, liveLogs, runs, leases, recovery });
  return {
    runs,
    settle: (task) => waker.settle(task),
    start(byItself) {
      maintenance.start(byItself);
      waker.start(byItself);
    },
    async round(all) {
      await maintenance.round(all);
      await waker.look();
    },
    async stop(grace) {
      await runs.stop(grace);
      await waker.stop();
      maintenance.stop();
    },
  };
}

interface MaintenanceInit {
  readonly settings: EngineSettings;
  readonly liveLogs: LiveLogs;
  readonly runs: Pick<Runs, "all" | "stopping">;
  readonly leases: Leases;
  readonly recovery: Recovery;
}

/** The least time between two looks for runs that nobody has announced, in milliseconds. */
const perhapsEvery = 1_000;
/** The most tasks that one call of the store deletes or compacts. */
const sweepLimit = 100;

/**
 * The periodic work of an engine, on one timer: timeouts, leases, lost runs, changes by other processes, retention. Work that
 * fails is logged and tried again later. The other work goes on.
 */
class Maintenance {
  readonly #init: MaintenanceInit;
  readonly #heartbeat: number;
  /** Milliseconds between two rounds. */
  readonly #pause: number;
  /** When each kind of work is due next, on the monotonic clock. */
  #leasesDue = -Infinity;
  /** Another process has left a run. `all`: leases that have not expired are looked at, too. */
  #runsDue: { readonly all: boolean } | undefined;
  /** Before that time it does not look because there may be a run. */
  #perhapsFrom = -Infinity;
  #pollDue = -Infinity;
  #sweepDue: number;
  /** When unused files are searched for. Not at the start: many processes may start together. */
  #collectDue: number;
  #collecting: Promise<void> | undefined;
  #unwatch: (() => void) | undefined;
  #stopped = false;
  #byItself = true;
  #isWorking = false;
  #working: Promise<void> | undefined;
  #clearTimer: () => void = () => {};

  constructor(init: MaintenanceInit) {
    this.#init = init;
    const { clock, lease, pollInterval, retention } = init.settings;
    this.#heartbeat = lease.ttl / 3;
    this.#pause = Math.max(1, Math.min(1_000, this.#heartbeat, pollInterval, retention.interval));
    this.#sweepDue = clock.elapsed() + retention.interval;
    this.#collectDue = clock.elapsed() + (init.settings.blobs?.interval ?? Infinity);
  }

  start(byItself: boolean): void {
    const { settings, liveLogs } = this.#init;
    this.#byItself = byItself;
    this.#unwatch = settings.store.watch?.((taskId) => {
      if (taskId !== freeRuns) liveLogs.notifyRemote(taskId);
      if (taskId === freeRuns || taskId === undefined) this.#lookForRuns(taskId === undefined);
    });
    void this.round();
  }

  /** One round after the other. A call that finds one under way waits for it, and does what is due then. */
  async round(all = false): Promise<void> {
    while (this.#isWorking) await this.#working;
    if (this.#stopped) return;
    this.#clearTimer();
    if (all) {
      this.#leasesDue = this.#pollDue = this.#sweepDue = this.#collectDue = -Infinity;
      this.#runsDue = { all };
    }
    await (this.#working = this.#round());
    if (all) await this.#collecting;
  }

  stop(): void {
    this.#stopped = true;
    this.#clearTimer();
    this.#unwatch?.();
  }

  /** A round in which nothing is due is over, and the timer of the next one set, when this returns. */
  async #round(): Promise<void> {
    this.#isWorking = true;
    const { settings, runs, leases } = this.#init;
    const { clock, pollInterval, retention } = settings;
    const now = clock.elapsed();
    endOverdueTurns(runs.all(), now);
    if (leases.clockWasSet()) this.#leasesDue = now;
    if (now >= this.#leasesDue) {
      this.#leasesDue = now + this.#heartbeat;
      await this.#guard("Renewing leases", () => leases.renew());
      this.#runsDue ??= { all: false };
    }
    if (this.#runsDue !== undefined) {
      const { all } = this.#runsDue;
      this.#runsDue = undefined;
      await this.#guard("Taking over lost tasks", () => this.#recover(all));
    }
    if (now >= this.#pollDue) {
      this.#pollDue = now + pollInterval;
      this.#poll();
    }
    if (now >= this.#sweepDue) {
      this.#sweepDue = now + retention.interval;
      await this.#guard("Sweeping", () => this.#sweep());
    }
    if (now >= this.#collectDue) this.#collect(now);
    this.#isWorking = false;
    if (!this.#stopped && this.#byItself) this.#clearTimer = clock.after(this.#pause, () => void this.round());
  }

  async #guard(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (cause) {
      if (!this.#stopped) this.#init.settings.logger.error(`${what} failed and will be tried again`, { cause });
    }
  }

  /** Once for all that is told meanwhile. `perhaps`: nobody said that a run is free, so it is done now and then. */
  #lookForRuns(perhaps: boolean): void {
    if (this.#runsDue !== undefined || this.#stopped || this.#init.runs.stopping) return;
    const now = this.#init.settings.clock.elapsed();
    if (perhaps && now < this.#perhapsFrom) return;
    this.#perhapsFrom = now + perhapsEvery;
    this.#runsDue = { all: false };
    if (this.#byItself) void this.round();
  }

  async #recover(all: boolean): Promise<void> {
    const { leases, recovery } = this.#init;
    // The clock may have been set while the leases were renewed.
    if (leases.clockWasSet()) await leases.renew();
    await recovery.scan(all);
  }

  /** Beside the other work: a large bucket is listed for minutes, and leases are renewed meanwhile. */
  #collect(now: number): void {
    const { blobs } = this.#init.settings;
    if (blobs === undefined || this.#collecting !== undefined) return;
    this.#collectDue = now + blobs.interval;
    const work = async (): Promise<void> => void (await (await blobs.load()).collect(() => this.#stopped));
    this.#collecting = this.#guard("Deleting unused files", work).finally(() => (this.#collecting = undefined));
  }

  #poll(): void {
    // A store that can be watched reports changes by other processes.
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
      // Requests are read between two calls.
      if (more) await new Promise<void>((resolve) => defer(resolve));
    }
  }
}

const defaultIdleTimeout = 5 * 60_000;
const defaultTurnTimeout = 60 * 60_000;

/** Ends the turns whose `turnTimeout` or `idleTimeout` has passed. `now`: on the monotonic clock. */
function endOverdueTurns(runs: Iterable<Run>, now: number): void {
  for (const run of runs) {
    const { idleTimeout = defaultIdleTimeout, turnTimeout = defaultTurnTimeout } = run.hosted.agent;
    // It waits for another agent, whose silence is no fault of this one. Its client notices when that one is gone.
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
