import type { Value } from "./driver.ts";
import { encodeJson, insertInto, write, type Column } from "./rows.ts";
import { together, type Sql } from "./schema.ts";

/** Tables with one value for each task or context, and the column of their key. */
const tables = { checkpoints: "task", task_states: "task", context_states: "context" } as const;

/** The name of such a table. */
export type ValueTable = keyof typeof tables;

interface Statements {
  readonly table: ValueTable;
  readonly upsert: string;
  readonly remove: string;
  /** Locks rows in the order in which `upsert` does. */
  readonly lock: string;
}

const statements = (Object.keys(tables) as ValueTable[]).map((table): Statements => {
  const key = tables[table];
  const columns: readonly Column[] = [
    [key, "bigint"],
    ["value", "text"],
  ];
  return {
    table,
    upsert: insertInto(table, columns, key, `ON CONFLICT (${key}) DO UPDATE SET value = excluded.value`),
    remove: `DELETE FROM parley.${table} WHERE ${key} = ANY($1::bigint[])`,
    lock: `SELECT 1 FROM parley.${table} WHERE ${key} = ANY($1::bigint[]) ORDER BY ${key} FOR UPDATE`,
  };
});

/** Collects values. The last one that is set counts. */
export class ValueRows {
  readonly #values: Readonly<Record<ValueTable, Map<number, string | null>>> = {
    checkpoints: new Map(),
    task_states: new Map(),
    context_states: new Map(),
  };

  /** `null` deletes the value. */
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
