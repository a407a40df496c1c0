import { int, optional, text, timeLimit } from "./rows.ts";
import type { Database } from "./database.ts";
import { endOf, partitionsOf, type Partition } from "./partitions.ts";
import type { Schema, Sql } from "./schema.ts";

/** Milliseconds after the end of a partition in which a transaction may still add a task to it. */
const margin = 3_600_000;
/** Tasks that one call looks at. */
const tasksPerCall = 10_000;

/** How far the tasks of a partition were found to be old. */
interface Looked {
  /** Every task up to this number is terminal, and older than `before`. That stays so. */
  readonly upTo: number;
  readonly before: number;
  /** Whether these are all. */
  readonly all: boolean;
}

/**
 * Finds partitions of the log in which every task is to be deleted. Their records are not deleted one by one: the partition is dropped
 * when its tasks are gone. Nodes find the same, so each keeps what it found to itself.
 */
export class Retention {
  readonly #database: Database;
  readonly #schema: Schema;
  readonly #sql: Sql;
  readonly #looked = new Map<string, Looked>();
  #old: readonly Partition[] = [];

  constructor(database: Database, schema: Schema) {
    this.#database = database;
    this.#schema = schema;
    this.#sql = schema.over(database);
  }

  /** Looks at the partitions that ended before a time, from where the last call stopped. */
  async look(deleteBefore: number): Promise<void> {
    const old: Partition[] = [];
    for (const partition of await this.#ended(deleteBefore)) {
      const looked = await this.#lookAt(partition, deleteBefore);
      this.#looked.set(partition.name, looked);
      if (looked.all) old.push(partition);
    }
    this.#old = old;
  }

  /** Whether the records of a task go with their partition. */
  keepsLog(number: number): boolean {
    return this.#old.some(({ from, to }) => number >= from && number < to);
  }

  /** Drops the partitions without a task. One that is in use is left for the next call. */
  async drop(): Promise<void> {
    for (const { name, from, to } of await this.#ended(Infinity)) {
      const [row] = await this.#sql(
        "SELECT EXISTS (SELECT 1 FROM parley.tasks WHERE number >= $1 AND number < $2)::int",
        from,
        to,
      );
      if (int(row, 0) === 1) continue;
      this.#looked.delete(name);
      await this.#database.query(
        this.#schema.text(`ALTER TABLE parley.log DETACH PARTITION parley.${name} CONCURRENTLY`),
      );
    }
    await this.#dropDetached();
  }

  /** Partitions that were detached, perhaps by a node that did not come to the end of it. */
  async #dropDetached(): Promise<void> {
    const rows = await this.#sql(
      `SELECT c.relname::text, i.inhdetachpending FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
       WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'parley.log'::regclass)
         AND c.relkind = 'r' AND c.relname ~ '^log_[0-9]+$' AND (i.inhrelid IS NULL OR i.inhdetachpending)`,
    );
    for (const row of rows) {
      const name = text(row, 0);
      if (row[1] === true) {
        await this.#database.query(
          this.#schema.text(`ALTER TABLE parley.log DETACH PARTITION parley.${name} FINALIZE`),
        );
      }
      await this.#database.query(this.#schema.text(`DROP TABLE IF EXISTS parley.${name}`));
    }
  }

  async #ended(before: number): Promise<readonly Partition[]> {
    const [row] = await this.#sql("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint");
    const limit = Math.min(before, int(row, 0) - margin);
    return (await partitionsOf(this.#database, this.#schema)).filter((partition) => endOf(partition) <= limit);
  }

  async #lookAt({ name, from, to }: Partition, before: number): Promise<Looked> {
    const known = this.#looked.get(name);
    const start = known === undefined || before < known.before ? from - 1 : known.upTo;
    const [row] = await this.#sql(
      `SELECT min(number) FILTER (WHERE NOT old), max(number), count(*) FROM (
         SELECT number, state >= 4 AND status_time < $3 AS old FROM parley.tasks
         WHERE number > $1 AND number < $2 ORDER BY number LIMIT ${tasksPerCall}
       ) t`,
      start,
      to,
      timeLimit(Math.ceil(before)),
    );
    const young = optional(row ?? [], 0);
    const last = optional(row ?? [], 1);
    if (typeof young === "number") return { upTo: young - 1, before, all: false };
    return { upTo: typeof last === "number" ? last : start, before, all: int(row, 2) < tasksPerCall };
  }
}
