import { deferred, type Clock } from "../../base/index.ts";
import type { TaskHead } from "../../store/index.ts";
import type { Run } from "../run/index.ts";
import type { Runs } from "./runs.ts";

/** How long a task runs alone before the next one is started, in milliseconds. */
const trialTime = 5_000;
/** How many tasks are queued; later scans find the others. */
const mostSuspects = 1_000;

interface SuspectsInit {
  readonly clock: Clock;
  readonly runs: Pick<Runs, "stopping">;
  /** Takes a task over; `undefined` when that cannot be done now. */
  readonly resume: (head: TaskHead) => Promise<Run | undefined>;
  /** The queue is empty. */
  readonly onTried: () => void;
}

/**
 * Tasks of which one may have caused a crash. They are started one after the other, so that a second crash is counted for the
 * task that was started last.
 */
export class Suspects {
  readonly #init: SuspectsInit;
  readonly #queue = new Map<string, TaskHead>();
  #busy = false;

  constructor(init: SuspectsInit) {
    this.#init = init;
  }

  has(taskId: string): boolean {
    return this.#queue.has(taskId);
  }

  /** Whether a task is on trial, or about to be. */
  get busy(): boolean {
    return this.#busy || this.#queue.size > 0;
  }

  add(head: TaskHead): void {
    if (this.#queue.size < mostSuspects) this.#queue.set(head.task.taskId, head);
  }

  /** Starts the first task of the queue, unless a task of it is already under way. */
  startNext(): void {
    if (!this.#busy && this.#queue.size > 0) void this.#startAll();
  }

  async #startAll(): Promise<void> {
    this.#busy = true;
    for (const [taskId, head] of this.#queue) {
      const run = this.#init.runs.stopping ? undefined : await this.#init.resume(head);
      if (run !== undefined) await this.#proveHarmless(run);
      this.#queue.delete(taskId);
    }
    this.#busy = false;
    this.#init.onTried();
  }

  /** Waits until something new of the run is stored, the run is over, or `trialTime` has passed. */
  async #proveHarmless(run: Run): Promise<void> {
    const timeout = deferred<void>();
    const clearTimer = this.#init.clock.after(trialTime, () => timeout.resolve());
    await Promise.race([run.phase.proven(), run.done, timeout.promise]);
    clearTimer();
    // A crash from now on is counted for the next task, not for this one.
    run.phase.acquit();
    await run.phase.flush().catch(() => {});
  }
}
