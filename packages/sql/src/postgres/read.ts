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
  type StoreBounds,
  type StrandedRuns,
  type TaskHead,
} from "@parley/server/internal/store/index";
import type { Row, Value } from "./driver.ts";
import {
  agentName,
  count,
  decodeName,
  encodeName,
  indexName,
  int,
  kindNumber,
  maxSeq,
  optional,
  recordColumns,
  recordRow,
  selectTask,
  taskColumns,
  taskRow,
  taskWidth,
  text,
  neverHeld,
  timeLimit,
} from "./rows.ts";
import type { Sql } from "./schema.ts";
import { namedAgents } from "./scopes.ts";

// Heads of tasks, pages of their logs, and the runs that can be claimed.

export async function readHead(sql: Sql, scope: Scope, taskId: string): Promise<TaskHead | undefined> {
  const row = await selectTask(
    sql,
    scope,
    taskId,
    `${taskColumns}, p.value, s.value`,
    "LEFT JOIN parley.checkpoints p ON p.task = t.number LEFT JOIN parley.task_states s ON s.task = t.number",
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

/** Call it in a transaction. */
export async function readLog(
  sql: Sql,
  bounds: StoreBounds,
  scope: Scope,
  taskId: string,
  options: ReadOptions,
  most: number,
): Promise<LogPage | undefined> {
  const row = await selectTask(sql, scope, taskId, taskColumns);
  if (row === undefined) return undefined;
  const { number, head } = taskRow(row);
  const from = Math.min(maxSeq, Math.max(options.after, head.firstSeq - 1));
  if (from >= head.seq) return { records: [], head };
  const range: readonly Value[] = [number, from, options.kinds?.map(kindNumber) ?? null];
  const limit = await fittingRows(sql, bounds, head, options, range, most);
  const rows = await sql(`SELECT ${recordColumns} ${recordRows}`, ...range, limit);
  return { records: rows.map(recordRow), head };
}

const recordRows = `FROM parley.log WHERE task = $1 AND seq > $2 AND ($3::smallint[] IS NULL OR kind = ANY($3::smallint[]))
  ORDER BY seq LIMIT $4`;

/** The number of rows that fit into a page. Sizes are read before texts, so nothing large is read for them. */
async function fittingRows(
  sql: Sql,
  bounds: StoreBounds,
  head: TaskHead,
  { limit, bytes = defaultPageBytes }: ReadOptions,
  range: readonly Value[],
  most: number,
): Promise<number> {
  if (head.bytes <= Math.min(bytes, most)) return limit;
  const rows = await sql(`SELECT octet_length(json) + coalesce(octet_length(extra), 0) ${recordRows}`, ...range, limit);
  const sizes = rows.map(count);
  const [first = 0] = sizes;
  if (first > bounds.text) throw tooLarge(head.task.taskId, first, bounds.text);
  const page = fitting(sizes, bytes, (size) => size);
  const sum = page.reduce((all, size) => all + size, 0);
  if (sum > most) throw new NeedsRoom(sum);
  return page.length;
}

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
