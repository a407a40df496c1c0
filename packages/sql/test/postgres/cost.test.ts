import { afterEach, describe, expect, test } from "vitest";
import type { Store, TaskAppend } from "@parley/server/store";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { countingDriver, type CountingDriver } from "./counting.ts";
import { alice, chunk, done, keyOf, making, verdicts } from "./given.ts";

const database = useDatabase();
const open: Store[] = [];
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
});

async function counted(schema: string): Promise<{ store: Store; driver: CountingDriver }> {
  const driver = countingDriver(database().url);
  const store = await postgresStore({ database: driver, schema, wakeup: false });
  open.push(store);
  driver.taken();
  return { store, driver };
}

function lives(ids: readonly string[]): readonly TaskAppend[] {
  return ids.map((id) => ({
    ...making(id, `context-${id}`),
    effects: [
      { effect: "once", key: id, hash: "h", now: 1 },
      { effect: "run", run: { turn: 1, attempt: 1, input: 1 } },
      { effect: "lease", op: "acquire", holder: "node", now: 1, until: 100 },
      { effect: "checkpoint", value: "{}" },
      { effect: "feature", op: "set", feature: "f", key: "k", value: "1", due: 5 },
    ],
  }));
}

function names(from: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `${from}${at}`);
}

describe("the cost of an append", () => {
  test("is the same number of statements for fifty tasks as for one, and three exchanges with the server", async () => {
    const { store, driver } = await counted("batches");
    await store.append(lives(["first"]));
    driver.taken();
    let before = driver.exchanges;
    expect(verdicts(await store.append(lives(["one"])))).toEqual(["ok"]);
    const [one, exchanges] = [driver.taken(), driver.exchanges - before];
    before = driver.exchanges;
    expect(new Set(verdicts(await store.append(lives(names("t", 50)))))).toEqual(new Set(["ok"]));
    expect(driver.taken()).toEqual(one);
    expect(driver.exchanges - before).toBe(exchanges);
    expect(exchanges).toBe(3);

    before = driver.exchanges;
    const items = names("t", 50).map((id) => ({ task: keyOf(id), records: [chunk(id, "x", false), done(id)] }));
    await store.append(items);
    // Two statements lock and read; the others write the log, tasks, contexts and counts.
    expect(driver.taken().length).toBeLessThanOrEqual(6);
    expect(driver.exchanges - before).toBe(3);
  });

  test("is four statements for a chunk, with as many reads and writes for the last of 10,000 as for the first", async () => {
    const { store, driver } = await counted("chunks");
    await store.append([making("t")]);
    await store.append([{ task: keyOf("t"), records: [chunk("t", "0", false)] }]);
    driver.taken();
    const explain = async (seq: number): Promise<number> => {
      const { rows } = await database().run(
        `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT json FROM chunks.log
         WHERE task = (SELECT number FROM chunks.tasks WHERE id = 't') AND seq > ${seq} ORDER BY seq LIMIT 1`,
      );
      const [plan] = (rows[0] as { "QUERY PLAN": { Plan: Record<string, number> }[] })["QUERY PLAN"];
      return (plan?.Plan["Shared Hit Blocks"] ?? 0) + (plan?.Plan["Shared Read Blocks"] ?? 0);
    };
    const append = async (): Promise<readonly string[]> => {
      await store.append([{ task: keyOf("t"), expect: seq, records: [chunk("t", "x")] }]);
      seq += 1;
      return driver.taken();
    };
    let seq = 2;
    const first = await append();
    expect(first.length).toBe(4);
    const near = await explain(1);
    for (; seq < 10_000; seq += 1000) {
      const records = Array.from({ length: 1000 }, () => chunk("t", "x"));
      expect(verdicts(await store.append([{ task: keyOf("t"), expect: seq, records }]))).toEqual(["ok"]);
    }
    driver.taken();
    expect(await append()).toEqual(first);
    expect((await store.head(alice, "t"))?.seq).toBe(seq);
    await database().run("VACUUM chunks.tasks");
    // A page at the end of the log costs as much as one at its start.
    expect(await explain(seq - 2)).toBeLessThanOrEqual(2 * near + 4);
  });

  test("of many callers during a transaction are stored together in the next one", async () => {
    const { store, driver } = await counted("groups");
    await store.append(lives(["warm"]));
    const before = driver.exchanges;
    const outcomes = await Promise.all(names("g", 60).map((id) => store.append([making(id)])));
    expect(outcomes.every(([outcome]) => outcome?.ok === true)).toBe(true);
    // Two transactions of three exchanges each, and one more exchange for each to resolve names.
    expect(driver.exchanges - before).toBeLessThanOrEqual(8);
  });
});

test("the conversation before a turn is read in a few statements, however long the previous turn was", async () => {
  const { store, driver } = await counted("before");
  const json = JSON.stringify({ messageId: "m2", role: "ROLE_USER", parts: [{ text: "again" }] });
  const message = { kind: "message", actor: "user", time: 1000, turn: 0, attempt: 0, json } as const;
  const records = [chunk("t", "x", false), ...names("c", 500).map((text) => chunk("t", text))];
  await store.append([making("t")]);
  await store.append([{ task: keyOf("t"), records: [...records, message] }]);
  const { seq = 0 } = (await store.head(alice, "t")) ?? {};
  driver.taken();
  const before = { taskId: "t", turn: 2, seq };
  const { entries } = await store.conversation({ ...alice, contextId: "c" }, { limit: 9, before });
  expect(entries.length).toBeGreaterThan(0);
  expect(driver.taken().filter((statement) => statement.includes("actor > 0")).length).toBeLessThanOrEqual(3);
});

test("counts, which all appends of an agent update, are written last in a transaction", async () => {
  const { store, driver } = await counted("counters");
  await store.search?.use(true);
  const isCounts = (statement: string): boolean => statement.includes('INSERT INTO "counters".counts');
  driver.taken();
  await store.append([...lives(names("t", 3)), making("old")]);
  const [append] = driver.last();
  expect(isCounts(append ?? "")).toBe(true);
  expect(driver.taken().filter(isCounts).length).toBe(1);

  const end = names("t", 3).map((id) => ({ task: keyOf(id), records: [chunk(id, "x", false), done(id, 2000)] }));
  await store.append([...end, { task: keyOf("old"), records: [done("old", 1000)] }]);
  driver.taken();
  const swept = await store.sweep({ now: 1, deleteBefore: 1500, compactBefore: 3000, limit: 9 });
  expect(swept).toEqual({ deleted: 1, compacted: 3, more: false });
  const ends = driver.last().filter(isCounts).length;
  expect([ends, driver.taken().filter(isCounts).length]).toEqual([1, 1]);
});
