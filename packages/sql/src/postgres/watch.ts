import type { Wakeup, WakeupListener } from "@parley/a2a/store";
import { int } from "./rows.ts";
import type { Sql } from "./schema.ts";

/** While wake-ups arrive, a node looks so many times less often. */
const calmer = 10;

export interface WatchOptions {
  readonly wakeup: Wakeup;
  /** Milliseconds between two looks while wake-ups do not arrive. */
  readonly interval: number;
  /** How many transactions this node has begun to write. */
  readonly own: () => number;
}

/**
 * Calls listeners after other nodes have written: at once with a wake-up, and else with the next look at the number of transactions
 * that all nodes have begun.
 */
export class Watch {
  readonly #sql: Sql;
  readonly #options: WatchOptions;
  readonly #listeners = new Set<{ readonly tell: WakeupListener }>();
  #timer: NodeJS.Timeout | undefined;
  #unsubscribe: (() => void) | undefined;
  #others: number | undefined;
  /** Whether others had begun to write at the last look: they may have committed since. */
  #moved = false;
  #looks = 0;

  constructor(sql: Sql, options: WatchOptions) {
    this.#sql = sql;
    this.#options = options;
  }

  /** Returns a function that removes the listener. */
  add(listener: WakeupListener): () => void {
    // The same function may be added twice.
    const entry = { tell: listener };
    this.#listeners.add(entry);
    if (this.#unsubscribe === undefined) {
      this.#unsubscribe = this.#options.wakeup.subscribe((taskId) => this.#tell(taskId));
      this.#timer = setInterval(() => void this.#turn(), this.#options.interval);
      this.#timer.unref(); // Looking keeps no process alive.
    }
    return () => {
      this.#listeners.delete(entry);
      if (this.#listeners.size === 0) this.end();
    };
  }

  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
  }

  async #turn(): Promise<void> {
    this.#looks += 1;
    if (this.#options.wakeup.isConnected && this.#looks % calmer !== 0) return;
    // A database that cannot be read now has no changes to report.
    const moved = await this.#look().catch(() => false);
    const before = this.#moved;
    this.#moved = moved;
    if (moved || before) this.#tell(undefined);
  }

  /** Whether other nodes have begun to write since the last look. */
  async #look(): Promise<boolean> {
    const own = this.#options.own();
    const [row] = await this.#sql("SELECT last_value FROM parley.places");
    // Those of this node that began meanwhile count for it at the next look: one look too many, and never one too few.
    const others = int(row, 0) - own;
    const before = this.#others;
    this.#others = others;
    return before !== undefined && others !== before;
  }

  #tell(taskId: string | undefined): void {
    for (const { tell } of this.#listeners) tell(taskId);
  }
}
