import {
  defaultPageBytes,
  fitting,
  NeedsRoom,
  tooLarge,
  type ClaimPage,
  type ClaimPosition,
  type ClaimQuery,
  type LogPage,
  type ReadOptions,
  type Scope,
  type StrandedRuns,
  type TaskHead,
} from "@parley/server/internal/store/index";
import type { Driver, Row, Value } from "./driver.ts";
import {
  count,
  decodeName,
  encodeName,
  int,
  kindNumber,
  logKey,
  maxSeq,
  optional,
  recordColumns,
  recordRow,
  selectTask,
  taskColumns,
  taskRow,
  taskTables,
  taskWidth,
  text,
  timeLimit,
} from "./rows.ts";
import type { ScopeIds } from "./scopes.ts";
import type { Bounds } from "./task.ts";

// Heads of tasks, pages of their logs, and the runs that can be claimed.

export function readHead(driver: Driver, scope: Scope, taskId: string): TaskHead | undefined {
  const row = selectTask(
    driver,
    scope,
    taskId,
    `${taskColumns}, p.value, s.value`,
    "LEFT JOIN checkpoints p ON p.task = t.number LEFT JOIN task_states s ON s.task = t.number",
  );
  return row && headWithValues(row);
}

function headWithValues(row: Row): TaskHead {
  const { head } = taskRow(row);
  const checkpoint = optional(row, taskWidth);
  const taskState = optional(row, taskWidth + 1);
  if (checkpoint === undefined && taskState === undefined) return head;
  return {
    ...head,
    ...(typeof checkpoint === "string" && { checkpoint }),
    ...(typeof taskState === "string" && { taskState }),
  };
}

export function readLog(
  driver: Driver,
  bounds: Bounds,
  scope: Scope,
  taskId: string,
  options: ReadOptions,
  most: number,
): LogPage | undefined {
  const row = selectTask(driver, scope, taskId, taskColumns, "");
  if (row === undefined) return undefined;
  const { number, head } = taskRow(row);
  const from = logKey(number, Math.min(maxSeq, Math.max(options.after, head.firstSeq - 1)));
  const kinds = options.kinds?.map(kindNumber);
  const wanted = kinds === undefined ? "" : `AND kind IN (${kinds.join(", ")})`;
  const limit = fittingRows(driver, bounds, head, options, from, logKey(number, maxSeq), wanted, most);
  const rows = driver
    .prepare(`SELECT ${recordColumns} FROM log WHERE key > ? AND key <= ? ${wanted} ORDER BY key LIMIT ?`)
    .all(from, logKey(number, maxSeq), limit);
  return { records: rows.map(recordRow), head };
}

/** The number of rows that fit into a page. Sizes are stored before the text, so nothing large is read for them. */
function fittingRows(
  driver: Driver,
  bounds: Bounds,
  head: TaskHead,
  { limit, bytes = defaultPageBytes }: ReadOptions,
  from: number,
  to: number,
  wanted: string,
  most: number,
): number {
  if (head.bytes <= Math.min(bytes, most)) return limit;
  const sizes = driver
    .prepare(
      `SELECT octet_length(json) + coalesce(octet_length(extra), 0) FROM log
       WHERE key > ? AND key <= ? ${wanted} ORDER BY key LIMIT ?`,
    )
    .all(from, to, limit)
    .map(count);
  const [first = 0] = sizes;
  if (first > bounds.text) throw tooLarge(head.task.taskId, first, bounds.text);
  const page = fitting(sizes, bytes, (size) => size);
  const sum = page.reduce((all, size) => all + size, 0);
  if (sum > most) throw new NeedsRoom(sum);
  return page.length;
}

/** Sorts a task without a lease before all others. */
const free = Number.NEGATIVE_INFINITY;

interface ClaimableRun {
  readonly number: number;
  readonly until: number;
}

/** Call it in a transaction. Merges the runs of each agent in the order of their index, and reads the tasks of one page. */
export function readClaimable(driver: Driver, scopes: ScopeIds, query: ClaimQuery): ClaimPage {
  const found: ClaimableRun[] = [];
  for (const name of new Set(query.agents)) {
    const agent = scopes.find(name);
    if (agent !== undefined) found.push(...runsOf(driver, agent, query));
  }
  found.sort((a, b) => compare(a.until, b.until) || a.number - b.number);
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

/** Call it in a transaction. Counts the runs of each agent along their index. */
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

function compare(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * At most one more than the limit. The index has three ranges: no lease, the lease of the position, leases that expired
 * later.
 */
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
