import type { LiveLogs } from "../log/index.ts";
import type { Emitter } from "../shared/collections.ts";
import type { EngineSettings } from "../shared/settings.ts";
import { freeRuns, queuedRuns } from "../../store/wakeup.ts";
import type { Leases } from "./leases.ts";
import type { Queue } from "./queue.ts";

/** Least time between two comparisons of all runs with the store, in milliseconds. */
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
 * What other processes change, as the store tells it: readers read on, a run that has lost its task ends, and tasks in the queue begin
 * if there is room.
 */
export class RemoteChanges {
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

  /** Other processes may have taken tasks over. */
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
    // Somebody may have left a run, put a task into the queue, or taken one away.
    queue.changedElsewhere();
    void this.#compare();
  }

  /** One question for each task at a time. */
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
