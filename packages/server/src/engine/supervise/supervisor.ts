import type { ByteBudget } from "@parley/a2a/internal/protocol/index";
import type { Conversations } from "../conversations/conversations.ts";
import type { Committer, LiveLogs } from "../log/index.ts";
import type { EngineSettings, HostedAgent } from "../shared/options.ts";
import { isOutage, type RunSettings } from "../shared/run-store.ts";
import { safeSentences, type Run } from "../run/index.ts";
import type { TaskKey } from "../../store/index.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { Leases } from "./leases.ts";
import { Nodes } from "./nodes.ts";
import { Others } from "./others.ts";
import { Outage } from "./outage.ts";
import { Queue } from "./queue.ts";
import { Recovery } from "./recovery.ts";
import type { SweepTime } from "./retention.ts";
import { Runs } from "./runs.ts";
import { Takeover } from "./takeover.ts";
import { Waker } from "./waker.ts";

interface SupervisorInit {
  readonly settings: EngineSettings;
  /** The same, as runs get them. */
  readonly runSettings: RunSettings;
  readonly committer: Committer;
  readonly liveLogs: LiveLogs;
  readonly conversations: Conversations;
  readonly budget: ByteBudget;
  readonly agents: ReadonlyMap<string, HostedAgent>;
  /** Processes may be gone, and have left other work than runs. */
  readonly onLost: () => void;
}

/** The runs of this process, with the periodic work for them. */
export interface Supervisor {
  readonly runs: Runs;
  /** Tasks that wait for room. */
  readonly queue: Queue;
  /** Starts the periodic work. The first round begins at once. `byItself` false: further ones are those that `round` is called for. */
  start(byItself: boolean): void;
  /** Does the periodic work that is due. `all`: also what is not due yet. */
  round(all?: boolean): Promise<void>;
  /** Whether a process is gone. One that nobody knows may live. */
  isLost(holder: string): boolean;
  /** An event of a task was stored: where it waits for that, it goes on. */
  settle(task: TaskKey): Promise<unknown>;
  /** Lets turns go on for `grace` milliseconds, stops those that have not ended, and ends all periodic work but the heartbeat. */
  stop(grace: number): Promise<void>;
  /** After `stop`, once nothing is held under the name of this process: others need not watch it any more. */
  leave(): Promise<void>;
}

export function createSupervisor({ agents, runSettings, onLost, ...rooms }: SupervisorInit): Supervisor {
  const { settings, committer, liveLogs, budget } = rooms;
  const outage = new Outage({
    settings,
    onBack() {
      maintenance.recoverSoon(true);
      void waker.look();
      void queue.look();
    },
  });
  const nodes = new Nodes({
    settings,
    onGone(unknown) {
      maintenance.recoverSoon(unknown);
      onLost();
    },
    onAbsence: () => others.compare(),
    onCutOff: () => loseResumable(runs.all(), outage),
    onFailure: (cause) => outage.failed(cause),
  });
  const counted = settings.store.nodes === undefined ? undefined : nodes;
  const leaseWatch = new LeaseWatch(settings.clock, settings.lease, counted, (head) => outage.mayResume(head));
  const runs = new Runs(
    { ...rooms, settings: runSettings },
    (run) => {
      waker.over(run.key, run.phase.waits);
      const { storeError } = run;
      const isOfOutage = run.loss === "cutOff" || (storeError !== undefined && isOutage(storeError.cause));
      if (isOfOutage && run.phase.fence !== undefined) outage.gaveUp(run);
      else outage.forget(run.key.taskId);
      // Its last commit may have been stored, although its answer is lost.
      const isLeft = storeError !== undefined;
      if (isLeft || recovery.isCrowded) maintenance.recoverSoon(isLeft);
      queue.freed();
    },
    () => queue.freed(),
    () => recovery.joinTrial(),
  );
  const leases = new Leases({ settings, agents, committer, runs, watch: leaseWatch });
  const putBack: Queue["putBack"] = (...taken) => queue.putBack(...taken);
  const takeover = new Takeover({ settings, committer, agents, runs, budget, putBack });
  const isTrial = (): boolean => recovery.isTrial;
  const waker = new Waker({ settings, committer, agents, runs, takeover, outage, isTrial });
  const queue: Queue = new Queue({ settings, committer, agents, runs, takeover, outage, isTrial });
  const onTried = (): void => {
    void waker.look();
    void queue.look();
  };
  const recovery: Recovery = new Recovery({ settings, agents, runs, takeover, leaseWatch, outage, onTried });
  // Where processes are counted, `onGone` says when one is gone: all that is claimed need not be read each time.
  const onRound = (): void => {
    if (counted === undefined || counted.dead.length > 0) onLost();
  };
  const maintenance = new Maintenance({
    settings,
    agents,
    runs,
    leases,
    leaseWatch,
    recovery,
    outage,
    onLost: onRound,
  });
  const others = new Others({ settings, liveLogs, leases, queue, maintenance, onLost });
  return {
    runs,
    queue,
    isLost: (holder) => leaseWatch.isLost(holder),
    settle: (task) => waker.settle(task),
    start(byItself) {
      outage.start(byItself);
      nodes.start(byItself);
      others.start(byItself);
      maintenance.start(byItself);
      waker.start(byItself);
      queue.start(byItself);
      // Until then it is not known who lives.
      if (counted !== undefined) void nodes.beat().then(() => maintenance.recoverSoon());
    },
    async round(all) {
      await nodes.beat();
      await outage.look();
      others.look();
      await maintenance.round(all);
      await waker.look();
      await queue.look();
    },
    async stop(grace) {
      await runs.stop(grace);
      outage.stop();
      await Promise.all([waker.stop(), queue.stop(), maintenance.stop()]);
      others.stop();
    },
    leave: () => nodes.stop(),
  };
}

interface MaintenanceInit {
  readonly settings: EngineSettings;
  readonly runs: Pick<Runs, "all" | "endTask">;
  readonly agents: ReadonlyMap<string, HostedAgent>;
  readonly leases: Leases;
  readonly leaseWatch: LeaseWatch;
  readonly recovery: Recovery;
  readonly outage: Outage;
  readonly onLost: () => void;
}

/** Milliseconds between two scans where nobody is known to be gone. */
const calmScan = 10_000;

/**
 * The periodic work of an engine, on one timer: timeouts, leases, lost runs, retention. Work that
 * fails is logged and tried again later. The other work goes on.
 */
class Maintenance {
  readonly #init: MaintenanceInit;
  readonly #heartbeat: number;
  /** Milliseconds between two rounds. */
  readonly #pause: number;
  /** When each kind of work is due next, on the monotonic clock. */
  #leasesDue = -Infinity;
  #sweepDue: number;
  /** When unused files are searched for. Not at the start: many processes may start together. */
  #collectDue: number;
  #collecting: Promise<void> | undefined;
  /** Wall time minus monotonic time at the start. */
  #distance = 0;
  #sweepTime: SweepTime | undefined;
  #recovering: Promise<void> | undefined;
  #recoverAgain = false;
  /** The next scan reads all leases. */
  #recoverEvery = false;
  #stopped = false;
  #byItself = true;
  #isWorking = false;
  #working: Promise<void> | undefined;
  #clearTimer: () => void = () => {};

  constructor(init: MaintenanceInit) {
    this.#init = init;
    const { clock, lease, pollInterval, retention, store } = init.settings;
    this.#heartbeat = store.nodes === undefined ? lease.ttl / 3 : calmScan;
    this.#pause = Math.max(1, Math.min(1_000, this.#heartbeat, pollInterval, retention.interval));
    this.#sweepDue = clock.elapsed() + retention.interval;
    this.#collectDue = clock.elapsed() + (init.settings.blobs?.interval ?? Infinity);
  }

  start(byItself: boolean): void {
    const { clock } = this.#init.settings;
    this.#byItself = byItself;
    this.#distance = clock.now() - clock.elapsed();
    void this.round();
  }

  /** One round after the other. A call that finds one under way waits for it, and does what is due then. */
  async round(all = false): Promise<void> {
    while (this.#isWorking) await this.#working;
    if (this.#stopped) return;
    this.#clearTimer();
    if (all) {
      this.#leasesDue = this.#sweepDue = this.#collectDue = -Infinity;
      this.#recoverEvery = true;
    }
    await (this.#working = this.#round());
    if (all) await this.#collecting;
  }

  /** Waits for a scan that is under way: what it had begun to take over is left for another process. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#clearTimer();
    await this.#recovering?.catch(() => {});
  }

  /** Looks for lost tasks now, also while other work is going on. `every`: also for those whose leases have not expired. */
  recoverSoon(every = false): void {
    if (every) this.#recoverEvery = true;
    if (!this.#stopped) void this.#guard("Taking over lost tasks", () => this.#recover());
  }

  /** A round in which nothing is due is over, and the timer of the next one set, when this returns. */
  async #round(): Promise<void> {
    this.#isWorking = true;
    const { settings, runs, leases } = this.#init;
    const { clock, retention, store } = settings;
    const now = clock.elapsed();
    endOverdueTurns(runs.all(), now);
    if (leases.clockWasSet()) this.#leasesDue = now;
    if (now >= this.#leasesDue) {
      this.#leasesDue = now + this.#heartbeat;
      if (store.nodes === undefined) await this.#guard("Renewing leases", () => leases.renew());
      await this.#guard("Taking over lost tasks", () => this.#recover());
      this.#init.onLost();
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
      if (this.#stopped || (await this.#init.outage.failed(cause))) return;
      this.#init.settings.logger.error(`${what} failed and will be tried again`, { cause });
    }
  }

  /** One scan after the other. A call that finds one under way has it scan again. */
  async #recover(): Promise<void> {
    if (this.#init.outage.isAway) return;
    if (this.#recovering !== undefined) {
      this.#recoverAgain = true;
      return this.#recovering;
    }
    this.#recovering = this.#scan().finally(() => (this.#recovering = undefined));
    await this.#recovering;
  }

  async #scan(): Promise<void> {
    const { leases, leaseWatch, recovery, settings } = this.#init;
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

  /** Beside the other work: a large bucket is listed for minutes, and leases are renewed meanwhile. */
  #collect(now: number): void {
    const { blobs } = this.#init.settings;
    if (blobs === undefined || this.#collecting !== undefined) return;
    this.#collectDue = now + blobs.interval;
    const work = async (): Promise<void> => void (await (await blobs.load()).collect(() => this.#stopped));
    this.#collecting = this.#guard("Deleting unused files", work).finally(() => (this.#collecting = undefined));
  }

  async #sweep(): Promise<void> {
    const { settings, runs, agents } = this.#init;
    const isOver = (): boolean => this.#stopped;
    // Loaded when it is first needed.
    const { cancelUnanswered, sweepAll, SweepTime } = await import("./retention.ts");
    const now = (this.#sweepTime ??= new SweepTime(settings, this.#distance)).now();
    await cancelUnanswered({ settings, runs, agents, now, isOver });
    await sweepAll(settings, now, isOver);
  }
}

/**
 * Aborts the runs that another process may have taken over. A task that nobody can resume goes on: it has no second copy, and fails only
 * if this process stays away.
 */
function loseResumable(runs: Iterable<Run>, outage: Outage): void {
  const left = [...runs].filter(({ hosted, phase }) => {
    if (phase.fence === undefined || phase.stopped) return false;
    return hosted.agent.resumable === true || phase.resting;
  });
  outage.cutOff();
  for (const { phase } of left) phase.lose("cutOff");
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
