import type { TaskHead } from "../../store/index.ts";
import type { EngineSettings } from "../options.ts";

/** The longest pause before a task is tried again, in milliseconds. */
const longestPause = 60 * 60_000;
/** How many tasks are remembered. */
const mostTasks = 10_000;

interface Failure {
  readonly tries: number;
  /** When it is tried again, on the monotonic clock. */
  readonly due: number;
}

/**
 * A task that cannot be taken over does not hold up the others: it is logged once, and tried again after longer and
 * longer pauses.
 */
export class Backoff {
  readonly #settings: Pick<EngineSettings, "clock" | "lease" | "logger">;
  readonly #failures = new Map<string, Failure>();

  constructor(settings: Pick<EngineSettings, "clock" | "lease" | "logger">) {
    this.#settings = settings;
  }

  isDue(taskId: string): boolean {
    return (this.#failures.get(taskId)?.due ?? -Infinity) <= this.#settings.clock.elapsed();
  }

  /** What `work` resolves to; `undefined` when it fails. */
  async guard<Result>({ task: { agent, taskId } }: TaskHead, work: () => Promise<Result>): Promise<Result | undefined> {
    try {
      const result = await work();
      this.#failures.delete(taskId);
      return result;
    } catch (cause) {
      const { logger } = this.#settings;
      const first = this.#note(taskId) === 1;
      const text = "A lost task could not be taken over, and will be tried again later";
      if (first) logger.error(text, { agent, taskId, cause });
      return undefined;
    }
  }

  /** Gives how often the task has failed by now. */
  #note(taskId: string): number {
    const { clock, lease } = this.#settings;
    const tries = (this.#failures.get(taskId)?.tries ?? 0) + 1;
    const pause = Math.min(longestPause, lease.ttl * 2 ** (tries - 1));
    if (this.#failures.size >= mostTasks) this.#failures.clear();
    this.#failures.set(taskId, { tries, due: clock.elapsed() + pause });
    return tries;
  }
}
