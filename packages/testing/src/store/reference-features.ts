import {
  featureBounds,
  type DueFeature,
  type FeatureQuery,
  type FeatureRow,
  type FeatureState,
  type TaskEffect,
} from "@parley/server/internal/store/index";
import type { RefFeature, RefTask } from "./reference-task.ts";

/** The rows of features in the reference: each task has a list of them. */

/** The rows after the effects of an item, or why it is refused. */
export function afterFeatures(
  before: readonly RefFeature[],
  effects: readonly TaskEffect[],
  next: () => number,
): readonly RefFeature[] | "changed" | "full" {
  let rows = before;
  const places = new Map(before.map((row) => [placeOf(row), row]));
  for (const effect of effects) {
    if (effect.effect !== "feature") continue;
    if (effect.op === "wake") {
      const { feature, due } = effect;
      rows = rows.map((row) => (row.feature === feature && row.due === undefined ? { ...row, due } : row));
      continue;
    }
    const place = placeOf(effect);
    if (effect.if !== undefined && !isSame(places.get(place), effect.if)) return "changed";
    const known = rows.find((row) => placeOf(row) === place);
    if (effect.op === "delete") rows = rows.filter((row) => row !== known);
    else {
      const { feature, key, value, due } = effect;
      const row = { number: known?.number ?? next(), feature, key, value, ...(due !== undefined && { due }) };
      rows = known === undefined ? [...rows, row] : rows.map((each) => (each === known ? row : each));
    }
  }
  return rows.length > before.length && rows.length > featureBounds.rows ? "full" : rows;
}

export function featuresOf(task: RefTask, feature: string): readonly FeatureRow[] {
  return task.features.filter((row) => row.feature === feature).map(plainRow);
}

export function dueOf(
  tasks: readonly RefTask[],
  { feature, agents, now, after = -Infinity, limit }: FeatureQuery,
): readonly DueFeature[] {
  return tasks
    .filter(({ agent }) => agents?.includes(agent) ?? true)
    .flatMap((task) => task.features.map((row) => ({ task, row, due: row.due ?? Infinity })))
    .filter(({ row, due }) => row.feature === feature && due <= now && due > after)
    .sort((a, b) => a.due - b.due || a.row.number - b.row.number)
    .slice(0, limit)
    .map(({ task: { agent, owner, id }, row, due }) => ({
      ...plainRow(row),
      due,
      task: { agent, owner, taskId: id },
    }));
}

function plainRow({ key, value, due }: RefFeature): FeatureRow {
  return { key, value, ...(due !== undefined && { due }) };
}

function placeOf({ feature, key }: { readonly feature: string; readonly key: string }): string {
  return JSON.stringify([feature, key]);
}

function isSame(row: FeatureState | undefined, wanted: FeatureState | null): boolean {
  if (row === undefined || wanted === null) return row === undefined && wanted === null;
  return row.value === wanted.value && row.due === wanted.due;
}
