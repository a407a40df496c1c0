import pg from "pg";
import { afterEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { startPooler } from "../../../../test/postgres/pooler.ts";
import { connect } from "../../src/postgres/connect.ts";
import type { Database } from "../../src/postgres/database.ts";

/** Frequent statements are parsed and planned once per connection, if each connection keeps its session. */

const database = useDatabase();
const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

async function open(url: string, connections = 1): Promise<Database> {
  const db = await connect({ database: url, connections });
  opened.push(db);
  return db;
}

/** Runs a statement often enough that it gets a name. */
async function often(db: Database, text: string, times = 5): Promise<readonly unknown[]> {
  const all: unknown[] = [];
  for (let at = 0; at < times; at += 1) all.push((await db.query(text, [at])).rows[0]?.[0]);
  return all;
}

const prepared = async (db: Database): Promise<readonly unknown[]> =>
  (await db.query("SELECT statement FROM pg_prepared_statements ORDER BY 1")).rows.flat();

const plusOne = "SELECT $1::int + 1";

describe("a statement", () => {
  test("that runs often is prepared, and one that runs once is not", async () => {
    const db = await open(database().url);
    expect(await often(db, plusOne)).toEqual([1, 2, 3, 4, 5]);
    await db.query("SELECT $1::int + 2", [1]);
    expect(await prepared(db)).toEqual([plusOne]);
  });

  test("has no name behind a pooler, because the next transaction may be in another session", async () => {
    const pooler = await startPooler(database().url, "transaction");
    opened.push(pooler);
    const db = await open(pooler.url, 4);
    expect(db.server.pooled).toBe(true);
    expect(await often(db, plusOne)).toEqual([1, 2, 3, 4, 5]);
    expect(await prepared(db)).toEqual([]);
  });

  test("runs again if its session has forgotten it, and has no name from then on", async () => {
    const db = await open(database().url);
    await often(db, plusOne);
    // Like a pooler that forwards the server's process id.
    await db.query("DEALLOCATE ALL");
    expect(await often(db, plusOne)).toEqual([1, 2, 3, 4, 5]);
    expect(await prepared(db)).toEqual([]);
  });

  test("runs again with its transaction if a table change has made its plan invalid", async () => {
    const db = await open(database().url);
    await db.query("CREATE TABLE changing (id bigint, name varchar(9))");
    await db.query("INSERT INTO changing VALUES (1, 'one')");
    const select = "SELECT name FROM changing WHERE id = $1";
    const read = (): Promise<unknown> =>
      db.transaction({ mode: "write" }, async (tx) => (await tx.query(select, [1])).rows[0]?.[0]);
    for (let at = 0; at < 8; at += 1) expect(await read()).toBe("one");
    expect(await prepared(db)).toContain(select);
    await database().run("ALTER TABLE changing ALTER COLUMN name TYPE integer USING 7");
    expect(await read()).toBe(7);
    for (let at = 0; at < 5; at += 1) expect(await read()).toBe(7);
    expect(await prepared(db)).toContain(select);
  });

  test("has the same name in two stores that share the program's pool", async () => {
    const pool = new pg.Pool({ connectionString: database().url, max: 2 });
    opened.push({ close: () => pool.end() });
    const [one, other] = [await connect({ database: pool }), await connect({ database: pool })];
    opened.push(one, other);
    for (const db of [one, other, one, other]) expect(await often(db, plusOne)).toEqual([1, 2, 3, 4, 5]);
  });
});
