import { styleText } from "node:util";
import type { Io, Out } from "../io.ts";
import { widthOf } from "./width.ts";

type Format = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** Adds colour to text, or returns it unchanged where colours are off. */
export type Style = (format: Format, text: string) => string;

/** Colours are on for terminals; `FORCE_COLOR` and `NO_COLOR` (no-color.org) change that. */
export function styleFor(out: Out, env: Io["env"]): Style {
  return hasColours(out, env)
    ? (format, text) => styleText(format, text, { validateStream: false })
    : (_, text) => text;
}

/** Whether text for `out` has colours. */
export function hasColours(out: Out, env: Io["env"]): boolean {
  const force = env["FORCE_COLOR"];
  if (force !== undefined) return force !== "0" && force !== "false";
  if (env["NO_COLOR"] !== undefined && env["NO_COLOR"] !== "") return false;
  return out.terminal && env["TERM"] !== "dumb";
}

/** A number of bytes as `12 B`, `3.4 kB` or `1.2 MB`. */
export function byteSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** Most characters that are shown of what an agent chose. `--json` has all of them. */
export const longest = { name: 200, description: 4000, error: 4000 } as const;

/** Most entries that are shown of a list that an agent chose. */
const longestList = 50;

/** The first entries of a list as text, and how many are left out. */
export function listed<T>(entries: readonly T[], show: (entry: T, index: number) => string): readonly string[] {
  const left = entries.length - longestList;
  const shown = entries.slice(0, longestList).map(show);
  return left > 0 ? [...shown, `… ${left} more; --json has them all`] : shown;
}

type Paint = (cell: string, row: number, column: number) => string;

/** Rows as aligned columns; the last column is not padded. `paint` may add colour to a cell, which does not count for its width. */
export function table(rows: readonly (readonly string[])[], paint: Paint = (cell) => cell): string {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, i) => (widths[i] = Math.max(widths[i] ?? 0, widthOf(cell))));
  const show = (cell: string, row: number, column: number, last: boolean): string =>
    paint(cell, row, column) + (last ? "" : " ".repeat((widths[column] ?? 0) - widthOf(cell)));
  return rows
    .map((cells, row) => cells.map((cell, i) => show(cell, row, i, i === cells.length - 1)).join("  "))
    .map((text) => `${text.trimEnd()}\n`)
    .join("");
}
