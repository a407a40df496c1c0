import { eventOf, TaskFold, type LogRecord, type Task } from "@parley/a2a/model";

/** The task that records make, or why they make none. */
export function foldOf(records: readonly LogRecord[]): { readonly task?: Task; readonly problem?: string } {
  const fold = new TaskFold();
  for (const record of records) {
    const problem = fold.apply(eventOf(record), { keep: record.keep === true });
    if (problem !== undefined) return { problem: `${problem} at ${record.seq}` };
  }
  return records.length === 0 ? {} : { task: fold.snapshot() };
}
