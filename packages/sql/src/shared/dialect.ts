import type { LoadOptions, Scope, StoreBounds, TaskPieces } from "@parley/server/internal/store/index";

/** How much is read at once, in bytes. */
export interface Bounds extends StoreBounds {
  /** Of the tasks that are read together. A larger one is read alone. */
  readonly join: number;
}

/** Of a task whose pieces are read. */
export interface PiecesOf {
  readonly number: number;
  readonly statusSeq: number;
  readonly hasMetadata: boolean;
  /** Of its whole log. */
  readonly bytes: number;
}

export type Pieces = Omit<TaskPieces, "head">;

/** Records of one task. */
export interface LogRange {
  readonly task: number;
  /** Without the records up to this one. Default 0. */
  readonly after?: number;
  /** The last record. Default: the last one of the log. */
  readonly upTo?: number;
  /** Those of which an index knows, or those of an agent. Default: all. */
  readonly part?: "history" | "artifacts" | "metadata" | "agent";
  /** A further condition. */
  readonly and?: string;
  /** Default: the oldest first. */
  readonly newestFirst?: boolean;
  readonly limit?: number;
}

/** What statements are like in one database. */
export interface Dialect {
  /** A name that clients choose, as the indexes have it. */
  name(name: string): string;
  /** The columns of `taskRow`, with the names of agent and owner, and their tables. */
  readonly taskColumns: string;
  readonly taskTables: string;
  /** Agents `a` with their owners `o`, and the names of both. */
  readonly ownerTables: string;
  readonly ownerNames: string;
  /** The tasks, to read along the index of a level. */
  tasksBy(level: "agent" | "owner"): string;
  /** Agents by name, at most `$1`, each with the number of its tasks in each of `states`. */
  readonly agentCounts: string;
  /** The contexts `c` of an agent `$1` and an owner `$2`, with a condition; and the name of one. */
  readonly contextTables: string;
  readonly contextName: string;
  readonly featureKey: string;
  /** The records of a context `$1`, of tasks that exist; and what a record has of its task and of its number there. */
  readonly logOfContext: string;
  readonly recordTask: string;
  readonly recordSeq: string;
  /** The column of the log that has the number of a record, as `seqOf` reads it. */
  readonly seq: string;
  /** The columns of `recordRow`. */
  readonly recordColumns: string;
  /** Reads columns of the log, in its order. */
  log(columns: string, range: LogRange): Query;
  /** Replaces the records of a task up to `seq` by its compacted ones: the first, and one for each artifact. */
  compact(
    task: number,
    seq: number,
    base: string,
    artifacts: readonly { readonly seq: number; readonly json: string }[],
  ): readonly Query[];
  /** The pieces of tasks that are small enough to be read together, or of one larger task. */
  pieces(tasks: readonly PiecesOf[], options: LoadOptions, bounds: Bounds): Steps<ReadonlyMap<number, Pieces>>;
}

/** The row of a task, if the scope includes it. The task of another owner is found in the index, and not read. */
export function selectTask(
  dialect: Dialect,
  { agent, owner }: Scope,
  taskId: string,
  { columns, joins }: { readonly columns?: string; readonly joins?: string } = {},
): Query {
  const names = [agent, taskId, ...(owner === undefined ? [] : [owner])];
  const isOfOwner = owner !== undefined;
  const sql =
    columns === undefined && joins === undefined
      ? headSelects(dialect)[isOfOwner ? 1 : 0]
      : taskSelect(dialect, isOfOwner, columns, joins);
  return { sql, values: names.map(dialect.name) };
}

function taskSelect(
  { taskTables, taskColumns }: Dialect,
  isOfOwner: boolean,
  columns: string = taskColumns,
  joins: string = "",
): string {
  return `SELECT ${columns} FROM ${taskTables} ${joins} WHERE a.parent = 0 AND a.name = $1 AND t.agent = a.id AND t.id = $2
       ${isOfOwner ? "AND o.name = $3" : ""}`;
}

type HeadSelects = readonly [ofAgent: string, ofOwner: string];

/** Every read of a task begins with one of these: writing them anew each time took a fiftieth of it. */
const known = new WeakMap<Dialect, HeadSelects>();

function headSelects(dialect: Dialect): HeadSelects {
  let selects = known.get(dialect);
  if (selects === undefined) {
    selects = [taskSelect(dialect, false), taskSelect(dialect, true)];
    known.set(dialect, selects);
  }
  return selects;
}

export function selectNumber({ taskTables, taskColumns }: Dialect, number: number): Query {
  return { sql: `SELECT ${taskColumns} FROM ${taskTables} WHERE t.number = $1`, values: [number] };
}

/*
 * What both databases do in the same order is written once, as generators that yield statements. SQLite answers a statement at once, and
 * PostgreSQL later. Statements are written as for PostgreSQL: with `$1`, and with `parley.` before the name of a table.
 */

/** A value of a row. */
export type Value = string | number | null;
/** The columns of a row, in the order of the statement. */
export type Row = readonly unknown[];

/** A statement with its values. Arrays are for statements of PostgreSQL. */
export interface Query {
  readonly sql: string;
  readonly values: readonly (Value | readonly Value[])[];
  /** Whether it returns no rows. */
  readonly writes?: true;
  /** Whether only its first row is read. */
  readonly one?: true;
}

/** Yields independent statements, and receives the rows of each. */
export type Steps<T> = Generator<readonly Query[], T, readonly (readonly Row[])[]>;

export function query(sql: string, ...values: Query["values"]): Query {
  return { sql, values };
}

/** A statement that returns no rows. */
export function change(sql: string, ...values: Query["values"]): Query {
  return { sql, values, writes: true };
}

/** The rows of a statement. */
export function* all(asked: Query): Steps<readonly Row[]> {
  const [rows = []] = yield [asked];
  return rows;
}

/** The only row of a statement. */
export function* first(asked: Query): Steps<Row | undefined> {
  const [rows = []] = yield [{ ...asked, one: true }];
  return rows[0];
}
