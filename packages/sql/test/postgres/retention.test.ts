import { afterEach, describe, expect, test } from "vitest";
import type { Store } from "@parley/a2a/store";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { alice, chunk, done, keyOf, making } from "./given.ts";

const database = useDatabase();
const open: Store[] = [];
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
});

/** Numbers of one week, as in the names of partitions. */
const week = 7 * 2 ** 32;

async function store(schema: string): Promise<Store> {
  const opened = await postgresStore({ database: database().url, schema });
  open.push(opened);
  return opened;
}

async function over(to: Store, ...ids: readonly string[]): Promise<void> {
  await to.append(ids.map((id) => making(id)));
  await to.append(ids.map((id) => ({ task: keyOf(id), records: [chunk(id, "x", false), done(id)] })));
}

/** Makes tasks look as if they had been created so many weeks ago. */
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
  test("drops the partition of a week when its tasks are over and old, and deletes none of its records", async () => {
    const schema = "drops";
    const one = await store(schema);
    await over(one, "old1", "old2", "new");
    const name = await age(schema, ["old1", "old2"], 9);
    // A trigger tells of each record that is deleted.
    await database().run(`CREATE TABLE ${schema}.deletions (task bigint);
      CREATE FUNCTION ${schema}.note() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO ${schema}.deletions VALUES (old.task); RETURN old; END';
      CREATE TRIGGER note AFTER DELETE ON ${schema}.log FOR EACH ROW EXECUTE FUNCTION ${schema}.note()`);
    expect((await one.load(alice, "old1", { artifacts: true }))?.task.artifacts?.length).toBe(1);
    expect(await partitions(schema)).toContain(name);
    const report = await one.sweep({ now: 0, deleteBefore: Date.now(), limit: 10 });
    expect(report).toEqual({ deleted: 3, compacted: 0, more: false });
    expect(await partitions(schema)).not.toContain(name);
    // That of this week stays, so its records were deleted.
    const { rows } = await database().run(`SELECT count(*)::int AS records FROM ${schema}.deletions`);
    expect(rows).toEqual([{ records: 3 }]);
    expect(await one.load(alice, "old1", { artifacts: true })).toBeUndefined();
    expect((await one.list(alice, { limit: 9, artifacts: false })).total).toBe(0);
  });

  test("keeps a partition as long as a task of it stays, and deletes the records of the others", async () => {
    const schema = "keeps";
    const one = await store(schema);
    await over(one, "old");
    await one.append([making("running")]);
    const name = await age(schema, ["old", "running"], 9);
    expect((await one.sweep({ now: 0, deleteBefore: Date.now(), limit: 10 })).deleted).toBe(1);
    expect(await partitions(schema)).toContain(name);
    const { rows } = await database().run(`SELECT count(*)::int AS records FROM ${schema}.log`);
    expect(rows).toEqual([{ records: 1 }]);
    // When it is over too, the partition goes. A second node does not know what the first one has found.
    await one.append([{ task: keyOf("running"), records: [done("running", 2000)] }]);
    const two = await store(schema);
    expect((await two.sweep({ now: 0, deleteBefore: Date.now(), limit: 10 })).deleted).toBe(1);
    expect(await partitions(schema)).not.toContain(name);
  });

  test("shows no message of a deleted task in its conversation, while its partition is there", async () => {
    const schema = "shows";
    const one = await store(schema);
    await over(one, "a", "b");
    await one.append([making("other")]);
    await age(schema, ["a", "b"], 9);
    const conversation = () => one.conversation({ ...alice, contextId: "c" }, { limit: 9 });
    expect((await conversation()).entries.length).toBe(5);
    // One of two: the partition stays.
    expect(await one.sweep({ now: 0, deleteBefore: Date.now(), limit: 1 })).toMatchObject({ deleted: 1, more: true });
    expect((await conversation()).entries.length).toBe(3);
    await one.sweep({ now: 0, deleteBefore: Date.now(), limit: 1 });
    expect((await conversation()).entries.length).toBe(1);
  });
});
