import {
  deletesAllBefore,
  deletesBefore,
  sweptStates,
  type SweepOptions,
  type SweepReport,
} from "@parley/server/internal/store/index";
import type { Bounds } from "../shared/dialect.ts";
import { compactTask, effortPerSweep, pagesOf } from "../shared/upkeep.ts";
import { dialect, run } from "./dialect.ts";
import {
  columns,
  count,
  decodeName,
  int,
  rowsOf,
  stateNumber,
  taskColumns,
  taskRow,
  taskTables,
  text,
  timeLimit,
  together,
  write,
  type Sql,
  type TaskRow,
} from "./schema.ts";
import type { Retention } from "./retention.ts";
import { ScopeChanges } from "./scopes.ts";

/** Runs `body` in a transaction. */
export type Write = <T>(body: (sql: Sql) => Promise<T>) => Promise<T>;

interface Sweeping extends SweepOptions {
  readonly bounds: Bounds;
  readonly retention: Retention;
}

interface Swept {
  readonly done: number;
  readonly more: boolean;
  /** The remaining effort. */
  readonly budget: number;
}

/**
 * Deletes tasks, compacts tasks, and deletes expired keys, each in its own transaction, because appends wait for the changed counts until
 * the commit. Nodes may sweep concurrently: each takes rows that no other has locked, in the lock order of appends.
 */
export async function sweep(write: Write, sweeping: Sweeping): Promise<SweepReport> {
  const { rules = [], compactBefore, limit, retention } = sweeping;
  const deletes = sweeping.deleteBefore !== undefined || rules.length > 0;
  // A partition is dropped once all its tasks are old enough, for all agents and states.
  const before = deletesAllBefore(sweeping);
  const looked = await retention.look(before === -Infinity ? undefined : before);
  const nothing: Swept = { done: 0, more: false, budget: effortPerSweep };
  const deletion = deletes ? await write((sql) => deleteOver(sql, sweeping)) : nothing;
  const left = limit - deletion.done;
  const compaction =
    compactBefore === undefined
      ? nothing
      : await write((sql) => compactOver(sql, sweeping, compactBefore, left, deletion.budget));
  const hasExpired = await write((sql) => deleteExpired(sql, sweeping));
  const more = deletion.more || compaction.more || hasExpired;
  // Drops partitions when the last tasks are deleted, and also after each check, because there may always be more tasks.
  if (deletes && (looked || !more)) await retention.drop();
  return { deleted: deletion.done, compacted: compaction.done, more };
}

async function deleteOver(sql: Sql, sweeping: Sweeping): Promise<Swept> {
  const { retention, limit, rules = [], deleteBefore = -Infinity } = sweeping;
  const keepsLog = (number: number): boolean => retention.keepsLog(number);
  const found =
    rules.length > 0 ? await lockByRules(sql, sweeping) : await lockOver(sql, deleteBefore, limit + 1, false);
  const tasks: TaskRow[] = [];
  let budget = effortPerSweep;
  for (const task of found.slice(0, limit)) {
    if (budget <= 0) break;
    budget -= keepsLog(task.number) ? 1 : task.head.seq + pagesOf(task.head);
    tasks.push(task);
  }
  await deleteTasks(sql, tasks, keepsLog);
  return { done: tasks.length, more: found.length > tasks.length, budget };
}

async function compactOver(
  sql: Sql,
  { bounds }: Sweeping,
  before: number,
  limit: number,
  effort: number,
): Promise<Swept> {
  if (limit <= 0) return { done: 0, more: (await lockOver(sql, before, 1, true)).length > 0, budget: effort };
  const loose = await lockOver(sql, before, limit + 1, true);
  let [budget, seen, done] = [effort, 0, 0];
  for (const task of loose.slice(0, limit)) {
    if (budget <= 0) break;
    const spent = await run(sql, compactTask({ dialect, bounds }, task));
    budget -= spent;
    seen += 1;
    if (spent > 0) done += 1;
  }
  return { done, more: loose.length > seen, budget };
}

/** Deletes idle contexts and expired keys without waiting for locks. Resolves to whether there are more. */
async function deleteExpired(sql: Sql, options: Sweeping): Promise<boolean> {
  const { deleteBefore, rules = [], now, limit } = options;
  const idle = deleteBefore === undefined && rules.length === 0 ? 0 : await deleteIdle(sql, options);
  const expired = await sql(
    `SELECT owner, name FROM parley.keys WHERE until <= $1 ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED`,
    timeLimit(Math.floor(now)),
    limit + 1,
  );
  await write(
    sql,
    `DELETE FROM parley.keys k USING ${rowsOf(named)} WHERE k.owner = v.owner AND k.name = v.name`,
    expired.slice(0, limit),
    named.length,
  );
  return idle > limit || expired.length > limit;
}

const named = columns("owner bigint, name text");

/** Terminal tasks with an older status, the oldest first. Compacted and other tasks are separate lists. */
async function lockOver(sql: Sql, before: number, limit: number, loose: boolean): Promise<readonly TaskRow[]> {
  const numbers: { number: number; time: number }[] = [];
  for (const compacted of loose ? [0] : [0, 1]) {
    const rows = await sql(
      `SELECT number, status_time FROM parley.tasks WHERE state >= 4 AND compacted = $1 AND status_time < $2
       ORDER BY status_time, number LIMIT $3 FOR UPDATE SKIP LOCKED`,
      compacted,
      timeLimit(Math.ceil(before)),
      limit,
    );
    numbers.push(...rows.map((row) => ({ number: int(row, 0), time: int(row, 1) })));
  }
  return rowsOfTasks(sql, numbers, limit);
}

/** Deletes tasks with all their rows. */
export async function deleteTasks(
  sql: Sql,
  tasks: readonly TaskRow[],
  keepsLog: (number: number) => boolean,
): Promise<void> {
  if (tasks.length === 0) return;
  const scopes = new ScopeChanges();
  for (const task of tasks) scopes.move({ row: task, head: task.head }, task.head, undefined);
  const numbers = tasks.map(({ number }) => number);
  const logs = numbers.filter((number) => !keepsLog(number));
  await together([
    // Appends lock keys, then contexts, so this uses the same order.
    sql(deleteKeys("task", "FOR UPDATE"), numbers),
    scopes.writeContexts(sql),
    // A context is as old as the newest status that any of its tasks ever had.
    sql(
      `UPDATE parley.contexts c SET touched = greatest(c.touched, t.touched)
       FROM (SELECT context, max(touched) AS touched FROM parley.tasks WHERE number = ANY($1::bigint[]) GROUP BY context) t
       WHERE c.id = t.context AND c.touched < t.touched`,
      numbers,
    ),
    sql("DELETE FROM parley.tasks WHERE number = ANY($1::bigint[])", numbers),
    ...["runs", "checkpoints", "task_states", "features", "search_tasks", "search_texts"].map((table) =>
      sql(`DELETE FROM parley.${table} WHERE task = ANY($1::bigint[])`, numbers),
    ),
    sql("DELETE FROM parley.log WHERE task = ANY($1::bigint[])", logs),
    scopes.writeCounts(sql),
  ]);
}

/** Deletes contexts without a task, unless they contain an unexpired key. Resolves to their number. */
async function deleteIdle(sql: Sql, options: SweepOptions): Promise<number> {
  const { deleteBefore = -Infinity, rules = [], now, limit } = options;
  const rest = [timeLimit(Math.floor(now)), limit + 1];
  const before = (time: number): number => timeLimit(Math.ceil(time));
  const isIdle = `c.tasks = 0 AND NOT EXISTS (SELECT 1 FROM parley.keys k WHERE k.context = c.id AND k.until > $2)`;
  const oldest = `c.touched < $1 ORDER BY c.touched LIMIT $3 FOR UPDATE OF c SKIP LOCKED`;
  const rows: number[] = [];
  if (rules.length === 0) {
    const all = `SELECT c.id FROM parley.contexts c WHERE ${isIdle} AND ${oldest}`;
    rows.push(...(await sql(all, before(deleteBefore), ...rest)).map(count));
  } else {
    const ofAgent = `SELECT c.id FROM parley.contexts c JOIN parley.scopes o ON o.id = c.owner AND o.parent = $4
      WHERE ${isIdle} AND ${oldest}`;
    for (const { id, name } of await agentsOf(sql)) {
      const time = deletesBefore(options, name);
      if (time !== -Infinity) rows.push(...(await sql(ofAgent, before(time), ...rest, id)).map(count));
    }
  }
  await deleteContexts(sql, rows.slice(0, limit));
  return rows.length;
}

/** Deletes locked contexts without a task. */
export async function deleteContexts(sql: Sql, found: readonly number[]): Promise<void> {
  if (found.length === 0) return;
  // An append that has locked a key may wait for its context, so neither is deleted.
  await sql(deleteKeys("context", "FOR UPDATE SKIP LOCKED"), found);
  const used = await sql("SELECT DISTINCT context FROM parley.keys WHERE context = ANY($1::bigint[])", found);
  const busy = new Set(used.map(count));
  const idle = found.filter((id) => !busy.has(id));
  await together(
    ["contexts WHERE id", "context_states WHERE context", "replies WHERE context"].map((where) =>
      sql(`DELETE FROM parley.${where} = ANY($1::bigint[])`, idle),
    ),
  );
}

/** Deletes the keys of tasks or contexts, in the lock order of appends. */
function deleteKeys(of: "task" | "context", lock: string): string {
  return `DELETE FROM parley.keys k USING (
      SELECT owner, name FROM parley.keys WHERE ${of} = ANY($1::bigint[]) ORDER BY owner, name ${lock}
    ) f WHERE k.owner = f.owner AND k.name = f.name`;
}

// Lists of tasks in the order of an index, for deleting the oldest.

/** The rows of the locked tasks with the oldest status. */
async function rowsOfTasks(
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

/** A list of tasks in the order of an index: of an agent or owner, in a state, older than a time. */
export type TaskList = readonly [scope: number, state: number, before: number];

const listed = columns("scope bigint, state smallint, before bigint");

/** The oldest tasks of each list. `and` is SQL with a condition and row locks. */
export function selectLists(level: "agent" | "owner", columns: string, and: string): string {
  return `SELECT t.* FROM ${rowsOf(listed)} CROSS JOIN LATERAL (SELECT ${columns} FROM parley.tasks t
    WHERE t.${level} = v.scope AND t.state = v.state AND t.status_time < v.before ${and}) t`;
}

/** Locks the oldest tasks of these lists, except tasks that other transactions have locked. */
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

/** Locks tasks by a rule per agent and state. Each pair of agent and state is a list. */
async function lockByRules(sql: Sql, options: SweepOptions): Promise<readonly TaskRow[]> {
  const lists = (await agentsOf(sql)).flatMap(({ id, name }) =>
    sweptStates.flatMap((state): TaskList[] => {
      const before = deletesBefore(options, name, state);
      return before === -Infinity ? [] : [[id, stateNumber(state), timeLimit(Math.ceil(before))]];
    }),
  );
  return lockLists(sql, "agent", lists, options.limit + 1);
}

async function agentsOf(sql: Sql): Promise<readonly { readonly id: number; readonly name: string }[]> {
  const rows = await sql("SELECT id, coalesce(long_name, name) FROM parley.scopes WHERE parent = 0");
  return rows.map((row) => ({ id: int(row, 0), name: decodeName(text(row, 1)) }));
}
