import type { LoadOptions, Scope, StoreBounds, TaskPieces } from "@parley/server/internal/store/index";

/** Maximum bytes of one read. */
export interface Bounds extends StoreBounds {
  /** Maximum bytes of tasks that are read together. A larger task is read alone. */
  readonly join: number;
}

/** The columns of a task that are needed to read its pieces. */
export interface PiecesOf {
  readonly number: number;
  readonly statusSeq: number;
  readonly hasMetadata: boolean;
  /** Bytes of its whole log. */
  readonly bytes: number;
}

export type Pieces = Omit<TaskPieces, "head">;

/** Records of one task. */
export interface LogRange {
  readonly task: number;
  /** Excludes records up to this one. Default 0. */
  readonly after?: number;
  /** The last record. Default: the last record of the log. */
  readonly upTo?: number;
  /** Selects only the records of an index, or only the records of the agent. Default: all records. */
  readonly part?: "history" | "artifacts" | "metadata" | "agent";
  /** A further condition. */
  readonly and?: string;
  /** Whether the newest record comes first. Default: the oldest comes first. */
  readonly newestFirst?: boolean;
  readonly limit?: number;
}

/** The parts of statements that differ between databases. */
export interface Dialect {
  /** The form in which a name from a client is indexed. */
  name(name: string): string;
  /** The columns of `taskRow` with the names of agent and owner, and the tables to read them from. */
  readonly taskColumns: string;
  readonly taskTables: string;
  /** Tables of agents `a` with their owners `o`, and the names of both. */
  readonly ownerTables: string;
  readonly ownerNames: string;
  /** The table of tasks, to be read by the index of the level. */
  tasksBy(level: "agent" | "owner"): string;
  /** SQL of at most `$1` agents by name, each with the number of its tasks in each of `states`. */
  readonly agentCounts: string;
  /** SQL of the contexts `c` of agent `$1` and owner `$2`, to which callers append a condition; and the column of the name. */
  readonly contextTables: string;
  readonly contextName: string;
  readonly featureKey: string;
  /** SQL of the records of context `$1` whose tasks exist; and the columns of the task and the record's number. */
  readonly logOfContext: string;
  readonly recordTask: string;
  readonly recordSeq: string;
  /** The column of the log that has the number of a record, as `seqOf` reads it. */
  readonly seq: string;
  /** The columns of `recordRow`. */
  readonly recordColumns: string;
  /** Reads columns of the log, in its order. */
  log(columns: string, range: LogRange): Query;
  /** Replaces the records of a task up to `seq` with compacted records: the first record, and one record per artifact. */
  compact(
    task: number,
    seq: number,
    base: string,
    artifacts: readonly { readonly seq: number; readonly json: string }[],
  ): readonly Query[];
  /** The pieces of tasks that are small enough to be read together, or of one larger task. */
  pieces(tasks: readonly PiecesOf[], options: LoadOptions, bounds: Bounds): Steps<ReadonlyMap<number, Pieces>>;
}

/** The row of a task, if the scope includes it. For a task of another owner only the index is read. */
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

/** Cached, because every read of a task begins with one of these texts. Building the text took 2 % of the time of a read. */
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
 * Code for both databases consists of generators that yield statements. SQLite answers a statement synchronously, PostgreSQL asynchronously.
 * Statements are in PostgreSQL's syntax: with `$1`, and with `parley.` before the name of a table.
 */

/** A value of a row. */
export type Value = string | number | null;
/** The columns of a row, in the order of the statement. */
export type Row = readonly unknown[];

/** A statement with its values. Only PostgreSQL accepts arrays as values. */
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
