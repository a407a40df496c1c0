import type { TaskHead } from "../../store/index.ts";
import { Emitter } from "../shared/collections.ts";
import { isOutage } from "../shared/errors.ts";
import type { EngineSettings } from "../shared/settings.ts";
import type { Run } from "../run/index.ts";
import { endsWithin } from "@parley/a2a/internal/base/async";

/** The first and the longest pause between two checks of an unavailable database, in milliseconds. */
const [firstPause, longestPause] = [1_000, 5_000];
/** How long a database must work to count as available again, in milliseconds. */
const stableTime = 5_000;
const checkTimeout = 5_000;
/** Maximum remembered runs that were given up. Further runs resume only after their leases expire. */
const maxLeft = 10_000;
/** How long the function of a run may ignore its signal if its agent has no `idleTimeout`, in milliseconds. */
const defaultIdleTimeout = 5 * 60_000;

interface Left {
  readonly fence: number | undefined;
  /** Until when to wait for the run's function to return; monotonic time. */
  readonly until: number;
  /** Whether the run's function has returned, and no step is in progress. */
  isOver: boolean;
  /** Whether the database has worked again since the run was given up. */
  isFree: boolean;
}

/**
 * Handles an unavailable or full database. Runs whose events cannot be stored are given up, counted, and logged together. Until the
 * database works again, no work starts that would fail. Then this process immediately resumes those runs. It need not wait until its own
 * leases expire, because nothing works on these tasks once their functions have returned.
 */
export class Outage {
  /** Emits when the database may work again, so that abandoned runs and blocked work may start. */
  readonly back: Emitter = new Emitter();
  readonly #settings: Pick<EngineSettings, "clock" | "logger" | "store">;
  readonly #left = new Map<string, Left>();
  #isAway = false;
  #checking: Promise<boolean> | undefined;
  #pause = firstPause;
  /** When the outage began; monotonic time. Absent: no outage. */
  #since: number | undefined;
  /** When the database worked again. `undefined`: it has not yet, or has failed since. */
  #worksSince: number | undefined;
  #isLogged = false;
  #cause: unknown;
  #runs = 0;
  #resumable = 0;
  #due = Infinity;
  #clearTimer: () => void = () => {};
  #background = true;
  #stopped = false;

  constructor(settings: Pick<EngineSettings, "clock" | "logger" | "store">) {
    this.#settings = settings;
  }

  start(background: boolean): void {
    this.#background = background;
  }

  stop(): void {
    this.#stopped = true;
    this.#clearTimer();
    if (this.#since !== undefined && !this.#isLogged) this.#logBegin();
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  /** Called after a failure. Resolves to whether the cause is that the database is unavailable. */
  async failed(cause: unknown): Promise<boolean> {
    if (!isOutage(cause) || this.#stopped) return false;
    if (this.#isAway || (await this.#works())) return this.#isAway;
    this.#goAway(cause);
    return true;
  }

  /** Called when heartbeats have failed for so long that other processes may run this process's tasks. */
  cutOff(): void {
    this.#goAway(undefined);
  }

  gaveUp(run: Run): void {
    const { clock } = this.#settings;
    const { agent } = run.hosted;
    const resumes = agent.resumable === true || run.phase.resting;
    const { idleTimeout = defaultIdleTimeout } = agent;
    const patience = idleTimeout === false ? Infinity : idleTimeout;
    const [oldest] = this.#left.keys();
    if (this.#left.size >= maxLeft && oldest !== undefined) this.#left.delete(oldest);
    const left = { fence: run.phase.fence, until: clock.elapsed() + patience, isOver: false, isFree: false };
    this.#left.set(run.key.taskId, left);
    void run.returned().then(() => {
      left.isOver = true;
      if (left.isFree && !this.#stopped) this.back.emit();
    });
    this.#begin(run.storeError?.cause);
    this.#runs += 1;
    this.#resumable += Number(resumes);
    if (!this.#isAway) void this.failed(run.storeError);
  }

  /** Whether a task that this process leases may be taken over. `undefined`: this process did not give the task up. */
  mayResume({ task, fence }: TaskHead): boolean | undefined {
    const left = this.#left.get(task.taskId);
    if (left === undefined || left.fence !== fence) return undefined;
    return left.isFree && (left.isOver || this.#settings.clock.elapsed() >= left.until);
  }

  forget(taskId: string): void {
    if (this.#left.size > 0) this.#left.delete(taskId);
  }

  async poll(): Promise<void> {
    if (this.#settings.clock.elapsed() >= this.#due) await this.#pollNow();
  }

  async #pollNow(): Promise<void> {
    const { clock } = this.#settings;
    this.#clearTimer();
    if (this.#stopped) return;
    this.#due = Infinity;
    if (this.#worksSince !== undefined) return this.#end(this.#worksSince);
    if (!this.#isLogged) this.#logBegin();
    this.#pause = Math.min(longestPause, 2 * this.#pause);
    if (!(await this.#works())) {
      this.#isAway = true;
      return this.#after(this.#pause);
    }
    this.#isAway = false;
    this.#worksSince = clock.elapsed();
    for (const left of this.#left.values()) left.isFree = true;
    this.#after(stableTime);
    this.back.emit();
  }

  #goAway(cause: unknown): void {
    if (this.#stopped) return;
    this.#isAway = true;
    this.#begin(cause);
  }

  #begin(cause: unknown): void {
    const { clock } = this.#settings;
    this.#cause ??= cause;
    this.#since ??= clock.elapsed();
    if (this.#worksSince === undefined && this.#due !== Infinity) return;
    this.#worksSince = undefined;
    // Runs that are given up at the same time share a log line.
    this.#after(this.#pause);
  }

  #works(): Promise<boolean> {
    return (this.#checking ??= this.#check().finally(() => (this.#checking = undefined)));
  }

  async #check(): Promise<boolean> {
    const { store, clock } = this.#settings;
    if (store.check === undefined) return true;
    const giveUp = new AbortController();
    let works = false;
    const checked = store.check(giveUp.signal).then(({ writable }) => (works = writable));
    const isInTime = await endsWithin(clock, checkTimeout, checked);
    giveUp.abort();
    return isInTime && works;
  }

  #after(ms: number): void {
    const { clock } = this.#settings;
    this.#clearTimer();
    this.#due = clock.elapsed() + ms;
    if (this.#background && !this.#stopped) this.#clearTimer = clock.after(ms, () => void this.#pollNow());
  }

  #logBegin(): void {
    this.#isLogged = true;
    const sentence = "Database unavailable; resumable runs resume when it is back, tasks of other agents fail";
    const fields = { runs: this.#runs, resumable: this.#resumable };
    this.#settings.logger.error(sentence, { ...fields, ...(this.#cause !== undefined && { cause: this.#cause }) });
  }

  #end(worksSince: number): void {
    const fields = { outageMs: Math.round(worksSince - (this.#since ?? worksSince)), runs: this.#runs };
    this.#settings.logger.info("Database available again", { ...fields, resumable: this.#resumable });
    this.#since = this.#worksSince = this.#cause = undefined;
    this.#isLogged = false;
    this.#runs = this.#resumable = 0;
    this.#pause = firstPause;
  }
}
