import type { JsonValue } from "../../model/index.ts";
import type { OpenWait } from "../../protocol/index.ts";
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
  readonly name: string;
  readonly data: JsonValue;
}

/** The row of an event. It is due at once, so that a process looks whether its task waits for it. */
export function eventRow(id: string, event: StoredEvent, due: number): FeatureEffect {
  const value = JSON.stringify(event);
  return { effect: "feature", op: "set", feature: waitFeature, key: `event.${id}`, value, due };
}

export function isEvent({ key }: Pick<FeatureRow, "key">): boolean {
  return scopeOf(key) === "event";
}

/**
 * Somebody has to look at the events that nobody has to look at, as while the function works, which reads them itself. It gives rows of waits
 * that time, too, so those are set after it.
 */
export function wakeEvents(due: number): FeatureEffect {
  return { effect: "feature", op: "wake", feature: waitFeature, due: Math.floor(due) };
}
