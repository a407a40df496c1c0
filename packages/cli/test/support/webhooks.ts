import type { FeatureEffect, TaskKey } from "@parley/server/store";
import { sqliteStore } from "@parley/sql/sqlite";
import { parkedFeature, pushFeature, type StoredConfig } from "@parley/server/internal/push/stored";

export const at = Date.UTC(2026, 0, 31, 12);
export const reason = "The receiver answered with 500.";

export function config(more: Partial<StoredConfig> = {}): StoredConfig {
  const url = "https://ada:pass@hooks.example/in?key=secret";
  const secrets = { sealed: "sealed-secret", nonce: "nonce-secret", created: 0 };
  return { url, version: "1.0", ...secrets, cursor: 4, sequence: 3, delivered: 2, ...more };
}

export const refused = [{ at, reason: "The receiver answered with 400.", status: 400, seq: 7, sequence: 3 }];
export const parked = {
  feature: parkedFeature,
  due: at,
  config: config({ attempts: 10, problem: { at, reason, status: 500 }, refused }),
};

export interface Row {
  readonly task?: Partial<TaskKey>;
  readonly feature?: string;
  readonly due?: number;
  readonly config?: StoredConfig;
}

/** Creates a file as a server leaves it. */
export async function storeWebhooks(file: string, rows: Readonly<Record<string, Row>>): Promise<void> {
  const store = await sqliteStore({ path: file, thread: false });
  for (const [key, { feature = pushFeature, due, config: value = config(), task: other }] of Object.entries(rows)) {
    const task = { agent: "/", owner: "ada", taskId: "t", ...other };
    const state = "TASK_STATE_WORKING";
    const json = JSON.stringify({ id: task.taskId, contextId: "c", status: { state } });
    const first = { kind: "task", state, json, time: 1, actor: "user", turn: 1, attempt: 1 } as const;
    const isNew = (await store.head(task, task.taskId)) === undefined;
    const set = { effect: "feature", op: "set", feature, key, value: JSON.stringify(value) } as const;
    const effects: FeatureEffect[] = [due === undefined ? set : { ...set, due }];
    await store.append([
      { task, records: isNew ? [first] : [], effects, ...(isNew && { create: { contextId: "c" } }) },
    ]);
  }
  await store.close();
}
