import { isTerminal } from "@parley/a2a/internal/model/index";
import {
  waitFeature,
  type DueFeature,
  type FeatureEffect,
  type FeatureQuery,
  type FeatureRow,
  type TaskHead,
  type TaskKey,
} from "../../store/index.ts";
import { ChurnMap } from "../shared/collections.ts";
import type { Committer } from "../log/index.ts";
import type { HostedAgent } from "../shared/options.ts";
import type { EngineSettings } from "../shared/settings.ts";
import { changed, isDueBy, isOver, isWaitOf, seenTurn, waitingRun, type Run, type Waiting } from "../run/index.ts";
import type { Outage } from "./outage.ts";
import { Backoff, Poller, shuffled } from "./polling.ts";
import type { Runs } from "./runs.ts";
import type { Standing } from "./standing.ts";
import type { Suspects } from "./suspects.ts";
import type { Takeover } from "./takeover.ts";
import { pause } from "@parley/a2a/internal/base/async";

const pageSize = 100;
/** Maximum tasks that are woken at a time, to limit their memory. */
const maxAwakeCount = 256;
/** How many tasks of a poll are settled at the same time. */
const maxAtOnce = 32;
/** Deferral for rows of a running task, which consumes its own events, in milliseconds. If its process dies, another process checks the task then. */
const whileItWorks = 60_000;
/** Delay before a failed task is retried, in milliseconds. */
const afterFailure = 30_000;
/** After this many owners without room in one poll, the poll stops, because most likely no owner has room. */
const maxWithoutRoom = 16;
/** Maximum pages without progress in one poll. The next poll continues after them. */
const maxPages = 50;

interface WakerDeps {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly agents: ReadonlyMap<string, HostedAgent>;
  readonly runs: Pick<Runs, "stopping" | "find" | "room">;
  readonly takeover: Pick<Takeover, "wake">;
  readonly outage: Pick<Outage, "isAway" | "failed">;
  readonly suspects: Pick<Suspects, "isTrial">;
  readonly standing: Pick<Standing, "active" | "isPaused">;
}

type Settled = "changed" | "same" | "failed" | "noRoom";

/**
 * Wakes tasks that wait for a time or an event. These tasks have no run and take no memory: their waits are rows, which become due when the
 * time is over. Events that no wait has consumed are due rows, too. Each process polls for due rows, and one process gets the lease of the task.
 */
export class Waker {
  readonly #deps: WakerDeps;
  readonly #backoff: Backoff;
  readonly #awake = new ChurnMap<string, Run>();
  readonly #poller: Poller;
  /** Whether rows were skipped because too many tasks are awake, or too many runs are active. */
  #isFull = false;
  /** Where the next poll continues: after this `due`. `undefined`: from the beginning. */
  #after: number | undefined;

  constructor(deps: WakerDeps) {
    this.#deps = deps;
    const { settings, runs } = deps;
    this.#poller = new Poller({ clock: settings.clock, work: () => this.#poll(), isOver: () => runs.stopping });
    this.#backoff = new Backoff(deps, "Failed to wake a waiting task; retrying later");
  }

  /** Starts polling. Without `background`, polls only when `poll` is called. */
  start(background: boolean): void {
    this.#poller.start(background);
  }

  stop(): Promise<void> {
    return this.#poller.stop();
  }

  /** Called when a run of this process has ended. `waits`: the task's waits, if it waits. */
  over(task: TaskKey, waits: Waiting | undefined): void {
    this.#awake.delete(task.taskId);
    if (this.#deps.runs.stopping) return;
    if (waits !== undefined) {
      const left = waits.until - this.#deps.settings.clock.now();
      // An event may have arrived just before the run released the task, and rows may have been deferred while it worked.
      if (waits.events || left <= 0) void this.#settled(task, true);
      if (waits.until !== Infinity) this.#poller.after(left);
    }
    if (this.#isFull && this.#working() < maxAwakeCount / 2) {
      this.#isFull = false;
      void this.poll();
    }
  }

  /** Wakes a task if one of its waits is over; otherwise defers its due rows. Never rejects. */
  async settle(task: TaskKey): Promise<void> {
    await this.#settled(task);
  }

  /** Like `settle`. `surely`: tries twice, because a deferred row would be polled only a minute later. */
  async #settled(task: TaskKey, surely = false): Promise<Settled> {
    const { settings, runs } = this.#deps;
    if (runs.stopping) return "same";
    if (!this.#backoff.isDue(task.taskId) || this.#deps.outage.isAway) return "failed";
    const work = async (): Promise<Settled> => {
      const head = await settings.store.head(task, task.taskId);
      return head === undefined || runs.stopping || this.#deps.suspects.isTrial ? "same" : this.#settle(head);
    };
    const twice = async (): Promise<Settled> => {
      try {
        return await work();
      } catch {
        await pause(settings.clock, settings.pollInterval);
        return work();
      }
    };
    return (await this.#backoff.guard({ task }, surely ? twice : work)) ?? "failed";
  }

  /** Polls for due rows. A call during a poll causes another poll. Never rejects. */
  poll(): Promise<void> {
    return this.#poller.now();
  }

  async #poll(): Promise<void> {
    const { clock, logger, pollInterval } = this.#deps.settings;
    this.#poller.after(pollInterval);
    const { suspects, outage, runs } = this.#deps;
    if (suspects.isTrial || runs.stopping || outage.isAway) return;
    try {
      // If nothing is due, one query suffices.
      const [next] = await this.#due({ now: Number.MAX_SAFE_INTEGER, limit: 1 });
      if (next === undefined) return;
      if (next.due > clock.now()) return this.#poller.after(next.due - clock.now());
      await this.#pollAll();
    } catch (cause) {
      if (!runs.stopping && !(await outage.failed(cause))) logger.error("Wait poll failed; retrying", { cause });
    }
  }

  /** Reads page by page, from the end of the last poll. Skips tasks that cannot be woken now, so that they do not block other tasks. */
  async #pollAll(): Promise<void> {
    const { settings, runs } = this.#deps;
    const full = new Set<string>();
    for (let pages = 0; pages < maxPages && !runs.stopping && !this.#deps.suspects.isTrial;) {
      const after = this.#after === undefined ? {} : { after: this.#after };
      const rows = await this.#due({ now: settings.clock.now(), limit: pageSize, ...after });
      const settled = await this.#settleAll(rows, full);
      if (this.#isFull || full.size >= maxWithoutRoom) return;
      if (settled > 0) continue;
      pages += 1;
      this.#after = rows.length < pageSize ? undefined : rows.at(-1)?.due;
      if (this.#after === undefined) {
        const { due } =
          (await this.#due({ now: Number.MAX_SAFE_INTEGER, limit: 1, after: settings.clock.now() }))[0] ?? {};
        if (due !== undefined) this.#poller.after(due - settings.clock.now());
        return;
      }
    }
  }

  /**
   * Returns how many tasks were settled. Handles several tasks at a time, so that one commit takes their leases and stores their events.
   * `full`: collects the owners without room.
   */
  async #settleAll(rows: readonly DueFeature[], full: Set<string>): Promise<number> {
    const tasks = shuffled([...new Map(rows.map(({ task }) => [`${task.agent}\0${task.taskId}`, task])).values()]);
    let settled = 0;
    for (let from = 0; from < tasks.length && !this.#deps.runs.stopping;) {
      const room = Math.min(maxAtOnce, maxAwakeCount - this.#working(), this.#deps.runs.room);
      this.#isFull = room <= 0;
      if (this.#isFull || full.size >= maxWithoutRoom) break;
      const some = tasks.slice(from, from + room).filter(({ owner }) => !full.has(owner));
      from += room;
      const results = await Promise.all(some.map((task) => this.#settleOne(task, rows, full)));
      settled += results.filter((result) => result === "changed").length;
    }
    return settled;
  }

  async #settleOne(task: TaskKey, rows: readonly DueFeature[], full: Set<string>): Promise<Settled> {
    const result = await this.#settled(task);
    if (result === "noRoom") full.add(task.owner);
    if (result === "failed") await this.#putOffFailed(rows.filter((row) => row.task.taskId === task.taskId));
    return result;
  }

  #working(): number {
    let count = 0;
    for (const run of this.#awake.values()) count += Number(!run.phase.resting);
    return count;
  }

  /** Defers the rows of tasks that keep failing, if possible, so that they do not block other tasks. */
  async #putOffFailed(rows: readonly DueFeature[]): Promise<void> {
    const [first] = rows;
    const later = Math.ceil(this.#deps.settings.clock.now() + afterFailure);
    if (first === undefined) return;
    const effects = rows.map((row) => changed(row, later));
    await this.#deps.committer.append({ task: first.task, records: [], effects }).catch(() => {});
  }

  #due(query: Pick<FeatureQuery, "now" | "limit" | "after">): Promise<readonly DueFeature[]> {
    const { agents, settings, standing } = this.#deps;
    return settings.store.dueFeatures({ feature: waitFeature, agents: standing.active(agents.keys()), ...query });
  }

  async #settle(head: TaskHead): Promise<Settled> {
    const { agents, settings, takeover } = this.#deps;
    const { task, state } = head;
    const hosted = agents.get(task.agent);
    // The rows stay due until this process hosts the agent and the agent is not paused.
    if (hosted === undefined || this.#deps.standing.isPaused(task.agent)) return "same";
    const rows = await settings.store.features(task, task.taskId, waitFeature);
    if (rows.length === 0) return "same";
    if (isTerminal(state))
      return this.#change(
        head,
        rows.map((row) => changed(row, "delete")),
      );
    const now = settings.clock.now();
    const waiting = waitingRun(head);
    if (waiting === undefined) return this.#putOff(head, rows, now);
    const isWait = isWaitOf(seenTurn(waiting, head.checkpoint));
    const over = rows.some((row) => isWait(row) && isOver(row, now, rows));
    const due = rows.filter(isDueBy(now));
    const parked = due.map((row) => changed(row, "park"));
    // A due event that ends no wait is for a later wait, which will read the event.
    if (!over) return this.#change(head, parked);
    const run = await takeover.wake(hosted, head, waiting, parked);
    if (run === "noRoom") return run;
    // Another process has taken the task.
    if (run === undefined) return "same";
    // The run may have ended already.
    if (this.#deps.runs.find(task.taskId) === run) this.#awake.set(task.taskId, run);
    return "changed";
  }

  /** Defers rows of a task that runs or waits for its user: the function itself will reach its waits and events, and store new rows. */
  #putOff(head: TaskHead, rows: readonly FeatureRow[], now: number): Promise<Settled> {
    const later = Math.ceil(now + whileItWorks);
    return this.#change(
      head,
      rows.filter(isDueBy(now)).map((row) => (head.run === undefined ? changed(row, "park") : changed(row, later))),
    );
  }

  /** Changes rows, unless the task or a row has changed since. */
  async #change({ task, fence }: TaskHead, effects: readonly FeatureEffect[]): Promise<Settled> {
    if (effects.length === 0) return "same";
    return (await this.#deps.committer.append({ task, fence, records: [], effects })).ok ? "changed" : "same";
  }
}
