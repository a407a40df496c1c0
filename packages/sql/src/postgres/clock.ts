import { systemClock, type Clock } from "@parley/a2a/internal/base/index";
import { int } from "./rows.ts";
import type { Sql } from "./schema.ts";

/** Milliseconds between two samples. */
const interval = 10_000;
/** An answer that took longer, in milliseconds, is asked for again when the clock is opened, so many times at most. */
const slow = 250;
const tries = 3;

/**
 * Wall time as the database has it: its clock when it was last asked, and the monotonic clock of this process since. Somebody who sets the
 * clock of a node changes nothing. While the database cannot be asked, it goes on.
 */
export class DatabaseClock implements Clock {
  readonly #sql: Sql;
  readonly #base: Clock;
  /** Wall time minus monotonic time. */
  #offset: number | undefined;
  #cancel: (() => void) | undefined;
  #isClosed = false;

  /** `base`: for intervals, and for tests. */
  constructor(sql: Sql, base: Clock = systemClock) {
    this.#sql = sql;
    this.#base = base;
  }

  now(): number {
    return Math.floor(this.#base.elapsed() + (this.#offset ?? 0));
  }

  elapsed(): number {
    return this.#base.elapsed();
  }

  after(ms: number, run: () => void): () => void {
    return this.#base.after(ms, run);
  }

  /** Asks the database, now and from time to time. */
  async open(): Promise<void> {
    for (let count = 0; count < tries && (await this.#sample()) > slow; count += 1);
    this.#next();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  #next(): void {
    if (this.#isClosed) return;
    this.#cancel = this.#base.after(interval, () => {
      const next = (): void => this.#next();
      void this.#sample().then(next, next);
    });
  }

  /**
   * The answer is of a moment between the question and its arrival. So it bounds the offset, and the offset moves only as far as it has
   * to: an answer that waited for a connection, or for a database that was away, changes little or nothing. Resolves to how long it
   * took.
   */
  async #sample(): Promise<number> {
    const before = this.#base.elapsed();
    const [row] = await this.#sql("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint");
    const after = this.#base.elapsed();
    const [least, most] = [int(row, 0) - after, int(row, 0) - before];
    this.#offset = Math.min(Math.max(this.#offset ?? (least + most) / 2, least), most);
    return after - before;
  }
}
