/** Text of strangers, made safe to look at, and plain helpers for words. */

// C0 but tab and line feed, DEL, C1, and what turns the direction of text: all that moves a cursor, paints, or hides.
// eslint-disable-next-line no-control-regex
const unsafe = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

function picture(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}

/** Text whose control characters show instead of act, so that an agent cannot drive the terminal; lines stay lines. */
export function plain(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(unsafe, picture);
}

/** The same as one line. */
export function line(text: string): string {
  return plain(text.replace(/(?<!\s)\s*\n\s*/g, " ").replaceAll("\t", " "));
}

/** JSON text on one line that a terminal can show: characters that act stand as `\u` escapes, so the value is the same. */
export function jsonLine(value: unknown): string {
  return JSON.stringify(value).replace(
    unsafe,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** `12 B`, `3.4 kB`, `1.2 MB`. */
export function byteSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

type Paint = (cell: string, row: number, column: number) => string;

/** Rows as aligned columns; the last one is as long as it is. `paint` may colour a cell, which keeps its width. */
export function table(rows: readonly (readonly string[])[], paint: Paint = (cell) => cell): string {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, i) => (widths[i] = Math.max(widths[i] ?? 0, cell.length)));
  const show = (cell: string, row: number, column: number, last: boolean): string =>
    paint(cell, row, column) + (last ? "" : " ".repeat((widths[column] ?? 0) - cell.length));
  return rows
    .map((cells, row) => cells.map((cell, i) => show(cell, row, i, i === cells.length - 1)).join("  "))
    .map((text) => `${text.trimEnd()}\n`)
    .join("");
}
