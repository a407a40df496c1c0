import {
  refuseFeatures,
  type AuditedAct,
  type FeatureEffect,
  type FeatureState,
  type OnceEffect,
  type OnceRecord,
} from "@parley/server/internal/store/index";
import { valueTables, type KeyPlace, type ValueTable } from "../shared/batch.ts";
import { actValues, trimActs } from "../shared/operators.ts";
import { featureRow, onceRecord } from "../shared/rows.ts";
import { dialect } from "./dialect.ts";
import type { Value } from "./driver.ts";
import {
  bothNames,
  columns,
  decodeName,
  encodeJson,
  encodeName,
  indexName,
  insertInto,
  int,
  onceColumns,
  optional,
  rowsOf,
  text,
  timeLimit,
  together,
  wholeKey,
  write,
  type Sql,
} from "./schema.ts";
import type { LockedTask } from "./task-writer.ts";

// Applies the effects of appends: features, idempotency keys, checkpoints, states, and the audit.

/** The name of a feature row. */
export type WantedFeature = readonly [agent: number, taskId: string, feature: string, key: string];

const wantedRows = columns("agent bigint, id text, feature text, key text");
const selectRows = `SELECT ${wholeKey}, f.value, f.due, f.task, f.feature FROM ${rowsOf(wantedRows)}
  JOIN parley.tasks t ON t.agent = v.agent AND t.id = v.id
  JOIN parley.features f ON f.task = t.number AND f.feature = v.feature AND f.key = v.key`;
const ofTasks = wantedRows.slice(0, 2);
const countRows = `SELECT f.task, count(*) FROM (SELECT DISTINCT t.number FROM ${rowsOf(ofTasks)}
  JOIN parley.tasks t ON t.agent = v.agent AND t.id = v.id) n JOIN parley.features f ON f.task = n.number GROUP BY f.task`;

const namedRow = columns("task bigint, feature text, key text");
const woken = columns("task bigint, feature text, due bigint");
const setting = columns(
  "agent bigint, task bigint, feature text, key text, long_key text, value text, due bigint, place bigint",
);
const wakeRows = `UPDATE parley.features f SET due = v.due FROM ${rowsOf(woken)}
  WHERE f.task = v.task AND f.feature = v.feature AND f.due IS NULL`;
const deleteRows = `DELETE FROM parley.features f USING ${rowsOf(namedRow)}
  WHERE f.task = v.task AND f.feature = v.feature AND f.key = v.key`;
// Ids rise in the order in which keys were stored.
const setRows = `INSERT INTO parley.features (agent, task, feature, key, long_key, value, due)
  SELECT agent, task, feature, key, long_key, value, due FROM ${rowsOf(setting)} ORDER BY place
  ON CONFLICT (task, feature, key) DO UPDATE SET value = excluded.value, due = excluded.due`;

/** A row after the items so far. */
interface Changing {
  readonly task: number;
  readonly agent: number;
  readonly feature: string;
  readonly key: string;
  state: FeatureState | undefined;
  /** Whether an item has set or deleted the row. */
  changed: boolean;
}

/** The feature rows of a transaction. Rows that the items name are read at the start; changed rows are written at the end. */
export class FeatureRows {
  readonly #rows = new Map<string, Changing>();
  readonly #counts = new Map<number, number>();
  readonly #wakes = new Map<string, readonly [task: number, feature: string, due: number]>();
  readonly #deleted = new Map<string, readonly Value[]>();

  /** Reads rows. Call this when the tasks are locked, so that all earlier commits are visible. */
  async read(sql: Sql, names: readonly WantedFeature[]): Promise<void> {
    const rows = names.map(([agent, task, feature, key]) => [
      agent,
      indexName(task),
      encodeName(feature),
      indexName(key),
    ]);
    const [found, counts] = await together([
      write(sql, selectRows, rows, wantedRows.length),
      write(sql, countRows, rows, ofTasks.length),
    ]);
    for (const row of found) {
      const { key, ...state } = featureRow(row);
      const [task, feature] = [int(row, 3), decodeName(text(row, 4))];
      this.#rows.set(nameOf(task, feature, key), { task, agent: 0, feature, key, state, changed: false });
    }
    for (const row of counts) this.#counts.set(int(row, 0), int(row, 1));
  }

  refusalOf(known: LockedTask | undefined, effects: readonly FeatureEffect[]): "changed" | "full" | undefined {
    if (effects.length === 0) return undefined;
    const task = known?.row.number;
    return refuseFeatures(effects, {
      find: (feature, key) => (task === undefined ? undefined : this.#rows.get(nameOf(task, feature, key))?.state),
      count: () => (task === undefined ? 0 : (this.#counts.get(task) ?? 0)),
    });
  }

  apply(known: LockedTask, effect: FeatureEffect): void {
    known.hasFeatures ||= effect.op === "set";
    if (!known.hasFeatures) return;
    const { number: task, agent } = known.row;
    const { feature } = effect;
    if (effect.op === "wake") {
      for (const row of this.#rows.values()) {
        if (row.task !== task || row.feature !== feature || row.state === undefined) continue;
        if (row.state.due === undefined) row.state = { value: row.state.value, due: effect.due };
      }
      const path = nameOf(task, feature, "");
      // The first wake of a feature sets `due` of every row without one, so later wakes have no effect.
      if (!this.#wakes.has(path)) this.#wakes.set(path, [task, feature, effect.due]);
      return;
    }
    const { key } = effect;
    const name = nameOf(task, feature, key);
    const before = this.#rows.get(name);
    const by = Number(effect.op === "set") - Number(before?.state !== undefined);
    this.#counts.set(task, (this.#counts.get(task) ?? 0) + by);
    if (effect.op === "delete") this.#deleted.set(name, [task, encodeName(feature), indexName(key)]);
    // A new row is last in the order.
    if (before?.state === undefined) this.#rows.delete(name);
    const { value, due } = effect.op === "set" ? effect : {};
    const state = value === undefined ? undefined : { value, ...(due !== undefined && { due }) };
    this.#rows.set(name, { task, agent, feature, key, state, changed: true });
  }

  async write(sql: Sql): Promise<void> {
    const wakes = Array.from(this.#wakes.values(), ([task, feature, due]) => [task, encodeName(feature), due]);
    const sets: Value[][] = [];
    for (const { task, agent, feature, key, state, changed } of this.#rows.values()) {
      if (!changed || state === undefined) continue;
      const row = [agent, task, encodeName(feature), ...bothNames(key), encodeJson(state.value), state.due ?? null];
      sets.push([...row, sets.length]);
    }
    await together([
      write(sql, wakeRows, wakes, woken.length),
      write(sql, deleteRows, [...this.#deleted.values()], namedRow.length),
      write(sql, setRows, sets, setting.length),
    ]);
  }
}

function nameOf(task: number, feature: string, key: string): string {
  return JSON.stringify([task, feature, key]);
}

const namedKey = columns("owner bigint, name text");
const wantedKeys = columns("owner bigint, name text, now bigint");
/** Locks expired keys, so that only one transaction replaces each. Readers do not wait. */
const lockExpired = `SELECT k.owner, k.name FROM ${rowsOf(wantedKeys)} JOIN parley.keys k ON k.owner = v.owner AND k.name = v.name
  WHERE k.until <= v.now ORDER BY k.owner, k.name FOR NO KEY UPDATE OF k`;
/** A separate statement, because the locking statement would join a key that was just replaced to its former task. */
const selectKeys = `SELECT ${onceColumns}, k.until, k.owner, k.name FROM ${rowsOf(namedKey)}
  JOIN parley.keys k LEFT JOIN parley.tasks t ON t.number = k.task ON k.owner = v.owner AND k.name = v.name`;

const keyColumns = columns(
  "owner bigint, name text, hash text, task bigint, context bigint, seq integer, until bigint, answer text",
);
const insertKeys = insertInto("keys", keyColumns, "owner, name", "ON CONFLICT (owner, name) DO NOTHING RETURNING 1");
const replaceKeys = `UPDATE parley.keys k SET hash = v.hash, task = v.task, context = v.context, seq = v.seq, until = v.until,
  answer = v.answer FROM ${rowsOf(keyColumns)} WHERE k.owner = v.owner AND k.name = v.name`;

interface KnownKey {
  readonly record: OnceRecord;
  readonly until: number;
}

export interface WantedKey {
  readonly owner: number;
  readonly key: string;
  readonly now: number;
}

/** The keys of a transaction. Existing keys are read at the start; new keys are written at the end. */
export class Keys {
  readonly #known = new Map<string, KnownKey>();
  readonly #stored = new Set<string>();
  readonly #locked = new Set<string>();
  readonly #added = new Map<string, readonly Value[]>();

  /** Reads the keys of these owners. */
  async read(sql: Sql, keys: readonly WantedKey[]): Promise<void> {
    const rows = keys.map(({ owner, key, now }) => [owner, indexName(key), timeLimit(Math.floor(now))]);
    const [locked, found] = await together([
      write(sql, lockExpired, rows, wantedKeys.length),
      write(sql, selectKeys, rows, namedKey.length),
    ]);
    for (const row of locked) this.#locked.add(`${int(row, 0)}/${text(row, 1)}`);
    for (const row of found) {
      // The requested key is known, so the record omits it.
      const record = onceRecord("", row);
      const until = optional(row, 4);
      const path = `${int(row, 5)}/${text(row, 6)}`;
      this.#stored.add(path);
      this.#known.set(path, { record, until: typeof until === "number" ? until : Infinity });
    }
  }

  find(owner: number, key: string, now: number): OnceRecord | undefined {
    const known = this.#known.get(`${owner}/${indexName(key)}`);
    return known !== undefined && known.until > now ? { ...known.record, key } : undefined;
  }

  add(
    { key, hash, until, answer }: OnceEffect,
    { owner, task, context }: KeyPlace,
    at: Pick<OnceRecord, "seq" | "taskId">,
  ): void {
    const name = indexName(key);
    const path = `${owner}/${name}`;
    const record = { key, hash, ...(answer !== undefined && { answer }), ...at };
    this.#known.set(path, { record, until: until ?? Infinity });
    const json = answer === undefined ? null : encodeJson(answer);
    this.#added.set(path, [owner, name, encodeName(hash), task, context, at.seq, until ?? null, json]);
  }

  /** Resolves to `false` if another transaction has added or replaced one of the keys. */
  async write(sql: Sql): Promise<boolean> {
    const all = [...this.#added];
    const isNew = ([path]: readonly [string, unknown]): boolean => !this.#stored.has(path);
    const fresh = all.filter(isNew).map(([, row]) => row);
    const again = all.filter((each) => !isNew(each));
    if (again.some(([path]) => !this.#locked.has(path))) return false;
    const [inserted] = await together([
      write(sql, insertKeys, fresh, keyColumns.length),
      write(
        sql,
        replaceKeys,
        again.map(([, row]) => row),
        keyColumns.length,
      ),
    ]);
    return inserted.length === fresh.length;
  }
}

interface Statements {
  readonly table: ValueTable;
  readonly upsert: string;
  readonly remove: string;
  /** Locks rows in the order of `upsert`. */
  readonly lock: string;
}

const statements = (Object.keys(valueTables) as ValueTable[]).map((table): Statements => {
  const key = valueTables[table];
  const rows = columns(`${key} bigint, value text`);
  return {
    table,
    upsert: insertInto(table, rows, key, `ON CONFLICT (${key}) DO UPDATE SET value = excluded.value`),
    remove: `DELETE FROM parley.${table} WHERE ${key} = ANY($1::bigint[])`,
    lock: `SELECT 1 FROM parley.${table} WHERE ${key} = ANY($1::bigint[]) ORDER BY ${key} FOR UPDATE`,
  };
});

/** Checkpoints and states. If a transaction sets a value twice, the last one counts. */
export class ValueRows {
  readonly #values: Readonly<Record<ValueTable, Map<number, string | null>>> = {
    checkpoints: new Map(),
    task_states: new Map(),
    context_states: new Map(),
  };

  set(table: ValueTable, id: number, value: string | null): void {
    this.#values[table].set(id, value === null ? null : encodeJson(value));
  }

  async write(sql: Sql): Promise<void> {
    const sent = statements.flatMap(({ table, upsert, remove, lock }) => {
      const all = [...this.#values[table]];
      const gone = all.filter(([, value]) => value === null).map(([id]) => id);
      const set: Value[][] = all.filter(([, value]) => value !== null);
      if (gone.length === 0) return [write(sql, upsert, set, 2)];
      const ids = all.map(([id]) => id);
      return [sql(lock, ids), write(sql, upsert, set, 2), sql(remove, gone)];
    });
    await together(sent);
  }
}

const actColumns = columns("subject text, whole text, time bigint, json text");
const insertActs = insertInto("acts", actColumns, "time");

/** The audit of operators. */
export class ActRows {
  readonly #rows: (readonly Value[])[] = [];

  add(act: AuditedAct): void {
    this.#rows.push(actValues(dialect, act));
  }

  async write(sql: Sql): Promise<void> {
    if (this.#rows.length === 0) return;
    await together([write(sql, insertActs, this.#rows, actColumns.length), sql(trimActs.sql)]);
  }
}
