import type { Removed, RemovedTasks, TaskSelection, Upkeep } from "@parley/server/internal/store/index";
import type { KeptTasks } from "../shared/tasks.ts";
import { effortPerSweep, readContexts, readOwners, readReplies } from "../shared/upkeep.ts";
import { dialect } from "./dialect.ts";
import type { Driver, Row, Value } from "./driver.ts";
import { count, encodeName, int, stateNumber, states, timeLimit } from "./rows.ts";
import { dropWords } from "./search.ts";
import type { Calls } from "./store.ts";
import { byTime, deleteContext, deleteTask, taskOf } from "./sweep.ts";
import type { Tidying, Writer } from "./writer.ts";

/** Deletion and export for operators. */
export function upkeepOf(reader: Driver, writer: Writer, calls: Calls, kept: KeptTasks): Upkeep {
  return {
    owners: (query) => calls.steps(() => readOwners(dialect, query)),
    count: (selection) =>
      calls.readTogether(() =>
        listsOf(reader, selection).reduce(
          (sum, { where, values }) =>
            sum + count(reader.prepare(`SELECT count(*) FROM ${where} ${isFree}`).get(...values)),
          0,
        ),
      ),
    find: (selection, limit) =>
      calls.readTogether(() => oldest(reader, selection, limit).map((row) => taskOf(reader, int(row, 0)).head)),
    remove: (tasks, limit) =>
      calls.run(async () => {
        const removed = await writer.tidy({ tasks, limit });
        kept.forget();
        return removed;
      }),
    contexts: (owner, page) => calls.steps(() => readContexts(dialect, owner, page)),
    replies: (context, page) => calls.steps(() => readReplies(dialect, context, page)),
    forget: (owner, limit) =>
      calls.run(async () => {
        const { deleted, more } = await writer.tidy({ owner, limit });
        kept.forget();
        return { deleted, more };
      }),
    scrub: () => calls.run(() => writer.scrub()),
  };
}

/** Call this in a transaction. For an owner, `deleted` counts conversations. */
export function tidy(driver: Driver, what: Tidying): RemovedTasks {
  return "tasks" in what ? removeTasks(driver, what) : { ...forgetOwner(driver, what), conversations: 0 };
}

/** The lists of a selection, one per state of each agent or owner, in the order of an index. */
export function listsOf(
  driver: Driver,
  { agent, owner, states: wanted = states, before = Infinity }: TaskSelection,
): { readonly where: string; readonly values: readonly Value[] }[] {
  const values = [agent, owner].flatMap((name) => (name === undefined ? [] : [encodeName(name)]));
  const named = agent === undefined ? "" : "AND a.name = ?";
  const ids =
    owner === undefined
      ? `SELECT a.id FROM scopes a WHERE a.parent = 0 ${named}`
      : `SELECT o.id FROM scopes a CROSS JOIN scopes o ON o.parent = a.id WHERE a.parent = 0 ${named} AND o.name = ?`;
  const found = driver.prepare(ids).all(...values);
  const level = owner === undefined ? "agent" : "owner";
  return found.map(count).flatMap((id) =>
    wanted.map((state) => ({
      where: `tasks INDEXED BY tasks_${level} WHERE ${level} = ? AND state = ? AND status_time < ?`,
      values: [id, stateNumber(state), timeLimit(Math.ceil(before))],
    })),
  );
}

/** Tasks that no process executes. */
export const isFree = "AND run_turn IS NULL";

/** The tasks with the oldest status: number and time. */
export function oldest(driver: Driver, selection: TaskSelection, limit: number, and = ""): readonly Row[] {
  return listsOf(driver, selection)
    .flatMap(({ where, values }) =>
      driver
        .prepare(`SELECT number, status_time FROM ${where} ${and} ORDER BY status_time, number LIMIT ?`)
        .all(...values, limit),
    )
    .sort(byTime)
    .slice(0, limit);
}

function removeTasks(driver: Driver, { tasks, limit }: Extract<Tidying, { readonly tasks: unknown }>): RemovedTasks {
  const found = oldest(driver, tasks, limit + 1, isFree);
  let deleted = 0;
  let budget = effortPerSweep;
  for (const row of found.slice(0, limit)) {
    if (budget <= 0) break;
    budget -= deleteTask(driver, int(row, 0));
    deleted += 1;
  }
  if (deleted > 0) dropWords(driver);
  const idle = idleContexts(driver, tasks, limit + 1);
  const gone = idle.slice(0, limit);
  for (const context of gone) deleteContext(driver, context);
  return { deleted, conversations: gone.length, more: found.length > deleted || idle.length > limit };
}

/** Conversations without a task, the least recently used first, unless they contain an unexpired key. */
function idleContexts(
  driver: Driver,
  { agent, owner, states: wanted = states, before = Infinity }: TaskSelection,
  limit: number,
): readonly number[] {
  if (!wanted.includes("TASK_STATE_COMPLETED")) return [];
  const names = [agent, owner].flatMap((name) => (name === undefined ? [] : [encodeName(name)]));
  const named = `${agent === undefined ? "" : "AND a.name = ?"} ${owner === undefined ? "" : "AND o.name = ?"}`;
  const ofOwners =
    names.length === 0
      ? ""
      : `AND parent IN (SELECT o.id FROM scopes a CROSS JOIN scopes o ON o.parent = a.id WHERE a.parent = 0 ${named})`;
  return driver
    .prepare(
      `SELECT id FROM scopes WHERE is_context = 1 AND tasks = 0 AND touched < ?
         AND NOT EXISTS (SELECT 1 FROM keys WHERE context = scopes.id AND until IS NOT NULL) ${ofOwners}
       ORDER BY touched LIMIT ?`,
    )
    .all(timeLimit(Math.ceil(before)), ...names, limit)
    .map(count);
}

function forgetOwner(driver: Driver, { owner, limit }: Extract<Tidying, { readonly owner: unknown }>): Removed {
  const found = driver
    .prepare(
      "SELECT o.id FROM scopes a JOIN scopes o ON o.parent = a.id WHERE a.parent = 0 AND a.name = ? AND o.name = ?",
    )
    .get(encodeName(owner.agent), encodeName(owner.owner));
  if (found === undefined) return { deleted: 0, more: false };
  const id = count(found);
  const hasTasks = driver.prepare("SELECT 1 FROM tasks WHERE owner = ? LIMIT 1").get(id) !== undefined;
  if (hasTasks) return { deleted: 0, more: true };
  // A context can have any number of messages and keys, so delete these first.
  const contexts = "SELECT id FROM scopes WHERE parent = ?";
  for (const sql of [
    `DELETE FROM replies WHERE (context, place) IN (SELECT context, place FROM replies WHERE context IN (${contexts}) LIMIT ?)`,
    "DELETE FROM keys WHERE id IN (SELECT id FROM keys WHERE owner = ? LIMIT ?)",
  ]) {
    if (driver.prepare(sql).run(id, limit).changes === limit) return { deleted: 0, more: true };
  }
  const idle = driver.prepare(`${contexts} LIMIT ?`).all(id, limit).map(count);
  for (const context of idle) deleteContext(driver, context);
  if (idle.length === limit) return { deleted: limit, more: true };
  // The id must not be reused, because another process may have cached it and would find a different owner under it. No name of a caller
  // is stored as the new name.
  driver
    .prepare(
      "UPDATE scopes SET name = char(1) || id, touched = 0, late = 0, n0 = 0, n1 = 0, n2 = 0, n3 = 0, n4 = 0, n5 = 0, n6 = 0, n7 = 0, tasks = 0 WHERE id = ?",
    )
    .run(id);
  return { deleted: idle.length, more: false };
}

/**
 * Copies the database, because only a copy is free of deleted data. Split pages keep some deleted data, even with `secure_delete`. The search
 * index keeps words until it is merged.
 */
export function scrub(driver: Driver): void {
  const isMade = driver.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'search_index'").get() !== undefined;
  if (isMade) driver.exec("INSERT INTO search_index (search_index) VALUES ('optimize')");
  driver.exec("VACUUM");
}

/** Empties the write-ahead log, which still contains what `scrub` overwrote. Throws an SQLite error while a reader needs pages of the log. */
export function emptyLog(driver: Driver): void {
  // SQLite reports a busy reader in the row, not as an error.
  const [busy] = driver.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() ?? [];
  if (busy === 1) throw Object.assign(new Error("a reader needs the write-ahead log"), { code: "SQLITE_BUSY" });
}
