import { afterEach, describe, expect, test } from "vitest";
import type { LogPage, Store } from "@parley/server/store";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { countingDriver, type CountingDriver } from "./counting.ts";
import { alice, chunk, keyOf, making } from "./given.ts";

/** Readers of many tasks share a read if they are woken together. */

const database = useDatabase();
const open: Store[] = [];
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
});

async function counted(schema: string): Promise<{ store: Store; driver: CountingDriver }> {
  const driver = countingDriver(database().url);
  const store = await postgresStore({ database: driver, schema, wakeup: false });
  open.push(store);
  return { store, driver };
}

const ids = (count: number): readonly string[] => Array.from({ length: count }, (_, at) => `t${at}`);
const seqs = (page: LogPage | undefined): readonly number[] | undefined => page?.records.map(({ seq }) => seq);

describe("concurrent reads of logs", () => {
  test("are one statement for two hundred tasks, each with the new records of its task", async () => {
    const { store, driver } = await counted("together");
    const all = ids(200);
    await store.append(all.map((id) => making(id, `context-${id}`)));
    await store.append(
      all.map((id, at) => ({
        task: keyOf(id),
        records: ids(1 + (at % 3)).map((text, first) => chunk(id, text, first > 0)),
      })),
    );
    driver.taken();
    const pages = await Promise.all(all.map((id) => store.read(alice, id, { after: 1, limit: 256 })));
    expect(driver.taken()).toHaveLength(1);
    for (const [at, page] of pages.entries()) {
      expect(seqs(page)).toEqual([2, 3, 4].slice(0, 1 + (at % 3)));
      expect(page?.head).toMatchObject({ task: keyOf(`t${at}`), seq: 2 + (at % 3) });
    }
    // Readers that are up to date, request another owner's task, send the same request twice, or request an unknown task.
    const none = await Promise.all([
      store.read(alice, "t0", { after: 2, limit: 256 }),
      store.read({ agent: alice.agent, owner: "bob" }, "t0", { after: 1, limit: 256 }),
      store.read({ agent: alice.agent }, "t2", { after: 1, limit: 2 }),
      store.read({ agent: alice.agent }, "t2", { after: 1, limit: 2 }),
      store.read(alice, "no such task", { after: 0, limit: 256 }),
    ]);
    expect(driver.taken()).toHaveLength(1);
    expect(none.map(seqs)).toEqual([[], undefined, [2, 3], [2, 3], undefined]);
  });

  test("read a task with many new records, or large ones, in a separate statement", async () => {
    const { store } = await counted("far");
    const large = "x".repeat(100_000);
    await store.append(["far", "large", "mixed", "near"].map((id) => making(id, id)));
    await store.append([
      { task: keyOf("far"), records: ids(100).map((text, at) => chunk("far", text, at > 0)) },
      { task: keyOf("large"), records: [chunk("large", large, false)] },
      { task: keyOf("mixed"), records: [chunk("mixed", "small", false), chunk("mixed", large)] },
      { task: keyOf("near"), records: [chunk("near", "small", false)] },
    ]);
    const read = (id: string): Promise<LogPage | undefined> => store.read(alice, id, { after: 1, limit: 256 });
    const pages = await Promise.all(["far", "large", "mixed", "near"].map(read));
    expect(pages.map((page) => page?.records.length)).toEqual([100, 1, 2, 1]);
    expect(pages[1]?.records[0]?.json).toContain(large);
    const some = await store.read(alice, "far", { after: 1, limit: 256, bytes: 1 });
    expect(seqs(some)).toEqual([2]);
  });

  test("fail together if the database rejects them, and the next ones succeed", async () => {
    const { store } = await counted("refused");
    await store.append(ids(3).map((id) => making(id, id)));
    const all = (): Promise<PromiseSettledResult<LogPage | undefined>[]> =>
      Promise.allSettled(ids(3).map((id) => store.read(alice, id, { after: 0, limit: 9 })));
    await database().run("ALTER TABLE refused.log RENAME TO gone");
    expect((await all()).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    await database().run("ALTER TABLE refused.gone RENAME TO log");
    expect((await all()).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
  });
});
