import type { Part } from "@parley/a2a";
import { byteSize, line, plain } from "./text.ts";

/** How many bytes a base64 text stands for. */
function rawSize(raw: string): number {
  return Math.floor((raw.replace(/=+$/, "").length * 3) / 4);
}

function label(what: readonly (string | undefined)[]): string {
  return what
    .filter((word) => word !== undefined && word !== "")
    .map((word) => line(word ?? ""))
    .join(", ");
}

/**
 * Parts as text for a terminal. Text stands as it is and runs on, since it may be one piece of many; everything else
 * stands on lines of its own. `midLine`: what was shown before stands in the middle of a line.
 */
export function showParts(parts: readonly Part[], midLine = false): string {
  let shown = "";
  const block = (text: string): void => {
    shown += `${endsMidLine(shown, midLine) ? "\n" : ""}${text}\n`;
  };
  for (const part of parts) {
    if (part.text !== undefined) shown += plain(part.text);
    else if (part.data !== undefined) block(plain(JSON.stringify(part.data, null, 2)));
    else if (part.url !== undefined) block(label([part.url, part.filename, part.mediaType]));
    else block(`[${label([part.filename ?? "file", part.mediaType, byteSize(rawSize(part.raw))])}]`);
  }
  return shown;
}

/** Whether text, written after what stood in the middle of a line or did not, ends in the middle of one. */
export function endsMidLine(text: string, midLine: boolean): boolean {
  return text === "" ? midLine : !text.endsWith("\n");
}
