import { describe, expect, test, vi } from "vitest";
import type { Store } from "@parley/a2a/store";
import { migratePostgres, postgresStore, postgresVersion } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { alice, making, verdicts } from "./given.ts";

const database = useDatabase();

async function failing(opening: Promise<Store>): Promise<string> {
  try {
    await (await opening).close();
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
  return "opened";
}

describe("migrations", () => {
  test("run once where eight nodes start together", async () => {
    const { url } = database();
    const stores = await Promise.all(
      Array.from({ length: 8 }, () => postgresStore({ database: url, schema: "eight", connections: 2 })),
    );
    try {
      const { rows } = await database().run("SELECT version FROM eight.migrations ORDER BY version");
      expect(rows.map((row) => (row as { version: number }).version)).toEqual([1, 2]);
      const outcomes = await Promise.all(stores.map((store, at) => store.append([making(`t${at}`)])));
      expect(outcomes.flatMap(verdicts)).toEqual(Array(8).fill("ok"));
      expect((await stores[0]?.list(alice, { limit: 9, artifacts: false }))?.total).toBe(8);
    } finally {
      await Promise.all(stores.map((store) => store.close()));
    }
  });

  test("can be run ahead, by a user who owns the tables, for programs that may only read and write them", async () => {
    const { url } = database();
    const options = { database: url, schema: "ahead" };
    expect(await postgresVersion(options)).toEqual({ found: 0, newest: 2 });
    expect(await failing(postgresStore({ ...options, migrate: false }))).toContain("parley db migrate");
    expect(await migratePostgres(options)).toEqual({ found: 0, newest: 2 });
    expect(await migratePostgres(options)).toEqual({ found: 2, newest: 2 });
    await database()
      .run(`CREATE ROLE limited LOGIN PASSWORD 'only-reads-and-writes'; GRANT USAGE ON SCHEMA ahead TO limited;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ahead TO limited;
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA ahead TO limited`);
    const limited = new URL(url);
    [limited.username, limited.password] = ["limited", "only-reads-and-writes"];
    const store = await postgresStore({
      database: limited.href,
      schema: "ahead",
      migrate: false,
      wakeup: false,
      pollInterval: 20,
    });
    const other = await postgresStore(options);
    const told = vi.fn<() => void>();
    store.watch?.(told);
    try {
      // Without wake-ups it looks at a sequence.
      await vi.waitFor(
        async () => {
          await other.append([making(`t${Math.random()}`)]);
          expect(told).toHaveBeenCalled();
        },
        { timeout: 10_000 },
      );
      expect(verdicts(await store.append([making("t")]))).toEqual(["ok"]);
      expect((await store.sweep({ now: 0, deleteBefore: 2000, limit: 9 })).deleted).toBe(0);
    } finally {
      await Promise.all([store.close(), other.close()]);
      await database().run("DROP OWNED BY limited; DROP ROLE limited");
    }
  });

  test("name tables of a newer release as what they are, and change nothing", async () => {
    const options = { database: database().url, schema: "newer" };
    await migratePostgres(options);
    await database().run("INSERT INTO newer.migrations (version) VALUES (99)");
    const sentence = "The database has version 99, this release supports version 2 and earlier: upgrade @parley/sql";
    expect(await failing(postgresStore(options))).toBe(sentence);
    expect(await failing(postgresStore({ ...options, migrate: false }))).toBe(sentence);
    expect(await postgresVersion(options)).toEqual({ found: 99, newest: 2 });
  });

  test("a schema can have any name, and two are apart", async () => {
    const { url } = database();
    const names = ['Odd "name" $1', "parley"];
    const stores = await Promise.all(names.map((schema) => postgresStore({ database: url, schema })));
    try {
      await stores[0]?.append([making("t")]);
      expect(await stores[0]?.head(alice, "t")).toBeDefined();
      expect(await stores[1]?.head(alice, "t")).toBeUndefined();
      expect((await stores[0]?.sweep({ now: 0, deleteBefore: 2000, limit: 9 }))?.deleted).toBe(0);
    } finally {
      await Promise.all(stores.map((store) => store.close()));
    }
  });
});
