import type { TaskState } from "@parley/a2a/internal/model/index";
import type { ListPosition, ListQuery, Scope } from "@parley/server/internal/store/index";
import { first, selectTask } from "../shared/dialect.ts";
import type { Place } from "../shared/tasks.ts";
import { dialect, run } from "./dialect.ts";
import type { Driver, Value } from "./driver.ts";
import { count, int, optional, stateNumber, states, timeLimit } from "./rows.ts";
import { findContexts, tallyOf, type ScopeIds, type Tally } from "./scopes.ts";

// Finds the tasks of a page of a list, and counts all tasks of the list.

/** The tasks of one state in one scope, in the order of an index. */
interface StateList {
  readonly level: "agent" | "owner" | "context";
  readonly id: number;
  readonly state: TaskState;
  /** The number of tasks. */
  readonly held: number;
  readonly tally: Tally;
}

/** Caches for lists, kept between calls. */
export interface ListMemory {
  readonly scopes: ScopeIds;
  readonly counts: Counts;
}

/** Call this in a transaction. Returns at most one task more than the limit. */
export function findListed(
  driver: Driver,
  memory: ListMemory,
  scope: Scope,
  query: ListQuery,
): { readonly found: readonly Place[]; readonly total: number } {
  const { level, ids } = listScopes(driver, memory.scopes, scope, query.contextId);
  const after = query.after && positionOf(driver, scope, query.after);
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
      found.push(...placesIn(driver, list, { limit: query.limit, after, since }));
    }
  }
  if (total === 0 && memory.scopes.hasMoved(scope.agent, scope.owner)) {
    return findListed(driver, memory, scope, query);
  }
  found.sort((a, b) => b.statusTime - a.statusTime || b.number - a.number);
  return { found: found.slice(0, query.limit + 1), total };
}

function listScopes(
  driver: Driver,
  scopes: ScopeIds,
  scope: Scope,
  contextId: string | undefined,
): { readonly level: StateList["level"]; readonly ids: readonly number[] } {
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

type Position = Pick<Place, "statusTime" | "number">;

/** The position of a task in lists. A deleted task is before all others of its time. */
function positionOf(driver: Driver, scope: Scope, { statusTime, taskId }: ListPosition): Position {
  const row = run(driver, first(selectTask(dialect, scope, taskId, { columns: "t.number" })));
  return { statusTime, number: row === undefined ? Number.MAX_SAFE_INTEGER : int(row, 0) };
}

interface PageQuery {
  readonly limit: number;
  /** The last task of the previous page. */
  readonly after: Position | undefined;
  readonly since: number | undefined;
}

const placeColumns = ["status_time", "number", "seq", "bytes", "status_seq", "has_metadata", "id"];
/** Columns as one text (`dialect.ts`). The id is last because it can contain spaces, but no line break. */
const placeText = placeColumns.join(" || ' ' || ");

/** The tasks of one state in one scope. Two seeks in the index find them, at any depth. */
function placesIn(
  driver: Driver,
  { level, id, state }: StateList,
  { after, since = Number.MIN_SAFE_INTEGER, limit }: PageQuery,
): readonly Place[] {
  const select = `SELECT ${placeColumns.join(", ")} FROM tasks INDEXED BY tasks_${level} WHERE ${level} = ? AND state = ?`;
  const scope = [id, stateNumber(state)] as const;
  const lines: string[] = [];
  const read = (sql: string, ...values: readonly Value[]): void => {
    const row = driver.prepare(`SELECT group_concat(${placeText}, char(10)) FROM (${sql})`).get(...values);
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
    const [statusTime, number, seq, bytes, statusSeq, hasMetadata, ...id] = line.split(" ");
    return {
      statusTime: Number(statusTime),
      number: Number(number),
      seq: Number(seq),
      bytes: Number(bytes),
      statusSeq: Number(statusSeq),
      hasMetadata: hasMetadata === "1",
      id: id.join(" "),
    };
  });
}

/** A time, and the number of tasks of a list with an older status. */
interface Rung {
  readonly time: number;
  readonly before: number;
}

interface Ladder {
  readonly late: number;
  /** Oldest first; every rung is below `top`. */
  rungs: Rung[];
  top: Rung;
}

/** Lists with up to this many tasks are counted each time, at 20 ns per task. */
const few = 1000;
/** Both constants limit the memory to a few megabytes. A rung is two numbers. */
const maxRungs = 64;
const maxLadders = 1000;
const never = Number.MAX_SAFE_INTEGER;

/**
 * Counts the tasks of a list since some time. No stored counter has this number, and counting visits every task. So this class caches, for
 * some past times (its rungs), how many tasks are older, and counts only newer tasks.
 *
 * Rungs are valid until a process adds or removes an older task. None was added if `late` (`Tally`) is unchanged, and none was removed if
 * the total minus the newer tasks is unchanged.
 */
export class Counts {
  readonly #ladders = new Map<string, Ladder>();

  /** Call this in the transaction that read `list`. */
  since(driver: Driver, list: StateList, since: number): number {
    const between = (from: number, to: number): number => countBetween(driver, list, from, to);
    // A new context can get the id of a deleted context, so the counts of contexts are not cached.
    if (list.held <= few || list.level === "context") return between(since, never);
    const ladder = this.#ladder(list, between);
    const { rungs, top } = ladder;
    if (since > top.time) return between(since, never);
    const next = rungs.findIndex(({ time }) => time >= since);
    const index = next < 0 ? rungs.length : next;
    const [below, above = top] = [rungs[index - 1], rungs[index]];
    if (above.time === since) return list.held - above.before;
    const before =
      below !== undefined && since - below.time < above.time - since
        ? below.before + between(below.time, since)
        : above.before - between(since, above.time);
    rungs.splice(index, 0, { time: since, before });
    return list.held - before;
  }

  /** The rungs of a list, or new rungs if the cached ones are no longer valid. Few tasks are newer than the top rung. */
  #ladder({ id, state, held, tally }: StateList, between: (from: number, to: number) => number): Ladder {
    const { settled, late } = tally;
    const rungAt = (time: number): Rung => ({ time, before: held - between(time, never) });
    const key = `${id}/${stateNumber(state)}`;
    const known = this.#ladders.get(key);
    const newer = known === undefined ? held : between(known.top.time, never);
    if (known === undefined || known.late !== late || held - newer !== known.top.before) {
      const ladder = { late, rungs: [], top: rungAt(settled) };
      if (this.#ladders.size >= maxLadders) this.#ladders.clear();
      this.#ladders.set(key, ladder);
      return ladder;
    }
    if (known.rungs.length >= maxRungs) known.rungs = known.rungs.filter((_rung, at) => at % 2 === 0);
    if (newer > few && settled > known.top.time) {
      known.rungs.push(known.top);
      known.top = rungAt(settled);
    }
    return known;
  }
}

/** Counts tasks whose status is at `from` or later and before `to`. */
function countBetween(driver: Driver, { level, id, state }: StateList, from: number, to: number): number {
  return count(
    driver
      .prepare(
        `SELECT count(*) FROM tasks INDEXED BY tasks_${level}
         WHERE ${level} = ? AND state = ? AND status_time >= ? AND status_time < ?`,
      )
      .get(id, stateNumber(state), from, to),
  );
}
