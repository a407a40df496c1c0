import {
  refuseFeatures,
  type DueFeature,
  type FeatureEffect,
  type FeatureQuery,
  type FeatureRow,
  type FeatureState,
  type Scope,
} from "@parley/server/internal/store/index";
import type { Driver, Row } from "./driver.ts";
import type { KnownTask } from "../shared/known-task.ts";
import { count, decodeName, encodeJson, encodeName, int, optional, text, timeLimit } from "./rows.ts";
import type { ScopeIds } from "./scopes.ts";

// The rows that features keep with tasks.

const selectRow = "SELECT key, value, due FROM features WHERE task = ? AND feature = ? AND key = ?";
const setRow = `INSERT INTO features (agent, task, feature, key, value, due) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (task, feature, key) DO UPDATE SET value = excluded.value, due = excluded.due`;
const deleteRow = "DELETE FROM features WHERE task = ? AND feature = ? AND key = ?";
const wakeRows = "UPDATE features SET due = ? WHERE task = ? AND feature = ? AND due IS NULL";

/** The reason to refuse the effects of an item. `task` is absent if the item creates it. */
export function refusalOf(
  driver: Driver,
  task: KnownTask | undefined,
  effects: readonly FeatureEffect[],
): "changed" | "full" | undefined {
  if (effects.length === 0) return undefined;
  const number = task?.hasFeatures === true ? task.row.number : undefined;
  return refuseFeatures(effects, {
    find(feature, key): FeatureState | undefined {
      if (number === undefined) return undefined;
      const row = driver.prepare(selectRow).get(number, encodeName(feature), encodeName(key));
      return row && featureRow(row);
    },
    count() {
      if (number === undefined) return 0;
      return count(driver.prepare("SELECT count(*) FROM features WHERE task = ?").get(number));
    },
  });
}

/** Runs no statement for a task that never had rows. */
export function applyFeature(driver: Driver, task: KnownTask, effect: FeatureEffect): void {
  task.hasFeatures ||= effect.op === "set";
  if (!task.hasFeatures) return;
  const { number, agent } = task.row;
  const feature = encodeName(effect.feature);
  switch (effect.op) {
    case "set": {
      const { key, value, due } = effect;
      driver.prepare(setRow).run(agent, number, feature, encodeName(key), encodeJson(value), due ?? null);
      break;
    }
    case "delete":
      driver.prepare(deleteRow).run(number, feature, encodeName(effect.key));
      break;
    case "wake":
      driver.prepare(wakeRows).run(effect.due, number, feature);
      break;
  }
}

export function readFeatures(driver: Driver, scope: Scope, taskId: string, feature: string): readonly FeatureRow[] {
  const names = [scope.agent, taskId, feature, ...(scope.owner === undefined ? [] : [scope.owner])];
  return driver
    .prepare(
      `SELECT f.key, f.value, f.due
       FROM scopes a JOIN tasks t ON t.agent = a.id JOIN scopes o ON o.id = t.owner JOIN features f ON f.task = t.number
       WHERE a.parent = 0 AND a.name = ? AND t.id = ? AND f.feature = ? ${scope.owner === undefined ? "" : "AND o.name = ?"}
       ORDER BY f.id`,
    )
    .all(...names.map(encodeName))
    .map(featureRow);
}

const selectDue = `SELECT due, id FROM features INDEXED BY features_due
  WHERE feature = ? AND agent = ? AND due >= ? AND due <= ? ORDER BY due, id LIMIT ?`;
const selectById = `SELECT f.key, f.value, f.due, t.id, o.name
  FROM features f JOIN tasks t ON t.number = f.task JOIN scopes o ON o.id = t.owner WHERE f.id = ?`;

/**
 * Call it in a transaction. Merges the due rows of each agent in the order of their index. Values are read after that: those
 * of a full page for each agent may take more memory than the process has.
 */
export function readDue(driver: Driver, scopes: ScopeIds, query: FeatureQuery): readonly DueFeature[] {
  const { feature, now, after = -Infinity, limit } = query;
  if (after >= Number.MAX_SAFE_INTEGER) return [];
  const found = [...new Set(query.agents ?? scopes.agents())].flatMap((agent) => {
    const scope = scopes.find(agent);
    if (scope === undefined) return [];
    const rows = driver
      .prepare(selectDue)
      .all(encodeName(feature), scope, timeLimit(Math.floor(after) + 1), timeLimit(Math.floor(now)), limit);
    return rows.map((row) => ({ agent, due: int(row, 0), id: int(row, 1) }));
  });
  found.sort((a, b) => a.due - b.due || a.id - b.id);
  return found.slice(0, limit).flatMap(({ agent, due, id }) => {
    const row = driver.prepare(selectById).get(id);
    if (row === undefined) return [];
    const task = { agent, owner: decodeName(text(row, 4)), taskId: decodeName(text(row, 3)) };
    return [{ ...featureRow(row), due, task }];
  });
}

function featureRow(row: Row): FeatureRow {
  const due = optional(row, 2);
  const value = { key: decodeName(text(row, 0)), value: text(row, 1) };
  return typeof due === "number" ? { ...value, due } : value;
}
