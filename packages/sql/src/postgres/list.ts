import type { Task } from "@parley/a2a/internal/model/index";
import {
  assemble,
  defaultPageBytes,
  fitting,
  PageBudget,
  PageRoom,
  type ListedTask,
  type ListQuery,
  type Scope,
  type StoreBounds,
  type TaskPage,
} from "@parley/server/internal/store/index";
import { utf8Length } from "@parley/a2a/internal/base/index";
import { keyOf, type KeptTasks, type Place } from "../shared/kept-tasks.ts";
import {
  count,
  decodeName,
  int,
  selectTask,
  stateNumber,
  states,
  taskColumns,
  taskId,
  taskRow,
  taskTables,
  text,
  timeLimit,
} from "./rows.ts";
import { one, type Sql } from "./schema.ts";
import { findContexts, findPlace, findScope, tallyOf } from "./scopes.ts";
import { readPieces, readTexts, sizeOf, type PiecesOf } from "./task.ts";

type Level = "agent" | "owner" | "context";

/** What lists need beside the database. */
export interface ListMemory {
  readonly kept: KeptTasks;
  readonly bounds: StoreBounds;
}

/** Lists of tasks: those of one level and of these ids, in these states, each list in the order of an index. */
interface Lists {
  readonly level: Level;
  readonly ids: readonly number[];
  readonly states: readonly number[];
}

type Listing = Place & PiecesOf;

/** Call it in a transaction. */
export async function readList(
  sql: Sql,
  memory: ListMemory,
  scope: Scope,
  query: ListQuery,
  most: number,
): Promise<TaskPage> {
  const wanted = (query.state === undefined ? states : [query.state]).map(stateNumber);
  const lists: Lists = { ...(await listScopes(sql, scope, query.contextId)), states: wanted };
  if (lists.ids.length === 0) return { tasks: [], total: 0 };
  const total = await totalOf(sql, lists, query.since);
  const found = await positions(sql, lists, scope, query);
  const tasks = await readPage(sql, memory, found.slice(0, query.limit), query, most);
  const last = found[tasks.length - 1];
  if (found.length <= tasks.length || last === undefined) return { tasks, total };
  return { tasks, total, next: { statusTime: last.statusTime, taskId: decodeName(last.id) } };
}

async function listScopes(
  sql: Sql,
  { agent, owner }: Scope,
  contextId: string | undefined,
): Promise<Pick<Lists, "level" | "ids">> {
  const level = contextId !== undefined ? "context" : owner === undefined ? "agent" : "owner";
  if (contextId !== undefined && owner !== undefined) {
    const context = (await findPlace(sql, { agent, owner }, contextId))?.context;
    return { level, ids: context === undefined ? [] : [context] };
  }
  const found = await findScope(sql, agent, owner);
  if (found === undefined) return { level, ids: [] };
  return { level, ids: contextId === undefined ? [found] : await findContexts(sql, found, contextId) };
}

/** Without a time the counters have it. With a time, the tasks since then are counted along the index. */
async function totalOf(sql: Sql, { level, ids, states: wanted }: Lists, since: number | undefined): Promise<number> {
  if (since === undefined) {
    const tally = await tallyOf(sql, level, ids);
    return wanted.reduce((sum, state) => sum + (tally[state] ?? 0), 0);
  }
  const rows = await sql(
    `SELECT count(*) FROM parley.tasks WHERE ${level} = ANY($1::bigint[]) AND state = ANY($2::smallint[]) AND status_time >= $3`,
    ids,
    wanted,
    timeLimit(Math.ceil(since)),
  );
  return count(rows[0]);
}

/** The places of the tasks of a page, at most one more than the limit. Two seeks in each list find them, at any depth. */
async function positions(sql: Sql, lists: Lists, scope: Scope, query: ListQuery): Promise<readonly Listing[]> {
  const { level, ids, states: wanted } = lists;
  const { after, since = Number.MIN_SAFE_INTEGER, limit } = query;
  const before = after?.statusTime ?? Number.MAX_SAFE_INTEGER;
  // That of a task that was deleted is before all others of its time.
  const known = after && (await selectTask(sql, scope, after.taskId, "t.number"));
  const number = known === undefined ? Number.MAX_SAFE_INTEGER : int(known, 0);
  const rows = await sql(
    `SELECT p.status_time, p.number, p.seq, p.bytes, p.id, p.status_seq, p.has_metadata
     FROM unnest($1::bigint[]) AS l (id) CROSS JOIN unnest($2::smallint[]) AS s (state) CROSS JOIN LATERAL (
       SELECT t.status_time, t.number, t.seq, t.bytes, ${taskId} AS id, t.status_seq, t.has_metadata FROM parley.tasks t
       WHERE t.${level} = l.id AND t.state = s.state AND (t.status_time, t.number) < ($3, $4) AND t.status_time >= $5
       ORDER BY t.status_time DESC, t.number DESC LIMIT $6
     ) p ORDER BY p.status_time DESC, p.number DESC LIMIT $6`,
    ids,
    wanted,
    before,
    number,
    timeLimit(Math.ceil(since)),
    limit + 1,
  );
  return rows.map((row) => ({
    statusTime: int(row, 0),
    number: int(row, 1),
    seq: int(row, 2),
    bytes: int(row, 3),
    id: text(row, 4),
    statusSeq: int(row, 5),
    hasMetadata: int(row, 6) === 1,
  }));
}

/** Bytes of tasks that are read together. A larger task is read alone. */
const bytesTogether = 1 << 20;

/**
 * As many tasks as fit into the page. Most of them have not changed since the last call and are kept; the rest is read in
 * groups, and a large task alone.
 */
async function readPage(
  sql: Sql,
  { kept, bounds }: ListMemory,
  places: readonly Listing[],
  query: ListQuery,
  most: number,
): Promise<readonly ListedTask[]> {
  const { bytes = defaultPageBytes } = query;
  const held = new PageRoom(
    places.map((place) => place.bytes),
    query,
    most,
  );
  const whole = places.reduce((sum, place) => sum + place.bytes, 0) <= bytes;
  const budget = new PageBudget(bytes);
  const tasks: ListedTask[] = [];
  for (let at = 0; at < places.length;) {
    const group = fitting(places.slice(at), bytesTogether, (place) => place.bytes);
    const [first] = group;
    if (first !== undefined && first.bytes > bytesTogether) {
      const size = held.counts || !whole ? await sizeOf(sql, first, query) : 0;
      if (!whole && !budget.take(size)) return tasks;
      held.take(size);
      const row = await one(sql(`SELECT ${taskColumns} FROM ${taskTables} WHERE t.number = $1`, first.number));
      if (row === undefined) throw new RangeError(`There is no task of number ${first.number}`);
      tasks.push(assemble(await readPieces(sql, bounds, taskRow(row), query), query));
    } else {
      for (const json of await readGroup(sql, kept, group, query)) {
        if (!whole && !budget.take(utf8Length(json))) return tasks;
        held.take(json.length);
        tasks.push(new Listed(json));
      }
    }
    at += group.length;
  }
  return tasks;
}

async function readGroup(
  sql: Sql,
  kept: KeptTasks,
  places: readonly Listing[],
  query: ListQuery,
): Promise<readonly string[]> {
  const known = places.map((place) => kept.find(keyOf(place, query)));
  const missing = places.filter((_place, at) => known[at] === undefined);
  const found = await readTexts(sql, missing, query);
  let next = 0;
  return places.map((place, at) => {
    const json = known[at] ?? found[next++] ?? "{}";
    kept.keep(keyOf(place, query), json);
    return json;
  });
}

class Listed implements ListedTask {
  readonly json: string;

  constructor(json: string) {
    this.json = json;
  }

  get task(): Task {
    return JSON.parse(this.json) as Task;
  }
}
