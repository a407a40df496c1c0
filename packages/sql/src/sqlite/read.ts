import {
  defaultPageBytes,
  fitting,
  NeedsRoom,
  tooLarge,
  type ListQuery,
  type LogPage,
  type OnceRecord,
  type Owner,
  type ReadOptions,
  type Scope,
  type TaskHead,
  type TaskPage,
} from "@parley/a2a/store";
import type { TaskState } from "@parley/a2a";
import type { Counts, StateList } from "./counts.ts";
import type { Driver, Row, Value } from "./driver.ts";
import { findKey } from "./keys.ts";
import type { Bounds } from "./bounds.ts";
import type { KeptTasks, Place } from "./kept-tasks.ts";
import { readPage } from "./pages.ts";
import {
  count,
  kindNumber,
  logKey,
  maxSeq,
  optional,
  recordColumns,
  recordRow,
  selectTask,
  stateNumber,
  states,
  taskColumns,
  taskRow,
  taskWidth,
} from "./rows.ts";
import { findContexts, tallyOf, type ScopeIds } from "./scopes.ts";

/** A reader of more than one statement runs inside one transaction, so that what it gives belongs to one moment. */

export function readHead(driver: Driver, scope: Scope, taskId: string): TaskHead | undefined {
  const row = selectTask(
    driver,
    scope,
    taskId,
    `${taskColumns}, p.value`,
    "LEFT JOIN checkpoints p ON p.task = t.number",
  );
  return row && headWithCheckpoint(row);
}

function headWithCheckpoint(row: Row): TaskHead {
  const { head } = taskRow(row);
  const checkpoint = optional(row, taskWidth);
  return typeof checkpoint === "string" ? { ...head, checkpoint } : head;
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

/** How many rows go into a page: their sizes stand in front of them and cost no reading of what is large. */
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

type Level = StateList["level"];

/** What lists remember from one time to the next. */
export interface ListMemory {
  readonly scopes: ScopeIds;
  readonly kept: KeptTasks;
  readonly counts: Counts;
  readonly bounds: Bounds;
}

export function readList(
  driver: Driver,
  { scopes, kept, counts, bounds }: ListMemory,
  scope: Scope,
  query: ListQuery,
  most: number,
): TaskPage {
  const { level, ids } = listScopes(driver, scopes, scope, query.contextId);
  const wanted = query.state === undefined ? states : [query.state];
  let total = 0;
  const found: Place[] = [];
  for (const id of ids) {
    const tally = tallyOf(driver, id);
    for (const state of wanted) {
      const held = tally.held[stateNumber(state)] ?? 0;
      if (held === 0) continue;
      const list = { level, id, state, held, tally };
      total += query.since === undefined ? held : counts.since(driver, list, query.since);
      found.push(...positions(driver, level, id, state, query));
    }
  }
  found.sort((a, b) => b.statusTime - a.statusTime || b.number - a.number);
  const tasks = readPage(driver, kept, bounds, found.slice(0, query.limit), query, most);
  const last = found[tasks.length - 1];
  if (found.length <= tasks.length || last === undefined) return { tasks, total };
  return { tasks, total, next: { statusTime: last.statusTime, number: last.number } };
}

function listScopes(
  driver: Driver,
  scopes: ScopeIds,
  scope: Scope,
  contextId: string | undefined,
): { readonly level: Level; readonly ids: readonly number[] } {
  const names = [scope.agent, ...(scope.owner === undefined ? [] : [scope.owner])];
  const found = scopes.find(...names);
  if (contextId === undefined) {
    return { level: scope.owner === undefined ? "agent" : "owner", ids: found === undefined ? [] : [found] };
  }
  if (found === undefined) return { level: "context", ids: [] };
  if (scope.owner === undefined) return { level: "context", ids: findContexts(driver, found, contextId) };
  const context = scopes.find(...names, contextId);
  return { level: "context", ids: context === undefined ? [] : [context] };
}

/** The places of one state in one scope, one more than the limit: two steps along the index, however deep. */
function positions(driver: Driver, level: Level, id: number, state: TaskState, query: ListQuery): readonly Place[] {
  const { after, since = Number.MIN_SAFE_INTEGER, limit } = query;
  // One text, as in `readPage`. An id comes last, since it can hold anything but a line break.
  const select = `SELECT status_time, number, seq, bytes, id FROM tasks INDEXED BY tasks_${level} WHERE ${level} = ? AND state = ?`;
  const scope = [id, stateNumber(state)] as const;
  const lines: string[] = [];
  const read = (sql: string, ...values: readonly Value[]): void => {
    const row = driver
      .prepare(
        `SELECT group_concat(status_time || ' ' || number || ' ' || seq || ' ' || bytes || ' ' || id, char(10)) FROM (${sql})`,
      )
      .get(...values);
    const joined = optional(row ?? [], 0);
    if (typeof joined === "string") lines.push(...joined.split("\n"));
  };
  if (after !== undefined && after.statusTime >= since) {
    const ties = `${select} AND status_time = ? AND number < ? ORDER BY number DESC LIMIT ?`;
    read(ties, ...scope, after.statusTime, after.number, limit + 1);
  }
  const older = `${select} AND status_time < ? AND status_time >= ? ORDER BY status_time DESC, number DESC LIMIT ?`;
  const before = after?.statusTime ?? Number.MAX_SAFE_INTEGER;
  if (lines.length <= limit) read(older, ...scope, before, since, limit + 1 - lines.length);
  return lines.map((line) => {
    const [statusTime, number, seq, bytes, ...id] = line.split(" ");
    return {
      statusTime: Number(statusTime),
      number: Number(number),
      seq: Number(seq),
      bytes: Number(bytes),
      id: id.join(" "),
    };
  });
}

export function readOnce(
  driver: Driver,
  scopes: ScopeIds,
  owner: Owner,
  key: string,
  now: number,
): OnceRecord | undefined {
  const scope = scopes.find(owner.agent, owner.owner);
  return scope === undefined ? undefined : findKey(driver, scope, key, now);
}
