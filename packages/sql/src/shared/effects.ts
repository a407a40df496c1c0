import type { FeatureRow, OnceRecord, Scope } from "@parley/server/internal/store/index";
import type { Dialect } from "./dialect.ts";
import { decodeName, encodeName, int, optional, text, type Row } from "./rows.ts";
import { all, query, type Steps } from "./steps.ts";

// The rows of features and of idempotency keys.

/** The columns: the key, the value, and when it is due. */
export function featureRow(row: Row): FeatureRow {
  const due = optional(row, 2);
  const value = { key: decodeName(text(row, 0)), value: text(row, 1) };
  return typeof due === "number" ? { ...value, due } : value;
}

export function* readFeatures(
  { name, featureKey }: Dialect,
  { agent, owner }: Scope,
  taskId: string,
  feature: string,
): Steps<readonly FeatureRow[]> {
  const rows = yield* all(
    query(
      `SELECT ${featureKey}, f.value, f.due
       FROM parley.scopes a JOIN parley.tasks t ON t.agent = a.id JOIN parley.scopes o ON o.id = t.owner
         JOIN parley.features f ON f.task = t.number
       WHERE a.parent = 0 AND a.name = $1 AND t.id = $2 AND f.feature = $3 ${owner === undefined ? "" : "AND o.name = $4"}
       ORDER BY f.id`,
      name(agent),
      name(taskId),
      encodeName(feature),
      ...(owner === undefined ? [] : [name(owner)]),
    ),
  );
  return rows.map(featureRow);
}

/** The columns: the hash, the number of the record, the id of the task, and the answer. */
export function onceRecord(key: string, row: Row): OnceRecord {
  const [taskId, answer] = [optional(row, 2), optional(row, 3)];
  return {
    key,
    hash: decodeName(text(row, 0)),
    seq: int(row, 1),
    ...(typeof taskId === "string" && { taskId: decodeName(taskId) }),
    ...(typeof answer === "string" && { answer }),
  };
}
