import type { AppendItem, AppendOutcome, SweepOptions, SweepReport } from "@parley/a2a/store";
import { applyItems, readItems } from "./append.ts";
import { defaultBounds, type Bounds } from "./bounds.ts";
import { retryWhileBusy } from "./busy.ts";
import type { Driver } from "./driver.ts";
import { checkFiles, type Identity } from "./files.ts";
import { sweep } from "./sweep.ts";
import { dataVersion, WriterMemory } from "./writer-memory.ts";

/**
 * What changes a database, in this thread or in one of its own. Calls take effect in the order in which they are made, and
 * reject with what SQLite threw.
 */
export interface Writer {
  append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]>;
  sweep(options: SweepOptions): Promise<SweepReport>;
  /** Whether others may have committed since this was asked last, or ever. */
  moved(): Promise<boolean>;
  /** Call it last. */
  close(): Promise<void>;
}

export interface WriterOptions {
  /** Milliseconds to wait for another process that writes. */
  readonly busyTimeout: number;
  /** Put around everything that is done with the driver. */
  readonly guard?: <T>(body: () => T) => T;
  /** Default: what the library can return without ending the process. */
  readonly bounds?: Bounds;
  /** The files that the database must still be where something is committed. */
  readonly identity?: Identity;
}

/** Writes where it is called. */
export function driverWriter(driver: Driver, options: WriterOptions): Writer {
  const { busyTimeout, guard = (body) => body(), bounds = defaultBounds, identity } = options;
  const memory = new WriterMemory(driver);
  let last: Promise<unknown> | undefined;
  let version: number | undefined;

  /** One after the other, also while one waits for another process: what came first is written first. */
  function inTurn<T>(body: () => T): Promise<T> {
    const attempt = (): Promise<T> => retryWhileBusy(() => guard(body), busyTimeout);
    const done = last === undefined ? attempt() : last.then(attempt);
    const settled = done.then(over, over);
    function over(): void {
      if (last === settled) last = undefined;
    }
    last = settled;
    return done;
  }

  function change<T>(body: () => T): Promise<T> {
    return inTurn(() => {
      try {
        return driver.transaction("write", () => {
          const result = body();
          // A commit into files that were removed would be acknowledged, and lost.
          if (identity !== undefined) checkFiles(identity);
          return result;
        });
      } catch (thrown) {
        memory.forget();
        throw thrown;
      }
    });
  }

  return {
    async append(items) {
      const read = readItems(items);
      return change(() => applyItems(driver, memory, read));
    },
    sweep: (sweeping) =>
      change(() => {
        // Tasks may go that are known.
        memory.forget();
        return sweep(driver, bounds, sweeping);
      }),
    moved: () =>
      inTurn(() => {
        if (identity !== undefined) checkFiles(identity);
        const before = version;
        version = dataVersion(driver);
        return before !== version;
      }),
    close: () => inTurn(() => driver.close()),
  };
}
