import type { Task, TaskState } from "@parley/a2a/internal/model/index";
import {
  assemble,
  assembleText,
  defaultPageBytes,
  fitting,
  PageBudget,
  PageRoom,
  type ListedTask,
  type ListPosition,
  type ListQuery,
  type Scope,
  type TaskPage,
} from "@parley/server/internal/store/index";
import { utf8Length } from "@parley/a2a/internal/base/index";
import { keyOf, type KeptTasks, type Place } from "../shared/kept-tasks.ts";
import type { Counts, StateList } from "./counts.ts";
import type { Driver, Value } from "./driver.ts";
import { decodeName, int, maxSeq, optional, selectTask, stateNumber, states, text, timeLimit } from "./rows.ts";
import { findContexts, tallyOf, type ScopeIds } from "./scopes.ts";
import { eventText, joinOf, listOf, readPieces, sizeOf, storedEvent, taskOf, type Bounds } from "./task.ts";

type Level = StateList["level"];

/** What lists remember from one call to the next. */
export interface ListMemory {
  readonly scopes: ScopeIds;
  readonly kept: KeptTasks;
  readonly counts: Counts;
  readonly bounds: Bounds;
}

export function readList(driver: Driver, memory: ListMemory, scope: Scope, query: ListQuery, most: number): TaskPage {
  const { level, ids } = listScopes(driver, memory.scopes, scope, query.contextId);
  const after = query.after && placeOf(driver, scope, query.after);
  const wanted = query.state === undefined ? states : [query.state];
  const since = query.since === undefined ? undefined : timeLimit(Math.ceil(query.since));
  let total = 0;
  const found: Place[] = [];
  for (const id of ids) {
    const tally = tallyOf(driver, id);
    for (const state of wanted) {
      const held = tally.held[stateNumber(state)] ?? 0;
      if (held === 0) continue;
      const list = { level, id, state, held, tally };
      total += since === undefined ? held : memory.counts.since(driver, list, since);
      found.push(...positions(driver, level, id, state, { ...query, after, ...(since !== undefined && { since }) }));
    }
  }
  if (total === 0 && memory.scopes.hasMoved(scope.agent, scope.owner))
    return readList(driver, memory, scope, query, most);
  found.sort((a, b) => b.statusTime - a.statusTime || b.number - a.number);
  const tasks = readPage(driver, memory, found.slice(0, query.limit), query, most);
  const last = found[tasks.length - 1];
  if (found.length <= tasks.length || last === undefined) return { tasks, total };
  return { tasks, total, next: { statusTime: last.statusTime, taskId: decodeName(last.id) } };
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

/** The place of a task in lists. That of a task that was deleted is before all others of its time. */
function placeOf(
  driver: Driver,
  scope: Scope,
  { statusTime, taskId }: ListPosition,
): Pick<Place, "statusTime" | "number"> {
  const row = selectTask(driver, scope, taskId, "t.number", "");
  return { statusTime, number: row === undefined ? Number.MAX_SAFE_INTEGER : int(row, 0) };
}

/** Which tasks of a list make a page. `after`: the place of the last task of the page before. */
type PageQuery = Omit<ListQuery, "after"> & { readonly after: Pick<Place, "statusTime" | "number"> | undefined };

/** The places of the tasks of one state in one scope, at most one more than the limit. Two seeks in the index find them, at any depth. */
function positions(driver: Driver, level: Level, id: number, state: TaskState, query: PageQuery): readonly Place[] {
  const { after, since = Number.MIN_SAFE_INTEGER, limit } = query;
  // Joined into one text (`joinOf`). The id is last, since it can contain spaces; it cannot contain a line break.
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

/*
 * The tasks of a page are read as one text (`joinOf`): of 50 tasks that were read one by one, with three statements and 25
 * values each, three quarters of the time went into values.
 */

const [betweenParts, betweenTasks] = ["\u001f", "\u001e"];

const ofTask = `key > (t.number << 24) AND key <= (t.number << 24) + ${maxSeq}`;
const joinedHistory = joinOf(
  eventText,
  `SELECT kind, json FROM log INDEXED BY log_history WHERE place IS NOT NULL AND ${ofTask} ORDER BY key DESC LIMIT ?2`,
);
const joinedArtifacts = joinOf("json", `SELECT json FROM log NOT INDEXED WHERE kind = 3 AND ${ofTask} ORDER BY key`);
const joinedMetadata = joinOf(
  "json",
  `SELECT json FROM log INDEXED BY log_metadata WHERE has_metadata = 1 AND ${ofTask} ORDER BY key`,
);

function pageStatement(withArtifacts: boolean): string {
  const fields = [
    "t.number",
    "b.base",
    "coalesce(s.json, '')",
    `coalesce((${joinedHistory}), '')`,
    withArtifacts ? `coalesce((${joinedArtifacts}), '')` : "''",
    `CASE WHEN t.has_metadata = 1 THEN coalesce((${joinedMetadata}), '') ELSE '' END`,
  ];
  return `SELECT group_concat(${fields.join(" || char(31) || ")}, char(30))
    FROM json_each(?1) p JOIN tasks t JOIN log b ON b.key = (t.number << 24) + 1
    LEFT JOIN log s ON t.status_seq > 0 AND s.key = (t.number << 24) + t.status_seq
    WHERE t.number = p.value`;
}

/**
 * As many tasks as fit into the page. Most of them have not changed since the last call and are kept; the rest is read in
 * groups, and a large task alone.
 */
function readPage(
  driver: Driver,
  { kept, bounds }: ListMemory,
  places: readonly Place[],
  query: ListQuery,
  most: number,
): readonly ListedTask[] {
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
    const group = fitting(places.slice(at), bounds.join, (place) => place.bytes);
    const [first] = group;
    if (first !== undefined && first.bytes > bounds.join) {
      const task = taskOf(driver, first.number);
      const size = held.counts || !whole ? sizeOf(driver, task, query) : 0;
      if (!whole && !budget.take(size)) return tasks;
      held.take(size);
      tasks.push(assemble(readPieces(driver, bounds, first.number, query), query));
    } else {
      for (const json of readGroup(driver, kept, group, query)) {
        if (!whole && !budget.take(utf8Length(json))) return tasks;
        held.take(json.length);
        tasks.push(new Listed(json));
      }
    }
    at += group.length;
  }
  return tasks;
}

function readGroup(driver: Driver, kept: KeptTasks, places: readonly Place[], query: ListQuery): readonly string[] {
  const keys = places.map((place) => keyOf(place, query));
  const missing = places.filter((_place, at) => kept.find(keys[at] as string) === undefined);
  const found = readTasks(driver, missing, query);
  return places.map(({ number }, at) => {
    const key = keys[at] as string;
    const json = found.get(number) ?? kept.find(key);
    if (json === undefined) throw new RangeError(`There is no task of number ${number}`);
    kept.keep(key, json);
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

function readTasks(driver: Driver, places: readonly Place[], query: ListQuery): ReadonlyMap<number, string> {
  if (places.length === 0) return new Map();
  const numbers = JSON.stringify(places.map(({ number }) => number));
  const row = driver.prepare(pageStatement(query.artifacts)).get(numbers, query.history ?? maxSeq);
  const tasks = text(row, 0).split(betweenTasks);
  return new Map(tasks.map((task) => jsonOf(task.split(betweenParts), query)));
}

function jsonOf(parts: readonly string[], query: ListQuery): readonly [number, string] {
  const [number = "", base = "", status = "", events = "", updates = "", changes = ""] = parts;
  const pieces = {
    base,
    status: status === "" ? undefined : status,
    metadata: listOf(changes),
    history: listOf(events).map(storedEvent).reverse(),
    artifacts: listOf(updates),
  };
  return [Number(number), assembleText(pieces, query)];
}
