import {
  assemble,
  NeedsRoom,
  snapshotOf,
  tooLarge,
  type LoadOptions,
  type Scope,
  type Snapshot,
  type StoredEvent,
  type TaskPieces,
} from "@parley/a2a/store";
import type { Bounds } from "./bounds.ts";
import type { Driver, Row } from "./driver.ts";
import { eventOf, eventText, joinOf, listOf, storedEvent } from "./joined.ts";
import { keyOf, type KeptTasks } from "./kept-tasks.ts";
import {
  count,
  int,
  logKey,
  maxSeq,
  optional,
  selectTask,
  taskColumns,
  taskRow,
  taskTables,
  taskWidth,
  text,
  type TaskRow,
} from "./rows.ts";
import { encodeName } from "./text.ts";

/** A task that is asked for again, as by those who poll, costs its row; one of more than `most` bytes is not read. Begins its own transaction where it needs one. */
export function readTask(
  driver: Driver,
  kept: KeptTasks,
  bounds: Bounds,
  scope: Scope,
  taskId: string,
  options: LoadOptions,
  most: number,
): Snapshot | undefined {
  const row = selectTask(driver, scope, taskId, taskColumns, "");
  if (row === undefined) return undefined;
  const { number, head } = taskRow(row);
  if (head.bytes > most) throw new NeedsRoom(head.bytes);
  const known = kept.find(keyOf({ number, id: encodeName(taskId), ...head }, options));
  if (known !== undefined) return snapshotOf(head, known);
  return driver.transaction("read", () => {
    const now = selectTask(driver, scope, taskId, wholeColumns, wholeJoins);
    if (now === undefined) return undefined;
    // Another process may have appended since.
    const { bytes } = taskRow(now).head;
    if (bytes > most) throw new NeedsRoom(bytes);
    const snapshot = assemble(piecesOf(driver, bounds, now, options), options);
    if (snapshot.pieces === undefined) {
      kept.keep(keyOf({ number: int(now, 0), id: encodeName(taskId), ...snapshot.head }, options), snapshot.json);
    }
    return snapshot;
  });
}

/** Where a task was made, and its last status: the history and the artifacts are not looked at. */
const wholeColumns = `${taskColumns}, b.base, s.json`;
const wholeJoins = `JOIN log b ON b.key = (t.number << 24) + 1
  LEFT JOIN log s ON t.status_seq > 0 AND s.key = (t.number << 24) + t.status_seq`;

/** In a transaction. Rejects a task that takes more than one text may before it is read. */
export function readPieces(driver: Driver, bounds: Bounds, number: number, options: LoadOptions): TaskPieces {
  const row = driver.prepare(`SELECT ${wholeColumns} FROM ${taskTables} ${wholeJoins} WHERE t.number = ?`).get(number);
  if (row === undefined) throw new RangeError(`There is no task of number ${number}`);
  return piecesOf(driver, bounds, row, options);
}

function piecesOf(driver: Driver, bounds: Bounds, row: Row, options: LoadOptions): TaskPieces {
  const task = taskRow(row);
  const { head } = task;
  if (head.bytes > bounds.text) {
    const bytes = sizeOf(driver, task, options);
    if (bytes > bounds.text) throw tooLarge(head.task.taskId, bytes, bounds.text);
  }
  const { history, artifacts } = options;
  const joined = head.bytes <= bounds.join;
  const status = optional(row, taskWidth + 1);
  return {
    head,
    base: text(row, taskWidth),
    status: typeof status === "string" ? status : undefined,
    metadata: task.hasMetadata ? textsOf(driver, task, joined, metadataRows) : [],
    history: history === 0 ? [] : historyOf(driver, task, joined, history),
    artifacts: artifacts ? textsOf(driver, task, joined, artifactRows) : [],
  };
}

/** The row of a task by its number. */
export function taskOf(driver: Driver, number: number): TaskRow {
  const row: Row | undefined = driver
    .prepare(`SELECT ${taskColumns} FROM ${taskTables} WHERE t.number = ?`)
    .get(number);
  if (row === undefined) throw new RangeError(`There is no task of number ${number}`);
  return taskRow(row);
}

const ofTask = "key > ? AND key <= ?";
const artifactRows = `FROM log NOT INDEXED WHERE kind = 3 AND ${ofTask} ORDER BY key`;
const metadataRows = `FROM log INDEXED BY log_metadata WHERE has_metadata = 1 AND ${ofTask} ORDER BY key`;
const historyRows = `FROM log INDEXED BY log_history WHERE place IS NOT NULL AND ${ofTask} ORDER BY key DESC LIMIT ?`;

/** One by one where they are large: joined, they would take their place twice, and be longer than a string can be. */
function textsOf(driver: Driver, { number }: TaskRow, joined: boolean, rows: string): readonly string[] {
  const select = `SELECT json ${rows}`;
  const range = [logKey(number, 0), logKey(number, maxSeq)] as const;
  if (joined) return listOf(driver.prepare(joinOf("json", select)).get(...range)?.[0]);
  return driver
    .prepare(select)
    .all(...range)
    .map((row) => text(row, 0));
}

function historyOf(
  driver: Driver,
  { number }: TaskRow,
  joined: boolean,
  limit: number | undefined,
): readonly StoredEvent[] {
  const select = `SELECT kind, json ${historyRows}`;
  const range = [logKey(number, 0), logKey(number, maxSeq), limit ?? maxSeq] as const;
  const newestFirst = joined
    ? listOf(driver.prepare(joinOf(eventText, select)).get(...range)?.[0]).map(storedEvent)
    : driver
        .prepare(select)
        .all(...range)
        .map((row) => eventOf(int(row, 0), text(row, 1)));
  return newestFirst.reverse();
}

/** At least the bytes of what is asked for. Lengths stand in front of the rows: nothing that is large is read. */
export function sizeOf(driver: Driver, task: TaskRow, { history, artifacts }: LoadOptions): number {
  const range = [logKey(task.number, 0), logKey(task.number, maxSeq)] as const;
  const sum = (rows: string, ...more: readonly number[]): number =>
    count(
      driver
        .prepare(`SELECT coalesce(sum(bytes), 0) FROM (SELECT octet_length(json) AS bytes ${rows})`)
        .get(...range, ...more),
    );
  const ends = driver
    .prepare(
      `SELECT octet_length(b.base) + coalesce(octet_length(s.json), 0) FROM tasks t ${wholeJoins} WHERE t.number = ?`,
    )
    .get(task.number);
  return (
    count(ends) +
    (artifacts ? sum(artifactRows) : 0) +
    (history === 0 ? 0 : sum(historyRows, history ?? maxSeq)) +
    (task.hasMetadata ? sum(metadataRows) : 0)
  );
}
