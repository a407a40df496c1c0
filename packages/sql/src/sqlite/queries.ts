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
import { featureRow, onceRecord } from "../shared/rows.ts";
import { dialect, run } from "./dialect.ts";
import type { Driver, Value } from "./driver.ts";
import { decodeName, encodeName, int, optional, taskColumns, taskRow, taskTables, text, timeLimit } from "./rows.ts";
import type { ScopeIds } from "./scopes.ts";

// Queries of the engine: claimable runs, due features, conversations, idempotency keys, notes of other processes.

/** Sorts tasks without a lease first. */
const free = Number.NEGATIVE_INFINITY;

interface ClaimableRun {
  readonly number: number;
  readonly until: number;
}

/** Call this in a transaction. Merges the runs of each agent in the order of their index, and reads the tasks of one page. */
export function readClaimable(driver: Driver, scopes: ScopeIds, query: ClaimQuery): ClaimPage {
  const found: ClaimableRun[] = [];
  for (const name of new Set(query.agents)) {
    const agent = scopes.find(name);
    if (agent !== undefined) found.push(...runsOf(driver, agent, query));
  }
  found.sort((a, b) => (a.until === b.until ? a.number - b.number : a.until - b.until));
  const page = found.slice(0, query.limit);
  const select = driver.prepare(`SELECT ${taskColumns} FROM ${taskTables} WHERE t.number = ?`);
  const heads = page.flatMap(({ number }) => {
    const row = select.get(number);
    return row === undefined ? [] : [taskRow(row).head];
  });
  const last = page.at(-1);
  if (found.length <= query.limit || last === undefined) return { heads };
  return { heads, next: { number: last.number, ...(last.until !== free && { leaseUntil: last.until }) } };
}

/** Call this in a transaction. Counts the runs of each agent along their index. */
export function readStranded(
  driver: Driver,
  scopes: ScopeIds,
  { now, agents, limit }: Pick<ClaimQuery, "now" | "agents" | "limit">,
): readonly StrandedRuns[] {
  const own = new Set(agents.map((agent) => scopes.find(agent)));
  const rows = driver
    .prepare(
      `SELECT r.agent, a.name, r.tasks FROM (
        SELECT agent, count(*) AS tasks FROM tasks INDEXED BY tasks_runs
        WHERE run_turn IS NOT NULL AND (lease_until IS NULL OR lease_until <= ?) GROUP BY agent
      ) r JOIN scopes a ON a.id = r.agent`,
    )
    .all(timeLimit(Math.floor(now)));
  return rows
    .filter((row) => !own.has(int(row, 0)))
    .slice(0, limit)
    .map((row) => ({ agent: decodeName(text(row, 1)), tasks: int(row, 2) }));
}

/** At most one run more than the limit, from three ranges of the index: no lease, the lease time of the position, and later lease times. */
function runsOf(
  driver: Driver,
  agent: number,
  { limit, after, holders, ...query }: ClaimQuery,
): readonly ClaimableRun[] {
  const now = timeLimit(Math.floor(query.now));
  const held = holders === undefined ? "" : "AND holder IN (SELECT value FROM json_each(?))";
  const names = holders === undefined ? [] : [JSON.stringify(holders.map(encodeName))];
  const found: ClaimableRun[] = [];
  const read = (condition: string, ...values: readonly Value[]): void => {
    if (found.length > limit) return;
    const sql = `SELECT number, lease_until FROM tasks INDEXED BY tasks_runs
      WHERE run_turn IS NOT NULL AND agent = ? AND ${condition} ${held} ORDER BY lease_until, number LIMIT ?`;
    for (const row of driver.prepare(sql).all(agent, ...values, ...names, limit + 1 - found.length)) {
      const until = optional(row, 1);
      found.push({ number: int(row, 0), until: typeof until === "number" ? until : free });
    }
  };
  const { leaseUntil, number = 0 }: Partial<ClaimPosition> = after ?? {};
  if (leaseUntil === undefined) {
    read("lease_until IS NULL AND number > ?", number);
    read("lease_until <= ?", now);
  } else {
    if (leaseUntil <= now) read("lease_until = ? AND number > ?", leaseUntil, number);
    read("lease_until > ? AND lease_until <= ?", leaseUntil, now);
  }
  return found;
}

const selectDue = `SELECT due, id FROM features INDEXED BY features_due
  WHERE feature = ? AND agent = ? AND due >= ? AND due <= ? ORDER BY due, id LIMIT ?`;
const selectById = `SELECT f.key, f.value, f.due, t.id, o.name
  FROM features f JOIN tasks t ON t.number = f.task JOIN scopes o ON o.id = t.owner WHERE f.id = ?`;

/**
 * Call this in a transaction. Merges the due rows of each agent in index order, and only then reads their values, because the values of a full
 * page of each agent could exceed the memory.
 */
export function readDue(driver: Driver, scopes: ScopeIds, query: FeatureQuery): readonly DueFeature[] {
  const { feature, now, after = -Infinity, limit } = query;
  if (after >= Number.MAX_SAFE_INTEGER) return [];
  const found = [...new Set(query.agents ?? scopes.agents())].flatMap((agent) => {
    const scope = scopes.find(agent);
    if (scope === undefined) return [];
    const rows = driver
      .prepare(selectDue)
      .all(encodeName(feature), scope, timeLimit(Math.floor(after) + 1), timeLimit(Math.floor(now)), limit);
    return rows.map((row) => ({ agent, due: int(row, 0), id: int(row, 1) }));
  });
  found.sort((a, b) => a.due - b.due || a.id - b.id);
  return found.slice(0, limit).flatMap(({ agent, due, id }) => {
    const row = driver.prepare(selectById).get(id);
    if (row === undefined) return [];
    const task = { agent, owner: decodeName(text(row, 4)), taskId: decodeName(text(row, 3)) };
    return [{ ...featureRow(row), due, task }];
  });
}

/** Call this in a transaction. */
export function readConversation(
  driver: Driver,
  scopes: ScopeIds,
  key: ContextKey,
  options: ConversationOptions,
): StoredConversation {
  const { agent, owner, contextId } = key;
  const context = scopes.find(agent, owner, contextId);
  if (context !== undefined) return run(driver, conversationOf(dialect, key, context, options));
  return scopes.hasMoved(agent, owner) ? readConversation(driver, scopes, key, options) : { entries: [] };
}

/** The record of a key that has not expired. */
export function readOnce(
  driver: Driver,
  scopes: ScopeIds,
  owner: Owner,
  key: string,
  now: number,
): OnceRecord | undefined {
  const agent = scopes.find(owner.agent);
  if (agent === undefined) return undefined;
  // The owner is looked up each time, because another process may have deleted it.
  const row = driver
    .prepare(
      `SELECT ${onceColumns} FROM scopes o CROSS JOIN ${onceTables}
       WHERE o.parent = ? AND o.name = ? AND k.owner = o.id AND ${isValid}`,
    )
    .get(agent, encodeName(owner.owner), encodeName(key), Math.floor(now));
  return row && onceRecord(key, row);
}

const onceColumns = "k.hash, k.seq, t.id, k.answer";
const onceTables = "keys k LEFT JOIN tasks t ON t.number = k.task";
const isValid = "k.name = ? AND (k.until IS NULL OR k.until > ?)";

/** Like `findKey`, for an owner whose id is known. */
export function findOnce(driver: Driver, owner: number, key: string, now: number): OnceRecord | undefined {
  const row = driver
    .prepare(`SELECT ${onceColumns} FROM ${onceTables} WHERE k.owner = ? AND ${isValid}`)
    .get(owner, encodeName(key), Math.floor(now));
  return row && onceRecord(key, row);
}

const writeNote = `INSERT INTO notes (key, value, until) VALUES (?, ?, ?)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value, until = excluded.until`;

export function readNotes(driver: Driver, keys: readonly string[], now: number): ReadonlyMap<string, string> {
  const select = driver.prepare("SELECT value FROM notes WHERE key = ? AND until > ?");
  const at = timeLimit(Math.floor(now));
  const found = keys.map((key) => [key, select.get(key, at)] as const);
  return new Map(found.flatMap(([key, row]) => (row === undefined ? [] : [[key, text(row, 0)]])));
}

/** Call this in a transaction. */
export function writeNotes(driver: Driver, notes: readonly StoreNote[], now: number): void {
  driver.prepare("DELETE FROM notes WHERE until <= ?").run(timeLimit(Math.floor(now)));
  for (const { key, value, until } of notes) driver.prepare(writeNote).run(key, value, timeLimit(Math.floor(until)));
}
