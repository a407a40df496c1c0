import type { ContextMessageEffect, ReadRecord } from "@parley/server/internal/store/index";
import {
  growing,
  hasGrown,
  identity,
  identityOf,
  owning,
  owningOf,
  placing,
  placingOf,
  plain,
  plainOf,
  type KnownTask,
} from "../shared/batch.ts";
import type { Row, Value } from "./driver.ts";
import {
  bothNames,
  columns,
  encodeJson,
  insertInto,
  neverHeld,
  recordValueColumns,
  recordValues,
  rowsOf,
  together,
  write,
  type Column,
  type Sql,
} from "./schema.ts";

/** A locked task, with the state that the transaction knows. */
export interface LockedTask extends KnownTask {
  /** The time of its newest status, in milliseconds since the Unix epoch. A status can be older than the previous status. */
  touched: number;
  /** `hasFeatures` in the table. */
  readonly storedFeatures: boolean;
}

/** The columns that are not `bigint`. */
const types = new Map(
  columns(
    "id text, long_id text, holder text, base text, extra text, json text, " +
      "kind smallint, actor smallint, state smallint, run_alone smallint, has_metadata smallint, has_features smallint, " +
      "status_seq integer, seq integer, first_seq integer, turn integer, attempt integer, " +
      "run_turn integer, run_attempt integer, run_input integer, run_deaths integer",
  ),
);
const typed = (names: readonly string[]): Column[] => names.map((name) => [name, types.get(name) ?? "bigint"]);

const changing = typed([...plain, ...placing, ...owning, "has_features", "touched"]);
const insertColumns = [...typed(identity), ...typed(["long_id"]), ...changing];
// A missing row reveals that another node has created a task with the same id meanwhile.
const insertTasks = insertInto("tasks", insertColumns, "agent, id", "ON CONFLICT (agent, id) DO NOTHING RETURNING 1");
const updateTasks = updateOf(changing);
/** For tasks whose only change is a longer log, such as after each chunk. */
const growTasks = updateOf(typed(growing));

function updateOf(columns: readonly Column[]): string {
  const set = columns.map(([name]) => `${name} = v.${name}`).join(", ");
  return `UPDATE parley.tasks t SET ${set} FROM ${rowsOf([["number", "bigint"], ...columns])} WHERE t.number = v.number`;
}

const runColumns = typed(["task", "agent", "free_at"]);
const upsertRuns = insertInto(
  "runs",
  runColumns,
  "task",
  "ON CONFLICT (task) DO UPDATE SET free_at = excluded.free_at",
);
const deleteRuns = "DELETE FROM parley.runs WHERE task = ANY($1::bigint[])";

/** Writes the rows of tasks, each once in a transaction. */
export class TaskWriter {
  readonly #new: Value[][] = [];
  readonly #grown: Value[][] = [];
  readonly #changed: Value[][] = [];
  readonly #runs: Value[][] = [];
  readonly #ended: number[] = [];

  /** Call this at the end of a transaction, once for each task. */
  add(task: LockedTask): void {
    const { row, head, stored } = task;
    if (stored !== undefined && head === stored) return;
    if (stored === undefined) this.#new.push([...namedOf(task), ...changingOf(task)]);
    else if (task.hasFeatures === task.storedFeatures && hasGrown(task, stored))
      this.#grown.push([row.number, head.seq, head.generation, head.bytes]);
    else this.#changed.push([row.number, ...changingOf(task)]);
    if (head.run === undefined) {
      if (stored?.run !== undefined) this.#ended.push(row.number);
    } else if (stored?.run === undefined || head.leaseUntil !== stored.leaseUntil) {
      this.#runs.push([row.number, row.agent, head.leaseUntil ?? neverHeld]);
    }
  }

  /** Resolves to `false` if another transaction has created one of the tasks meanwhile. */
  async write(sql: Sql): Promise<boolean> {
    const [made] = await together([
      write(sql, insertTasks, this.#new, insertColumns.length),
      write(sql, growTasks, this.#grown, growing.length + 1),
      write(sql, updateTasks, this.#changed, changing.length + 1),
      write(sql, upsertRuns, this.#runs, runColumns.length),
      this.#ended.length === 0 ? Promise.resolve([]) : sql(deleteRuns, this.#ended),
    ]);
    return made.length === this.#new.length;
  }
}

/** The values of `identity`, with the indexed form of the id, and of `long_id`. */
function namedOf(task: LockedTask): readonly Value[] {
  const [short, long] = bothNames(task.head.task.taskId);
  return [...identityOf(task).map((value, at) => (identity[at] === "id" ? short : value)), long];
}

function changingOf(task: LockedTask): readonly Value[] {
  const { head, hasFeatures, touched } = task;
  return [...plainOf(task), ...placingOf(head), ...owningOf(head), hasFeatures ? 1 : 0, touched];
}

const logColumns = typed(["task", "seq", "context", "place", "base", ...recordValueColumns]);
const insertRecords = insertInto("log", logColumns, "task, seq");

const replyColumns = typed(["context", "place", "time", "json"]);
const insertReplies = insertInto("replies", replyColumns, "context, place");

/** Approximate maximum characters of one statement: PostgreSQL accepts messages of less than 1 GiB. */
const maxText = 16 << 20;

/** Rows for one table, in statements of a bounded size. */
class Rows {
  readonly #statement: string;
  readonly #width: number;
  readonly #groups: Value[][][] = [];
  #room = 0;

  constructor(statement: string, width: number) {
    this.#statement = statement;
    this.#width = width;
  }

  add(row: readonly Value[], length: number): void {
    if (length > this.#room) {
      this.#groups.push([]);
      this.#room = maxText;
    }
    this.#groups.at(-1)?.push([...row]);
    this.#room -= length;
  }

  async write(sql: Sql): Promise<void> {
    await together(this.#groups.map((rows): Promise<readonly Row[]> => write(sql, this.#statement, rows, this.#width)));
  }
}

/** Collects the records of a transaction. */
export class LogWriter {
  readonly #rows = new Rows(insertRecords, logColumns.length);

  /** Only a record of the history has a `place`. Only the first record of a task has a `base`. */
  add(
    task: number,
    seq: number,
    place: { readonly context: number; readonly place: number } | undefined,
    base: string | undefined,
    read: ReadRecord,
  ): void {
    const at = [place?.context ?? null, place?.place ?? null];
    const first = base === undefined ? null : encodeJson(base);
    this.#rows.add([task, seq, ...at, first, ...recordValues(read)], read.bytes + (base?.length ?? 0));
  }

  write(sql: Sql): Promise<void> {
    return this.#rows.write(sql);
  }
}

/** Collects the direct replies of a transaction. */
export class ReplyWriter {
  readonly #rows = new Rows(insertReplies, replyColumns.length);

  add(context: number, place: number, { time, json }: ContextMessageEffect): void {
    this.#rows.add([context, place, time, encodeJson(json)], json.length);
  }

  write(sql: Sql): Promise<void> {
    return this.#rows.write(sql);
  }
}
