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
 * stands on lines of its own. `before` is what was shown so far of the same artifact.
 */
export function showParts(parts: readonly Part[], before = ""): string {
  let shown = before;
  const block = (text: string): void => {
    shown += `${shown === "" || shown.endsWith("\n") ? "" : "\n"}${text}\n`;
  };
  for (const part of parts) {
    if (part.text !== undefined) shown += plain(part.text);
    else if (part.data !== undefined) block(plain(JSON.stringify(part.data, null, 2)));
    else if (part.url !== undefined) block(label([part.url, part.filename, part.mediaType]));
    else block(`[${label([part.filename ?? "file", part.mediaType, byteSize(rawSize(part.raw))])}]`);
  }
  return shown.slice(before.length);
}
