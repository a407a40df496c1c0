import type { Clock } from "@parley/a2a/internal/base/index";
import type { StoredRun, TaskHead } from "../../store/index.ts";
import { Emitter } from "../shared/collections.ts";
import type { EngineSettings } from "../shared/settings.ts";
import type { Run } from "../run/index.ts";
import { endsWithin } from "@parley/a2a/internal/base/async";

/*
 * The death of a process counts against a task only if nothing else explains the death. It does not count if the server was stopping, if the
 * process was killed from outside, if the attempt got further than the previous attempt, or if another run began during the task's solo trial.
 */

/** How long a task is on trial, in milliseconds. After this time, a task counts as harmless, even if it has stored nothing new. */
const trialTime = 5_000;
/** Maximum queued tasks. Later scans find the rest. */
const maxSuspects = 1_000;
export const maxAtOnce = 25;

export interface Starter {
  readonly runs: { readonly stopping: boolean; readonly room: number };
  /** Takes over a task. `undefined`: this is not possible now. `alone`: no other task starts at the same time. */
  readonly resume: (head: TaskHead, alone: boolean) => Promise<Run | undefined>;
}

interface Suspect {
  readonly head: TaskHead;
  readonly crashes: number;
}

/**
 * Tasks that were running when a process crashed, so one of them may be the cause. They start on trial: first one alone, then two, then four. The
 * number doubles while nothing crashes, and is 1 again in the next process. Tasks with two or more crashes right after their start come last, one
 * at a time. A crash is blamed only on a task that was on trial alone.
 */
export class Suspects {
  readonly tried: Emitter = new Emitter();
  readonly #clock: Clock;
  readonly #queue = new Map<string, Suspect>();
  /** Whether all lost tasks were read once. */
  hasScanned = false;
  #busy = false;
  /** The task that is on trial alone, if any. */
  #alone: Promise<Run | undefined> | undefined;
  /** Set if other tasks have started during that task's trial. Resolves once this is stored. */
  #joined: Promise<void> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(taskId: string): boolean {
    return this.#queue.has(taskId);
  }

  /** Whether a task is on trial, or about to be. */
  get busy(): boolean {
    return this.#busy || this.#queue.size > 0;
  }

  /** Whether no other task may start, because a task is on trial, or lost tasks have not been read yet and may need a trial. */
  get isTrial(): boolean {
    return !this.hasScanned || this.busy;
  }

  /** Notes that all lost tasks have been read. Returns whether this is the first time. */
  scanned(): boolean {
    const isFirst = !this.hasScanned;
    this.hasScanned = true;
    return isFirst;
  }

  /** Queues a task. `crashes`: recorded crashes that the task did not outlive. A task without crashes starts between two trials. */
  add(head: TaskHead, crashes: number): void {
    if (this.#queue.size < maxSuspects) this.#queue.set(head.task.taskId, { head, crashes });
  }

  /** Starts the first trial of the queue, unless one is running. `after`: runs that must prove harmless first. */
  startNext(starter: Starter, after: readonly Run[] = []): void {
    if (!this.#busy && this.#queue.size > 0) void this.#startAll(starter, after);
  }

  /** Called before another run begins: notes that the task on trial is no longer alone. `undefined`: no task is on trial alone. */
  join(): Promise<void> | undefined {
    return (this.#joined ??= this.#alone?.then((run) => run?.phase.joined()));
  }

  /** Waits until each run has stored something new or ended, at most `trialTime`. Runs that continue are cleared of their crashes. */
  async proven(runs: readonly Run[]): Promise<void> {
    if (runs.length === 0) return;
    const proven = runs.map((run) => Promise.race([run.phase.proven(), run.done]));
    await endsWithin(this.#clock, trialTime, Promise.all(proven));
    // From now on, a crash does not count against these runs.
    for (const { phase } of runs) phase.clearCrashSuspicion();
    await Promise.all(runs.map(({ phase }) => phase.flush().catch(() => {})));
  }

  async #startAll({ runs, resume }: Starter, after: readonly Run[]): Promise<void> {
    this.#busy = true;
    await this.proven(after);
    for (let width = 1; this.#queue.size > 0 && !runs.stopping;) {
      const next = this.#next(width, runs.room);
      const started: Run[] = [];
      for (let at = 0; at < next.length; at += maxAtOnce) {
        const some = next.slice(at, at + maxAtOnce);
        const resumed = some.map(({ head }) => resume(head, next.length === 1));
        this.#alone = next.length === 1 ? resumed[0] : undefined;
        for (const run of await Promise.all(resumed)) if (run !== undefined) started.push(run);
      }
      await this.proven(started);
      this.#alone = this.#joined = undefined;
      for (const { head } of next) this.#queue.delete(head.task.taskId);
      if (next[0]?.crashes === 1) width = Math.min(maxAtOnce, 2 * width);
    }
    this.#queue.clear();
    this.#busy = false;
    if (!this.isTrial) this.tried.emit();
  }

  /** The tasks of the next trial: first all tasks without a crash together, then tasks with one crash, then the other tasks one at a time. */
  #next(width: number, room: number): readonly Suspect[] {
    const all = [...this.#queue.values()];
    const fresh = all.filter(({ crashes }) => crashes === 0);
    if (fresh.length > 0) return fresh;
    const once = all.filter(({ crashes }) => crashes === 1);
    return once.length === 0 ? all.slice(0, 1) : once.slice(0, Math.max(1, Math.min(width, room)));
  }
}

interface Crashes {
  readonly all: number;
  /** How many of the crashes came right after the task's start, so that the task may have caused them. */
  readonly count: number;
  /** Whether the task's last start was alone. */
  readonly alone: boolean;
}

export function crashesOf(
  { run, holder }: Pick<TaskHead, "run" | "holder">,
  lease: Pick<EngineSettings["lease"], "holder" | "wasKilled">,
): Crashes {
  const { deaths = 0, outlived = 0, alone = false } = run ?? {};
  // This process has not crashed, so subtract the crash that its own takeover counted.
  const isOwn = holder === lease.holder;
  const all = isOwn ? Math.max(0, deaths - 1) : deaths;
  const isKilled = !isOwn && holder !== undefined && lease.wasKilled(holder);
  return { all, count: Math.max(0, all - outlived - Number(isKilled)), alone: alone && !isOwn && !isKilled };
}

/** The run to store for the next attempt. It counts one crash in advance, until the attempt makes progress. */
export function nextAttempt({ turn, input, attempt }: StoredRun, { all, count }: Crashes, alone: boolean): StoredRun {
  const next = { turn, input, attempt: attempt + 1, deaths: all + 1, outlived: all - count };
  return count > 0 && alone ? { ...next, alone: true } : next;
}
