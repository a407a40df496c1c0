import { systemClock, type Clock } from "@parley/a2a/internal/base/index";
import { int, type Sql } from "./schema.ts";

/** Milliseconds between two samples. */
const interval = 10_000;
/** `open` takes up to `tries` samples, until the database answers one within this many milliseconds. */
const slow = 250;
const tries = 3;

/**
 * Wall time of the database: the last sample plus the monotonic time since. This clock does not depend on the wall clock of this node,
 * and keeps running while the database is unreachable.
 */
export class DatabaseClock implements Clock {
  readonly #sql: Sql;
  readonly #base: Clock;
  /** Wall time minus monotonic time. */
  #offset: number | undefined;
  #cancel: (() => void) | undefined;
  #isClosed = false;

  /** `base` measures intervals. Tests pass their own clock. */
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

  /** Samples the database now and regularly. */
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
   * Asks the database for the time. The database reads its clock between request and answer, which bounds the offset. Moves the offset
   * only to the nearest bound, so a slow answer changes little. Resolves to the duration.
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
