import { deferred, type Clock } from "../../base/index.ts";
import type { TaskHead } from "../../store/index.ts";
import type { Run } from "../run/index.ts";
import type { Runs } from "./runs.ts";

/** How long a task that was started alone runs before the next one is started, in milliseconds. */
const trialTime = 5_000;
/** How many tasks are queued; later scans find the others. */
const mostSuspects = 1_000;

interface SuspectsInit {
  readonly clock: Clock;
  readonly runs: Pick<Runs, "stopping">;
  /** Takes a task over; `undefined` when that cannot be done now. */
  readonly resume: (head: TaskHead) => Promise<Run | undefined>;
}

/**
 * The tasks of which one may have made its process crash. They are started one after the other: if the process crashes
 * again, the task that was started last is to blame.
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

  add(head: TaskHead): void {
    if (this.#queue.size < mostSuspects) this.#queue.set(head.task.taskId, head);
  }

  /** Begins with the first of the queue, unless one is being tried. */
  startNext(): void {
    if (!this.#busy) void this.#startAll();
  }

  async #startAll(): Promise<void> {
    this.#busy = true;
    for (const [taskId, head] of this.#queue) {
      const run = this.#init.runs.stopping ? undefined : await this.#init.resume(head);
      if (run !== undefined) await this.#watch(run);
      this.#queue.delete(taskId);
    }
    this.#busy = false;
  }

  /** Until something new of the run is stored, it is over, or the process has survived it for a while. */
  async #watch(run: Run): Promise<void> {
    const timeout = deferred<void>();
    const clearTimer = this.#init.clock.after(trialTime, () => timeout.resolve());
    await Promise.race([run.phase.proven(), run.done, timeout.promise]);
    clearTimer();
    // If the process crashes because of the next one, this one is not to blame.
    run.phase.acquit();
    await run.phase.flush().catch(() => {});
  }
}
