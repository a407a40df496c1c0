import type { TaskEffect } from "@parley/server/internal/store/index";
import type { Driver } from "./driver.ts";
import { encodeJson } from "./rows.ts";

/** Tables with one value for each task or context, and the column of their key. */
const tables = { checkpoints: "task", task_states: "task", context_states: "context" } as const;

/** The last checkpoint and the last state of the effects count. A new task has none to delete. */
export function setValues(driver: Driver, task: number, effects: readonly TaskEffect[], isNew: boolean): void {
  let checkpoint: string | null | undefined;
  let state: string | null | undefined;
  for (const effect of effects) {
    if (effect.effect === "checkpoint") checkpoint = effect.value;
    else if (effect.effect === "taskState") state = effect.value;
  }
  const none = isNew ? null : undefined;
  if (checkpoint !== undefined && checkpoint !== none) set(driver, "checkpoints", task, checkpoint);
  if (state !== undefined && state !== none) set(driver, "task_states", task, state);
}

/** `null` deletes the state. */
export function setContextState(driver: Driver, context: number, value: string | null): void {
  set(driver, "context_states", context, value);
}

function set(driver: Driver, table: keyof typeof tables, id: number, value: string | null): void {
  const column = tables[table];
  if (value === null) driver.prepare(`DELETE FROM ${table} WHERE ${column} = ?`).run(id);
  else {
    driver
      .prepare(
        `INSERT INTO ${table} (${column}, value) VALUES (?, ?) ON CONFLICT (${column}) DO UPDATE SET value = excluded.value`,
      )
      .run(id, encodeJson(value));
  }
}
