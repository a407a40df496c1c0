import { utf8Length } from "../base/index.ts";
import type { LogRecord } from "../model/index.ts";
import { artifactStarts } from "./artifact-text.ts";
import type { TaskPieces } from "./assemble.ts";
import { compact } from "./compact.ts";
import type { StoredTask } from "./memory-rows.ts";

/** A task of the memory store: what it is put together from, and how its log is made smaller. */

/** What of a task `assemble` needs. */
export function piecesOf(task: StoredTask, history: number | undefined): TaskPieces {
  const messages = history === undefined ? task.messages : history === 0 ? [] : task.messages.slice(-history);
  const { head, base, status, metadata, artifacts } = task;
  return { head, base, status, metadata, artifacts, history: messages.map(({ event }) => event) };
}

/** Puts fewer and shorter records in the place of a log. A task that is larger than `most` bytes stays as it is. */
export function compactTask(task: StoredTask, most: number): void {
  if (task.head.bytes > most) return;
  const { base, artifacts } = compact(piecesOf(task, undefined));
  const chunks = task.records.filter(({ kind }) => kind === "artifactUpdate");
  task.starts = artifactStarts(task.artifacts).map((index) => {
    const { seq, time, turn } = chunks[index] as LogRecord;
    return { seq, time, turn };
  });
  task.base = base;
  task.artifacts = [...artifacts];
  task.metadata = [];
  task.records = task.records.slice(-1);
  for (const message of task.messages) {
    const { kind, json, time } = message.event;
    message.event = { kind, json, time };
  }
  const kept = [base, ...artifacts, ...task.messages.map(({ event }) => event.json), task.records[0]?.json ?? ""];
  const bytes = kept.reduce((sum, json) => sum + utf8Length(json), 0);
  task.head = Object.freeze({ ...task.head, firstSeq: task.head.seq, bytes: Math.min(bytes, task.head.bytes) });
}

/**
 * The list with one more at its end. Most lists of a task stay as short as they begin, and an array that something is pushed
 * to, or that begins with a spread, makes room for seventeen: a kilobyte a task. `concat` makes it to measure. Row `task-memory`.
 */
export function joined<Item>(list: readonly Item[], item: Item): readonly Item[] {
  if (list.length < 4) return list.concat([item]);
  (list as Item[]).push(item);
  return list;
}
