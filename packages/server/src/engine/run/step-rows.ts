import type { JsonValue } from "@parley/a2a/internal/model/index";
import type { OpenWait } from "@parley/a2a/internal/protocol/index";
import { waitFeature, type FeatureEffect, type FeatureRow, type Store, type TaskKey } from "../../store/index.ts";

/* The rows of steps, waits and events. Their keys begin with what they belong to. */

/** What results belong to: a turn, by its number, or the whole task. */
export type ScopeName = `${number}` | "task";

/** The scope in the key of a row: a turn, `task`, or `event`. */
export function scopeOf(key: string): string {
  return key.slice(0, key.indexOf("."));
}

/** The key of the row with the names of steps that have begun, and whose results are not stored. */
export function begunKey(scope: ScopeName): string {
  return `${scope}.begun`;
}

export function isBegun(key: string): boolean {
  return key.endsWith(".begun");
}

/** The row of a wait. `turn`: the turn that the function sees. `due`: when somebody has to look at it, while the task waits. */
export function waitRow(turn: number, key: string, wait: OpenWait, due?: number): FeatureEffect {
  const value = JSON.stringify(wait);
  const row = { effect: "feature", op: "set", feature: waitFeature, key: waitKey(turn, key), value } as const;
  return due === undefined ? row : { ...row, due };
}

export function waitKey(turn: number, key: string): string {
  return `${turn}.${key}`;
}

/** Whether a turn has waits that are not over, so that any agent is called again. `turn`: the turn that the function sees. */
export async function hasWaits(store: Pick<Store, "features">, task: TaskKey, turn: number): Promise<boolean> {
  const rows = await store.features(task, task.taskId, waitFeature);
  return rows.some(isWaitOf(turn));
}

/** Whether a row is of a wait of this turn. */
export function isWaitOf(turn: number): (row: Pick<FeatureRow, "key">) => boolean {
  return ({ key }) => scopeOf(key) === `${turn}`;
}

/** An event as it is stored. */
export interface StoredEvent {
  /** Tells it from others that had its place before. */
  readonly id: string;
  readonly name: string;
  readonly data: JsonValue;
}

/** The row of an event, which has to be free. It is due at once, so that a process looks whether its task waits for it. */
export function eventRow(key: string, event: StoredEvent, due: number): FeatureEffect {
  return { effect: "feature", op: "set", feature: waitFeature, key, value: JSON.stringify(event), due, if: null };
}

/** The key of one of the places for events. */
export function eventKey(place: number): string {
  return `event.${place}`;
}

export function isEvent({ key }: Pick<FeatureRow, "key">): boolean {
  return scopeOf(key) === "event";
}

/** Whether a wait is over: by its time, or by an event. */
export function isOver(row: FeatureRow, now: number, rows: readonly FeatureRow[]): boolean {
  const { event, until } = JSON.parse(row.value) as OpenWait;
  if (until !== undefined && until <= now) return true;
  if (event === undefined) return false;
  return rows.some((other) => isEvent(other) && (JSON.parse(other.value) as StoredEvent).name === event);
}

/** Whether somebody has to look at a row. */
export function isDueBy(now: number): (row: FeatureRow) => boolean {
  return ({ due = Infinity }) => due <= now;
}

/** The change of a row as it was read. `park`: nobody has to look at it any more. A number: somebody has, at that time. */
export function changed({ key, value, due }: FeatureRow, to: "delete" | "park" | number): FeatureEffect {
  const row = {
    effect: "feature",
    feature: waitFeature,
    key,
    if: due === undefined ? { value } : { value, due },
  } as const;
  if (to === "delete") return { ...row, op: "delete" };
  return to === "park" ? { ...row, op: "set", value } : { ...row, op: "set", value, due: to };
}
