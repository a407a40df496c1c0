import type { Queries } from "./driver.ts";
import { int, text } from "../shared/rows.ts";
import type { Schema } from "./schema.ts";

/*
 * Numbers of tasks, and the partitions of the log. A number begins with the day of the database on which the task was created, so a range
 * of numbers is a range of time: the partition of old tasks is dropped as a whole.
 */

/** Numbers of one day. With days since 1970 they are safe integers until the year 7700. */
const numbersPerDay = 2 ** 32;

/** SQL of the next number. */
export const nextNumber: string = `floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint * ${numbersPerDay}
  + nextval('parley.numbers') % ${numbersPerDay}`;

/** Days of one partition. */
const daysPerPartition = 7;
const numbersPerPartition = numbersPerDay * daysPerPartition;
/** Partitions that are made ahead, with that of this week. */
const partitionsAhead = 5;

const lockClass = 0x70_61_72_74;

/** A partition of the log: its tasks have numbers from `from`, below `to`. */
export interface Partition {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  /** Whether the user of the database may drop it. */
  readonly isOwn: boolean;
}

/** When the last task of a partition was created, in milliseconds since the Unix epoch. */
export function endOf({ to }: Partition): number {
  return (to / numbersPerDay) * 86_400_000;
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

/** Whether the log takes new tasks now: it has a partition for them, or a write makes it. */
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
 * Makes the partitions of this week and of the next ones where they are missing, in the transaction of `queries`. `ATTACH` waits for no
 * reader and no writer, where `CREATE TABLE … PARTITION OF` waits for all.
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

/** What no partition has, week by week. Another release may have made some of another length. */
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

/** A whole week has its number as its name, and a part of one its first number. */
function nameOf({ from, to }: Range): string {
  return to - from === numbersPerPartition ? `log_${from / numbersPerPartition}` : `log_${from}`;
}
