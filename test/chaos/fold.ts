import { TaskFold, type Task } from "@parley/a2a/model";
import { eventOf, type FoldOptions, type LogRecord } from "@parley/a2a/internal/model/index";

/** Returns the task that a server reads from these records. */
export function readOf(records: readonly LogRecord[]): Task | undefined {
  return foldOf(records, { mergeTextParts: true }).task;
}

/** Returns the task from records, or the reason why the records do not form a task. */
export function foldOf(
  records: readonly LogRecord[],
  options?: FoldOptions,
): { readonly task?: Task; readonly problem?: string } {
  const fold = new TaskFold(undefined, options);
  for (const record of records) {
    const problem = fold.apply(eventOf(record), { keep: record.keep === true });
    if (problem !== undefined) return { problem: `${problem} at ${record.seq}` };
  }
  return records.length === 0 ? {} : { task: fold.snapshot() };
}
