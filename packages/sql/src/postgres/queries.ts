import type {
  ClaimPage,
  ClaimPosition,
  ClaimQuery,
  ContextKey,
  ConversationOptions,
  DueFeature,
  FeatureQuery,
  OnceRecord,
  Owner,
  StoredConversation,
  StoreNote,
  StrandedRuns,
} from "@parley/server/internal/store/index";
import { readConversation as conversationOf } from "../shared/conversation.ts";
import { featureRow, onceRecord } from "../shared/effects.ts";
import { dialect, run } from "./dialect.ts";
import {
  agentName,
  decodeName,
  encodeName,
  indexName,
  int,
  neverHeld,
  onceColumns,
  ownerName,
  taskColumns,
  taskId,
  taskRow,
  text,
  timeLimit,
  wholeKey,
} from "./rows.ts";
import { columnsOf, type Sql } from "./schema.ts";
import { findPlace, namedAgents } from "./scopes.ts";

// What the engine looks for: runs to claim, features that are due, conversations, idempotency keys, notes of other nodes.

/** The tasks of one page of runs, in its order. */
const selectRuns = (page: string): string => `SELECT ${taskColumns}
  FROM (${page}) p JOIN parley.tasks t ON t.number = p.task JOIN parley.contexts c ON c.id = t.context
    JOIN parley.scopes a ON a.id = t.agent JOIN parley.scopes o ON o.id = t.owner
  ORDER BY p.until, p.task`;

const selectClaimable = selectRuns(`
    SELECT r.task, r.until FROM (${namedAgents}) v CROSS JOIN LATERAL (
      SELECT task, free_at AS until FROM parley.runs
      WHERE agent = v.id AND free_at <= $2 AND (free_at, task) > ($3, $4) ORDER BY free_at, task LIMIT $5
    ) r ORDER BY r.until, r.task LIMIT $5`);

/** Those of some processes are found by their names: nothing of the others is read. */
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

/** Call it in a transaction. */
export async function readConversation(
  sql: Sql,
  key: ContextKey,
  options: ConversationOptions,
): Promise<StoredConversation> {
  const context = (await findPlace(sql, key, key.contextId))?.context;
  return context === undefined ? { entries: [] } : run(sql, conversationOf(dialect, key, context, options));
}

/** The record of a key that has not expired. */
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

/** How many expired notes a statement deletes at most: more than it stores. */
const maxTidied = 2_000;

/** Notes are locked in the order of their keys, and expired ones only where nobody else has them, so that nodes never deadlock. */
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
