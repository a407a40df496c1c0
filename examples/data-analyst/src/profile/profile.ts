import { readRows, type Table } from "../csv/table.ts";
import { columnReader, type ColumnProfile } from "./column.ts";

export interface Profile {
  readonly table: string;
  readonly rows: number;
  /** Rows that had too few or too many fields, and were made to fit. */
  readonly ragged: number;
  /** Whether the table has a row of column names. */
  readonly header: boolean;
  readonly columns: readonly ColumnProfile[];
}

/** The memory for all columns together. */
const budget = 1_000_000;
const most = 10_000;

/** Reads the whole table once. Yields the number of rows after each batch, and returns the profile. */
export async function* profileTable(table: Table, signal: AbortSignal): AsyncGenerator<number, Profile, void> {
  const share = Math.floor(Math.min(most, Math.max(100, budget / table.columns.length)));
  const limits = { distinct: share, sample: share };
  const readers = table.columns.map((name, index) => columnReader(index, name, limits, table.decimalComma));
  let rows = 0;
  let ragged = 0;
  for await (const batch of readRows(table, signal)) {
    for (const row of batch.rows) readers.forEach((reader, index) => reader.add(row[index] ?? ""));
    rows += batch.rows.length;
    ragged = batch.ragged;
    yield rows;
  }
  const columns = readers.map((reader) => reader.finish());
  return { table: table.name, rows, ragged, header: table.header, columns };
}
