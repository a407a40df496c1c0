import type { StoreNote } from "@parley/server/internal/store/index";
import type { Driver } from "./driver.ts";
import { text, timeLimit } from "./rows.ts";

/* What processes tell each other, until it expires. */

const write = `INSERT INTO notes (key, value, until) VALUES (?, ?, ?)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value, until = excluded.until`;

export function readNotes(driver: Driver, keys: readonly string[], now: number): ReadonlyMap<string, string> {
  const select = driver.prepare("SELECT value FROM notes WHERE key = ? AND until > ?");
  const at = timeLimit(Math.floor(now));
  const found = keys.map((key) => [key, select.get(key, at)] as const);
  return new Map(found.flatMap(([key, row]) => (row === undefined ? [] : [[key, text(row, 0)]])));
}

/** Call it in a transaction. */
export function writeNotes(driver: Driver, notes: readonly StoreNote[], now: number): void {
  driver.prepare("DELETE FROM notes WHERE until <= ?").run(timeLimit(Math.floor(now)));
  for (const { key, value, until } of notes) driver.prepare(write).run(key, value, timeLimit(Math.floor(until)));
}
