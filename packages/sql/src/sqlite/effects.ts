import {
  refuseFeatures,
  type AuditedAct,
  type FeatureEffect,
  type OnceEffect,
  type OnceRecord,
} from "@parley/server/internal/store/index";
import { valueTables, type KeyPlace, type KnownTask, type ValueTable } from "../shared/batch.ts";
import { insertAct, trimActs } from "../shared/operators.ts";
import { featureRow } from "../shared/rows.ts";
import { ask, dialect } from "./dialect.ts";
import type { Driver } from "./driver.ts";
import { findOnce } from "./queries.ts";
import { count, encodeJson, encodeName, insertInto, ManyRows } from "./rows.ts";

// Applies the effects of appends: features, idempotency keys, checkpoints, states, and the audit.

const selectRow = "SELECT key, value, due FROM features WHERE task = ? AND feature = ? AND key = ?";
const countRows = "SELECT count(*) FROM features WHERE task = ?";
const setRow = `INSERT INTO features (agent, task, feature, key, value, due) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (task, feature, key) DO UPDATE SET value = excluded.value, due = excluded.due`;
const deleteRow = "DELETE FROM features WHERE task = ? AND feature = ? AND key = ?";
const wakeRows = "UPDATE features SET due = ? WHERE task = ? AND feature = ? AND due IS NULL";

/** The rows of features. Runs no statement for a task that never had rows. */
export class Features {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  refusalOf(task: KnownTask | undefined, effects: readonly FeatureEffect[]): "changed" | "full" | undefined {
    if (effects.length === 0) return undefined;
    const number = task?.hasFeatures === true ? task.row.number : undefined;
    return refuseFeatures(effects, {
      find: (feature, key) => {
        if (number === undefined) return undefined;
        const row = this.#driver.prepare(selectRow).get(number, encodeName(feature), encodeName(key));
        return row && featureRow(row);
      },
      count: () => (number === undefined ? 0 : count(this.#driver.prepare(countRows).get(number))),
    });
  }

  apply(task: KnownTask, effect: FeatureEffect): void {
    task.hasFeatures ||= effect.op === "set";
    if (!task.hasFeatures) return;
    const { number, agent } = task.row;
    const feature = encodeName(effect.feature);
    if (effect.op === "wake") this.#driver.prepare(wakeRows).run(effect.due, number, feature);
    else if (effect.op === "delete") this.#driver.prepare(deleteRow).run(number, feature, encodeName(effect.key));
    else {
      const { key, value, due } = effect;
      this.#driver.prepare(setRow).run(agent, number, feature, encodeName(key), encodeJson(value), due ?? null);
    }
  }
}

/** Inserts keys. A new key replaces an expired key. */
const insertKeys = insertInto(
  "keys",
  ["owner", "name", "hash", "task", "context", "seq", "until", "answer"],
  `ON CONFLICT (owner, name) DO UPDATE SET hash = excluded.hash, task = excluded.task, context = excluded.context,
     seq = excluded.seq, until = excluded.until, answer = excluded.answer`,
);

/** The keys of a transaction: reads keys from the table, and adds new ones at the end. */
export class Keys {
  readonly #driver: Driver;
  readonly #rows: ManyRows;
  readonly #added = new Map<string, { readonly record: OnceRecord; readonly until: number }>();

  constructor(driver: Driver) {
    this.#driver = driver;
    this.#rows = new ManyRows(driver, insertKeys);
  }

  /** Whether the transaction adds this key. */
  has(owner: number, key: string): boolean {
    return this.#added.has(`${owner}/${key}`);
  }

  find(owner: number, key: string, now: number): OnceRecord | undefined {
    const added = this.#added.get(`${owner}/${key}`);
    if (added === undefined) return findOnce(this.#driver, owner, key, now);
    return added.until > now ? added.record : undefined;
  }

  add(
    { key, hash, until, answer }: OnceEffect,
    { owner, task, context }: KeyPlace,
    at: Pick<OnceRecord, "seq" | "taskId">,
  ): void {
    const record = { key, hash, ...(answer !== undefined && { answer }), ...at };
    this.#added.set(`${owner}/${key}`, { record, until: until ?? Infinity });
    const json = answer === undefined ? null : encodeJson(answer);
    this.#rows.add(owner, encodeName(key), encodeName(hash), task, context, at.seq, until ?? null, json);
  }

  write(): void {
    this.#rows.write();
  }
}

/** Checkpoints and states. If a transaction sets a value twice, the last one counts. */
export class Values {
  readonly #driver: Driver;
  readonly #values = new Map<string, readonly [table: ValueTable, id: number, value: string | null]>();

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  set(table: ValueTable, id: number, value: string | null): void {
    this.#values.set(`${table}/${id}`, [table, id, value]);
  }

  /** `isNew` tells whether a task is new and has nothing to delete. */
  write(isNew: (task: number) => boolean): void {
    for (const [table, id, value] of this.#values.values()) {
      const column = valueTables[table];
      if (value !== null) {
        const upsert = `INSERT INTO ${table} (${column}, value) VALUES (?, ?) ON CONFLICT (${column}) DO UPDATE SET value = excluded.value`;
        this.#driver.prepare(upsert).run(id, encodeJson(value));
      } else if (column === "context" || !isNew(id)) {
        this.#driver.prepare(`DELETE FROM ${table} WHERE ${column} = ?`).run(id);
      }
    }
  }
}

/** The audit of operators. Operators act rarely, so each act is a separate statement. */
export class Acts {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  add(act: AuditedAct): void {
    for (const asked of [insertAct(dialect, act), trimActs]) ask(this.#driver, asked);
  }
}
