import { fromBase64Url, toBase64Url } from "@parley/a2a/internal/base/bytes";
import { invalidParams, type A2AError } from "@parley/a2a/internal/model/index";

/*
 * Cursors as text. A checksum detects truncated and changed cursors, and cursors of another filter. Such cursors would silently show
 * other tasks.
 */

/** A position in a list, as numbers. */
export type Position = readonly (number | null)[];

export function cursorOf(filter: string, position: Position): string {
  const text = JSON.stringify(position);
  return toBase64Url(new TextEncoder().encode(`${checksum(`${filter}\n${text}`)}${text}`));
}

/** @throws A2AError `InvalidParams` unless `cursorOf` created it for this filter. */
export function positionOf(filter: string, cursor: string): Position {
  let position: unknown;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(fromBase64Url(cursor) ?? new Uint8Array());
    position = JSON.parse(text.slice(8));
  } catch {
    throw wrongCursor();
  }
  const isPosition = Array.isArray(position) && position.every((each) => each === null || Number.isSafeInteger(each));
  if (!isPosition || cursorOf(filter, position as Position) !== cursor) throw wrongCursor();
  return position as Position;
}

function wrongCursor(): A2AError {
  return invalidParams([
    { field: "cursor", description: "must be the `next` of the previous page, with the same filter" },
  ]);
}

/** FNV-1a. If any byte changes, so does the number. */
function checksum(text: string): string {
  let hash = 0x81_1c_9d_c5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01_00_01_93) >>> 0;
  return hash.toString(16).padStart(8, "0");
}
