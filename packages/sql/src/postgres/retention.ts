import { silentLogger, type Logger } from "@parley/a2a/internal/base/index";
import type { Database } from "./database.ts";
import type { Queries } from "./driver.ts";
import { quoted } from "./pool.ts";
import { int, text, timeLimit, type Schema, type Sql } from "./schema.ts";

/** Milliseconds after the end of a partition during which a transaction may still add a task. */
const margin = 3_600_000;
/** Tasks per check of a partition. */
const tasksPerLook = 10_000;
/** Milliseconds between two checks. The result of a check stays valid. */
const defaultInterval = 60_000;

/** The comment of a partition that is being dropped. Detached partitions without it are someone's archive. */
const marker = "Parley drops this table: its tasks are deleted";

/** The result of checking a partition for old tasks. */
interface Looked {
  /** Every task up to this number is terminal and older than `before`. */
  readonly upTo: number;
  readonly before: number;
  /** The first task to keep. */
  readonly young?: number;
  /** Whether the check reached the end of the partition. */
  readonly all: boolean;
}

export interface RetentionOptions {
  readonly logger?: Logger;
  /** Milliseconds between two checks. Default: a minute. */
  readonly interval?: number;
}

/**
 * Finds partitions that only have expired tasks. Their records are not deleted one by one. Instead, the partition is dropped once
 * its tasks are deleted. Each node checks separately.
 */
export class Retention {
  readonly #database: Database;
  readonly #schema: Schema;
  readonly #sql: Sql;
  readonly #logger: Logger;
  readonly #interval: number;
  readonly #looked = new Map<string, Looked>();
  #old: readonly Partition[] = [];
  /** The time and the argument of the last check. */
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
   * Creates the partitions of the next weeks, and continues to look for old partitions. Does nothing and resolves to `false` if called
   * recently, because a sweep of many pages needs this only once.
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

  /** Whether the records of a task are dropped with their partition. */
  keepsLog(number: number): boolean {
    return this.#old.some(({ from, to }) => number >= from && number < to);
  }

  /**
   * Drops partitions without tasks. Partitions in use are left for the next call. PostgreSQL detaches one partition at a
   * time, so partitions that are already being detached come first.
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

  /** Creates missing partitions. A node that may not create tables still sweeps. */
  async #ensurePartitions(): Promise<void> {
    try {
      await this.#database.transaction({ mode: "write" }, (queries) => ensurePartitions(queries, this.#schema));
      this.#lacksPartitions = false;
    } catch (cause) {
      if (!this.#lacksPartitions) {
        this.#logger.warn("PostgreSQL: failed to create log partitions for the next weeks; run `parley db migrate`", {
          cause,
        });
      }
      this.#lacksPartitions = true;
    }
  }

  async #lookAtAll(deleteBefore: number): Promise<void> {
    const old: Partition[] = [];
    const ended = await this.#ended(deleteBefore);
    for (const partition of ended) {
      // This user may not drop the partition, so its records would never be deleted.
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

  /** Drops detached partitions, even if a node stopped halfway. Resolves to `false` if one is still being detached. */
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

  /** Runs statements on a partition, which may be in use or dropped by another node. Resolves to whether the statements succeeded. */
  async #try(name: string, body: (run: (sql: string) => Promise<unknown>) => Promise<void>): Promise<boolean> {
    try {
      await body((sql) => this.#database.query(this.#schema.text(sql)));
      return true;
    } catch (cause) {
      this.#logger.warn("PostgreSQL: failed to drop an old log partition; retrying with the next sweep", {
        cause,
        partition: name,
      });
      return false;
    }
  }

  async #ended(before: number): Promise<readonly Partition[]> {
    const [row] = await this.#sql("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint");
    const limit = Math.min(before, int(row, 0) - margin);
    return (await partitionsOf(this.#database, this.#schema)).filter(
      ({ to }) => (to / numbersPerDay) * 86_400_000 <= limit,
    );
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

/*
 * Task numbers and log partitions. A number begins with the day of creation, so each partition covers a period, and old tasks are dropped
 * with their whole partition.
 */

/** Numbers per day. With days since 1970 they are safe integers until the year 7700. */
const numbersPerDay = 2 ** 32;

export const nextNumber: string = `floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint * ${numbersPerDay}
  + nextval('parley.numbers') % ${numbersPerDay}`;

const daysPerPartition = 7;
const numbersPerPartition = numbersPerDay * daysPerPartition;
/** Number of partitions to create ahead, including the partition of this week. */
const partitionsAhead = 5;

const lockClass = 0x70_61_72_74;

/** A partition of the log, for task numbers from `from` and below `to`. */
export interface Partition {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  /** Whether the user of the database may drop it. */
  readonly isOwn: boolean;
}

/** The partitions that are attached to the log, oldest first. */
export async function partitionsOf(queries: Queries, schema: Schema): Promise<readonly Partition[]> {
  const rows = await schema.over(queries)(
    `SELECT c.relname::text,
       coalesce(substring(b.bound FROM 'FROM \\(''?(-?[0-9]+)')::bigint, ${Number.MIN_SAFE_INTEGER}),
       coalesce(substring(b.bound FROM 'TO \\(''?(-?[0-9]+)')::bigint, ${Number.MAX_SAFE_INTEGER}),
       pg_has_role(c.relowner, 'USAGE') AND pg_has_role(p.relowner, 'USAGE')
     FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
       CROSS JOIN LATERAL pg_get_expr(c.relpartbound, c.oid) AS b (bound)
     WHERE i.inhparent = 'parley.log'::regclass AND NOT i.inhdetachpending AND b.bound LIKE 'FOR VALUES%' ORDER BY 2`,
  );
  return rows.map((row) => ({ name: text(row, 0), from: int(row, 1), to: int(row, 2), isOwn: row[3] === true }));
}

/** Whether the log accepts new tasks, because it has a partition for them or a write may create one. */
export async function hasPartition(queries: Queries, schema: Schema): Promise<boolean> {
  const [row] = await schema.over(queries)(
    `SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint,
       (pg_has_role(relowner, 'USAGE') AND has_schema_privilege(relnamespace, 'CREATE'))::int
     FROM pg_class WHERE oid = 'parley.log'::regclass`,
  );
  if (int(row, 1) === 1) return true;
  const now = int(row, 0) * numbersPerDay;
  return (await partitionsOf(queries, schema)).some(({ from, to }) => from <= now && now < to);
}

/**
 * Creates missing partitions of this week and the next weeks, in the transaction of `queries`. Unlike `CREATE TABLE … PARTITION OF`,
 * `ATTACH` does not wait for readers and writers.
 */
export async function ensurePartitions(queries: Queries, schema: Schema): Promise<void> {
  const sql = schema.over(queries);
  const [row] = await sql("SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint");
  const first = Math.floor(int(row, 0) / daysPerPartition);
  const from = first * numbersPerPartition;
  const missing = async (): Promise<readonly Range[]> =>
    gapsIn(await partitionsOf(queries, schema), from, from + partitionsAhead * numbersPerPartition);
  if ((await missing()).length === 0) return;
  await sql(`SELECT pg_advisory_xact_lock(${lockClass}, hashtext($1))`, schema.name);
  for (const range of await missing()) {
    const name = nameOf(range);
    await queries.query(
      schema.text(
        `CREATE TABLE parley.${name} (LIKE parley.log INCLUDING ALL, CHECK (task >= ${range.from} AND task < ${range.to}));
         ALTER TABLE parley.log ATTACH PARTITION parley.${name} FOR VALUES FROM (${range.from}) TO (${range.to})`,
      ),
    );
  }
}

type Range = Pick<Partition, "from" | "to">;

/** The gaps between partitions, week by week. Another release may have used other lengths. */
function gapsIn(known: readonly Range[], from: number, to: number): readonly Range[] {
  const gaps: Range[] = [];
  for (let start = from; start < to;) {
    const covering = known.find((each) => each.from <= start && start < each.to);
    if (covering !== undefined) start = covering.to;
    else {
      const week = (Math.floor(start / numbersPerPartition) + 1) * numbersPerPartition;
      const end = Math.min(week, ...known.map((each) => each.from).filter((each) => each > start));
      gaps.push({ from: start, to: end });
      start = end;
    }
  }
  return gaps;
}

/** A partition of a whole week is named by the number of the week; a shorter partition by its first task number. */
function nameOf({ from, to }: Range): string {
  return to - from === numbersPerPartition ? `log_${from / numbersPerPartition}` : `log_${from}`;
}
