import type { OnceEffect, OnceRecord } from "@parley/a2a/store";
import type { Driver } from "./driver.ts";
import { int, optional, text } from "./rows.ts";
import { decodeName, encodeJson, encodeName } from "./text.ts";

/** Idempotency keys (D8). */

/** What stands under a key and has not run out. */
export function findKey(driver: Driver, owner: number, key: string, now: number): OnceRecord | undefined {
  const row = driver
    .prepare(
      `SELECT k.hash, k.seq, t.id, k.answer FROM keys k LEFT JOIN tasks t ON t.number = k.task
       WHERE k.owner = ? AND k.name = ? AND (k.until IS NULL OR k.until > ?)`,
    )
    .get(owner, encodeName(key), now);
  if (row === undefined) return undefined;
  const taskId = optional(row, 2);
  const answer = optional(row, 3);
  return {
    key,
    hash: decodeName(text(row, 0)),
    seq: int(row, 1),
    ...(typeof taskId === "string" && { taskId: decodeName(taskId) }),
    ...(typeof answer === "string" && { answer }),
  };
}

interface Place {
  readonly owner: number;
  /** What it goes with, one of the two. */
  readonly task: number | null;
  readonly context: number | null;
  readonly seq: number;
}

/** Stores a key in place of one that ran out. */
export function keepKey(driver: Driver, { key, hash, until, answer }: OnceEffect, place: Place): void {
  driver
    .prepare(
      `INSERT INTO keys (owner, name, hash, task, context, seq, until, answer) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (owner, name) DO UPDATE SET hash = excluded.hash, task = excluded.task, context = excluded.context,
         seq = excluded.seq, until = excluded.until, answer = excluded.answer`,
    )
    .run(
      place.owner,
      encodeName(key),
      encodeName(hash),
      place.task,
      place.context,
      place.seq,
      until ?? null,
      answer === undefined ? null : encodeJson(answer),
    );
}
