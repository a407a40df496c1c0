import { isTerminal } from "../../model/index.ts";
import type { OpenWait } from "../../protocol/index.ts";
import {
  waitFeature,
  type DueFeature,
  type FeatureEffect,
  type FeatureRow,
  type TaskHead,
  type TaskKey,
} from "../../store/index.ts";
import { ChurnMap } from "../churn-map.ts";
import type { Committer } from "../log/index.ts";
import type { EngineSettings, HostedAgent } from "../options.ts";
import { isEvent, isWaitOf, seenTurn, waitingRun, type StoredEvent, type Waiting } from "../run/index.ts";
import { Backoff } from "./recovery.ts";
import type { Runs } from "./runs.ts";
import type { Takeover } from "./takeover.ts";

/** Rows of one look. */
const pageSize = 100;
/** How many tasks are woken at a time: those that work may be as large as they are. */
const mostAwake = 256;
/** A task that works may take its events itself. If its process dies, another one looks after this time, in milliseconds. */
const whileItWorks = 60_000;
/** When a task is tried again for which there is no room, in milliseconds. */
const withoutRoom = 2_000;

interface WakerInit {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly agents: ReadonlyMap<string, HostedAgent>;
  readonly runs: Pick<Runs, "stopping" | "has">;
  readonly takeover: Pick<Takeover, "wake">;
}

/**
 * Wakes tasks that wait for a time or an event. They have no run and take no memory: their waits are rows, which are due when their time is
 * over, and so are events that nobody has taken. Each process looks for rows that are due, and one of them gets the lease of the task.
 */
export class Waker {
  readonly #init: WakerInit;
  readonly #backoff: Backoff;
  /** Tasks that were woken here, and work. */
  readonly #awake = new ChurnMap<string, true>();
  /** When this process looks next, on the monotonic clock. */
  #next = Infinity;
  #clearTimer: () => void = () => {};
  #looking: Promise<void> | undefined;
  #again = false;
  /** Rows were left because too many tasks are awake. */
  #isFull = false;
  #started = false;

  constructor(init: WakerInit) {
    this.#init = init;
    this.#backoff = new Backoff(init.settings, "A task that waits could not be woken, and will be tried again later");
  }

  /** `byItself` false: it looks when `look` is called. */
  start(byItself: boolean): void {
    this.#started = byItself;
    void this.look();
  }

  stop(): Promise<void> {
    this.#started = false;
    this.#clearTimer();
    return this.#looking ?? Promise.resolve();
  }

  /** A run of this process is over. `waits`: its task waits. */
  over(task: TaskKey, waits: Waiting | undefined): void {
    this.#awake.delete(task.taskId);
    if (this.#init.runs.stopping) return;
    // One may have come just before the run let go of the task.
    if (waits?.events === true) void this.settle(task);
    if (waits !== undefined && waits.until !== Infinity) this.#setTimer(waits.until - this.#init.settings.clock.now());
    if (this.#isFull && this.#awake.size < mostAwake / 2) {
      this.#isFull = false;
      void this.look();
    }
  }

  /** Wakes a task where one of its waits is over, and else puts off its rows that are due. `false`: nothing has changed. Never rejects. */
  async settle(task: TaskKey): Promise<boolean> {
    const { store } = this.#init.settings;
    const head = await store.head(task, task.taskId).catch(() => undefined);
    if (head === undefined || this.#init.runs.stopping || !this.#backoff.isDue(task.taskId)) return false;
    return (await this.#backoff.guard(head, () => this.#settle(head))) === true;
  }

  /** Looks for rows that are due. A call that finds a look under way has it look again. */
  async look(): Promise<void> {
    if (this.#looking !== undefined) {
      this.#again = true;
      return this.#looking;
    }
    this.#looking = this.#look();
    await this.#looking;
    this.#looking = undefined;
    if (this.#again && !this.#init.runs.stopping) {
      this.#again = false;
      await this.look();
    }
  }

  async #look(): Promise<void> {
    const { clock, logger, pollInterval } = this.#init.settings;
    this.#next = Infinity;
    this.#setTimer(pollInterval);
    try {
      for (let settled = 1; settled > 0 && !this.#init.runs.stopping;) {
        // One query, where nothing is due.
        const [next] = await this.#due(Number.MAX_SAFE_INTEGER, 1);
        if (next === undefined) return;
        if (next.due > clock.now()) return this.#setTimer(next.due - clock.now());
        settled = await this.#settleAll(await this.#due(clock.now(), pageSize));
      }
    } catch (cause) {
      if (!this.#init.runs.stopping)
        logger.error("Looking for waits that are over failed, and will be tried again", { cause });
    }
  }

  /** Returns how many tasks were settled. */
  async #settleAll(rows: readonly DueFeature[]): Promise<number> {
    const tasks = new Map(rows.map(({ task }) => [`${task.agent}\0${task.taskId}`, task]));
    let settled = 0;
    for (const task of tasks.values()) {
      this.#isFull = this.#awake.size >= mostAwake;
      if (this.#isFull || this.#init.runs.stopping) return 0;
      settled += Number(await this.settle(task));
    }
    return settled;
  }

  #due(now: number, limit: number): Promise<readonly DueFeature[]> {
    const { agents, settings } = this.#init;
    return settings.store.dueFeatures({ feature: waitFeature, agents: [...agents.keys()], now, limit });
  }

  /** Looks after this time, where it would not look before. */
  #setTimer(ms: number): void {
    const { clock } = this.#init.settings;
    const wait = Math.max(1, ms);
    if (!this.#started || clock.elapsed() + wait >= this.#next) return;
    this.#clearTimer();
    this.#clearTimer = clock.after(wait, () => void this.look());
    this.#next = clock.elapsed() + wait;
  }

  async #settle(head: TaskHead): Promise<boolean> {
    const { agents, settings, takeover } = this.#init;
    const { task, state } = head;
    const hosted = agents.get(task.agent);
    if (hosted === undefined) return false;
    const rows = await settings.store.features(task, task.taskId, waitFeature);
    if (rows.length === 0) return false;
    if (isTerminal(state))
      return this.#change(
        head,
        rows.map((row) => changed(row, "delete")),
      );
    const now = settings.clock.now();
    const waiting = waitingRun(head);
    if (waiting === undefined) return this.#putOff(head, rows, now);
    const isWait = isWaitOf(seenTurn(waiting, head.checkpoint));
    const over = rows.some((row) => isWait(row) && isOver(waitOf(row), now, rows));
    const due = rows.filter(isDueBy(now));
    const parked = due.map((row) => changed(row, "park"));
    // What is due and ends no wait is for a later one: whoever comes to that reads it.
    if (!over) return this.#change(head, parked);
    const run = await takeover.wake(hosted, head, waiting, parked);
    // There was no room for it, or another process has it.
    if (run === undefined)
      return this.#change(
        head,
        due.map((row) => changed(row, Math.ceil(now + withoutRoom))),
      );
    // It may be over already.
    if (this.#init.runs.has(task.taskId)) this.#awake.set(task.taskId, true);
    return true;
  }

  /** The task works, or waits for its user: its function comes to its waits and events itself, and lets go with new rows. */
  #putOff(head: TaskHead, rows: readonly FeatureRow[], now: number): Promise<boolean> {
    const later = Math.ceil(now + whileItWorks);
    return this.#change(
      head,
      rows.filter(isDueBy(now)).map((row) => (head.run === undefined ? changed(row, "park") : changed(row, later))),
    );
  }

  /** Changes rows, unless the task or a row has changed since. */
  async #change({ task, fence }: TaskHead, effects: readonly FeatureEffect[]): Promise<boolean> {
    if (effects.length === 0) return false;
    return (await this.#init.committer.append({ task, fence, records: [], effects })).ok;
  }
}

function waitOf({ value }: FeatureRow): OpenWait {
  return JSON.parse(value) as OpenWait;
}

/** Whether a wait is over: by its time, or by an event. */
function isOver({ event, until }: OpenWait, now: number, rows: readonly FeatureRow[]): boolean {
  if (until !== undefined && until <= now) return true;
  if (event === undefined) return false;
  return rows.some((row) => isEvent(row) && (JSON.parse(row.value) as StoredEvent).name === event);
}

function isDueBy(now: number): (row: FeatureRow) => boolean {
  return ({ due = Infinity }) => due <= now;
}

/** The change of a row as it was read. `park`: nobody has to look at it any more. A number: somebody has, at that time. */
function changed({ key, value, due }: FeatureRow, to: "delete" | "park" | number): FeatureEffect {
  const row = {
    effect: "feature",
    feature: waitFeature,
    key,
    if: due === undefined ? { value } : { value, due },
  } as const;
  if (to === "delete") return { ...row, op: "delete" };
  return to === "park" ? { ...row, op: "set", value } : { ...row, op: "set", value, due: to };
}
