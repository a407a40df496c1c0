import type {
  ClaimPage,
  ClaimPosition,
  ClaimQuery,
  ContextKey,
  ConversationOptions,
  DueFeature,
  FeatureQuery,
  ListQuery,
  OnceRecord,
  Owner,
  Scope,
  StoredConversation,
  StoreNote,
  StrandedRuns,
} from "@parley/server/internal/store/index";
import { readConversation as conversationOf } from "../shared/conversation.ts";
import { first, selectTask } from "../shared/dialect.ts";
import { featureRow, onceRecord } from "../shared/rows.ts";
import type { Place } from "../shared/tasks.ts";
import { dialect, run } from "./dialect.ts";
import {
  agentName,
  columnsOf,
  count,
  decodeName,
  encodeName,
  indexName,
  int,
  neverHeld,
  onceColumns,
  ownerName,
  stateNumber,
  states,
  taskColumns,
  taskId,
  taskRow,
  text,
  timeLimit,
  wholeKey,
  type Sql,
} from "./schema.ts";
import { findContexts, findPlace, findScope, namedAgents, tallyOf } from "./scopes.ts";

// Queries of the engine: claimable runs, due features, conversations, idempotency keys, notes of other nodes.

/** The tasks of one page of runs, in the order of the page. */
const selectRuns = (page: string): string => `SELECT ${taskColumns}
  FROM (${page}) p JOIN parley.tasks t ON t.number = p.task JOIN parley.contexts c ON c.id = t.context
    JOIN parley.scopes a ON a.id = t.agent JOIN parley.scopes o ON o.id = t.owner
  ORDER BY p.until, p.task`;

const selectClaimable = selectRuns(`
    SELECT r.task, r.until FROM (${namedAgents}) v CROSS JOIN LATERAL (
      SELECT task, free_at AS until FROM parley.runs
      WHERE agent = v.id AND free_at <= $2 AND (free_at, task) > ($3, $4) ORDER BY free_at, task LIMIT $5
    ) r ORDER BY r.until, r.task LIMIT $5`);

/** Finds the runs of some processes by index, without reading other runs. */
const selectHeld = selectRuns(`
    SELECT r.task, r.free_at AS until FROM parley.tasks h JOIN parley.runs r ON r.task = h.number
    WHERE h.holder = ANY($6::text[]) AND r.agent IN (${namedAgents}) AND r.free_at <= $2 AND (r.free_at, r.task) > ($3, $4)
    ORDER BY r.free_at, r.task LIMIT $5`);

/** Merges the runs of each agent in the order of their index, and reads the tasks of one page. */
export async function readClaimable(sql: Sql, query: ClaimQuery): Promise<ClaimPage> {
  const { holders } = query;
  const { leaseUntil = neverHeld, number = 0 }: Partial<ClaimPosition> = query.after ?? {};
  const rows = await sql(
    holders === undefined ? selectClaimable : selectHeld,
    query.agents.map(indexName),
    timeLimit(Math.floor(query.now)),
    leaseUntil,
    number,
    query.limit + 1,
    ...(holders === undefined ? [] : [holders.map(encodeName)]),
  );
  const tasks = rows.slice(0, query.limit).map((row) => taskRow(row));
  const heads = tasks.map(({ head }) => head);
  const last = tasks.at(-1);
  if (rows.length <= query.limit || last === undefined) return { heads };
  const until = last.head.leaseUntil;
  return { heads, next: { number: last.number, ...(until !== undefined && { leaseUntil: until }) } };
}

/** Counts the runs of each agent along their index. */
export async function readStranded(
  sql: Sql,
  { now, agents, limit }: Pick<ClaimQuery, "now" | "agents" | "limit">,
): Promise<readonly StrandedRuns[]> {
  const rows = await sql(
    `SELECT ${agentName}, r.tasks FROM (
       SELECT agent, count(*) AS tasks FROM parley.runs
       WHERE free_at <= $2 AND agent NOT IN (${namedAgents}) GROUP BY agent
     ) r JOIN parley.scopes a ON a.id = r.agent ORDER BY a.id LIMIT $3`,
    agents.map(indexName),
    timeLimit(Math.floor(now)),
    limit,
  );
  return rows.map((row) => ({ agent: decodeName(text(row, 0)), tasks: int(row, 1) }));
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

/** Call this in a transaction. */
export async function readConversation(
  sql: Sql,
  key: ContextKey,
  options: ConversationOptions,
): Promise<StoredConversation> {
  const context = (await findPlace(sql, key, key.contextId))?.context;
  return context === undefined ? { entries: [] } : run(sql, conversationOf(dialect, key, context, options));
}

export async function readOnce(sql: Sql, owner: Owner, key: string, now: number): Promise<OnceRecord | undefined> {
  const [row] = await sql(
    `SELECT ${onceColumns} FROM parley.scopes a JOIN parley.scopes o ON o.parent = a.id JOIN parley.keys k ON k.owner = o.id
       LEFT JOIN parley.tasks t ON t.number = k.task
     WHERE a.parent = 0 AND a.name = $1 AND o.name = $2 AND k.name = $3 AND (k.until IS NULL OR k.until > $4)`,
    indexName(owner.agent),
    indexName(owner.owner),
    indexName(key),
    timeLimit(Math.floor(now)),
  );
  return row && onceRecord(key, row);
}

/** Maximum number of expired notes that a statement deletes: more than it stores. */
const maxTidied = 2_000;

/** Locks notes in the order of their keys, and expired notes only if they are unlocked, so that nodes never deadlock. */
const writeExpiring = `WITH gone AS (
    DELETE FROM parley.notes WHERE key IN (
      SELECT key FROM parley.notes WHERE until <= $4 AND key <> ALL($1::text[]) ORDER BY until LIMIT ${maxTidied}
      FOR UPDATE SKIP LOCKED)
  )
  INSERT INTO parley.notes (key, value, until)
  SELECT n.key, n.value, n.until FROM unnest($1::text[], $2::text[], $3::bigint[]) AS n (key, value, until) ORDER BY n.key
  ON CONFLICT (key) DO UPDATE SET value = excluded.value, until = excluded.until`;

export async function readNotes(sql: Sql, keys: readonly string[], now: number): Promise<ReadonlyMap<string, string>> {
  if (keys.length === 0) return new Map();
  const select = "SELECT key, value FROM parley.notes WHERE key = ANY($1::text[]) AND until > $2";
  const rows = await sql(select, [...keys], timeLimit(Math.floor(now)));
  return new Map(rows.map((row) => [text(row, 0), text(row, 1)]));
}

export async function writeNotes(sql: Sql, notes: readonly StoreNote[], now: number): Promise<void> {
  if (notes.length === 0) return;
  const rows = notes.map(({ key, value, until }) => [key, value, timeLimit(Math.floor(until))]);
  await sql(writeExpiring, ...columnsOf(rows, 3), timeLimit(Math.floor(now)));
}

// Finds the tasks of a page of a list, and counts all tasks of the list.

/** Lists of tasks of one level with these ids and states, each list in the order of an index. */
interface Lists {
  readonly level: "agent" | "owner" | "context";
  readonly ids: readonly number[];
  readonly states: readonly number[];
}

/** Call this in a transaction. Resolves to at most one task more than the limit. */
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

/** Without `since`, the counters have the total. With `since`, the tasks since that time are counted along the index. */
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

/** The places of a page's tasks, at most one task more than the limit. Two seeks in each list find them, at any depth. */
async function placesIn(sql: Sql, lists: Lists, scope: Scope, query: ListQuery): Promise<readonly Place[]> {
  const { level, ids, states: wanted } = lists;
  const { after, since = Number.MIN_SAFE_INTEGER, limit } = query;
  const before = after?.statusTime ?? Number.MAX_SAFE_INTEGER;
  // The position of a deleted task is before all others of its time.
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
