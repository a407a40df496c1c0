import type { LiveLogs } from "../log/index.ts";
import type { EngineSettings } from "../shared/options.ts";
import { freeRuns, queuedRuns } from "../../store/wakeup.ts";
import type { Leases } from "./leases.ts";
import type { Queue } from "./queue.ts";

/** Least time between two comparisons of all runs with the store, in milliseconds. */
const compareEvery = 1_000;

interface OthersInit {
  readonly settings: Pick<EngineSettings, "store" | "clock" | "logger" | "pollInterval">;
  readonly liveLogs: LiveLogs;
  readonly leases: Pick<Leases, "changedElsewhere" | "compare">;
  readonly queue: Pick<Queue, "changedElsewhere">;
  readonly maintenance: { recoverSoon(): void };
  readonly onLost: () => void;
}

/**
 * What other processes change, as the store tells it: readers read on, a run that has lost its task ends, and tasks in the queue begin
 * where there is room.
 */
export class Others {
  readonly #init: OthersInit;
  readonly #asked = new Map<string, "asked" | "again">();
  #unwatch: (() => void) | undefined;
  #clearTimer: () => void = () => {};
  #comparing = false;
  /** When all runs were compared last, on the monotonic clock. */
  #compared = -Infinity;
  #stopped = false;

  constructor(init: OthersInit) {
    this.#init = init;
  }

  /** `byItself` false: a store that cannot be watched is looked at when `look` is called. */
  start(byItself: boolean): void {
    const { store } = this.#init.settings;
    this.#unwatch = store.watch?.((taskId) => this.#changed(taskId));
    if (this.#unwatch === undefined && byItself) this.#poll();
  }

  /** Other processes may have taken tasks over. */
  compare(): void {
    void this.#compare();
  }

  /** Any task may have changed, where the store cannot be watched. */
  look(): void {
    if (this.#unwatch === undefined) this.#init.liveLogs.notifyRemote();
  }

  stop(): void {
    this.#stopped = true;
    this.#clearTimer();
    this.#unwatch?.();
  }

  #poll(): void {
    const { clock, pollInterval } = this.#init.settings;
    if (this.#stopped) return;
    this.look();
    this.#clearTimer = clock.after(pollInterval, () => this.#poll());
  }

  #changed(taskId: string | undefined): void {
    const { liveLogs, queue, maintenance, onLost } = this.#init;
    if (taskId === freeRuns) {
      maintenance.recoverSoon();
      return onLost();
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
      await this.#init.leases.changedElsewhere(taskId);
    } while (this.#asked.get(taskId) === "again" && !this.#stopped);
    this.#asked.delete(taskId);
  }

  async #compare(): Promise<void> {
    const { settings, leases, maintenance } = this.#init;
    const { clock, logger } = settings;
    if (this.#comparing) return;
    this.#comparing = true;
    const wait = this.#compared + compareEvery - clock.elapsed();
    if (wait > 0) await new Promise<void>((resolve) => (this.#clearTimer = clock.after(wait, resolve)));
    this.#comparing = false;
    if (this.#stopped) return;
    this.#compared = clock.elapsed();
    maintenance.recoverSoon();
    await leases.compare().catch((cause: unknown) => logger.debug("The runs could not be compared", { cause }));
  }
}
