import pg from "pg";
import { afterEach, describe, expect, test } from "vitest";
import type { Store } from "@parley/server";
import { migratePostgres, postgresStore, type PostgresStoreOptions } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { connect } from "../../src/postgres/connect.ts";
import type { Database } from "../../src/postgres/database.ts";
import { partitionsOf, Retention } from "../../src/postgres/retention.ts";
import { Schema } from "../../src/postgres/schema.ts";
import { countingDriver } from "./counting.ts";
import { alice, chunk, done, keyOf, making } from "./given.ts";
import { recorder } from "./logs.ts";

const database = useDatabase();
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
});

/** The range of numbers for one week, as in the names of partitions. */
const week = 7 * 2 ** 32;

async function store(schema: string, options: Partial<PostgresStoreOptions> = {}): Promise<Store> {
  const opened = await postgresStore({ database: database().url, schema, ...options });
  open.push(opened);
  return opened;
}

async function connected(): Promise<Database> {
  const opened = await connect({ database: database().url });
  open.push(opened);
  return opened;
}

async function numberOf(schema: string, id: string): Promise<number> {
  const { rows } = await database().run(`SELECT number::float8 AS number FROM ${schema}.tasks WHERE id = $1`, [id]);
  return (rows[0] as { number: number }).number;
}

async function over(to: Store, ...ids: readonly string[]): Promise<void> {
  await to.append(ids.map((id) => making(id)));
  await to.append(ids.map((id) => ({ task: keyOf(id), records: [chunk(id, "x", false), done(id)] })));
}

/** Runs `body` as a user who may read and write the tables of a schema, but not create or drop any. */
async function limitedTo(schema: string, body: (url: string) => Promise<void>): Promise<void> {
  const name = `only_${schema}`;
  const password = "only-reads-and-writes";
  await database().run(`CREATE ROLE ${name} LOGIN PASSWORD '${password}'; GRANT USAGE ON SCHEMA ${schema} TO ${name};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${name};
    GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA ${schema} TO ${name}`);
  try {
    await body(Object.assign(new URL(database().url), { username: name, password }).href);
  } finally {
    await database().run(`DROP OWNED BY ${name}; DROP ROLE ${name}`);
  }
}

/** Makes tasks look this many weeks old. */
async function age(schema: string, ids: readonly string[], weeks: number): Promise<string> {
  const now = Math.floor(Date.now() / 86_400_000 / 7);
  const name = `log_${now - weeks}`;
  const from = (now - weeks) * week;
  await database().run(`CREATE TABLE IF NOT EXISTS ${schema}.${name} PARTITION OF ${schema}.log
    FOR VALUES FROM (${from}) TO (${from + week})`);
  await database().run(
    `WITH t AS (UPDATE ${schema}.tasks SET number = number - $2 WHERE id = ANY($1) RETURNING number)
     UPDATE ${schema}.log SET task = task - $2 FROM t WHERE task = t.number + $2`,
    [ids, weeks * week],
  );
  return name;
}

async function partitions(schema: string): Promise<readonly string[]> {
  const { rows } = await database().run(
    "SELECT tablename FROM pg_tables WHERE schemaname = $1 AND tablename LIKE 'log\\_%' ORDER BY 1",
    [schema],
  );
  return rows.map((row) => (row as { tablename: string }).tablename);
}

describe("retention", () => {
  test("drops the partition of a week when its tasks are terminal and old, and deletes none of its records", async () => {
    const schema = "drops";
    const one = await store(schema);
    await over(one, "old1", "old2", "new");
    const name = await age(schema, ["old1", "old2"], 9);
    // A trigger notes each deleted log record.
    await database().run(`CREATE TABLE ${schema}.deletions (task bigint);
      CREATE FUNCTION ${schema}.note() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO ${schema}.deletions VALUES (old.task); RETURN old; END';
      CREATE TRIGGER note AFTER DELETE ON ${schema}.log FOR EACH ROW EXECUTE FUNCTION ${schema}.note()`);
    expect((await one.load(alice, "old1", { artifacts: true }))?.task.artifacts?.length).toBe(1);
    expect(await partitions(schema)).toContain(name);
    const report = await one.sweep({ now: 0, deleteBefore: Date.now(), limit: 10 });
    expect(report).toEqual({ deleted: 3, compacted: 0, more: false });
    expect(await partitions(schema)).not.toContain(name);
    // This week's partition stays, so its records were deleted.
    const { rows } = await database().run(`SELECT count(*)::int AS records FROM ${schema}.deletions`);
    expect(rows).toEqual([{ records: 3 }]);
    expect(await one.load(alice, "old1", { artifacts: true })).toBeUndefined();
    expect((await one.list(alice, { limit: 9, artifacts: false })).total).toBe(0);
  });

  test("keeps a partition while one of its tasks stays, and deletes the records of its other tasks", async () => {
    const schema = "keeps";
    const one = await store(schema);
    await over(one, "old");
    await one.append([making("running")]);
    const name = await age(schema, ["old", "running"], 9);
    expect((await one.sweep({ now: 0, deleteBefore: Date.now(), limit: 10 })).deleted).toBe(1);
    expect(await partitions(schema)).toContain(name);
    const { rows } = await database().run(`SELECT count(*)::int AS records FROM ${schema}.log`);
    expect(rows).toEqual([{ records: 1 }]);
    // Once this task is terminal, the partition is dropped as well, here by a second node that does not know about the first sweep.
    await one.append([{ task: keyOf("running"), records: [done("running", 2000)] }]);
    const two = await store(schema);
    expect((await two.sweep({ now: 0, deleteBefore: Date.now(), limit: 10 })).deleted).toBe(1);
    expect(await partitions(schema)).not.toContain(name);
  });

  test("shows no message of a deleted task in its conversation, while its partition exists", async () => {
    const schema = "shows";
    const one = await store(schema);
    await over(one, "a", "b");
    await one.append([making("other")]);
    await age(schema, ["a", "b"], 9);
    const conversation = () => one.conversation({ ...alice, contextId: "c" }, { limit: 9 });
    expect((await conversation()).entries.length).toBe(5);
    // Deletes one of two tasks, so the partition stays.
    expect(await one.sweep({ now: 0, deleteBefore: Date.now(), limit: 1 })).toMatchObject({ deleted: 1, more: true });
    expect((await conversation()).entries.length).toBe(3);
    await one.sweep({ now: 0, deleteBefore: Date.now(), limit: 1 });
    expect((await conversation()).entries.length).toBe(1);
  });

  test("continues after a partition that was in use, and drops all in the end", async () => {
    const schema = "used";
    await over(await store(schema), "a", "b");
    const weeks = [await age(schema, ["a"], 9), await age(schema, ["b"], 8)];
    const reader = new pg.Client({ connectionString: database().url });
    await reader.connect();
    const { lines, logger } = recorder();
    const one = await store(schema, { statementTimeout: 300, logger });
    const sweep = () => one.sweep({ now: 0, deleteBefore: Date.now(), limit: 10 });
    try {
      await reader.query(`BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM ${schema}.log`);
      expect((await sweep()).deleted).toBe(2);
      const { rows } = await database().run(
        "SELECT count(*)::int AS pending FROM pg_inherits WHERE inhdetachpending AND inhparent = 'used.log'::regclass",
      );
      expect(rows).toEqual([{ pending: 1 }]);
      expect(lines).toContain("PostgreSQL: failed to drop an old log partition; retrying with the next sweep");
      await reader.query("COMMIT");
    } finally {
      await reader.end();
    }
    await sweep();
    expect((await partitions(schema)).filter((name) => weeks.includes(name))).toEqual([]);
  });

  test("drops no partition that someone else has detached", async () => {
    const schema = "archive";
    const one = await store(schema);
    await over(one, "a", "b");
    const [archived, old] = [await age(schema, ["a"], 9), await age(schema, ["b"], 8)];
    await database().run(`ALTER TABLE ${schema}.log DETACH PARTITION ${schema}.${archived}`);
    await one.sweep({ now: 0, deleteBefore: Date.now(), limit: 10 });
    const names = await partitions(schema);
    expect([names.includes(archived), names.includes(old)]).toEqual([true, false]);
  });

  test("reads a remaining task once, and not with each page of a sweep", async () => {
    const schema = "stays";
    const ids = Array.from({ length: 20 }, (_, at) => `t${at}`);
    const driver = countingDriver(database().url);
    const one = await store(schema, { database: driver });
    await one.append(ids.map((id) => making(id)));
    await one.append(ids.slice(1).map((id) => ({ task: keyOf(id), records: [done(id)] })));
    await age(schema, ids, 9);
    const db = await connect({ database: driver });
    const retention = new Retention(db, new Schema(schema), { interval: 0 });
    const looks = async (): Promise<readonly string[]> => {
      driver.taken();
      await retention.look(Date.now());
      return driver.taken().filter((statement) => statement.includes(".tasks"));
    };
    expect((await looks()).length).toBe(1);
    const [again, ...more] = await looks();
    expect([again?.includes("WHERE number = $1"), more]).toEqual([true, []]);
    // Once this task is terminal, the sweep searches for the next remaining one.
    await one.append([{ task: keyOf("t0"), records: [done("t0")] }]);
    expect((await looks()).length).toBe(3);
    expect(retention.keepsLog(await numberOf(schema, "t7"))).toBe(true);
    driver.taken();
    for (let page = 0; page < 3; page += 1) await one.sweep({ now: 0, deleteBefore: 2000, limit: 1 });
    expect(driver.taken().filter((statement) => statement.includes("relpartbound")).length).toBeLessThanOrEqual(4);
  });

  test("creates the missing weeks beside partitions of another length", async () => {
    const schema = "lengths";
    const one = await store(schema);
    const first = Math.floor(Date.now() / 86_400_000 / 7);
    // Another release has created a partition from the middle of the third week to the middle of the fourth.
    await database().run(`DROP TABLE ${schema}.log_${first + 2}, ${schema}.log_${first + 3}, ${schema}.log_${first + 4};
      CREATE TABLE ${schema}.other PARTITION OF ${schema}.log
        FOR VALUES FROM (${(first + 2) * week + week / 2}) TO (${(first + 3) * week + week / 2})`);
    const { lines, logger } = recorder();
    const two = await store(schema, { logger });
    await Promise.all([one, two].map((each) => each.sweep({ now: 0, limit: 10 })));
    expect(lines).toEqual([]);
    const ranges = await partitionsOf(await connected(), new Schema(schema));
    const ours = ranges.filter(({ to }) => to > first * week);
    expect([ours[0]?.from, ours.at(-1)?.to]).toEqual([first * week, (first + 5) * week]);
    for (const [at, { from }] of ours.entries()) if (at > 0) expect(from).toBe(ours[at - 1]?.to);
    expect(ours.length).toBe(6);
  });

  test("by a node that may not change tables deletes records as rows, and the migrating node drops the partitions", async () => {
    const schema = "rights";
    await over(await store(schema), "a", "b");
    const name = await age(schema, ["a"], 9);
    const newest = (await partitions(schema)).at(-1) ?? "";
    await database().run(`DROP TABLE ${schema}.${newest}`);
    await limitedTo(schema, async (url) => {
      const { lines, logger } = recorder();
      const one = await postgresStore({ database: url, schema, migrate: false, logger });
      try {
        expect((await one.sweep({ now: 0, deleteBefore: Date.now(), limit: 10 })).deleted).toBe(2);
      } finally {
        await one.close();
      }
      expect(lines).toEqual([
        "PostgreSQL: failed to create log partitions for the next weeks; run `parley db migrate`",
      ]);
    });
    const { rows } = await database().run(`SELECT count(*)::int AS records FROM ${schema}.log`);
    expect(rows).toEqual([{ records: 0 }]);
    expect(await partitions(schema)).toContain(name);
    await migratePostgres({ database: database().url, schema });
    expect(await partitions(schema)).not.toContain(name);
    expect(await partitions(schema)).toContain(newest);
  });
});
