import { deletesBefore, sweptStates, type SweepOptions } from "@parley/server/internal/store/index";
import {
  decodeName,
  int,
  rowsOf,
  stateNumber,
  taskColumns,
  taskRow,
  taskTables,
  text,
  timeLimit,
  write,
  type Column,
  type TaskRow,
} from "./rows.ts";
import type { Sql } from "./schema.ts";

// Lists of tasks in the order of an index, for what deletes the oldest of them.

/** The tasks with the oldest status of these, which are locked. */
export async function rowsOfTasks(
  sql: Sql,
  found: readonly { readonly number: number; readonly time: number }[],
  limit: number,
): Promise<readonly TaskRow[]> {
  const oldest = found.toSorted((a, b) => a.time - b.time || a.number - b.number).slice(0, limit);
  if (oldest.length === 0) return [];
  const rows = await sql(
    `SELECT ${taskColumns} FROM ${taskTables} WHERE t.number = ANY($1::bigint[]) ORDER BY t.status_time, t.number`,
    oldest.map(({ number }) => number),
  );
  return rows.map((row) => taskRow(row));
}

/** One list of tasks in the order of an index: of an agent or an owner, in a state, older than a time. */
export type TaskList = readonly [scope: number, state: number, before: number];

const listed: readonly Column[] = [
  ["scope", "bigint"],
  ["state", "smallint"],
  ["before", "bigint"],
];

/** Of each list the tasks with the oldest status. `and`: a condition, and what locks the rows. */
export function selectLists(level: "agent" | "owner", columns: string, and: string): string {
  return `SELECT t.* FROM ${rowsOf(listed)} CROSS JOIN LATERAL (SELECT ${columns} FROM parley.tasks t
    WHERE t.${level} = v.scope AND t.state = v.state AND t.status_time < v.before ${and}) t`;
}

/** Deletes tasks of these lists, the oldest first. They are locked where nobody else has locked them. */
export async function lockLists(
  sql: Sql,
  level: "agent" | "owner",
  lists: readonly TaskList[],
  limit: number,
  condition = "",
): Promise<readonly TaskRow[]> {
  const locked = `${condition} ORDER BY t.status_time, t.number LIMIT ${limit} FOR UPDATE OF t SKIP LOCKED`;
  const rows = await write(sql, selectLists(level, "t.number, t.status_time", locked), lists, listed.length);
  const found = rows.map((row) => ({ number: int(row, 0), time: int(row, 1) }));
  return rowsOfTasks(sql, found, limit);
}

/** Where agents and states have times of their own, each of them is a list. */
export async function lockByRules(sql: Sql, options: SweepOptions): Promise<readonly TaskRow[]> {
  const lists = (await agentsOf(sql)).flatMap(({ id, name }) =>
    sweptStates.flatMap((state): TaskList[] => {
      const before = deletesBefore(options, name, state);
      return before === -Infinity ? [] : [[id, stateNumber(state), timeLimit(Math.ceil(before))]];
    }),
  );
  return lockLists(sql, "agent", lists, options.limit + 1);
}

export async function agentsOf(sql: Sql): Promise<readonly { readonly id: number; readonly name: string }[]> {
  const rows = await sql("SELECT id, coalesce(long_name, name) FROM parley.scopes WHERE parent = 0");
  return rows.map((row) => ({ id: int(row, 0), name: decodeName(text(row, 1)) }));
}
