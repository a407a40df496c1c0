import type { Logger } from "@parley/a2a/internal/base/index";
import type { NewRecord } from "@parley/a2a/internal/model/index";
import type { FeatureEffect } from "../../store/index.ts";
import { Batch } from "./append.ts";

/** What extensions have added to a record that can do without it. */
export interface Addition {
  /** URIs of the extensions. */
  readonly by: readonly string[];
  /** The record without what they add. */
  readonly bare: () => NewRecord;
  /** The rows that go with the record, of all extensions. */
  readonly rows: readonly FeatureEffect[];
}

/** What extensions have added to records that are not stored yet, and that is left out where the task has no room for it. */
export class Additions {
  readonly #logger: Logger;
  readonly #of = new WeakMap<NewRecord, Addition>();
  /** What the log has a line of. */
  readonly #told = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  note(record: NewRecord, addition: Addition): void {
    this.#of.set(record, addition);
  }

  /** The records are stored. */
  forget(records: readonly NewRecord[]): void {
    for (const record of records) this.#of.delete(record);
  }

  /** A line in the log: one for each extension and limit, since a task that is full stays so. */
  leftOut(by: readonly string[], limit: string): void {
    for (const extension of by) {
      const line = `${limit} ${extension}`;
      if (this.#told.has(line)) continue;
      this.#told.add(line);
      this.#logger.warn("What an extension adds is left out: it does not fit", { extension, limit });
    }
  }

  /** The batch without additions; `undefined` where it has none. */
  withoutAny(batch: Batch): Batch | undefined {
    const found = batch.records.map((record) => this.#bare(record));
    if (found.every((each) => each === undefined)) return undefined;
    const left = new Batch(batch.from, batch.run);
    batch.records.forEach((record, at) => left.addRecord(found[at]?.bare ?? record));
    const rows = new Set(found.flatMap((each) => each?.rows ?? []));
    for (const effect of batch.effects) {
      if (effect.effect !== "feature" || !rows.has(effect)) left.addEffect(effect, batch.placeOf(effect));
    }
    return left;
  }

  #bare(record: NewRecord): { readonly bare: NewRecord; readonly rows: readonly FeatureEffect[] } | undefined {
    const bare = this.bareOf(record);
    const addition = this.#of.get(record);
    this.#of.delete(record);
    if (bare === undefined || addition === undefined) return undefined;
    const { by, rows } = addition;
    this.leftOut(by, "limits.taskBytes");
    return { bare, rows: rows.filter(({ feature }) => by.includes(feature)) };
  }

  /** The record without its addition. `undefined` where it has none, or another extension fails without it: then the record stays as it is. */
  bareOf(record: NewRecord): NewRecord | undefined {
    try {
      return this.#of.get(record)?.bare();
    } catch {
      return undefined;
    }
  }
}
