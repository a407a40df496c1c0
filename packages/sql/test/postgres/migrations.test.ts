import pg from "pg";
import { describe, expect, test, vi } from "vitest";
import type { Store } from "@parley/server";
import { migratePostgres, postgresPlan, postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { connect } from "../../src/postgres/connect.ts";
import { migrate, newestVersion } from "../../src/postgres/migrations.ts";
import { Schema } from "../../src/postgres/schema.ts";
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
  test("run once if eight nodes start together", async () => {
    const { url } = database();
    const stores = await Promise.all(
      Array.from({ length: 8 }, () => postgresStore({ database: url, schema: "eight", connections: 2 })),
    );
    try {
      const { rows } = await database().run("SELECT version FROM eight.migrations ORDER BY version");
      expect(rows.map((row) => (row as { version: number }).version)).toEqual(
        Array.from({ length: newestVersion }, (_, at) => at + 1),
      );
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
    expect(await postgresPlan(options)).toMatchObject({ found: 0, newest: newestVersion });
    expect(await failing(postgresStore({ ...options, migrate: false }))).toContain("parley db migrate");
    expect(await migratePostgres(options)).toEqual({ found: 0, newest: newestVersion });
    expect(await migratePostgres(options)).toEqual({ found: newestVersion, newest: newestVersion });
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
      // Without wake-ups, the store polls a sequence.
      await vi.waitFor(async () => {
        await other.append([making(`t${Math.random()}`)]);
        expect(told).toHaveBeenCalled();
      });
      expect(verdicts(await store.append([making("t")]))).toEqual(["ok"]);
      expect((await store.sweep({ now: 0, deleteBefore: 2000, limit: 9 })).deleted).toBe(0);
    } finally {
      await Promise.all([store.close(), other.close()]);
      await database().run("DROP OWNED BY limited; DROP ROLE limited");
    }
  });

  test("identify tables of a newer release, and change nothing", async () => {
    const options = { database: database().url, schema: "newer" };
    await migratePostgres(options);
    await database().run("INSERT INTO newer.migrations (version) VALUES (99)");
    const own = `this release supports version ${newestVersion + 1} and earlier`;
    const sentence = `The database has version 99, ${own}: upgrade @parley/sql`;
    expect(await failing(postgresStore(options))).toBe(sentence);
    expect(await failing(postgresStore({ ...options, migrate: false }))).toBe(sentence);
    expect(await postgresPlan(options)).toMatchObject({ found: 99, newest: newestVersion });
  });

  test("a schema can have any name, and two are separate", async () => {
    const { url } = database();
    const names = ['Odd "name" $1', "parley", "o'clock"];
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

  test("reject the name of a schema that PostgreSQL would truncate", async () => {
    const { url } = database();
    for (const schema of ["", "x".repeat(64), `${"x".repeat(62)}é`, "a\0b"]) {
      await expect(postgresStore({ database: url, schema })).rejects.toThrow("A schema name must have 1 to 63 bytes");
    }
    expect(await postgresPlan({ database: url, schema: "x".repeat(63) })).toMatchObject({ found: 0 });
  });

  test("need no more than a schema that was created for the user", async () => {
    await database().run(
      `CREATE ROLE housed LOGIN PASSWORD 'has-one-schema'; CREATE SCHEMA house AUTHORIZATION housed`,
    );
    const user = Object.assign(new URL(database().url), { username: "housed", password: "has-one-schema" });
    try {
      const store = await postgresStore({ database: user.href, schema: "house" });
      try {
        expect(verdicts(await store.append([making("t")]))).toEqual(["ok"]);
      } finally {
        await store.close();
      }
    } finally {
      await database().run("DROP OWNED BY housed; DROP ROLE housed");
    }
  });

  test("upgrade version 1: its data stays in order, and its grants stay valid", async () => {
    const { url } = database();
    const schema = new Schema("first");
    const db = await connect({ database: url });
    try {
      await db.transaction({ mode: "write" }, (queries) => migrate(queries, schema, 1));
      // Version 1 took the places of a conversation from this sequence in blocks.
      await database().run(`SELECT setval('first.places', 1000);
        CREATE ROLE granted LOGIN PASSWORD 'reads-and-writes'; GRANT USAGE ON SCHEMA first TO granted;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA first TO granted;
        GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA first TO granted`);
      expect(await migratePostgres({ database: url, schema: "first" })).toEqual({ found: 1, newest: newestVersion });
      const user = Object.assign(new URL(url), { username: "granted", password: "reads-and-writes" });
      const store = await postgresStore({ database: user.href, schema: "first", migrate: false });
      try {
        await store.append([making("t1")]);
        const { rows } = await database().run("SELECT place::float8 AS place FROM first.log");
        expect((rows[0] as { place: number }).place).toBeGreaterThan(1001 * 2 ** 16);
      } finally {
        await store.close();
      }
    } finally {
      await db.close();
      await database().run("DROP OWNED BY granted; DROP ROLE granted");
    }
  });

  test("let others read and write while they wait for a table", async () => {
    const { url } = database();
    const schema = new Schema("patient");
    const db = await connect({ database: url });
    const reader = new pg.Client({ connectionString: url });
    await reader.connect();
    try {
      await db.transaction({ mode: "write" }, (queries) => migrate(queries, schema, 1));
      await reader.query("BEGIN; SELECT count(*) FROM patient.tasks");
      let isOver = false;
      const migrating = migratePostgres({ database: url, schema: "patient" }).finally(() => {
        isOver = true;
      });
      const waiting = "SELECT 1 FROM pg_locks WHERE relation = 'patient.tasks'::regclass AND NOT granted";
      await vi.waitFor(async () => expect((await database().run(waiting)).rowCount).toBe(1));
      // The migration waits for the reader, and this statement waits for the migration.
      await db.query(schema.text("SELECT count(*) FROM parley.tasks"));
      expect(isOver).toBe(false);
      await reader.query("COMMIT");
      expect(await migrating).toEqual({ found: 1, newest: newestVersion });
    } finally {
      await reader.end();
      await db.close();
    }
  });
});
