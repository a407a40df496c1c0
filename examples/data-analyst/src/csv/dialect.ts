import type { Options } from "csv-parse";
import { parse } from "csv-parse/sync";
import { notCsv } from "../refusal.ts";
import { isMissing, readDate, readNumber } from "./values.ts";

/** How a CSV file is written. */
export interface Dialect {
  readonly delimiter: "," | ";" | "\t" | "|";
  /** Rows before the header: titles and blank lines that some offices put on top. */
  readonly skip: number;
  /** Whether the first row holds names. */
  readonly header: boolean;
  /** One for each field, unique. */
  readonly columns: readonly string[];
  /** Whether `1,5` is one and a half: where fields are separated by semicolons. */
  readonly decimalComma: boolean;
}

const delimiters = [",", ";", "\t", "|"] as const;
const sampleRows = 200;
const maxTitles = 10;
const maxColumns = 1000;
/** Largest share of rows with a wrong number of fields. A file beyond it is not a table. */
export const raggedLimit = 0.2;

/** Options of the parser for every file. Rows of a wrong length are repaired and counted by the reader of the rows. */
export const parserOptions: Readonly<
  Pick<Options, "relax_column_count" | "relax_quotes" | "skip_empty_lines" | "max_record_size">
> = {
  relax_column_count: true,
  relax_quotes: true,
  skip_empty_lines: true,
  max_record_size: 1024 * 1024,
};

/**
 * Finds out from the beginning of a file how its table is written.
 *
 * @throws Refusal if it does not look like a table.
 */
export function dialectOf(head: string, whole: boolean): Dialect {
  const attempts = delimiters.map((delimiter) => attempt(head, whole, delimiter));
  const best = attempts.reduce((left, right) => (better(right, left) ? right : left));
  const { delimiter, skip, rows, width } = best;
  if (rows.length === 0) throw notCsv("The file has no rows.");
  if (width > maxColumns)
    throw notCsv(`A table of ${width} columns is more than I can take in; ${maxColumns} is my limit.`, "");
  const decimalComma = delimiter === ";";
  if (best.share < 1 - raggedLimit) {
    throw notCsv(
      "The rows of this file do not have the same number of fields, whatever separator I try, so it is not a table.",
    );
  }
  if (width === 1) refuseProse(rows, decimalComma);
  const [first = [], ...rest] = rows;
  const header = hasHeader(first, rest, decimalComma);
  if (header && rest.length === 0) throw notCsv("The file has a row of column names and no rows below it.");
  const names = Array.from({ length: Math.max(width, first.length) }, (_, index) =>
    header ? first[index] : undefined,
  );
  return { delimiter, skip, header, columns: unique(names), decimalComma };
}

interface Attempt {
  readonly delimiter: Dialect["delimiter"];
  /** Titles above the table. */
  readonly skip: number;
  readonly rows: readonly (readonly string[])[];
  /** The most frequent number of fields. */
  readonly width: number;
  /** How many of the rows have it. */
  readonly share: number;
}

function attempt(head: string, whole: boolean, delimiter: Dialect["delimiter"]): Attempt {
  const sample: string[][] = [];
  const text = whole ? head : head.slice(0, Math.max(head.lastIndexOf("\n"), 0) || head.length);
  try {
    const keep = (row: string[]): null => {
      sample.push(row);
      return null;
    };
    parse(text, { ...parserOptions, delimiter, to: sampleRows, on_record: keep });
  } catch {
    // The end of the sample may cut a quoted field. If the field is really open, reading the rows will fail.
  }
  const skip = Math.max(
    0,
    sample.slice(0, maxTitles + 1).findIndex((row) => filled(row) > 1),
  );
  const rows = sample.slice(skip);
  const counts = new Map<number, number>();
  for (const row of rows) counts.set(row.length, (counts.get(row.length) ?? 0) + 1);
  const [width, count] = [...counts].reduce((left, right) => (right[1] > left[1] ? right : left), [0, 0]);
  return { delimiter, skip, rows, width, share: rows.length === 0 ? 0 : count / rows.length };
}

function better(left: Attempt, right: Attempt): boolean {
  if (left.width > 1 !== right.width > 1) return left.width > 1;
  if (Math.abs(left.share - right.share) > 0.05) return left.share > right.share;
  return left.width > right.width;
}

function filled(row: readonly string[]): number {
  return row.filter((value) => value.trim() !== "").length;
}

/** A single column is a table if it is a list of numbers or dates. Other lines are prose or code. */
function refuseProse(rows: readonly (readonly string[])[], decimalComma: boolean): void {
  const values = rows.slice(1).flatMap((row) => row.filter((value) => !isMissing(value)));
  const read = values.filter((value) => isQuantity(value, decimalComma)).length;
  if (values.length === 0 || read < values.length * 0.9) {
    throw notCsv("I find no columns in this: nothing separates the fields, and it is not a list of numbers either.");
  }
}

function isQuantity(value: string, decimalComma: boolean): boolean {
  return readNumber(value, decimalComma) !== undefined || readDate(value) !== undefined;
}

/** The first row has names, unless a number or date in it is of the same kind as everything below it. */
function hasHeader(first: readonly string[], rest: readonly (readonly string[])[], decimalComma: boolean): boolean {
  return !first.some((value, index) => {
    if (isMissing(value) || /^(1[89]|20)\d\d$/.test(value.trim()) || !isQuantity(value, decimalComma)) return false;
    const below = rest.map((row) => row[index] ?? "").filter((cell) => !isMissing(cell));
    return below.every((cell) => isQuantity(cell, decimalComma));
  });
}

function unique(names: readonly (string | undefined)[]): readonly string[] {
  const seen = new Set<string>();
  return names.map((given, index) => {
    const base = given?.replaceAll(/\s+/g, " ").trim().slice(0, 100) || `column ${index + 1}`;
    let name = base;
    for (let copy = 2; seen.has(name); copy += 1) name = `${base} (${copy})`;
    seen.add(name);
    return name;
  });
}
