import {
  defaultPageBytes,
  type ContextKey,
  type KnownContext,
  type KnownReply,
  type Owner,
  type OwnerQuery,
  type Removed,
  type RemovedTasks,
  type TaskHead,
  type TaskSelection,
  type Upkeep,
} from "@parley/server/internal/store/index";
import type { Value } from "./driver.ts";
import type { Retention } from "./retention.ts";
import {
  count,
  decodeName,
  indexName,
  int,
  optional,
  stateNumber,
  states,
  taskColumns,
  taskRow,
  taskTables,
  text,
  timeLimit,
} from "./rows.ts";
import { columnsOf, one, together, type Sql } from "./schema.ts";
import type { Calls } from "./store.ts";
import { deleteContexts, deleteTasks, type Write } from "./sweep.ts";
import { lockLists, selectLists, type TaskList } from "./task-lists.ts";

/** Deletion and export for operators. */
export function upkeepOf(calls: Calls, write: Write, retention: Retention): Upkeep {
  return {
    owners: (query) => calls.read((sql) => readOwners(sql, query)),
    count: (selection) => calls.readTogether((sql) => countTasks(sql, selection)),
    find: (selection, limit) => calls.readTogether((sql) => findTasks(sql, selection, limit)),
    remove: (selection, limit) =>
      calls.run(async (): Promise<RemovedTasks> => {
        const tasks = await write((sql) => removeTasks(sql, selection, limit));
        // A transaction of its own: it locks conversations, and every append waits for one that changes counts.
        const { deleted: conversations, more } = await write((sql) => removeIdle(sql, selection, limit));
        return { deleted: tasks.deleted, conversations, more: tasks.more || more };
      }),
    contexts: (owner, page) => calls.read((sql) => readContexts(sql, owner, page)),
    replies: (context, page) => calls.readTogether((sql) => readReplies(sql, context, page)),
    forget: (owner, limit) =>
      calls.run(async () => {
        const removed = await write((sql) => clearOwner(sql, owner, limit));
        if (removed.more || removed.deleted > 0) return { ...removed, more: true };
        // The records of tasks that retention has deleted before may be there until their partition is dropped.
        await retention.drop().catch(() => undefined);
        return write((sql) => forgetOwner(sql, owner));
      }),
    // Rows that were deleted are overwritten by the server.
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

/** About the most records of one transaction. */
const maxRecords = 10_000;

async function removeTasks(sql: Sql, selection: TaskSelection, limit: number): Promise<Removed> {
  const { level, lists } = await listsOf(sql, selection);
  const found = await lockLists(sql, level, lists, limit + 1, isFree);
  let records = 0;
  const tasks = found.slice(0, limit).filter(({ head }, at) => {
    records += head.seq + Math.ceil(head.bytes / 4096);
    return at === 0 || records <= maxRecords;
  });
  await deleteTasks(sql, tasks, () => false);
  return { deleted: tasks.length, more: found.length > tasks.length };
}

/** Deletes conversations without a task, the least recently used first. A key that has yet to expire keeps its conversation. */
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

async function readOwners(sql: Sql, { agent, owner, after, limit }: OwnerQuery): Promise<readonly Owner[]> {
  const names = [agent, owner, after?.agent, after?.owner].map((name) => (name === undefined ? null : indexName(name)));
  const rows = await sql(
    `SELECT coalesce(a.long_name, a.name), coalesce(o.long_name, o.name) FROM parley.scopes a JOIN parley.scopes o ON o.parent = a.id
     WHERE a.parent = 0 AND ($1::text IS NULL OR a.name = $1) AND ($2::text IS NULL OR o.name = $2)
       AND ($3::text IS NULL OR (a.name, o.name) > ($3, $4::text)) ORDER BY a.name, o.name LIMIT $5`,
    ...names,
    limit,
  );
  return rows.map((row) => ({ agent: decodeName(text(row, 0)), owner: decodeName(text(row, 1)) }));
}

const ofOwner = `parley.scopes a JOIN parley.scopes o ON o.parent = a.id JOIN parley.contexts c ON c.owner = o.id
  WHERE a.parent = 0 AND a.name = $1 AND o.name = $2`;

async function readContexts(
  sql: Sql,
  { agent, owner }: Owner,
  { after, limit }: Parameters<Upkeep["contexts"]>[1],
): Promise<readonly KnownContext[]> {
  const rows = await sql(
    `SELECT coalesce(c.long_name, c.name), (SELECT value FROM parley.context_states s WHERE s.context = c.id)
     FROM ${ofOwner} AND c.name > $3 ORDER BY c.name LIMIT $4`,
    indexName(agent),
    indexName(owner),
    after === undefined ? "" : indexName(after),
    limit,
  );
  return rows.map((row) => {
    const state = optional(row, 1);
    return { contextId: decodeName(text(row, 0)), ...(typeof state === "string" && { state }) };
  });
}

async function readReplies(
  sql: Sql,
  { agent, owner, contextId }: ContextKey,
  { after = 0, limit }: Parameters<Upkeep["replies"]>[1],
): Promise<readonly KnownReply[]> {
  const names: Value[] = [agent, owner, contextId].map(indexName);
  const context = await one(sql(`SELECT c.id FROM ${ofOwner} AND c.name = $3`, ...names));
  if (context === undefined) return [];
  // Their sizes are known before they are read.
  const rows = await sql(
    `SELECT place, time, json FROM parley.replies r JOIN (
       SELECT place, sum(octet_length(json)) OVER (ORDER BY place) AS bytes, row_number() OVER (ORDER BY place) AS at
       FROM (SELECT place, json FROM parley.replies WHERE context = $1 AND place > $2 ORDER BY place LIMIT $3) p
     ) f USING (place) WHERE r.context = $1 AND (f.bytes <= ${defaultPageBytes} OR f.at = 1) ORDER BY place`,
    count(context),
    after,
    limit,
  );
  return rows.map((row) => ({ place: int(row, 0), time: int(row, 1), json: text(row, 2) }));
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

/** Deletes what an owner has beside tasks, at most `limit` rows of a kind. */
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
 * Deletes an owner that has nothing any more. Waits for the transactions that are creating something of it, and lets none begin until this
 * one is over: those that still remember the owner then find that it is gone. Those of other owners go on.
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
