/*
 * What both databases do in the same order is written once, as generators that yield statements. SQLite answers a statement at once, and
 * PostgreSQL later. Statements are written as for PostgreSQL: with `$1`, and with `parley.` before the name of a table.
 */

/** A value of a row. */
export type Value = string | number | null;
/** The columns of a row, in the order of the statement. */
export type Row = readonly unknown[];

/** A statement with its values. Arrays are for statements of PostgreSQL. */
export interface Query {
  readonly sql: string;
  readonly values: readonly (Value | readonly Value[])[];
  /** Whether it returns no rows. */
  readonly writes?: true;
}

/** Yields statements that need not wait for one another, and gets the rows of each. */
export type Steps<T> = Generator<readonly Query[], T, readonly (readonly Row[])[]>;

export function query(sql: string, ...values: Query["values"]): Query {
  return { sql, values };
}

/** A statement that returns no rows. */
export function change(sql: string, ...values: Query["values"]): Query {
  return { sql, values, writes: true };
}

/** The rows of a statement. */
export function* all(asked: Query): Steps<readonly Row[]> {
  const [rows = []] = yield [asked];
  return rows;
}

/** The only row of a statement. */
export function* first(asked: Query): Steps<Row | undefined> {
  const [rows = []] = yield [asked];
  return rows[0];
}
