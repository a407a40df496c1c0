import type { ClaimPage, ClaimPosition, ClaimQuery, StrandedRuns } from "@parley/a2a/store";
import type { Driver, Value } from "./driver.ts";
import { int, optional, taskColumns, taskRow, taskTables, text } from "./rows.ts";
import type { ScopeIds } from "./scopes.ts";
import { decodeName } from "./text.ts";

/** Earlier than every lease: what a task without one is sorted as. */
const free = Number.NEGATIVE_INFINITY;

interface ClaimableRun {
  readonly number: number;
  readonly until: number;
}

/** In a transaction: the runs of each agent along its index, merged, and then the tasks of one page. */
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

/** In a transaction: each agent once, along the index of runs. */
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
    .all(now);
  return rows
    .filter((row) => !own.has(int(row, 0)))
    .slice(0, limit)
    .map((row) => ({ agent: decodeName(text(row, 1)), tasks: int(row, 2) }));
}

function compare(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** One more than the limit, where there is one. Three stretches of the index: no lease, the tie at the place, what ran out later. */
function runsOf(driver: Driver, agent: number, { now, limit, after }: ClaimQuery): readonly ClaimableRun[] {
  const found: ClaimableRun[] = [];
  const read = (condition: string, ...values: readonly Value[]): void => {
    if (found.length > limit) return;
    const sql = `SELECT number, lease_until FROM tasks INDEXED BY tasks_runs
      WHERE run_turn IS NOT NULL AND agent = ? AND ${condition} ORDER BY lease_until, number LIMIT ?`;
    for (const row of driver.prepare(sql).all(agent, ...values, limit + 1 - found.length)) {
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
