import type { Clock } from "@parley/a2a/internal/base/index";
import type { ClaimPosition, TaskKey } from "../../store/index.ts";
import { lossOf, type Committer } from "../log/index.ts";
import type { EngineSettings, HostedAgent } from "../shared/options.ts";
import type { Run } from "../run/index.ts";
import type { LeaseWatch } from "./lease-watch.ts";
import type { Runs } from "./runs.ts";

/*
 * The end of a lease is wall time, because two processes share no other clock. A wall clock can be set. So leases are renewed
 * when it was, and `LeaseWatch` relies on it only where it can.
 */

/** How many runs of the store are compared with those of this process at a time. */
const comparedAtOnce = 500;

interface LeasesInit {
  readonly settings: Pick<EngineSettings, "clock" | "lease" | "logger" | "store">;
  readonly agents: ReadonlyMap<string, HostedAgent>;
  readonly committer: Committer;
  readonly runs: Pick<Runs, "all" | "find">;
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
    await Promise.all([...this.#init.runs.all()].map((run) => this.#renewOne(run)));
  }

  /** Another process has changed a task: where it took the lease away, as a cancel does, the run ends at once. */
  async changedElsewhere(taskId: string): Promise<void> {
    const run = this.#init.runs.find(taskId);
    if (run === undefined) return;
    const { fence } = run.phase;
    const { store } = this.#init.settings;
    const head = fence === undefined ? undefined : await store.head(run.key, taskId).catch(() => undefined);
    if (head !== undefined && head.fence !== fence) await this.#renewOne(run);
  }

  /** Other processes may have changed any task. A few queries, whatever the number of runs. */
  async compare(): Promise<void> {
    const { runs, settings, agents } = this.#init;
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

  /** Also finds out whether the run has its lease still. What it stores comes after what the run has stored. */
  async #renewOne(run: Run): Promise<void> {
    const { fence } = run.phase;
    if (fence === undefined) return;
    const { clock, lease } = this.#init.settings;
    const until = clock.now() + lease.term;
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

function nameOf({ agent, taskId }: TaskKey): string {
  return `${agent}\0${taskId}`;
}
