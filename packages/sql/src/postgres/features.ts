import {
  refuseFeatures,
  type DueFeature,
  type FeatureEffect,
  type FeatureQuery,
  type FeatureRow,
  type FeatureState,
  type Scope,
} from "@parley/server/internal/store/index";
import type { Row, Value } from "./driver.ts";
import {
  agentName,
  bothNames,
  decodeName,
  encodeJson,
  encodeName,
  indexName,
  int,
  optional,
  ownerName,
  rowsOf,
  taskId,
  text,
  timeLimit,
  write,
  type Column,
  type TaskRow,
} from "./rows.ts";
import { together, type Sql } from "./schema.ts";
import { namedAgents } from "./scopes.ts";

// The rows that features keep with tasks.

/** A task by its agent and its id, and a row of it. */
export type WantedFeature = readonly [agent: number, taskId: string, feature: string, key: string];

const wholeKey = "coalesce(f.long_key, f.key)";

const wanted: readonly Column[] = [
  ["agent", "bigint"],
  ["id", "text"],
  ["feature", "text"],
  ["key", "text"],
];
const selectRows = `SELECT ${wholeKey}, f.value, f.due, f.task, f.feature FROM ${rowsOf(wanted)}
  JOIN parley.tasks t ON t.agent = v.agent AND t.id = v.id
  JOIN parley.features f ON f.task = t.number AND f.feature = v.feature AND f.key = v.key`;
const ofTasks = wanted.slice(0, 2);
const countRows = `SELECT f.task, count(*) FROM (SELECT DISTINCT t.number FROM ${rowsOf(ofTasks)}
  JOIN parley.tasks t ON t.agent = v.agent AND t.id = v.id) n JOIN parley.features f ON f.task = n.number GROUP BY f.task`;

const named: readonly Column[] = [
  ["task", "bigint"],
  ["feature", "text"],
  ["key", "text"],
];
const woken: readonly Column[] = [
  ["task", "bigint"],
  ["feature", "text"],
  ["due", "bigint"],
];
const setting: readonly Column[] = [
  ["agent", "bigint"],
  ...named,
  ["long_key", "text"],
  ["value", "text"],
  ["due", "bigint"],
  ["place", "bigint"],
];
const wakeRows = `UPDATE parley.features f SET due = v.due FROM ${rowsOf(woken)}
  WHERE f.task = v.task AND f.feature = v.feature AND f.due IS NULL`;
const deleteRows = `DELETE FROM parley.features f USING ${rowsOf(named)}
  WHERE f.task = v.task AND f.feature = v.feature AND f.key = v.key`;
// Ids rise in the order in which keys were stored.
const setRows = `INSERT INTO parley.features (agent, task, feature, key, long_key, value, due)
  SELECT agent, task, feature, key, long_key, value, due FROM ${rowsOf(setting)} ORDER BY place
  ON CONFLICT (task, feature, key) DO UPDATE SET value = excluded.value, due = excluded.due`;

/** A row as it is after the items so far. */
interface Changing {
  readonly task: number;
  readonly agent: number;
  readonly feature: string;
  readonly key: string;
  state: FeatureState | undefined;
  /** Whether an item has set or deleted it. */
  changed: boolean;
}

/** The rows of the tasks of a transaction: those that are named are read when it begins, and all are written when it ends. */
export class FeatureRows {
  readonly #rows = new Map<string, Changing>();
  readonly #counts = new Map<number, number>();
  readonly #wakes = new Map<string, readonly [task: number, feature: string, due: number]>();
  readonly #deleted = new Map<string, readonly Value[]>();

  /** Reads rows of tasks. Call it when the tasks are locked: the statements see what was committed by then. */
  async read(sql: Sql, names: readonly WantedFeature[]): Promise<void> {
    const rows = names.map(([agent, task, feature, key]) => [
      agent,
      indexName(task),
      encodeName(feature),
      indexName(key),
    ]);
    const [found, counts] = await together([
      write(sql, selectRows, rows, wanted.length),
      write(sql, countRows, rows, ofTasks.length),
    ]);
    for (const row of found) {
      const { key, ...state } = featureRow(row);
      const [task, feature] = [int(row, 3), decodeName(text(row, 4))];
      this.#rows.set(nameOf(task, feature, key), { task, agent: 0, feature, key, state, changed: false });
    }
    for (const row of counts) this.#counts.set(int(row, 0), int(row, 1));
  }

  /** The reason to refuse the effects of an item. `task` is absent where the item creates it. */
  refusalOf(task: number | undefined, effects: readonly FeatureEffect[]): "changed" | "full" | undefined {
    if (effects.length === 0) return undefined;
    return refuseFeatures(effects, {
      find: (feature, key) => (task === undefined ? undefined : this.#rows.get(nameOf(task, feature, key))?.state),
      count: () => (task === undefined ? 0 : (this.#counts.get(task) ?? 0)),
    });
  }

  apply({ number: task, agent }: Pick<TaskRow, "number" | "agent">, effect: FeatureEffect): void {
    const { feature } = effect;
    if (effect.op === "wake") {
      for (const row of this.#rows.values()) {
        if (row.task !== task || row.feature !== feature || row.state === undefined) continue;
        if (row.state.due === undefined) row.state = { value: row.state.value, due: effect.due };
      }
      const path = nameOf(task, feature, "");
      // The first one wakes all that has no due, and leaves nothing to the next one.
      if (!this.#wakes.has(path)) this.#wakes.set(path, [task, feature, effect.due]);
      return;
    }
    const { key } = effect;
    const name = nameOf(task, feature, key);
    const before = this.#rows.get(name);
    const by = Number(effect.op === "set") - Number(before?.state !== undefined);
    this.#counts.set(task, (this.#counts.get(task) ?? 0) + by);
    if (effect.op === "delete") this.#deleted.set(name, [task, encodeName(feature), indexName(key)]);
    // A row that was not there comes after all others.
    if (before?.state === undefined) this.#rows.delete(name);
    const { value, due } = effect.op === "set" ? effect : {};
    const state = value === undefined ? undefined : { value, ...(due !== undefined && { due }) };
    this.#rows.set(name, { task, agent, feature, key, state, changed: true });
  }

  async write(sql: Sql): Promise<void> {
    const wakes = Array.from(this.#wakes.values(), ([task, feature, due]) => [task, encodeName(feature), due]);
    const sets: Value[][] = [];
    for (const { task, agent, feature, key, state, changed } of this.#rows.values()) {
      if (!changed || state === undefined) continue;
      const row = [agent, task, encodeName(feature), ...bothNames(key), encodeJson(state.value), state.due ?? null];
      sets.push([...row, sets.length]);
    }
    await together([
      write(sql, wakeRows, wakes, woken.length),
      write(sql, deleteRows, [...this.#deleted.values()], named.length),
      write(sql, setRows, sets, setting.length),
    ]);
  }
}

function nameOf(task: number, feature: string, key: string): string {
  return JSON.stringify([task, feature, key]);
}

export async function readFeatures(
  sql: Sql,
  scope: Scope,
  id: string,
  feature: string,
): Promise<readonly FeatureRow[]> {
  const names = [scope.agent, id, feature, ...(scope.owner === undefined ? [] : [scope.owner])];
  const rows = await sql(
    `SELECT ${wholeKey}, f.value, f.due
     FROM parley.scopes a JOIN parley.tasks t ON t.agent = a.id JOIN parley.scopes o ON o.id = t.owner
       JOIN parley.features f ON f.task = t.number
     WHERE a.parent = 0 AND a.name = $1 AND t.id = $2 AND f.feature = $3 ${scope.owner === undefined ? "" : "AND o.name = $4"}
     ORDER BY f.id`,
    ...names.map((name, at) => (at === 2 ? encodeName(name) : indexName(name))),
  );
  return rows.map(featureRow);
}

const selectDue = `SELECT ${wholeKey}, f.value, f.due, ${taskId}, ${ownerName}, ${agentName}
  FROM (
    SELECT d.due, d.id FROM (${namedAgents}) v CROSS JOIN LATERAL (
      SELECT due, id FROM parley.features WHERE feature = $2 AND agent = v.id AND due >= $3 AND due <= $4
      ORDER BY due, id LIMIT $5
    ) d ORDER BY d.due, d.id LIMIT $5
  ) p JOIN parley.features f ON f.id = p.id JOIN parley.tasks t ON t.number = f.task
    JOIN parley.scopes o ON o.id = t.owner JOIN parley.scopes a ON a.id = t.agent
  ORDER BY p.due, p.id`;

/** Merges the due rows of each agent in the order of their index. */
export async function readDue(sql: Sql, query: FeatureQuery): Promise<readonly DueFeature[]> {
  const { feature, now, after = -Infinity, limit } = query;
  if (after >= Number.MAX_SAFE_INTEGER) return [];
  const agents = query.agents?.map(indexName) ?? null;
  const from = timeLimit(Math.floor(after) + 1);
  const rows = await sql(selectDue, agents, encodeName(feature), from, timeLimit(Math.floor(now)), limit);
  return rows.map((row) => {
    const task = { agent: decodeName(text(row, 5)), owner: decodeName(text(row, 4)), taskId: decodeName(text(row, 3)) };
    return { ...featureRow(row), due: int(row, 2), task };
  });
}

function featureRow(row: Row): FeatureRow {
  const due = optional(row, 2);
  const value = { key: decodeName(text(row, 0)), value: text(row, 1) };
  return typeof due === "number" ? { ...value, due } : value;
}
