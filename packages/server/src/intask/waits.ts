import type { TaskKey } from "../store/index.ts";
import type { InTaskHost } from "./port.ts";
import { inTaskFeature } from "./row.ts";

type Looking = Pick<InTaskHost, "store" | "clock" | "logger" | "pollInterval">;

interface Timer {
  readonly clear: () => void;
}

/** Rows of one look. */
const pageSize = 1000;

/**
 * The turns of this process that wait, by task. What this process stores wakes them at once. For what other processes stored it looks
 * at the rows that have a `due`, every `pollInterval`, however many turns wait, and not at all while none does.
 */
export class Waits {
  readonly #host: Looking;
  readonly #waiting = new Map<string, Set<() => void>>();
  /** The timer of the next look; absent where nobody waits. */
  #timer: Timer | undefined;

  constructor(host: Looking) {
    this.#host = host;
  }

  /** Calls `run` when something of the task was stored. The returned function ends it. */
  on(task: TaskKey, run: () => void): () => void {
    const name = nameOf(task);
    const waiting = this.#waiting.get(name) ?? new Set();
    this.#waiting.set(name, waiting.add(run));
    this.#timer ??= this.#later();
    return () => {
      waiting.delete(run);
      if (waiting.size > 0 || this.#waiting.get(name) !== waiting) return;
      this.#waiting.delete(name);
      if (this.#waiting.size > 0) return;
      this.#timer?.clear();
      this.#timer = undefined;
    };
  }

  changed(task: TaskKey): void {
    for (const run of this.#waiting.get(nameOf(task)) ?? []) run();
  }

  #later(): Timer {
    const { clock, pollInterval } = this.#host;
    const timer: Timer = { clear: clock.after(pollInterval, () => void this.#look(timer)) };
    return timer;
  }

  async #look(timer: Timer): Promise<void> {
    const { store, logger } = this.#host;
    const agents = [...new Set([...this.#waiting.keys()].map((name) => name.slice(0, name.indexOf("\0"))))];
    try {
      for (let after: number | undefined; ;) {
        const query = { feature: inTaskFeature, agents, now: Infinity, limit: pageSize };
        const rows = await store.dueFeatures(after === undefined ? query : { ...query, after });
        for (const { task } of rows) this.changed(task);
        if (rows.length < pageSize) break;
        after = rows.at(-1)?.due;
      }
    } catch (cause) {
      logger.warn("Answers to requests for authorizations could not be looked up, and will be again", { cause });
    }
    // Nobody may wait any more, or somebody again with a timer of their own.
    if (this.#timer === timer) this.#timer = this.#later();
  }
}

/** No id contains NUL. */
function nameOf({ agent, taskId }: TaskKey): string {
  return `${agent}\0${taskId}`;
}
