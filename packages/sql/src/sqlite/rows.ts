import type { Driver, Value } from "./driver.ts";

export * from "../shared/rows.ts";

export function logKey(number: number, seq: number): number {
  return number * 2 ** 24 + seq;
}

export const ownTables: string = "tasks t JOIN scopes c ON c.id = t.context";
export const taskTables: string = `${ownTables} JOIN scopes a ON a.id = t.agent JOIN scopes o ON o.id = t.owner`;

/**
 * Rows per statement. A call of `libsql` costs 1.3 µs, more than a small row, so sixteen rows per call reduce the cost per row to a third
 * (benchmark row `task-sqlite`).
 */
const sizes = [16, 4, 1] as const;

/** A statement for each number of rows, the largest first. */
export interface ManyStatement {
  readonly columns: number;
  readonly sizes: readonly { readonly rows: number; readonly sql: string }[];
}

/** `sqlOf` gets the rows as `VALUES (?, ?), …`. */
export function statementOf(columns: number, sqlOf: (values: string) => string): ManyStatement {
  const row = `(${Array(columns).fill("?").join(", ")})`;
  return { columns, sizes: sizes.map((rows) => ({ rows, sql: sqlOf(`VALUES ${Array(rows).fill(row).join(", ")}`) })) };
}

/** `conflict` is the clause for existing rows. */
export function insertInto(table: string, columns: readonly string[], conflict = ""): ManyStatement {
  const into = `INSERT INTO ${table} (${columns.join(", ")})`;
  return statementOf(columns.length, (values) => `${into} ${values} ${conflict}`);
}

/** Collects rows for one statement and writes them together, in the order in which they were added. */
export class ManyRows {
  readonly #driver: Driver;
  readonly #statement: ManyStatement;
  #values: Value[] = [];

  constructor(driver: Driver, statement: ManyStatement) {
    this.#driver = driver;
    this.#statement = statement;
  }

  add(...row: readonly Value[]): void {
    this.#values.push(...row);
  }

  write(): void {
    const values = this.#values;
    const { columns, sizes } = this.#statement;
    const { maxParameters = Infinity } = this.#driver;
    let done = 0;
    for (const { rows, sql } of sizes) {
      if (rows * columns > maxParameters) continue;
      for (; values.length - done >= rows * columns; done += rows * columns) {
        this.#driver.prepare(sql).run(...values.slice(done, done + rows * columns));
      }
    }
    this.#values = [];
  }
}
