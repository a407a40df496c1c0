import { utf8Length } from "../base/index.ts";
import type { LogRecord } from "../model/index.ts";
import { assemble, type TaskPieces } from "./assemble.ts";
import { tooLarge, type StoreBounds } from "./bounds.ts";
import type { StoredTask } from "./memory-rows.ts";
import { piecesOf } from "./memory-task.ts";
import { PageBudget } from "./page-budget.ts";
import {
  defaultPageBytes,
  type ListedTask,
  type ListQuery,
  type LoadOptions,
  type LogPage,
  type ReadOptions,
} from "./port.ts";
import { NeedsRoom, PageRoom } from "./room.ts";
import type { SnapshotText } from "./task-text.ts";
import { recordBytes } from "./transition.ts";

/** What the memory store gives of its tasks, within the bounds of who asks. */

/** The records of a task after a position. Throws `NeedsRoom` for a page of more than `most` bytes. */
export function readRecords(task: StoredTask, options: ReadOptions, most: number): LogPage {
  const { after, limit, bytes = defaultPageBytes, kinds } = options;
  const budget = task.head.bytes <= Math.min(bytes, most) ? undefined : new PageBudget(bytes);
  let sum = 0;
  const records: LogRecord[] = [];
  for (let i = Math.max(0, after - task.head.firstSeq + 1); i < task.records.length && records.length < limit; i += 1) {
    const record = task.records[i];
    if (record === undefined || kinds?.includes(record.kind) === false) continue;
    if (budget !== undefined) {
      const size = recordBytes(record);
      if (!budget.take(size)) break;
      sum += size;
    }
    records.push(record);
  }
  if (sum > most) throw new NeedsRoom(sum);
  return { records, head: task.head };
}

/** Throws for a task that is larger, as it is asked for, than one text may be. */
export function assembleTask(task: StoredTask, options: LoadOptions, bounds: StoreBounds): SnapshotText {
  const pieces = piecesOf(task, options.history);
  if (task.head.bytes > bounds.text) {
    const length = lengthOf(pieces, options);
    if (length > bounds.text) throw tooLarge(task.head.task.taskId, length, bounds.text);
  }
  return assemble(pieces, options);
}

/** As many of the tasks as fit into the page. Throws `NeedsRoom` for a page of more than `most` bytes. */
export function assemblePage(
  found: readonly StoredTask[],
  query: ListQuery,
  bounds: StoreBounds,
  most: number,
): readonly ListedTask[] {
  const { bytes = defaultPageBytes } = query;
  const whole = found.reduce((sum, { head }) => sum + head.bytes, 0) <= bytes;
  const budget = new PageBudget(bytes);
  const held = new PageRoom(
    found.map(({ head }) => head.bytes),
    query,
    most,
  );
  const tasks: ListedTask[] = [];
  for (const task of found) {
    // What is large and cannot fit is not put together first.
    if (task.head.bytes > bytes && !budget.fits(lengthOf(piecesOf(task, query.history), query))) break;
    const listed = assembleTask(task, query, bounds);
    if (!whole && !budget.take(bytesOf(listed))) break;
    if (held.counts) held.take(bytesOf(listed));
    tasks.push(listed);
  }
  return tasks;
}

/** At most the characters of what is asked for, and at most as many as the bytes that it takes. */
function lengthOf({ base, status, metadata, history, artifacts }: TaskPieces, options: LoadOptions): number {
  const lists = [[base, status ?? ""], metadata, history.map(({ json }) => json), options.artifacts ? artifacts : []];
  return lists.flat().reduce((sum, json) => sum + json.length, 0);
}

/** Without joining what is in pieces. */
function bytesOf(task: SnapshotText): number {
  const { pieces } = task;
  return pieces === undefined ? utf8Length(task.json) : pieces.reduce((sum, piece) => sum + utf8Length(piece), 0);
}
