import { Readable } from "node:stream";
import { parse } from "csv-parse";

/** Lines that are sent together. */
const together = 500;

/**
 * Converts a CSV table with names in its first line to JSON Lines: one object a row, with the names of the columns. It never holds more
 * than a few rows of the table.
 *
 * @throws Error if a row has another number of columns than the first, or a quote does not end.
 */
export async function* toJsonLines(csv: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const parser = parse({ bom: true, columns: true });
  Readable.from(csv)
    .on("error", (error) => parser.destroy(error))
    .pipe(parser);
  const encoder = new TextEncoder();
  let lines: string[] = [];
  for await (const row of parser as AsyncIterable<Record<string, string>>) {
    lines.push(`${JSON.stringify(row)}\n`);
    if (lines.length < together) continue;
    yield encoder.encode(lines.join(""));
    lines = [];
  }
  yield encoder.encode(lines.join(""));
}
