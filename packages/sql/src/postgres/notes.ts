import type { StoreNote } from "@parley/server/internal/store/index";
import { text, timeLimit } from "./rows.ts";
import { columnsOf, type Sql } from "./schema.ts";

/* What nodes tell each other, until it expires. The table is not logged: after a crash of the server nodes learn again. */

/** How many expired notes a statement deletes at most: more than it stores. */
const maxTidied = 2_000;

/** Notes are locked in the order of their keys, and expired ones only where nobody else has them, so that nodes never deadlock. */
const write = `WITH gone AS (
    DELETE FROM parley.notes WHERE key IN (
      SELECT key FROM parley.notes WHERE until <= $4 AND key <> ALL($1::text[]) ORDER BY until LIMIT ${maxTidied}
      FOR UPDATE SKIP LOCKED)
  )
  INSERT INTO parley.notes (key, value, until)
  SELECT n.key, n.value, n.until FROM unnest($1::text[], $2::text[], $3::bigint[]) AS n (key, value, until) ORDER BY n.key
  ON CONFLICT (key) DO UPDATE SET value = excluded.value, until = excluded.until`;

export async function readNotes(sql: Sql, keys: readonly string[], now: number): Promise<ReadonlyMap<string, string>> {
  if (keys.length === 0) return new Map();
  const select = "SELECT key, value FROM parley.notes WHERE key = ANY($1::text[]) AND until > $2";
  const rows = await sql(select, [...keys], timeLimit(Math.floor(now)));
  return new Map(rows.map((row) => [text(row, 0), text(row, 1)]));
}

export async function writeNotes(sql: Sql, notes: readonly StoreNote[], now: number): Promise<void> {
  if (notes.length === 0) return;
  const rows = notes.map(({ key, value, until }) => [key, value, timeLimit(Math.floor(until))]);
  await sql(write, ...columnsOf(rows, 3), timeLimit(Math.floor(now)));
}
