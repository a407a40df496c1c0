import {
  assemble,
  defaultStoreBounds,
  NeedsRoom,
  snapshotOf,
  tooLarge,
  type LoadOptions,
  type Scope,
  type Snapshot,
  type StoreBounds,
  type StoredEvent,
  type TaskPieces,
} from "@parley/server/internal/store/index";
import { keyOf, type KeptTasks } from "../shared/kept-tasks.ts";
import type { Driver, Row, Value } from "./driver.ts";
import {
  count,
  encodeName,
  eventOf,
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

/** `text` is also the longest value that is read: `libsql` ends the process over one of more than 536,870,888 characters. */
export interface Bounds extends StoreBounds {
  /** Bytes of the tasks whose rows SQLite joins into one text; those of larger tasks are read one by one. */
  readonly join: number;
}

export const defaultBounds: Bounds = { ...defaultStoreBounds, join: 1 << 20 };

/**
 * A task that is read again, as by a client that polls, costs its row alone. Throws `NeedsRoom` for a task of more than `most`
 * bytes. Begins a transaction itself where it needs one.
 */
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
    // Another process may have appended since the first statement.
    const { bytes } = taskRow(now).head;
    if (bytes > most) throw new NeedsRoom(bytes);
    const snapshot = assemble(piecesOf(driver, bounds, now, options), options);
    if (snapshot.pieces === undefined) {
      kept.keep(keyOf({ number: int(now, 0), id: encodeName(taskId), ...snapshot.head }, options), snapshot.json);
    }
    return snapshot;
  });
}

/** The first record of a task and its last status, without its history and artifacts. */
const wholeColumns = `${taskColumns}, b.base, s.json`;
const wholeJoins = `JOIN log b ON b.key = (t.number << 24) + 1
  LEFT JOIN log s ON t.status_seq > 0 AND s.key = (t.number << 24) + t.status_seq`;

/** Call it in a transaction. Throws before it reads a task that is larger than a text may be. */
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

/** Large texts are read one by one: joined, they would take twice the memory and be longer than a string can be. */
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

/** At least the bytes of what is asked for. Lengths are stored before the text, so nothing large is read for them. */
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

/*
 * Many rows as one text: in `libsql` each value that is read costs more than SQLite needs to find it. A page of 50 tasks
 * takes half of the time (row `list`); with `node:sqlite` it makes no difference. The parts are separated by characters
 * that JSON cannot contain.
 */

const [inEvent, between] = ["\u001d", "\u001c"];

/** SQL of the text that `storedEvent` reads. */
export const eventText = "kind || char(29) || json";

/** A statement that joins one text of each row of another statement, in its order. */
export function joinOf(text: string, rows: string): string {
  return `SELECT group_concat(${text}, char(28)) FROM (${rows})`;
}

/** The texts that were joined; empty if there were no rows. */
export function listOf(joined: Value | undefined): string[] {
  return typeof joined === "string" && joined !== "" ? joined.split(between) : [];
}

/** A record of the history. */
export function storedEvent(joined: string): StoredEvent {
  const end = joined.indexOf(inEvent);
  return eventOf(Number(joined.slice(0, end)), joined.slice(end + 1));
}
