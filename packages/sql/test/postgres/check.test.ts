import pg from "pg";
import type { Store, StoreCondition } from "@parley/server/store";
import { afterEach, describe, expect, test } from "vitest";
import { migratePostgres, postgresStore, type PostgresStoreOptions } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { password } from "../../../../test/postgres/server.ts";
import { making } from "./given.ts";
import { recorder } from "./logs.ts";
import { probed } from "./serving.ts";

const database = useDatabase();
const opened: { close(): Promise<unknown> }[] = [];

afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

async function open(schema: string, options: Partial<PostgresStoreOptions> = {}): Promise<Store> {
  const store = await postgresStore({ database: database().url, schema, ...options });
  opened.push(store);
  return store;
}

async function conditionOf(store: Store): Promise<StoreCondition | undefined> {
  return store.check?.(new AbortController().signal);
}

describe("the check of the store", () => {
  test("reports how it learns of others: by wake-ups, by polling, not at all", async () => {
    expect(await conditionOf(await open("told"))).toEqual({ writable: true, changes: "told" });
    const polls = await open("polled", { wakeup: false, pollInterval: 20 });
    expect(await conditionOf(polls)).toEqual({ writable: true, changes: "polled" });
    const { lines, logger } = recorder();
    const blind = await open("unseen", { wakeup: false, pollInterval: 20, logger });
    blind.watch?.(() => undefined);
    await database().run("ALTER SEQUENCE unseen.places RENAME TO elsewhere");
    await expect.poll(() => conditionOf(blind)).toEqual({ writable: true, changes: "unseen" });
    expect(lines).toEqual([expect.stringContaining("failed to poll")]);
    await database().run("ALTER SEQUENCE unseen.elsewhere RENAME TO places");
    await expect.poll(() => conditionOf(blind)).toEqual({ writable: true, changes: "polled" });
  });

  test("detects that its listening session was ended, polls, and is soon notified again", async () => {
    const store = await open("ended");
    expect((await conditionOf(store))?.changes).toBe("told");
    const seen = new Set<unknown>();
    const listening =
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SET idle_session%' AND datname = current_database()";
    await expect.poll(async () => (await database().run(listening)).rows.length).toBeGreaterThan(0);
    await expect
      .poll(
        async () => {
          const { changes } = (await conditionOf(store)) ?? {};
          seen.add(changes);
          // The store listens again within milliseconds, so the loop may miss this state.
          if (!seen.has("polled")) await database().run(listening);
          return changes === "told" && seen.has("polled");
        },
        { interval: 5 },
      )
      .toBe(true);
  });

  test.each([
    [99, "The database has version 99, this release supports version"],
    [0, "The database has version 0, and this release has version"],
  ])(
    "reports that tables of version %d cannot be written, with the reason only in the log",
    async (version, reason) => {
      const schema = `v${version}`;
      const store = await open(schema);
      await database().run(
        `DELETE FROM ${schema}.migrations; INSERT INTO ${schema}.migrations (version) VALUES (${version})`,
      );
      expect(await conditionOf(store)).toMatchObject({ writable: false, reason: expect.stringContaining(reason) });
    },
  );

  test("accepts tables of the next version: nodes of two releases run side by side", async () => {
    const store = await open("next");
    await database().run("INSERT INTO next.migrations SELECT max(version) + 1 FROM next.migrations");
    expect(await conditionOf(store)).toMatchObject({ writable: true });
  });

  test("detects a read-only database, a user who may not write, a log without a partition", async () => {
    await migratePostgres({ database: database().url, schema: "limits" });
    const run = (text: string): Promise<unknown> => database().run(text);
    await run(`CREATE ROLE checked LOGIN PASSWORD '${password}'; GRANT USAGE ON SCHEMA limits TO checked;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA limits TO checked;
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA limits TO checked`);
    try {
      const url = new URL(database().url);
      [url.username, url.password] = ["checked", password];
      const store = await open("limits", { database: url.href, migrate: false, wakeup: false });
      expect(await conditionOf(store)).toMatchObject({ writable: true });
      await run("REVOKE INSERT ON limits.tasks FROM checked");
      expect(await conditionOf(store)).toMatchObject({
        writable: false,
        reason: expect.stringContaining("may not write"),
      });
      await run("GRANT INSERT ON limits.tasks TO checked");
      const { rows } = await database().run(
        "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'limits.log'::regclass",
      );
      for (const { name } of rows as { name: string }[]) await run(`ALTER TABLE limits.log DETACH PARTITION ${name}`);
      expect(await conditionOf(store)).toMatchObject({
        writable: false,
        reason: expect.stringContaining("parley db migrate"),
      });
      await run("ALTER ROLE checked SET default_transaction_read_only = on");
      await database().disconnectAll();
      await expect
        .poll(() => conditionOf(store).catch(() => undefined))
        .toMatchObject({ writable: false, reason: expect.stringContaining("read-only") });
    } finally {
      for (const one of opened.splice(0)) await one.close();
      await run("DROP OWNED BY checked; DROP ROLE checked");
    }
  });

  test("detects a full disk by the last writes, until one succeeds", async () => {
    const store = await open("fulldisk");
    await store.append([making("t")]);
    await database().run(`CREATE FUNCTION fulldisk.no() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN RAISE EXCEPTION ''could not extend file'' USING ERRCODE = ''53100''; END';
      CREATE TRIGGER no BEFORE INSERT ON fulldisk.tasks FOR EACH ROW EXECUTE FUNCTION fulldisk.no()`);
    await expect(store.append([making("u")])).rejects.toMatchObject({
      code: "Unavailable",
      message: "The disk of the database is full",
    });
    expect(await conditionOf(store)).toMatchObject({ writable: false, reason: "The disk of the database is full" });
    await database().run("DROP TRIGGER no ON fulldisk.tasks");
    await store.append([making("u")]);
    expect(await conditionOf(store)).toMatchObject({ writable: true });
  });

  test("changes nothing: it begins no transaction that writes", async () => {
    const store = await open("cheap", { connections: 2 });
    const places = async (): Promise<unknown> => (await database().run("SELECT * FROM cheap.places")).rows;
    const before = await places();
    for (let count = 0; count < 5; count += 1) await conditionOf(store);
    expect(await places()).toEqual(before);
  });
});

describe("/readyz on PostgreSQL", () => {
  const told = '{"status":"ready","changes":"told"}';

  test("is right, and answers while every connection of the pool is in use", async () => {
    const pool = new pg.Pool({ connectionString: database().url, max: 3 });
    opened.push({ close: () => pool.end() });
    const server = probed(await open("probed", { database: pool }));
    opened.push(server);
    await expect.poll(() => server.ready()).toEqual([200, told]);
    // The third connection listens.
    const taken = [await pool.connect(), await pool.connect()];
    await new Promise((resolve) => setTimeout(resolve, 1100));
    expect(await server.ready()).toEqual([200, told]);
    for (const client of taken) client.release();
  });

  test("is 503 if the store says that it cannot be written, and the log says why", async () => {
    const { lines, logger } = recorder();
    const server = probed(await open("newer"), logger);
    opened.push(server);
    await expect.poll(() => server.ready()).toEqual([200, told]);
    await database().run("INSERT INTO newer.migrations (version) VALUES (99)");
    await expect.poll(() => server.ready()).toEqual([503, '{"status":"unavailable"}']);
    expect(lines).toContain("Store unavailable; server is not ready");
    await database().run("DELETE FROM newer.migrations WHERE version = 99");
    await expect.poll(() => server.ready()).toEqual([200, told]);
  });
});
