import type { ByteBudget } from "@parley/a2a/internal/protocol/index";
import type { Conversations } from "../conversations/conversations.ts";
import type { Committer, LiveLogs } from "../log/index.ts";
import { Emitter } from "../shared/collections.ts";
import { isOutage } from "../shared/errors.ts";
import type { HostedAgent } from "../shared/options.ts";
import type { EngineSettings, RunSettings } from "../shared/settings.ts";
import type { Run, RunDeps } from "../run/index.ts";
import type { TaskKey } from "../../store/index.ts";
import { Leases, LeaseWatch } from "./leases.ts";
import { Maintenance } from "./maintenance.ts";
import { Nodes } from "./nodes.ts";
import { Outage } from "./outage.ts";
import { Queue } from "./queue.ts";
import { QueuePlaces } from "./queue-places.ts";
import { Recovery } from "./recovery.ts";
import { freeRuns, queuedRuns } from "../../store/wakeup.ts";
import { Runs } from "./runs.ts";
import { Standing } from "./standing.ts";
import { Suspects } from "./suspects.ts";
import { Takeover } from "./takeover.ts";
import { Waker } from "./waker.ts";

/** The parts that track the database and the other processes. They exist before any run starts. */
export interface Liveness {
  readonly outage: Outage;
  readonly nodes: Nodes;
  readonly leaseWatch: LeaseWatch;
  readonly workLeft: Emitter;
}

export function createLiveness(settings: EngineSettings): Liveness {
  const outage = new Outage(settings);
  const nodes = new Nodes({ settings, outage });
  const counted = settings.store.nodes === undefined ? undefined : nodes;
  const leaseWatch = new LeaseWatch(settings.clock, settings.lease, counted, (head) => outage.mayResume(head));
  return { outage, nodes, leaseWatch, workLeft: new Emitter() };
}

export interface SupervisorDeps {
  readonly settings: EngineSettings;
  readonly runSettings: RunSettings;
  readonly committer: Committer;
  readonly liveLogs: LiveLogs;
  readonly conversations: Conversations;
  readonly budget: ByteBudget;
  readonly agents: ReadonlyMap<string, HostedAgent>;
  readonly liveness: Liveness;
}

interface Parts extends Liveness {
  readonly settings: EngineSettings;
  readonly standing: Standing;
  readonly runs: Runs;
  readonly places: QueuePlaces;
  readonly queue: Queue;
  readonly waker: Waker;
  readonly recovery: Recovery;
  readonly maintenance: Maintenance;
  readonly changes: RemoteChanges;
}

export function createSupervisor({ liveness, runSettings, ...deps }: SupervisorDeps): Supervisor {
  const { settings, agents, committer, budget, liveLogs } = deps;
  const { outage, nodes, leaseWatch, workLeft } = liveness;
  const suspects = new Suspects(settings.clock);
  const standing = new Standing({ settings, outage, agents });
  const places = new QueuePlaces({ settings, committer, agents });
  const queueNext: RunDeps["queue"] = (task, run, store) =>
    standing.isDraining || standing.isPaused(task.agent) ? places.enter(task, run, store) : undefined;
  const runs = new Runs({ ...deps, settings: runSettings, queue: queueNext }, suspects, standing);
  const takeover = new Takeover({ settings, committer, agents, runs, budget, places });
  const starting = { settings, committer, agents, runs, takeover, outage, suspects, standing };
  const waker = new Waker(starting);
  const queue = new Queue({ ...starting, places });
  const recovery = new Recovery({ ...starting, leaseWatch });
  const leases = new Leases({ settings, agents, committer, runs, watch: leaseWatch });
  const periodic = { settings, agents, runs, nodes, leases, leaseWatch, recovery, outage, workLeft };
  const maintenance = new Maintenance(periodic);
  const changes = new RemoteChanges({ settings, liveLogs, leases, queue, maintenance, workLeft });
  suspects.tried.on(() => {
    void waker.poll();
    void queue.poll();
  });
  return new Supervisor({
    ...liveness,
    settings,
    standing,
    runs,
    places,
    queue,
    waker,
    recovery,
    maintenance,
    changes,
  });
}

/** The runs of this process, with the periodic work for them. */
export class Supervisor {
  readonly runs: Runs;
  readonly queue: Queue;
  readonly places: QueuePlaces;
  readonly standing: Standing;
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.runs = parts.runs;
    this.queue = parts.queue;
    this.places = parts.places;
    this.standing = parts.standing;
    const { nodes, outage, runs, queue, waker, maintenance, changes, workLeft, standing } = parts;
    standing.changed.on(() => void this.#look());
    outage.back.on(() => {
      maintenance.recoverSoon(true);
      void waker.poll();
      void queue.poll();
    });
    nodes.gone.on((unknown) => {
      maintenance.recoverSoon(unknown);
      workLeft.emit();
    });
    nodes.wasAbsent.on(() => changes.compare());
    nodes.cutOff.on(() => loseResumable(runs.all(), outage));
    runs.over.on((run) => this.#over(run));
    runs.rested.on(() => queue.freed());
  }

  /** Polls for work that can start now. */
  async #look(): Promise<void> {
    const { waker, queue, maintenance } = this.#parts;
    maintenance.recoverSoon(true);
    await Promise.all([waker.poll(), queue.poll()]);
  }

  /** Called when an operator has changed a task or an order. */
  async operated(): Promise<void> {
    await this.standing.poll();
    void this.#look();
  }

  /** The known processes, and how long each has been silent, in milliseconds. */
  silences(): ReadonlyMap<string, number> {
    return this.#parts.nodes.silences();
  }

  #over(run: Run): void {
    const { waker, outage, recovery, maintenance, queue } = this.#parts;
    waker.over(run.key, run.phase.waits);
    const { storeError } = run;
    const isOfOutage = run.loss === "cutOff" || (storeError !== undefined && isOutage(storeError.cause));
    if (isOfOutage && run.phase.fence !== undefined) outage.gaveUp(run);
    else outage.forget(run.key.taskId);
    // The run's last commit may have been stored, although the answer to that commit was lost.
    const isLeft = storeError !== undefined;
    if (isLeft || recovery.isCrowded) maintenance.recoverSoon(isLeft);
    queue.freed();
  }

  /** Called when an event of a task was stored. Resumes the task if it waits for the event. */
  settle(task: TaskKey): Promise<unknown> {
    return this.#parts.waker.settle(task);
  }

  /** Starts the periodic work. The first round runs immediately; without `background`, further rounds run only on `tick`. */
  start(background: boolean): void {
    const { settings, outage, nodes, changes, maintenance, waker, queue, runs, standing } = this.#parts;
    outage.start(background);
    nodes.start(background);
    changes.start(background);
    const start = (): void => {
      if (runs.stopping) return;
      maintenance.start(background);
      waker.start(background);
      queue.start(background);
      // Send a heartbeat first, because until then it is unknown which processes are alive.
      if (settings.store.nodes !== undefined) void nodes.beat().then(() => maintenance.recoverSoon());
    };
    // Paused tasks must not start, so first read which are paused.
    if (standing.isRead) start();
    else void standing.start(background).then(start);
  }

  /** Does the periodic work that is due, or all of it (`force`). */
  async tick(force?: boolean): Promise<void> {
    const { nodes, outage, changes, maintenance, waker, queue } = this.#parts;
    await nodes.beat();
    await outage.poll();
    await this.standing.poll();
    changes.poll();
    await maintenance.tick(force);
    await waker.poll();
    await queue.poll();
  }

  /** Waits up to `grace` milliseconds for turns to end, stops the others, and ends all periodic work except the heartbeat. */
  async stop(grace: number): Promise<void> {
    const { runs, outage, waker, queue, maintenance, changes } = this.#parts;
    await runs.stop(grace);
    outage.stop();
    await Promise.all([waker.stop(), queue.stop(), maintenance.stop(), this.standing.stop()]);
    changes.stop();
  }

  /** Called after `stop`, once this process holds no leases or claims, so that other processes need not watch it. */
  leave(): Promise<void> {
    return this.#parts.nodes.stop();
  }
}

/**
 * Aborts the runs that another process may have taken over. A task that cannot be resumed continues, because no other process runs it, and it
 * fails only if this process stays away.
 */
function loseResumable(runs: Iterable<Run>, outage: Outage): void {
  const left = [...runs].filter(({ hosted, phase }) => {
    if (phase.fence === undefined || phase.stopped) return false;
    return hosted.agent.resumable === true || phase.resting;
  });
  outage.cutOff();
  for (const { phase } of left) phase.lose("cutOff");
}

/** Minimum time between two comparisons of all runs with the store, in milliseconds. */
const compareEvery = 1_000;

interface RemoteChangesDeps {
  readonly settings: Pick<EngineSettings, "store" | "clock" | "logger" | "pollInterval">;
  readonly liveLogs: LiveLogs;
  readonly leases: Pick<Leases, "changedElsewhere" | "compare">;
  readonly queue: Pick<Queue, "changedElsewhere">;
  readonly maintenance: { recoverSoon(): void };
  readonly workLeft: Emitter;
}

/**
 * Handles changes by other processes, as the store reports them: readers continue, a run that has lost its task ends, and queued tasks start
 * if there is room.
 */
class RemoteChanges {
  readonly #deps: RemoteChangesDeps;
  readonly #asked = new Map<string, "asked" | "again">();
  #unwatch: (() => void) | undefined;
  #clearTimer: () => void = () => {};
  #comparing = false;
  /** When all runs were compared last, on the monotonic clock. */
  #compared = -Infinity;
  #stopped = false;

  constructor(deps: RemoteChangesDeps) {
    this.#deps = deps;
  }

  start(background: boolean): void {
    const { store } = this.#deps.settings;
    this.#unwatch = store.watch?.((taskId) => this.#changed(taskId));
    if (this.#unwatch === undefined && background) this.#pollLater();
  }

  /** Called when other processes may have taken tasks over. */
  compare(): void {
    void this.#compare();
  }

  poll(): void {
    if (this.#unwatch === undefined) this.#deps.liveLogs.notifyRemote();
  }

  stop(): void {
    this.#stopped = true;
    this.#clearTimer();
    this.#unwatch?.();
  }

  #pollLater(): void {
    const { clock, pollInterval } = this.#deps.settings;
    if (this.#stopped) return;
    this.poll();
    this.#clearTimer = clock.after(pollInterval, () => this.#pollLater());
  }

  #changed(taskId: string | undefined): void {
    const { liveLogs, queue, maintenance, workLeft } = this.#deps;
    if (taskId === freeRuns) {
      maintenance.recoverSoon();
      return workLeft.emit();
    }
    if (taskId === queuedRuns) return queue.changedElsewhere();
    liveLogs.notifyRemote(taskId);
    if (taskId !== undefined) return void this.#ask(taskId);
    // Another process may have released a run, or queued or claimed a task.
    queue.changedElsewhere();
    void this.#compare();
  }

  /** Queries the store about a task, with one query per task at a time. */
  async #ask(taskId: string): Promise<void> {
    if (this.#asked.has(taskId)) return void this.#asked.set(taskId, "again");
    do {
      this.#asked.set(taskId, "asked");
      await this.#deps.leases.changedElsewhere(taskId);
    } while (this.#asked.get(taskId) === "again" && !this.#stopped);
    this.#asked.delete(taskId);
  }

  async #compare(): Promise<void> {
    const { settings, leases, maintenance } = this.#deps;
    const { clock, logger } = settings;
    if (this.#comparing) return;
    this.#comparing = true;
    const wait = this.#compared + compareEvery - clock.elapsed();
    if (wait > 0) await new Promise<void>((resolve) => (this.#clearTimer = clock.after(wait, resolve)));
    this.#comparing = false;
    if (this.#stopped) return;
    this.#compared = clock.elapsed();
    maintenance.recoverSoon();
    await leases.compare().catch((cause: unknown) => logger.debug("Failed to compare runs with the store", { cause }));
  }
}
