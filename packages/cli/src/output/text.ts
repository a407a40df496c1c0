import { styleText } from "node:util";
import type { Logger } from "@parley/a2a/internal/base/index";
import { jsonLine } from "@parley/a2a/internal/base/display";
import type { TaskState } from "@parley/a2a/internal/model/index";
import { isTerminal, taskStates } from "@parley/a2a/model";
import type { LogLevel, LogStream } from "@parley/node";
import type { Io, Out } from "../io.ts";

type Format = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** Colors text, or returns it unchanged without colors. */
export type Style = (format: Format, text: string) => string;

/** Terminals get colors, unless `FORCE_COLOR` or `NO_COLOR` (no-color.org) overrides that. */
export function styleFor(out: Out, env: Io["env"]): Style {
  return hasColors(out, env) ? (format, text) => styleText(format, text, { validateStream: false }) : (_, text) => text;
}

export function hasColors(out: Out, env: Io["env"]): boolean {
  const force = env["FORCE_COLOR"];
  if (force !== undefined) return force !== "0" && force !== "false";
  if (env["NO_COLOR"] !== undefined && env["NO_COLOR"] !== "") return false;
  return out.terminal && env["TERM"] !== "dumb";
}

/** Writes a value to standard output: as a line of JSON with `--json`, else as text. */
export function print(
  { stdout, env }: Io,
  options: { readonly json?: boolean },
  value: unknown,
  text: string | ((style: Style) => string),
): void {
  if (options.json === true) stdout.write(`${jsonLine(value)}\n`);
  else stdout.write(typeof text === "string" ? `${text}\n` : text(styleFor(stdout, env)));
}

/** `1 task`, `2 tasks`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** A number of bytes as `12 B`, `3.4 kB` or `1.2 MB`. */
export function byteSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** Character limits for text of an agent. `--json` has all of it. */
export const maxLength = { name: 200, description: 4000, error: 4000 } as const;

/** Maximum number of entries that are shown of an agent's list. */
const maxEntries = 50;

/** The first entries of a list as text, and how many more there are. */
export function listed<T>(entries: readonly T[], show: (entry: T, index: number) => string): readonly string[] {
  const left = entries.length - maxEntries;
  const shown = entries.slice(0, maxEntries).map(show);
  return left > 0 ? [...shown, `… ${left} more; --json shows all`] : shown;
}

type Paint = (cell: string, row: number, column: number) => string;

/** Rows as aligned columns. `paint` may color a cell, without changing its width. */
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

/** Characters that are two columns wide: East Asian ones and emoji. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f1e6}-\u{1f1ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** Characters that are drawn over the one before them. */
const zeroWidth = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Columns of a text on a terminal. It must not have escape sequences. */
export function widthOf(text: string): number {
  if (/^[\u0020-\u024f]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segmenter.segment(text)) width += widthOfSegment(segment);
  return width;
}

function widthOfSegment(segment: string): number {
  if (wide.test(segment) || segment.includes("\ufe0f")) return 2;
  return zeroWidth.test(segment) ? 0 : 1;
}

/** The beginning of a text that fits into the columns, and the length of the rest. `how`: a hint for seeing the rest. */
export function fitted(text: string, columns: number, how: string): string {
  // Avoids measuring a long text.
  const start = text.slice(0, columns * 4);
  if (start.length === text.length && widthOf(text) <= columns) return text;
  const note = (left: number): string => `… (${left.toLocaleString("en")} more characters; ${how})`;
  const room = columns - note(text.length).length;
  let width = 0;
  let kept = "";
  for (const { segment } of segmenter.segment(start)) {
    width += widthOfSegment(segment);
    if (width > room) break;
    kept += segment;
  }
  return `${kept}${note(text.length - kept.length)}`;
}

/** The short name of a state: `input-required` for `TASK_STATE_INPUT_REQUIRED`. */
export function stateName(state: TaskState): string {
  return state.slice("TASK_STATE_".length).toLowerCase().replaceAll("_", "-");
}

/** Parses a state in either spelling. */
export function parseState(text: string): TaskState | undefined {
  const wanted = text.toLowerCase().replaceAll("_", "-");
  return taskStates.find((state) => state === text || stateName(state) === wanted);
}

export const stateNames: readonly string[] = taskStates.map(stateName);

/** Whether the task failed, was rejected or was canceled. */
export function endedBadly(state: TaskState): boolean {
  return isTerminal(state) && state !== "TASK_STATE_COMPLETED";
}

/** Levels of log lines, the most verbose first. */
export const lineLevels = ["debug", "info", "warn", "error"] as const;
/** Levels of `parley serve --log-level`. */
export const logLevels: readonly [...typeof lineLevels, "off"] = [...lineLevels, "off"];
export const logFormats = ["text", "json"] as const;
export type LogFormat = (typeof logFormats)[number];

/** A logger that writes to standard error. */
export async function logTo(io: Io, level: LogLevel, format: LogFormat): Promise<Logger> {
  // Loaded only when needed, because it also loads the server.
  const { standardLogger } = await import("@parley/node");
  const { stderr } = io;
  const stream: LogStream = { write: (text) => stderr.write(text), isTTY: stderr.terminal };
  return standardLogger({ level, format, stream, colors: hasColors(stderr, io.env) });
}
