import { assemble, type ListQuery, type Snapshot, type StoredEvent, type TaskPieces } from "@parley/a2a/store";
import type { Driver, Row } from "./driver.ts";
import { eventOf, maxSeq, taskColumns, taskRow, taskTables, text } from "./rows.ts";

/*
 * The tasks of a page, as one text. Each value that comes out of the library costs more than SQLite's work to find it:
 * in a page of 50 tasks that were read one by one, three statements and 25 values each, that was three quarters of the time.
 * What parts the text is no character that JSON can hold.
 */

const [unit, record, group, file] = ["\u001f", "\u001e", "\u001d", "\u001c"];

const ofTask = "key > (t.number << 24) AND key <= (t.number << 24) + " + String(maxSeq);
const history = `SELECT group_concat(kind || char(29) || json, char(28)) FROM (
  SELECT kind, json FROM log INDEXED BY log_history WHERE place IS NOT NULL AND ${ofTask} ORDER BY key DESC LIMIT ?2)`;
const artifacts = `SELECT group_concat(json, char(28)) FROM (
  SELECT json FROM log INDEXED BY log_artifacts WHERE kind = 3 AND ${ofTask} ORDER BY key)`;
const metadata = `SELECT group_concat(json, char(28)) FROM (
  SELECT json FROM log INDEXED BY log_metadata WHERE has_metadata = 1 AND ${ofTask} ORDER BY key)`;

const fields = (withArtifacts: boolean): readonly string[] => [
  "t.number",
  `json_array(${taskColumns})`,
  "b.base",
  "coalesce(s.json, '')",
  `coalesce((${history}), '')`,
  withArtifacts ? `coalesce((${artifacts}), '')` : "''",
  `CASE WHEN t.has_metadata = 1 THEN coalesce((${metadata}), '') ELSE '' END`,
];

const select = (withArtifacts: boolean): string =>
  `SELECT group_concat(${fields(withArtifacts).join(" || char(31) || ")}, char(30))
   FROM json_each(?1) p JOIN ${taskTables} JOIN log b ON b.key = (t.number << 24) + 1
   LEFT JOIN log s ON t.status_seq > 0 AND s.key = (t.number << 24) + t.status_seq
   WHERE t.number = p.value`;

/** The tasks of these numbers, in their order. */
export function readTasks(driver: Driver, numbers: readonly number[], query: ListQuery): readonly Snapshot[] {
  if (numbers.length === 0) return [];
  const row = driver.prepare(select(query.artifacts)).get(JSON.stringify(numbers), query.history ?? maxSeq);
  const found = new Map(
    text(row, 0)
      .split(record)
      .map((task) => snapshotOf(task.split(unit), query)),
  );
  return numbers.map((number) => {
    const snapshot = found.get(number);
    if (snapshot === undefined) throw new RangeError(`There is no task of number ${number}`);
    return snapshot;
  });
}

function snapshotOf(parts: readonly string[], query: ListQuery): readonly [number, Snapshot] {
  const [number = "", head = "", base = "", status = "", events = "", updates = "", changes = ""] = parts;
  const pieces: TaskPieces = {
    get head() {
      return taskRow(JSON.parse(head) as Row).head;
    },
    base,
    status: status === "" ? undefined : status,
    metadata: listOf(changes),
    history: listOf(events).map(storedEvent).reverse(),
    artifacts: listOf(updates),
  };
  return [Number(number), assemble(pieces, query)];
}

function listOf(joined: string): string[] {
  return joined === "" ? [] : joined.split(file);
}

function storedEvent(joined: string): StoredEvent {
  const end = joined.indexOf(group);
  return eventOf(Number(joined.slice(0, end)), joined.slice(end + 1));
}
