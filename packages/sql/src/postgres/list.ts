import type { ListQuery, Scope } from "@parley/server/internal/store/index";
import { selectTask } from "../shared/dialect.ts";
import { first } from "../shared/steps.ts";
import type { Place } from "../shared/tasks.ts";
import { dialect, run } from "./dialect.ts";
import { count, int, stateNumber, states, taskId, text, timeLimit } from "./rows.ts";
import type { Sql } from "./schema.ts";
import { findContexts, findPlace, findScope, tallyOf } from "./scopes.ts";

// Finds the tasks of a page of a list, and counts all tasks of the list.

/** Lists of tasks: those of one level and of these ids, in these states, each list in the order of an index. */
interface Lists {
  readonly level: "agent" | "owner" | "context";
  readonly ids: readonly number[];
  readonly states: readonly number[];
}

/** Call it in a transaction. Resolves to at most one task more than the limit. */
export async function findListed(
  sql: Sql,
  scope: Scope,
  query: ListQuery,
): Promise<{ readonly found: readonly Place[]; readonly total: number }> {
  const wanted = (query.state === undefined ? states : [query.state]).map(stateNumber);
  const lists: Lists = { ...(await listScopes(sql, scope, query.contextId)), states: wanted };
  if (lists.ids.length === 0) return { found: [], total: 0 };
  const total = await totalOf(sql, lists, query.since);
  return { found: await placesIn(sql, lists, scope, query), total };
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
async function placesIn(sql: Sql, lists: Lists, scope: Scope, query: ListQuery): Promise<readonly Place[]> {
  const { level, ids, states: wanted } = lists;
  const { after, since = Number.MIN_SAFE_INTEGER, limit } = query;
  const before = after?.statusTime ?? Number.MAX_SAFE_INTEGER;
  // That of a task that was deleted is before all others of its time.
  const known = after && (await run(sql, first(selectTask(dialect, scope, after.taskId, { columns: "t.number" }))));
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
