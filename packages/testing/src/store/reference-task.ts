import { utf8Length } from "@parley/a2a/internal/base/index";
import {
  TaskFold,
  type LogRecord,
  type Message,
  type NewRecord,
  type TaskState,
} from "@parley/a2a/internal/model/index";
import {
  featureBounds,
  type DueFeature,
  type FeatureQuery,
  type FeatureRow,
  type FeatureState,
  type LoadOptions,
  type StoredRun,
  type TaskEffect,
  type TaskHead,
} from "@parley/server/internal/store/index";
import { plain } from "./given.ts";

/* A task of the reference, and values derived from its log. */

/** The type that `load` returns. */
export type Task = ReturnType<TaskFold["snapshot"]>;

/** A row that a feature stores with a task. */
export interface RefFeature extends FeatureRow {
  readonly feature: string;
  /** Ascending number, unique over all tasks. */
  readonly number: number;
}

export interface RefTask {
  readonly agent: string;
  readonly owner: string;
  readonly id: string;
  readonly contextId: string;
  readonly log: LogRecord[];
  readonly number: number;
  firstSeq: number;
  fence: number;
  lease?: { holder: string; until: number };
  run?: StoredRun;
  checkpoint?: string;
  taskState?: string;
  /** Ordered by when their keys were first stored. */
  features: readonly RefFeature[];
}

/** The states that end a task. */
export const terminal: readonly TaskState[] = [
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_REJECTED",
];

export function isOver(task: RefTask): boolean {
  return terminal.includes(headOf(task).state);
}

export function headOf(task: RefTask): TaskHead {
  const last = task.log.findLast((record) => record.state !== undefined);
  return {
    task: { agent: task.agent, owner: task.owner, taskId: task.id },
    contextId: task.contextId,
    state: last?.state ?? "TASK_STATE_SUBMITTED",
    statusTime: last?.time ?? 0,
    seq: task.log.length,
    firstSeq: task.firstSeq,
    generation: task.log.filter((record) => record.kind !== "message").length,
    bytes: bytesOf(task.log),
    fence: task.fence,
    ...(task.lease && { holder: task.lease.holder, leaseUntil: task.lease.until }),
    ...(task.run && { run: task.run }),
  };
}

export function bytesOf(records: readonly NewRecord[]): number {
  return records.reduce((sum, { json, call = "" }) => sum + utf8Length(json) + utf8Length(call), 0);
}

export function foldOf(task: RefTask, { history, artifacts, mergeTextParts = false }: LoadOptions): Task {
  const fold = new TaskFold(undefined, { mergeTextParts });
  for (const record of task.log) fold.applyRecord(record);
  return plain(fold.snapshot({ artifacts, ...(history !== undefined && { history }) }));
}

/** The messages that one record adds to the history. */
export function messagesOf(record: NewRecord): readonly Message[] {
  if (record.kind === "message") return [JSON.parse(record.json) as Message];
  const fold = new TaskFold({ id: "t", status: { state: "TASK_STATE_WORKING" } });
  const event = JSON.parse(record.json) as Pick<Task, "history">;
  if (record.kind === "task") return event.history ?? [];
  fold.applyRecord({ ...record, json: JSON.stringify({ ...event, taskId: "t" }) });
  return fold.snapshot().history ?? [];
}

/** A run as text, for comparisons. Does not reuse the stores' own function, which the suite tests. */
export function textOfRun(run: StoredRun | null | undefined): string {
  return run
    ? [
        run.turn,
        run.attempt,
        run.input,
        run.deaths ?? 0,
        run.outlived ?? 0,
        run.alone === true,
        run.suspended === true,
      ].join()
    : "none";
}

/** The rows after the effects of an item, or the reason why the item fails. */
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
    .map(({ task: { agent, owner, id }, row, due }) => ({ ...plainRow(row), due, task: { agent, owner, taskId: id } }));
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
