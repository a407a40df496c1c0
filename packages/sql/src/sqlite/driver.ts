/**
 * What the store asks of a SQLite library: little, so that another one can take its place, in this thread or behind
 * another. Statements are those of the sources alone: every value travels as a parameter.
 */
export interface Driver {
  /** Prepared once and kept; ask by the same text again as often as you like. */
  prepare(sql: string): Statement;
  /** Runs statements that have no parameters and no result. */
  exec(sql: string): void;
  /**
   * Runs `body` in one transaction, rolled back when it throws. `write` takes the lock at the start, so that what was
   * read still holds when it is written; `read` sees one moment.
   */
  transaction<T>(mode: "read" | "write", body: () => T): T;
  /** Writes what waits into the one file and lets go of it. */
  close(): void;
}

/** What is stored: a safe integer, text without NUL, or nothing. */
export type Value = string | number | null;
export type Row = readonly Value[];

export interface Statement {
  run(...values: readonly Value[]): { readonly changes: number; readonly lastId: number };
  get(...values: readonly Value[]): Row | undefined;
  all(...values: readonly Value[]): readonly Row[];
}

/** Refuses what a library would store as something else, or die of. */
export function checkValues(sql: string, expected: number, values: readonly Value[]): void {
  if (values.length !== expected) {
    throw new TypeError(`${expected} parameters expected, ${values.length} given: ${sql}`);
  }
  for (const value of values) {
    const fits =
      value === null ||
      (typeof value === "string" && !value.includes("\0")) ||
      (typeof value === "number" && Number.isSafeInteger(value));
    if (!fits) throw new TypeError(`not a safe integer, text without NUL or null: ${sql}`);
  }
}
