import {
  readItems,
  type AppendItem,
  type AppendOutcome,
  type OperatorChange,
  type Owner,
  type RemovedTasks,
  type StoreNote,
  type SweepOptions,
  type SweepReport,
  type TaskSelection,
} from "@parley/server/internal/store/index";
import { applyItems } from "./append.ts";
import { dialect, run } from "./dialect.ts";
import { retryWhileBusy, type Driver } from "./driver.ts";
import { writeNotes } from "./queries.ts";
import { stepIndex, type IndexStep } from "./search.ts";
import { sweep } from "./sweep.ts";
import type { Bounds } from "../shared/dialect.ts";
import { defaultBounds } from "../shared/tasks.ts";
import { dataVersion, WriterMemory } from "./task-writer.ts";

/** A deletion by an operator. */
export type Tidying =
  | { readonly tasks: TaskSelection; readonly limit: number }
  | { readonly owner: Owner; readonly limit: number };

/** Changes a database, in this thread or another one, in the order of the calls. Rejects with SQLite errors. */
export interface Writer {
  append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]>;
  sweep(options: SweepOptions): Promise<SweepReport>;
  /** Deletes tasks or an owner for an operator. */
  tidy(what: Tidying): Promise<RemovedTasks>;
  /** Overwrites remains of deleted data in the files. */
  scrub(): Promise<void>;
  /** Enables or disables full text search, or indexes existing data. Returns whether there is more to do. */
  index(step: IndexStep): Promise<boolean>;
  /** Stores notes for other processes, and deletes expired ones. */
  note(notes: readonly StoreNote[], now: number): Promise<void>;
  /** Changes a standing order of the operators, and adds to their audit. Returns whether the order had the expected value. */
  operate(change: OperatorChange): Promise<boolean>;
  /** Writes and deletes a row, to find out whether the disk has space. */
  probe(): Promise<void>;
  /** Whether another connection may have committed since the last call. `true` for the first call. */
  moved(): Promise<boolean>;
  /** Must be the last call. */
  close(): Promise<void>;
}

export interface WriterOptions {
  /** Milliseconds to wait while another process writes. */
  readonly busyTimeout: number;
  /** Runs each use of the driver. */
  readonly guard?: <T>(body: () => T) => T;
  /** Default: the maximum sizes that the library can return without crashing the process. */
  readonly bounds?: Bounds;
  /** Throws if the database files were replaced after they were opened: commits to them would be lost. */
  readonly check?: () => void;
}

/** A key that no conversation has. The next probe replaces a row that was left behind. */
const probeKey = -1;
/** About the size of a few events. */
const probeBytes = 64 << 10;
const writeProbe = "INSERT OR REPLACE INTO context_states (context, value) VALUES (?, hex(zeroblob(? / 2)))";
const deleteProbe = "DELETE FROM context_states WHERE context = ?";

/** A writer in this thread. */
export function driverWriter(driver: Driver, options: WriterOptions): Writer {
  const { busyTimeout, guard = (body) => body(), bounds = defaultBounds, check } = options;
  const memory = new WriterMemory(driver);
  const queue = new Queue();
  let version: number | undefined;

  const inTurn = <T>(body: () => T): Promise<T> => queue.add(() => retryWhileBusy(() => guard(body), busyTimeout));
  const change = <T>(body: () => T): Promise<T> =>
    inTurn(() => {
      try {
        return driver.transaction("write", () => {
          const result = body();
          // A commit into removed files would be acknowledged and lost.
          check?.();
          return result;
        });
      } catch (thrown) {
        memory.forget();
        throw thrown;
      }
    });

  return {
    async append(items) {
      const read = readItems(items);
      return change(() => applyItems(driver, memory, read));
    },
    sweep: (sweeping) =>
      change(() => {
        // The sweep may delete known tasks.
        memory.forget();
        return sweep(driver, bounds, sweeping);
      }),
    async tidy(what) {
      // Loaded on first use.
      const { tidy } = await import("./upkeep.ts");
      return change(() => {
        memory.forget();
        return tidy(driver, what);
      });
    },
    async scrub() {
      const { emptyLog, scrub } = await import("./upkeep.ts");
      await inTurn(() => {
        check?.();
        scrub(driver);
      });
      // A separate step, because only this step is retried while a reader blocks the log.
      return inTurn(() => emptyLog(driver));
    },
    index: (step) =>
      change(() => {
        memory.forget();
        return stepIndex(driver, step);
      }),
    note: (notes, now) => change(() => writeNotes(driver, notes, now)),
    operate: async (changing) => {
      const { changeOrders } = await import("../shared/operators.ts");
      return change(() => run(driver, changeOrders(dialect, changing)));
    },
    probe: async () => {
      // Only a commit reveals whether the disk has space.
      await change(() => driver.prepare(writeProbe).run(probeKey, probeBytes));
      await change(() => driver.prepare(deleteProbe).run(probeKey));
    },
    moved: () =>
      inTurn(() => {
        check?.();
        const before = version;
        version = dataVersion(driver);
        return before !== version;
      }),
    close: () => inTurn(() => driver.close()),
  };
}

/** Runs calls one at a time, even while one waits for a lock. */
class Queue {
  #last: Promise<unknown> | undefined;

  add<T>(call: () => Promise<T>): Promise<T> {
    const done = this.#last === undefined ? call() : this.#last.then(call);
    const over = (): void => {
      if (this.#last === settled) this.#last = undefined;
    };
    const settled = done.then(over, over);
    this.#last = settled;
    return done;
  }
}
