import { deletesBefore, sweptStates, type SweepOptions, type SweepReport } from "@parley/server/internal/store/index";
import { first, selectNumber, type Bounds } from "../shared/dialect.ts";
import { compactTask, effortPerSweep, pagesOf } from "../shared/upkeep.ts";
import { dialect, run } from "./dialect.ts";
import type { Driver, Row } from "./driver.ts";
import { count, decodeName, int, logKey, maxSeq, stateNumber, taskRow, text, timeLimit, type TaskRow } from "./rows.ts";
import { ScopeChanges } from "./scopes.ts";
import { dropWords } from "./search.ts";

export function taskOf(driver: Driver, number: number): TaskRow {
  const row = run(driver, first(selectNumber(dialect, number)));
  if (row === undefined) throw new RangeError(`Task ${number} does not exist`);
  return taskRow(row);
}

export function sweep(driver: Driver, bounds: Bounds, options: SweepOptions): SweepReport {
  const { rules = [], limit } = options;
  const now = timeLimit(Math.floor(options.now));
  const [deleteBefore, compactBefore] = [options.deleteBefore, options.compactBefore].map((before) =>
    before === undefined ? undefined : timeLimit(Math.ceil(before)),
  );
  const keys = driver
    .prepare("SELECT id FROM keys WHERE until <= ? ORDER BY until LIMIT ?")
    .all(now, limit + 1)
    .map(count);
  for (const id of keys.slice(0, limit)) driver.prepare("DELETE FROM keys WHERE id = ?").run(id);
  let more = keys.length > limit;
  let budget = effortPerSweep;

  let deleted = 0;
  if (deleteBefore !== undefined || rules.length > 0) {
    const found = rules.length > 0 ? overByRules(driver, options) : over(driver, deleteBefore ?? -Infinity, limit + 1);
    for (const row of found.slice(0, limit)) {
      if (budget <= 0) break;
      budget -= deleteTask(driver, int(row, 0));
      deleted += 1;
    }
    if (deleted > 0) dropWords(driver);
    const idle = idleContexts(driver, options);
    for (const id of idle.slice(0, limit)) deleteContext(driver, id);
    more ||= found.length > deleted || idle.length > limit;
  }

  let compacted = 0;
  if (compactBefore !== undefined) {
    const loose = driver
      .prepare(
        "SELECT number FROM tasks INDEXED BY tasks_over WHERE state >= 4 AND compacted = 0 AND status_time < ? ORDER BY status_time, number LIMIT ?",
      )
      .all(compactBefore, limit - deleted + 1)
      .map(count);
    let seen = 0;
    for (const number of loose.slice(0, limit - deleted)) {
      if (budget <= 0) break;
      const effort = run(driver, compactTask({ dialect, bounds }, taskOf(driver, number)));
      budget -= effort;
      seen += 1;
      if (effort > 0) compacted += 1;
    }
    more ||= loose.length > seen;
  }
  return { deleted, compacted, more };
}

/** Terminal tasks with an older status, the oldest first. Compacted tasks and others are in two lists, each in the order of time. */
function over(driver: Driver, before: number, most: number): readonly Row[] {
  const select = driver.prepare(
    "SELECT number, status_time FROM tasks INDEXED BY tasks_over WHERE state >= 4 AND compacted = ? AND status_time < ? ORDER BY status_time, number LIMIT ?",
  );
  return [0, 1].flatMap((compacted) => select.all(compacted, before, most)).sort(byTime);
}

export function byTime(a: Row, b: Row): number {
  return int(a, 1) - int(b, 1) || int(a, 0) - int(b, 0);
}

/** Like `over`, with a retention time per agent and state. Each pair of agent and state is a list. */
function overByRules(driver: Driver, options: SweepOptions): readonly Row[] {
  const select = driver.prepare(
    "SELECT number, status_time FROM tasks INDEXED BY tasks_agent WHERE agent = ? AND state = ? AND status_time < ? ORDER BY status_time, number LIMIT ?",
  );
  return agentsOf(driver)
    .flatMap(({ id, name }) =>
      sweptStates.flatMap((state) => {
        const before = deletesBefore(options, name, state);
        return before === -Infinity
          ? []
          : select.all(id, stateNumber(state), timeLimit(Math.ceil(before)), options.limit + 1);
      }),
    )
    .sort(byTime);
}

function agentsOf(driver: Driver): readonly { readonly id: number; readonly name: string }[] {
  return driver
    .prepare("SELECT id, name FROM scopes WHERE parent = 0")
    .all()
    .map((row) => ({ id: int(row, 0), name: decodeName(text(row, 1)) }));
}

/** Contexts that have no task and no unexpired key. */
function idleContexts(driver: Driver, options: SweepOptions): readonly number[] {
  const { deleteBefore = -Infinity, rules = [], limit } = options;
  const now = timeLimit(Math.floor(options.now));
  const idle =
    "is_context = 1 AND tasks = 0 AND touched < ? AND NOT EXISTS (SELECT 1 FROM keys WHERE context = scopes.id AND until > ?)";
  if (rules.length === 0) {
    const all = driver.prepare(`SELECT id FROM scopes WHERE ${idle} ORDER BY touched LIMIT ?`);
    return all.all(timeLimit(Math.ceil(deleteBefore)), now, limit + 1).map(count);
  }
  const ofAgent = driver.prepare(
    `SELECT id FROM scopes WHERE ${idle} AND parent IN (SELECT id FROM scopes o WHERE o.parent = ?) ORDER BY touched LIMIT ?`,
  );
  return agentsOf(driver).flatMap(({ id, name }) => {
    const before = deletesBefore(options, name);
    return before === -Infinity ? [] : ofAgent.all(timeLimit(Math.ceil(before)), now, id, limit + 1).map(count);
  });
}

/** Deletes a task with all its rows. Returns the effort. */
export function deleteTask(driver: Driver, number: number): number {
  const task = taskOf(driver, number);
  const scopes = new ScopeChanges(driver);
  scopes.move(task, task.head, undefined);
  scopes.write();
  for (const sql of [
    "DELETE FROM tasks WHERE number = ?",
    "DELETE FROM checkpoints WHERE task = ?",
    "DELETE FROM task_states WHERE task = ?",
    "DELETE FROM keys WHERE task = ?",
    "DELETE FROM features WHERE task = ?",
  ]) {
    driver.prepare(sql).run(number);
  }
  const { changes } = driver
    .prepare("DELETE FROM log WHERE key > ? AND key <= ?")
    .run(logKey(number, 0), logKey(number, maxSeq));
  return changes + pagesOf(task.head);
}

export function deleteContext(driver: Driver, context: number): void {
  for (const sql of [
    "DELETE FROM scopes WHERE id = ?",
    "DELETE FROM context_states WHERE context = ?",
    "DELETE FROM replies WHERE context = ?",
    "DELETE FROM keys WHERE context = ?",
  ]) {
    driver.prepare(sql).run(context);
  }
}
