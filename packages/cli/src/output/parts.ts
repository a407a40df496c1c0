import type { JsonValue, Part } from "@parley/a2a";
import { readAuthorization } from "@parley/a2a/client";
import { line, plain } from "@parley/a2a/display";
import { byteSize } from "./text.ts";

/** Size in bytes of base64 text once decoded. */
function rawSize(raw: string): number {
  return Math.floor((raw.replace(/(?<!=)=+$/, "").length * 3) / 4);
}

/** `limit`: most characters of each. A link is content, so it is not cut. */
function label(what: readonly (string | undefined)[], limit?: number): string {
  return what
    .filter((word) => word !== undefined && word !== "")
    .map((word) => line(word ?? "", limit))
    .join(", ");
}

/** Lines of a data part that are shown on a terminal. */
const briefLines = 24;

function showData(data: JsonValue, brief: boolean): string {
  const text = plain(JSON.stringify(data, null, 2));
  const lines = text.split("\n");
  const left = lines.length - briefLines;
  if (!brief || left <= 1) return text;
  return `${lines.slice(0, briefLines).join("\n")}\n… ${left} more lines; --json and --out have them all`;
}

export interface ShowOptions {
  /** Whether long data is cut, for a terminal. */
  readonly brief: boolean;
  /** Whether the text that was written before ends in the middle of a line. */
  readonly midLine?: boolean;
}

/**
 * Parts as text. A text part continues the current line, since it may be one of many pieces; any other part gets lines of its
 * own.
 */
export function showParts(parts: readonly Part[], { brief, midLine = false }: ShowOptions): string {
  let shown = "";
  const block = (text: string): void => {
    shown += `${endsMidLine(shown, midLine) ? "\n" : ""}${text}\n`;
  };
  for (const part of parts) {
    // The link of a request is shown with what the user can do.
    if (readAuthorization({ parts: [part] }) !== undefined) continue;
    if (part.text !== undefined) shown += plain(part.text);
    else if (part.data !== undefined) block(showData(part.data, brief));
    else if (part.url !== undefined) block(label([part.url, part.filename, part.mediaType], Number.POSITIVE_INFINITY));
    else block(`[${label([part.filename ?? "file", part.mediaType, byteSize(rawSize(part.raw))])}]`);
  }
  return shown;
}

/** Whether the output ends in the middle of a line after `text`; `midLine`: whether it did so without it. */
export function endsMidLine(text: string, midLine: boolean): boolean {
  return text === "" ? midLine : !text.endsWith("\n");
}
