import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { CsvError, parse } from "csv-parse";
import { Refusal } from "../refusal.ts";
import { dialectOf, parserOptions, raggedLimit, type Dialect } from "./dialect.ts";
import { decode, encodingOf, refuseOtherFormats, type Encoding } from "./encoding.ts";

/** A table as it was sent, and how to read it. Rows are not kept: they are read from the bytes each time. */
export interface Table extends Dialect {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly encoding: Encoding;
  /** Hash of the bytes, hexadecimal, to detect whether the table has changed. */
  readonly sha256: string;
}

/** Some rows, each as wide as the table, and the number of rows repaired so far. */
export interface Batch {
  readonly rows: readonly (readonly string[])[];
  readonly ragged: number;
}

const sampleChars = 256 * 1024;
const batchRows = 2000;

/**
 * Reads the format of bytes that should be a table.
 *
 * @throws Refusal if they are not.
 */
export function openTable(name: string, bytes: Uint8Array): Table {
  const encoding = encodingOf(bytes);
  let head = "";
  for (const text of decode(bytes, encoding)) {
    head += text;
    if (head.length >= sampleChars) break;
  }
  const whole = head.length < sampleChars;
  refuseOtherFormats(head, whole);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return { ...dialectOf(head, whole), name, bytes, encoding, sha256 };
}

/**
 * The rows of a table, in batches of 2,000. Between two batches it yields to the event loop, so that a large file never blocks
 * the server, and it checks the signal, so that it can be canceled.
 *
 * @throws Refusal if the file is broken; the reason of the signal when that is aborted.
 */
export async function* readRows(table: Table, signal: AbortSignal): AsyncGenerator<Batch, void, void> {
  const width = table.columns.length;
  const before = table.skip + (table.header ? 1 : 0);
  const parser = Readable.from(decode(table.bytes, table.encoding)).pipe(
    parse({ ...parserOptions, delimiter: table.delimiter, from: before + 1 }),
  );
  let rows: (readonly string[])[] = [];
  let count = 0;
  let ragged = 0;
  try {
    for await (const row of parser as AsyncIterable<string[]>) {
      count += 1;
      if (row.length !== width) ragged += 1;
      rows.push(row.length === width ? row : fit(row, width));
      if (rows.length < batchRows) continue;
      yield { rows, ragged };
      rows = [];
      await setImmediate();
      signal.throwIfAborted();
    }
  } catch (error) {
    throw error instanceof CsvError ? new Refusal("failed", explain(error, before)) : error;
  } finally {
    parser.destroy();
  }
  if (ragged > count * raggedLimit) {
    throw new Refusal(
      "failed",
      `${ragged} of the ${count} rows do not have ${width} fields: too many to repair. Please check the file.`,
    );
  }
  if (rows.length > 0) yield { rows, ragged };
}

/** Missing fields become empty. Fields beyond the last column are dropped. */
function fit(row: readonly string[], width: number): readonly string[] {
  return Array.from({ length: width }, (_, index) => row[index] ?? "");
}

function explain(error: CsvError, before: number): string {
  // The parser's count is used, because a stream that fails drops rows that it has read and not passed on.
  const where = `after row ${Number(error["records"]) - before}`;
  switch (error.code) {
    case "CSV_QUOTE_NOT_CLOSED":
    case "CSV_MAX_RECORD_SIZE":
      return `A quoted field that begins ${where} is never closed, so I cannot tell where the rows end. Please check the file.`;
    default:
      return `The file cannot be read as CSV ${where}. Please check it.`;
  }
}
