import {
  assemble,
  assembleText,
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
import {
  encodeName,
  eventOf,
  int,
  kindNumber,
  maxSeq,
  selectTask,
  taskColumns,
  taskRow,
  text,
  type TaskRow,
} from "./rows.ts";
import type { Sql } from "./schema.ts";

/**
 * Call it in a transaction. A task that is read again, as by a client that polls, costs its row alone. Throws `NeedsRoom` for a task of
 * more than `most` bytes.
 */
export async function readTask(
  sql: Sql,
  kept: KeptTasks,
  bounds: StoreBounds,
  scope: Scope,
  taskId: string,
  options: LoadOptions,
  most: number,
): Promise<Snapshot | undefined> {
  const row = await selectTask(sql, scope, taskId, taskColumns);
  if (row === undefined) return undefined;
  const task = taskRow(row);
  if (task.head.bytes > most) throw new NeedsRoom(task.head.bytes);
  const key = keyOf({ number: task.number, id: encodeName(taskId), ...task.head }, options);
  const known = kept.find(key);
  if (known !== undefined) return snapshotOf(task.head, known);
  const snapshot = assemble(await readPieces(sql, bounds, task, options), options);
  if (snapshot.pieces === undefined) kept.keep(key, snapshot.json);
  return snapshot;
}

/** A task whose pieces are read. */
export type PiecesOf = Pick<TaskRow, "number" | "statusSeq" | "hasMetadata">;

/** Call it in a transaction. Throws before it reads a task that is larger than a text may be. */
export async function readPieces(
  sql: Sql,
  bounds: StoreBounds,
  task: TaskRow,
  options: LoadOptions,
): Promise<TaskPieces> {
  const { head } = task;
  if (head.bytes > bounds.text) {
    const bytes = await sizeOf(sql, task, options);
    if (bytes > bounds.text) throw tooLarge(head.task.taskId, bytes, bounds.text);
  }
  const pieces = (await readManyPieces(sql, [task], options)).get(task.number);
  if (pieces === undefined) throw new RangeError(`There is no log of task ${task.number}`);
  return { head, ...pieces };
}

type Pieces = Omit<TaskPieces, "head">;

/** The JSON texts of tasks, in the order of `tasks`. */
export async function readTexts(
  sql: Sql,
  tasks: readonly PiecesOf[],
  options: LoadOptions,
): Promise<readonly string[]> {
  if (tasks.length === 0) return [];
  const pieces = await readManyPieces(sql, tasks, options);
  return tasks.map(({ number }) => {
    const found = pieces.get(number);
    if (found === undefined) throw new RangeError(`There is no log of task ${number}`);
    return assembleText(found, options);
  });
}

const [base, status, message, artifact, metadata] = [0, 1, 2, 3, 4] as const;
const ofTasks = "task = ANY($1::bigint[])";
/**
 * Each kind of piece by an index that has no other rows. The numbers are parameters and not those of a join, so that the planner
 * looks at their partitions alone.
 */
const selectBases = `SELECT ${base}, task, seq, kind, base FROM parley.log WHERE ${ofTasks} AND seq = 1`;
const selectStatuses = `SELECT ${status}, l.task, l.seq, l.kind, l.json FROM unnest($2::bigint[], $3::integer[]) AS v (task, seq)
  JOIN parley.log l ON l.task = v.task AND l.seq = v.seq WHERE l.${ofTasks} AND v.seq > 0`;
const allMessages = `SELECT ${message}, task, seq, kind, json FROM parley.log WHERE ${ofTasks} AND place IS NOT NULL`;
const newestMessages = `SELECT ${message}, v.task, l.seq, l.kind, l.json FROM unnest($1::bigint[]) AS v (task)
  CROSS JOIN LATERAL (
    SELECT seq, kind, json FROM parley.log WHERE task = v.task AND ${ofTasks} AND place IS NOT NULL ORDER BY seq DESC LIMIT $4
  ) l`;
const selectArtifacts = `SELECT ${artifact}, task, seq, kind, json FROM parley.log WHERE ${ofTasks} AND kind = ${kindNumber("artifactUpdate")}`;
const selectMetadata = `SELECT ${metadata}, task, seq, kind, json FROM parley.log WHERE ${ofTasks} AND has_metadata = 1`;

/** The pieces of tasks, by their numbers, in one statement. */
async function readManyPieces(
  sql: Sql,
  tasks: readonly PiecesOf[],
  { history, artifacts }: LoadOptions,
): Promise<ReadonlyMap<number, Pieces>> {
  const parts = [selectBases, selectStatuses];
  if (history === undefined) parts.push(allMessages);
  else if (history > 0) parts.push(newestMessages);
  if (artifacts) parts.push(selectArtifacts);
  if (tasks.some(({ hasMetadata }) => hasMetadata)) parts.push(selectMetadata);
  const rows = await sql(
    `SELECT * FROM (${parts.join(" UNION ALL ")}) p (part, task, seq, kind, json) ORDER BY seq`,
    tasks.map(({ number }) => number),
    tasks.map(({ number }) => number),
    tasks.map(({ statusSeq }) => statusSeq),
    ...(history !== undefined && history > 0 ? [Math.min(history, maxSeq)] : []),
  );
  const found = new Map<number, { base: string; status?: string; lists: string[][]; history: StoredEvent[] }>();
  for (const row of rows) {
    const number = int(row, 1);
    let task = found.get(number);
    if (task === undefined) found.set(number, (task = { base: "{}", lists: [[], []], history: [] }));
    const json = text(row, 4);
    switch (int(row, 0)) {
      case base:
        task.base = json;
        break;
      case status:
        task.status = json;
        break;
      case message:
        task.history.push(eventOf(int(row, 3), json));
        break;
      case artifact:
        task.lists[0]?.push(json);
        break;
      default:
        task.lists[1]?.push(json);
    }
  }
  return new Map(
    Array.from(found, ([number, { lists, status: newest, ...task }]): [number, Pieces] => {
      const [updates = [], changes = []] = lists;
      return [number, { ...task, status: newest, artifacts: updates, metadata: changes }];
    }),
  );
}

/** At least the bytes of what is asked for. Lengths are known without the text, so nothing large is read for them. */
export async function sizeOf(
  sql: Sql,
  { number, statusSeq, hasMetadata }: PiecesOf,
  options: LoadOptions,
): Promise<number> {
  const { history, artifacts } = options;
  const newest = history === undefined ? "" : `ORDER BY seq DESC LIMIT ${Math.min(history, maxSeq)}`;
  const parts = [
    "SELECT octet_length(base) AS bytes FROM parley.log WHERE task = $1 AND seq = 1",
    "SELECT octet_length(json) FROM parley.log WHERE task = $1 AND seq = $2",
    ...(history === 0
      ? []
      : [`(SELECT octet_length(json) FROM parley.log WHERE task = $1 AND place IS NOT NULL ${newest})`]),
    ...(artifacts
      ? [`SELECT octet_length(json) FROM parley.log WHERE task = $1 AND kind = ${kindNumber("artifactUpdate")}`]
      : []),
    ...(hasMetadata ? ["SELECT octet_length(json) FROM parley.log WHERE task = $1 AND has_metadata = 1"] : []),
  ];
  const rows = await sql(
    `SELECT coalesce(sum(bytes), 0)::bigint FROM (${parts.join(" UNION ALL ")}) s (bytes)`,
    number,
    statusSeq,
  );
  return int(rows[0], 0);
}
