import { silentLogger, type Logger } from "@parley/a2a/internal/base/index";
import type { Database } from "./database.ts";
import { endOf, ensurePartitions, partitionsOf, type Partition } from "./partitions.ts";
import { quoted } from "./pool.ts";
import { int, text, timeLimit } from "./rows.ts";
import type { Schema, Sql } from "./schema.ts";

/** Milliseconds after the end of a partition in which a transaction may still add a task to it. */
const margin = 3_600_000;
/** Tasks that one look at a partition reads. */
const tasksPerLook = 10_000;
/** Milliseconds between two looks. What was found stays true. */
const defaultInterval = 60_000;

/** The comment of a partition that is being dropped. Others that were detached are somebody's archive. */
const marker = "Parley drops this table: its tasks are deleted";

/** How far the tasks of a partition were found to be old. */
interface Looked {
  /** Every task up to this number is terminal, and older than `before`. That stays so. */
  readonly upTo: number;
  readonly before: number;
  /** The first task that stays. */
  readonly young?: number;
  /** Whether these are all. */
  readonly all: boolean;
}

export interface RetentionOptions {
  readonly logger?: Logger;
  /** Milliseconds between two looks. Default: a minute. */
  readonly interval?: number;
}

/**
 * Finds partitions of the log in which every task is to be deleted. Their records are not deleted one by one: the partition is dropped
 * when its tasks are gone. Nodes find the same, so each keeps what it found to itself.
 */
export class Retention {
  readonly #database: Database;
  readonly #schema: Schema;
  readonly #sql: Sql;
  readonly #logger: Logger;
  readonly #interval: number;
  readonly #looked = new Map<string, Looked>();
  #old: readonly Partition[] = [];
  /** When the last look was, and at what. */
  #last: { readonly at: number; readonly before: number } = { at: -Infinity, before: Infinity };
  #lacksPartitions = false;

  constructor(
    database: Database,
    schema: Schema,
    { logger = silentLogger, interval = defaultInterval }: RetentionOptions = {},
  ) {
    this.#database = database;
    this.#schema = schema;
    this.#sql = schema.over(database);
    this.#logger = logger;
    this.#interval = interval;
  }

  /**
   * Makes the partitions of the next weeks, and looks at those that ended before a time, from where the last look stopped. Resolves to
   * whether it did: a sweep of many pages needs it once.
   */
  async look(deleteBefore?: number): Promise<boolean> {
    const at = performance.now();
    const before = deleteBefore ?? Infinity;
    if (at - this.#last.at < this.#interval && before >= this.#last.before) return false;
    await this.#ensurePartitions();
    if (deleteBefore !== undefined) await this.#lookAtAll(deleteBefore);
    this.#last = { at, before };
    return true;
  }

  /** Whether the records of a task go with their partition. */
  keepsLog(number: number): boolean {
    return this.#old.some(({ from, to }) => number >= from && number < to);
  }

  /**
   * Drops the partitions without a task. One that is in use is left for the next call. PostgreSQL detaches one partition of a table at a
   * time, so one that is not yet detached is waited for first.
   */
  async drop(): Promise<void> {
    if (!(await this.#dropDetached())) return;
    for (const { name, from, to, isOwn } of await this.#ended(Infinity)) {
      if (!isOwn || (await this.#hasTask(from, to))) continue;
      this.#looked.delete(name);
      await this.#try(name, async (run) => {
        await run(`COMMENT ON TABLE parley.${quoted(name)} IS '${marker}'`);
        await run(`ALTER TABLE parley.log DETACH PARTITION parley.${quoted(name)} CONCURRENTLY`);
      });
      if (!(await this.#dropDetached())) return;
    }
  }

  /** A node that may not create tables sweeps nevertheless. */
  async #ensurePartitions(): Promise<void> {
    try {
      await this.#database.transaction({ mode: "write" }, (queries) => ensurePartitions(queries, this.#schema));
      this.#lacksPartitions = false;
    } catch (cause) {
      if (!this.#lacksPartitions) {
        this.#logger.warn(
          "PostgreSQL: the partitions of the next weeks cannot be made. `parley db migrate` makes them",
          { cause },
        );
      }
      this.#lacksPartitions = true;
    }
  }

  async #lookAtAll(deleteBefore: number): Promise<void> {
    const old: Partition[] = [];
    const ended = await this.#ended(deleteBefore);
    for (const partition of ended) {
      // Its records would stay for ever.
      if (!partition.isOwn) continue;
      const looked = await this.#lookAt(partition, deleteBefore);
      this.#looked.set(partition.name, looked);
      if (looked.all) old.push(partition);
    }
    const names = new Set(ended.map(({ name }) => name));
    for (const name of this.#looked.keys()) if (!names.has(name)) this.#looked.delete(name);
    this.#old = old;
  }

  async #hasTask(from: number, to: number): Promise<boolean> {
    const [row] = await this.#sql(
      "SELECT EXISTS (SELECT 1 FROM parley.tasks WHERE number >= $1 AND number < $2)::int",
      from,
      to,
    );
    return int(row, 0) === 1;
  }

  /**
   * Drops partitions that were detached, perhaps by a node that did not come to the end of it. Resolves to whether none is still being
   * detached.
   */
  async #dropDetached(): Promise<boolean> {
    const rows = await this.#sql(
      `SELECT c.relname::text, coalesce(i.inhdetachpending, false),
         coalesce(obj_description(c.oid, 'pg_class') = '${marker}', false)
       FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
       WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'parley.log'::regclass) AND c.relkind = 'r'
         AND pg_has_role(c.relowner, 'USAGE')
         AND CASE WHEN i.inhrelid IS NULL THEN obj_description(c.oid, 'pg_class') = '${marker}'
           ELSE i.inhparent = 'parley.log'::regclass AND i.inhdetachpending END`,
    );
    let isClear = true;
    for (const row of rows) {
      const [name, table, isPending] = [text(row, 0), `parley.${quoted(text(row, 0))}`, row[1] === true];
      const isDone = await this.#try(name, async (run) => {
        if (isPending) await run(`ALTER TABLE parley.log DETACH PARTITION ${table} FINALIZE`);
        if (row[2] === true) await run(`DROP TABLE IF EXISTS ${table}`);
      });
      isClear &&= isDone || !isPending;
    }
    return isClear;
  }

  /** Runs statements on a partition that may be in use, or that another node drops. Resolves to whether they succeeded. */
  async #try(name: string, body: (run: (sql: string) => Promise<unknown>) => Promise<void>): Promise<boolean> {
    try {
      await body((sql) => this.#database.query(this.#schema.text(sql)));
      return true;
    } catch (cause) {
      this.#logger.warn("PostgreSQL: an old partition of the log is not dropped yet", { cause, partition: name });
      return false;
    }
  }

  async #ended(before: number): Promise<readonly Partition[]> {
    const [row] = await this.#sql("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint");
    const limit = Math.min(before, int(row, 0) - margin);
    return (await partitionsOf(this.#database, this.#schema)).filter((partition) => endOf(partition) <= limit);
  }

  async #lookAt({ name, from, to }: Partition, before: number): Promise<Looked> {
    const known = this.#looked.get(name);
    const limit = timeLimit(Math.ceil(before));
    if (known?.young !== undefined && before >= known.before) {
      const [stays] = await this.#sql(
        "SELECT 1 FROM parley.tasks WHERE number = $1 AND NOT (state >= 4 AND status_time < $2)",
        known.young,
        limit,
      );
      if (stays !== undefined) return { ...known, before };
    }
    const start = known === undefined || before < known.before ? from - 1 : known.upTo;
    const next = `SELECT number, state >= 4 AND status_time < $3 AS old FROM parley.tasks
      WHERE number > $1 AND number < $2 ORDER BY number LIMIT ${tasksPerLook}`;
    const [first] = await this.#sql(`SELECT number FROM (${next}) t WHERE NOT old LIMIT 1`, start, to, limit);
    if (first !== undefined) return { upTo: int(first, 0) - 1, before, young: int(first, 0), all: false };
    const [row] = await this.#sql(`SELECT coalesce(max(number), $1), count(old) FROM (${next}) t`, start, to, limit);
    return { upTo: int(row, 0), before, all: int(row, 1) < tasksPerLook };
  }
}
