import type {
  Owner,
  Removed,
  RemovedTasks,
  TaskHead,
  TaskSelection,
  Upkeep,
} from "@parley/server/internal/store/index";
import { effortPerSweep, pagesOf, readContexts, readOwners, readReplies } from "../shared/upkeep.ts";
import { dialect } from "./dialect.ts";
import type { Retention } from "./retention.ts";
import {
  columnsOf,
  count,
  indexName,
  one,
  stateNumber,
  states,
  taskColumns,
  taskRow,
  taskTables,
  timeLimit,
  together,
  type Sql,
} from "./schema.ts";
import type { Calls } from "./store.ts";
import { deleteContexts, deleteTasks, lockLists, selectLists, type TaskList, type Write } from "./sweep.ts";

/** Deletion and export for operators. */
export function upkeepOf(calls: Calls, write: Write, retention: Retention): Upkeep {
  return {
    owners: (query) => calls.steps(() => readOwners(dialect, query)),
    count: (selection) => calls.readTogether((sql) => countTasks(sql, selection)),
    find: (selection, limit) => calls.readTogether((sql) => findTasks(sql, selection, limit)),
    remove: (selection, limit) =>
      calls.run(async (): Promise<RemovedTasks> => {
        const tasks = await write((sql) => removeTasks(sql, selection, limit));
        // A separate transaction, because this step locks conversations, and appends wait for transactions that change counts.
        const { deleted: conversations, more } = await write((sql) => removeIdle(sql, selection, limit));
        return { deleted: tasks.deleted, conversations, more: tasks.more || more };
      }),
    contexts: (owner, page) => calls.steps(() => readContexts(dialect, owner, page)),
    replies: (context, page) => calls.steps(() => readReplies(dialect, context, page)),
    forget: (owner, limit) =>
      calls.run(async () => {
        const removed = await write((sql) => clearOwner(sql, owner, limit));
        if (removed.more || removed.deleted > 0) return { ...removed, more: true };
        // Records of tasks that retention deleted may remain until their partition is dropped.
        await retention.drop().catch(() => undefined);
        return write((sql) => forgetOwner(sql, owner));
      }),
    // The server overwrites deleted rows.
    scrub: () => calls.run(() => Promise.resolve()),
  };
}

async function listsOf(
  sql: Sql,
  { agent, owner, states: wanted = states, before = Infinity }: TaskSelection,
): Promise<{ readonly level: "agent" | "owner"; readonly lists: readonly TaskList[] }> {
  const level = owner === undefined ? "agent" : "owner";
  const from =
    owner === undefined
      ? "SELECT a.id FROM parley.scopes a WHERE a.parent = 0 AND ($1::text IS NULL OR a.name = $1) AND $2::text IS NULL"
      : "SELECT o.id FROM parley.scopes a JOIN parley.scopes o ON o.parent = a.id WHERE a.parent = 0 AND ($1::text IS NULL OR a.name = $1) AND o.name = $2";
  const rows = await sql(from, ...[agent, owner].map((name) => (name === undefined ? null : indexName(name))));
  const time = timeLimit(Math.ceil(before));
  return {
    level,
    lists: rows.flatMap((row) => wanted.map((state): TaskList => [count(row), stateNumber(state), time])),
  };
}

/** Tasks that no process executes. */
const isFree = "AND t.run_turn IS NULL";

async function countTasks(sql: Sql, selection: TaskSelection): Promise<number> {
  const { level, lists } = await listsOf(sql, selection);
  const [row] = await sql(
    `SELECT count(*) FROM (${selectLists(level, "t.number", isFree)}) found`,
    ...columnsOf(lists, 3),
  );
  return count(row);
}

async function findTasks(sql: Sql, selection: TaskSelection, limit: number): Promise<readonly TaskHead[]> {
  const { level, lists } = await listsOf(sql, selection);
  const each = `ORDER BY t.status_time, t.number LIMIT ${limit}`;
  const rows = await sql(
    `SELECT ${taskColumns} FROM (${selectLists(level, "t.number", each)}) found
       JOIN parley.tasks t ON t.number = found.number ${taskTables.slice(taskTables.indexOf("JOIN"))}
     ORDER BY t.status_time, t.number LIMIT ${limit}`,
    ...columnsOf(lists, 3),
  );
  return rows.map((row) => taskRow(row).head);
}

async function removeTasks(sql: Sql, selection: TaskSelection, limit: number): Promise<Removed> {
  const { level, lists } = await listsOf(sql, selection);
  const found = await lockLists(sql, level, lists, limit + 1, isFree);
  let effort = 0;
  const tasks = found.slice(0, limit).filter(({ head }, at) => {
    effort += head.seq + pagesOf(head);
    return at === 0 || effort <= effortPerSweep;
  });
  await deleteTasks(sql, tasks, () => false);
  return { deleted: tasks.length, more: found.length > tasks.length };
}

/** Deletes conversations without a task, the least recently used first, unless they contain an unexpired key. */
async function removeIdle(
  sql: Sql,
  { agent, owner, states: wanted = states, before = Infinity }: TaskSelection,
  limit: number,
): Promise<Removed> {
  if (!wanted.includes("TASK_STATE_COMPLETED")) return { deleted: 0, more: false };
  const found = await sql(
    `SELECT c.id FROM parley.contexts c JOIN parley.scopes o ON o.id = c.owner JOIN parley.scopes a ON a.id = o.parent
     WHERE c.tasks = 0 AND c.touched < $1 AND ($2::text IS NULL OR a.name = $2) AND ($3::text IS NULL OR o.name = $3)
       AND NOT EXISTS (SELECT 1 FROM parley.keys k WHERE k.context = c.id AND k.until IS NOT NULL)
     ORDER BY c.touched LIMIT $4 FOR UPDATE OF c SKIP LOCKED`,
    timeLimit(Math.ceil(before)),
    ...[agent, owner].map((name) => (name === undefined ? null : indexName(name))),
    limit + 1,
  );
  const idle = found.slice(0, limit).map(count);
  await deleteContexts(sql, idle);
  return { deleted: idle.length, more: found.length > limit };
}

function ownerId(sql: Sql, { agent, owner }: Owner): Promise<number | undefined> {
  return one(
    sql(
      "SELECT o.id FROM parley.scopes a JOIN parley.scopes o ON o.parent = a.id WHERE a.parent = 0 AND a.name = $1 AND o.name = $2",
      indexName(agent),
      indexName(owner),
    ),
  ).then((row) => row && count(row));
}

const hasTasks = "SELECT EXISTS (SELECT 1 FROM parley.tasks WHERE owner = $1)::int";

/** Deletes the data of an owner except tasks, at most `limit` rows of a kind. */
async function clearOwner(sql: Sql, owner: Owner, limit: number): Promise<Removed> {
  const id = await ownerId(sql, owner);
  if (id === undefined) return { deleted: 0, more: false };
  if (count((await sql(hasTasks, id))[0]) === 1) return { deleted: 0, more: true };
  const contexts = "SELECT id FROM parley.contexts WHERE owner = $1";
  const gone = await together([
    sql(
      `DELETE FROM parley.replies WHERE (context, place) IN
         (SELECT context, place FROM parley.replies WHERE context IN (${contexts}) LIMIT $2) RETURNING 1`,
      id,
      limit,
    ),
    sql(
      `DELETE FROM parley.keys WHERE owner = $1 AND name IN (SELECT name FROM parley.keys WHERE owner = $1 LIMIT $2) RETURNING 1`,
      id,
      limit,
    ),
  ]);
  if (gone.some((rows) => rows.length === limit)) return { deleted: 0, more: true };
  const idle = (await sql(`${contexts} AND tasks = 0 ORDER BY id LIMIT $2 FOR UPDATE`, id, limit)).map(count);
  await deleteContexts(sql, idle);
  return { deleted: idle.length, more: idle.length === limit };
}

/**
 * Deletes an owner without data. Waits for transactions that create data for the owner, and blocks new ones, which then fail with `ScopeGone`.
 * Other owners are not affected.
 */
async function forgetOwner(sql: Sql, owner: Owner): Promise<Removed> {
  const id = await ownerId(sql, owner);
  if (id === undefined) return { deleted: 0, more: false };
  const [found] = await sql("SELECT 1 FROM parley.scopes WHERE id = $1 FOR UPDATE", id);
  if (found === undefined) return { deleted: 0, more: false };
  const [row] = await sql(
    `SELECT (EXISTS (SELECT 1 FROM parley.contexts WHERE owner = $1) OR EXISTS (SELECT 1 FROM parley.tasks WHERE owner = $1)
       OR EXISTS (SELECT 1 FROM parley.keys WHERE owner = $1))::int`,
    id,
  );
  if (count(row) === 1) return { deleted: 0, more: true };
  await together([
    sql("DELETE FROM parley.counts WHERE scope = $1", id),
    sql("DELETE FROM parley.scopes WHERE id = $1", id),
  ]);
  return { deleted: 0, more: false };
}
