import type { JsonValue, Part } from "@parley/a2a";
import { line, plain } from "@parley/conform/terminal";
import { byteSize } from "./text.ts";

/** How many bytes a base64 text stands for. */
function rawSize(raw: string): number {
  return Math.floor((raw.replace(/(?<!=)=+$/, "").length * 3) / 4);
}

function label(what: readonly (string | undefined)[]): string {
  return what
    .filter((word) => word !== undefined && word !== "")
    .map((word) => line(word ?? ""))
    .join(", ");
}

/** So many lines of a data part fit beside everything else on a screen. */
const briefLines = 24;

function showData(data: JsonValue, brief: boolean): string {
  const text = plain(JSON.stringify(data, null, 2));
  const lines = text.split("\n");
  const left = lines.length - briefLines;
  if (!brief || left <= 1) return text;
  return `${lines.slice(0, briefLines).join("\n")}\n… ${left} more lines; --json and --out have them all`;
}

export interface ShowOptions {
  /** Cuts long data short: for a person's screen, not for a pipe. */
  readonly brief: boolean;
  /** What was shown before stands in the middle of a line. */
  readonly midLine?: boolean;
}

/**
 * Parts as text. Text stands as it is and runs on, since it may be one piece of many; everything else
 * stands on lines of its own.
 */
export function showParts(parts: readonly Part[], { brief, midLine = false }: ShowOptions): string {
  let shown = "";
  const block = (text: string): void => {
    shown += `${endsMidLine(shown, midLine) ? "\n" : ""}${text}\n`;
  };
  for (const part of parts) {
    if (part.text !== undefined) shown += plain(part.text);
    else if (part.data !== undefined) block(showData(part.data, brief));
    else if (part.url !== undefined) block(label([part.url, part.filename, part.mediaType]));
    else block(`[${label([part.filename ?? "file", part.mediaType, byteSize(rawSize(part.raw))])}]`);
  }
  return shown;
}

/** Whether text, written after what stood in the middle of a line or did not, ends in the middle of one. */
export function endsMidLine(text: string, midLine: boolean): boolean {
  return text === "" ? midLine : !text.endsWith("\n");
}
