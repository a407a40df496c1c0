import pg from "pg";
import { afterEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { errorMessage, startProxy, type Harm, type Proxy } from "../../../../test/postgres/proxy.ts";
import { connect, type PostgresConnectOptions } from "../../src/postgres/connect.ts";
import type { Database } from "../../src/postgres/database.ts";
import { sqlState, type PostgresDriver, type Value } from "../../src/postgres/driver.ts";
import { poolDriver } from "../../src/postgres/pool.ts";
import { CommitLost } from "../../src/postgres/transaction.ts";

const database = useDatabase();
const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

async function open(options: Partial<PostgresConnectOptions> = {}): Promise<Database> {
  const db = await connect({ database: database().url, ...options });
  opened.push(db);
  return db;
}

function gate(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

async function proxied(): Promise<{ proxy: Proxy; url: string }> {
  const url = new URL(database().url);
  const proxy = await startProxy(Number(url.port));
  opened.push(proxy);
  url.port = String(proxy.port);
  return { proxy, url: url.href };
}

/** A separate table, with one row for each id. */
async function table(db: Database, ...ids: readonly number[]): Promise<string> {
  const name = `t${Math.random().toString(36).slice(2)}`;
  await db.query(`CREATE TABLE ${name} (id bigint PRIMARY KEY, n bigint NOT NULL DEFAULT 0)`);
  for (const id of ids) await db.query(`INSERT INTO ${name} (id) VALUES ($1)`, [id]);
  return name;
}

/** Creates the store's table that records the outcome of a commit. */
async function witnessing(db: Database): Promise<void> {
  await db.query(
    "CREATE TABLE IF NOT EXISTS witnesses (id uuid PRIMARY KEY, token bigint NOT NULL, at timestamptz NOT NULL DEFAULT now())",
  );
  db.useWitnesses("witnesses");
}

const write = { mode: "write" } as const;

test("a read transaction may leave the server idle while a large task is folded, and a write transaction may not", async () => {
  const db = await open();
  const timeout = async (mode: "read" | "write"): Promise<Value | undefined> => {
    const query = "SELECT current_setting('idle_in_transaction_session_timeout')";
    return (await db.transaction({ mode }, (queries) => queries.query(query))).rows[0]?.[0];
  };
  expect([await timeout("read"), await timeout("write")]).toEqual(["1min", "2s"]);
});

describe("values", () => {
  test.each<[type: string, value: Value]>([
    ["bigint", Number.MAX_SAFE_INTEGER],
    ["bigint", -1],
    ["integer", 5],
    ["double precision", 0.1],
    ["boolean", true],
    ["text", "'; \\ \" 漢字 🎉 $1 {a,b}"],
    ["text", ""],
    ["text", null],
    ["jsonb", '{"a": [1, null]}'],
    ["bytea", Buffer.from([0, 255, 92, 10])],
    ["text[]", ["", "a,b", 'c "d" \\ {}', "NULL", null, " e\n"]],
    ["text[]", []],
    ["bigint[]", [1, null, -3]],
  ])("%s come back as they were stored: %j", async (type, value) => {
    const db = await open();
    const { rows } = await db.query(`SELECT $1::${type}, count(*), sum(1) FROM (VALUES (1), (2)) AS t`, [value]);
    expect(rows).toEqual([[value, 2, 2]]);
  });

  test("an integer that no number can hold is an error", async () => {
    const db = await open();
    await expect(db.query("SELECT 9007199254740993::bigint")).rejects.toThrow(RangeError);
    await expect(db.query("SELECT 1")).resolves.toMatchObject({ rows: [[1]] });
  });

  test("a program's own parsers change nothing", async () => {
    const pool = new pg.Pool({ connectionString: database().url, types: { getTypeParser: () => () => "wrong" } });
    opened.push({ close: () => pool.end() });
    const db = await open({ database: pool });
    await expect(db.query("SELECT 1, $1::bigint", [2])).resolves.toMatchObject({ rows: [[1, 2]] });
  });
});

describe("a transaction", () => {
  test("is rolled back if its body rejects, and rejects with that error", async () => {
    const db = await open();
    const name = await table(db);
    const error = new Error("mine");
    const body = db.transaction(write, async (tx) => {
      await tx.query(`INSERT INTO ${name} (id) VALUES (1)`);
      throw error;
    });
    await expect(body).rejects.toBe(error);
    expect((await db.query(`SELECT count(*) FROM ${name}`)).rows).toEqual([[0]]);
  });

  test("fails with its first failed statement, even if the body catches the error", async () => {
    const db = await open();
    const name = await table(db, 1);
    const body = db.transaction(write, async (tx) => {
      await tx.query(`INSERT INTO ${name} (id) VALUES (2)`);
      await tx.query(`INSERT INTO ${name} (id) VALUES (1)`).catch(() => undefined);
      await tx.query("SELECT 1").catch(() => undefined);
      return "stored";
    });
    await expect(body).rejects.toSatisfy((thrown) => sqlState(thrown) === "23505");
    expect((await db.query(`SELECT count(*) FROM ${name}`)).rows).toEqual([[1]]);
  });

  test("that reads sees one snapshot, and writes nothing", async () => {
    const db = await open();
    const name = await table(db, 1);
    const seen = await db.transaction({ mode: "read" }, async (tx) => {
      const before = await tx.query(`SELECT count(*) FROM ${name}`);
      await db.query(`INSERT INTO ${name} (id) VALUES (2)`);
      return [before.rows, (await tx.query(`SELECT count(*) FROM ${name}`)).rows];
    });
    expect(seen).toEqual([[[1]], [[1]]]);
  });

  test("runs again after a deadlock", async () => {
    const db = await open();
    const name = await table(db, 1, 2);
    let runs = 0;
    let met = 0;
    let meet: (() => void) | undefined;
    const both = new Promise<void>((resolve) => (meet = resolve));
    const update = (first: number, second: number): Promise<unknown> =>
      db.transaction(write, async (tx) => {
        runs += 1;
        await tx.query(`UPDATE ${name} SET n = n + 1 WHERE id = $1`, [first]);
        met += 1;
        if (met === 2) meet?.();
        await both;
        await tx.query(`UPDATE ${name} SET n = n + 1 WHERE id = $1`, [second]);
      });
    await Promise.all([update(1, 2), update(2, 1)]);
    expect(runs).toBe(3);
    expect((await db.query(`SELECT n FROM ${name}`)).rows).toEqual([[2], [2]]);
  });

  test("runs a bounded number of times if it always conflicts, then throws Unavailable", async () => {
    const db = await open();
    let runs = 0;
    const body = db.transaction(write, (tx) => {
      runs += 1;
      return tx.query("DO $$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END $$");
    });
    await expect(body).rejects.toMatchObject({ code: "Unavailable" });
    expect(runs).toBe(8);
  });

  test("releases its locks if its program stops in it", async () => {
    const db = await open();
    const name = await table(db, 1);
    let runs = 0;
    let locked: (() => void) | undefined;
    const isLocked = new Promise<void>((resolve) => (locked = resolve));
    let freed: (() => void) | undefined;
    const isFree = new Promise<void>((resolve) => (freed = resolve));
    const stopped = db.transaction(write, async (tx) => {
      runs += 1;
      await tx.query(`UPDATE ${name} SET n = n + 1 WHERE id = 1`);
      locked?.();
      await isFree;
      await tx.query("SELECT 1");
    });
    await isLocked;
    await db.transaction(write, (tx) => tx.query(`UPDATE ${name} SET n = n + 10 WHERE id = 1`));
    freed?.();
    await stopped;
    expect(runs).toBe(2);
    expect((await db.query(`SELECT n FROM ${name}`)).rows).toEqual([[11]]);
  });
});

describe("a lost connection", () => {
  test("before the commit: the transaction runs again, and takes effect once", async () => {
    const db = await open();
    const name = await table(db, 1);
    let runs = 0;
    await db.transaction(write, async (tx) => {
      await tx.query(`UPDATE ${name} SET n = n + 1`);
      runs += 1;
      if (runs === 1) await database().disconnectAll();
      await tx.query(`UPDATE ${name} SET n = n + 1`);
    });
    expect(runs).toBe(2);
    expect((await db.query(`SELECT n FROM ${name}`)).rows).toEqual([[2]]);
  });

  const pooler = errorMessage("FATAL", "08P01", "server conn crashed?");
  test.each<[string, Harm, runs: number]>([
    ["cut", "cut", 2],
    ["cut after", "cut after", 1],
    // PgBouncer uses this SQLSTATE for its own errors.
    ["a pooler's error before it", { way: "cut", answer: pooler }, 2],
    ["a pooler's error after it", { way: "cut after", answer: pooler }, 1],
    ["the end of an idle session", { way: "cut", answer: errorMessage("FATAL", "57P05", "idle") }, 2],
  ])("during the commit (%s): it takes effect once", async (_, harm, expected) => {
    const { proxy, url } = await proxied();
    const db = await open({ database: url });
    const name = await table(db, 1);
    await witnessing(db);
    let commits = 0;
    proxy.onRequest = (text) => (text.includes("COMMIT\0") && ++commits === 1 ? harm : undefined);
    let runs = 0;
    const result = await db.transaction(write, async (tx) => {
      runs += 1;
      await tx.query(`UPDATE ${name} SET n = n + 1`);
      return runs;
    });
    expect(result).toBe(expected);
    expect((await db.query(`SELECT n FROM ${name}`)).rows).toEqual([[1]]);
  });

  test("to a server that lost commits in a crash or a failover: they run again, several at once too", async () => {
    const pool = new pg.Pool({ connectionString: database().url, pipeline: true });
    const plain = poolDriver(pool, { silence: 20_000, owned: true });
    const name = await table(await open(), 1, 2);
    let lost = 0;
    const bothLost = gate();
    /** The commits take effect, get no response, and are then lost from the database. */
    const driver: PostgresDriver = {
      ...plain,
      async hold(body, silence) {
        let commits = false;
        const result = await plain.hold(
          (connection) =>
            body({
              ...connection,
              query(text, values) {
                commits ||= text === "COMMIT" && lost < 2;
                return connection.query(text, values);
              },
            }),
          silence,
        );
        if (!commits) return result;
        lost += 1;
        // Neither commit runs again before both are lost.
        if (lost === 1) await bothLost.promise;
        else {
          await plain.query(`UPDATE ${name} SET n = 0; UPDATE witnesses SET token = token - 1`);
          bothLost.resolve();
        }
        throw new CommitLost(Object.assign(new Error("gone"), { code: "ECONNRESET" }));
      },
    };
    const db = await open({ database: driver });
    await witnessing(db);
    const add = (id: number): Promise<unknown> =>
      db.transaction(write, (tx) => tx.query(`UPDATE ${name} SET n = n + 1 WHERE id = $1`, [id]));
    await Promise.all([add(1), add(2)]);
    expect(lost).toBe(2);
    expect((await db.query(`SELECT n FROM ${name} ORDER BY id`)).rows).toEqual([[1], [1]]);
  });

  test("during a commit that the server still runs: it waits for the result", async () => {
    const { proxy, url } = await proxied();
    const db = await open({ database: url, lockTimeout: 50 });
    const name = await table(db, 1);
    await witnessing(db);
    // A deferred trigger delays the commit.
    await db.query(`CREATE FUNCTION slow_${name}() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_advisory_xact_lock(815); RETURN NULL; END';
      CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON ${name} DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION slow_${name}()`);
    const blocker = new pg.Client({ connectionString: database().url });
    blocker.on("error", () => undefined);
    await blocker.connect();
    try {
      await blocker.query("SELECT pg_advisory_lock(815)");
      let looks = 0;
      let commits = 0;
      proxy.onRequest = (text) => {
        if (text.includes("RETURNING w.token")) looks += 1;
        return undefined;
      };
      const working = db.transaction({ ...write, lockTimeout: 0 }, (tx) => {
        commits += 1;
        return tx.query(`UPDATE ${name} SET n = n + 1`);
      });
      const waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
      await expect.poll(async () => (await database().run(waiting)).rows.length).toBe(1);
      proxy.cut();
      await expect.poll(() => looks).toBeGreaterThan(1);
      await blocker.query("SELECT pg_advisory_unlock(815)");
      await working;
      expect(commits).toBe(1);
      expect((await db.query(`SELECT n FROM ${name}`)).rows).toEqual([[1]]);
    } finally {
      await blocker.end();
    }
  });

  test("by a pooler error is retried like any other", async () => {
    const { proxy, url } = await proxied();
    const db = await open({ database: url });
    let asked = 0;
    proxy.onRequest = (text) =>
      text.includes("SELECT 815") && ++asked < 3 ? { way: "cut", answer: pooler } : undefined;
    await expect(db.query("SELECT 815")).resolves.toMatchObject({ rows: [[815]] });
    expect(asked).toBe(3);
  });

  test("that stays open but silent is closed after a limit", async () => {
    const { proxy, url } = await proxied();
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    const driver = poolDriver(pool, { silence: 200, owned: true });
    opened.push(driver);
    await driver.query("SELECT 1");
    proxy.isSilent = true;
    await expect(driver.query("SELECT 2")).rejects.toThrow("timeout");
    proxy.isSilent = false;
    // Runs on another connection, because the only one of this pool was closed.
    await expect(driver.query("SELECT 3")).resolves.toMatchObject({ rows: [[3]] });
  });
});

describe("time limits", () => {
  test("end a statement, and a wait for a lock, and say so", async () => {
    const db = await open({ statementTimeout: 300, lockTimeout: 100 });
    const name = await table(db, 1);
    await expect(db.query("SELECT pg_sleep(30)")).rejects.toThrow("The database took too long for this statement");
    const slow = db.transaction(write, (tx) => tx.query("SELECT pg_sleep(30)"));
    await expect(slow).rejects.toMatchObject({ code: "Unavailable", message: expect.stringContaining("too long") });
    await db.transaction(write, async (tx) => {
      await tx.query(`UPDATE ${name} SET n = 1`);
      const second = db.transaction({ ...write, statementTimeout: 0 }, (other) =>
        other.query(`UPDATE ${name} SET n = 2`),
      );
      await expect(second).rejects.toThrow("The database could not acquire a lock in time");
    });
  });
});

describe("a slow standalone statement", () => {
  test("is ended by the server, and reported, before its connection counts as lost", async () => {
    const db = await open({ outageTimeout: 3_000, connections: 2 });
    const backend = async (): Promise<unknown> =>
      (await db.query("SELECT pg_backend_pid(), pg_sleep(0.1)")).rows[0]?.[0];
    const before = await Promise.all([backend(), backend()]);
    await expect(db.query("SELECT pg_sleep(3600)")).rejects.toThrow("The database took too long for this statement");
    // The statement no longer runs on the server, and the idle connection works.
    const running = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(3600)'";
    await expect.poll(async () => (await database().run(running)).rows).toEqual([]);
    expect(before).toContain(await backend());
  });
});

describe("a pool of the program", () => {
  test("stays open and unchanged", async () => {
    const pool = new pg.Pool({ connectionString: database().url, max: 1 });
    opened.push({ close: () => pool.end() });
    const before = pool.listenerCount("error");
    const db = await connect({ database: pool, statementTimeout: 77 });
    await db.transaction(write, async (tx) => {
      expect((await tx.query("SHOW statement_timeout")).rows).toEqual([["77ms"]]);
    });
    await db.close();
    expect(pool.listenerCount("error")).toBe(before);
    const client = await pool.connect();
    expect(["error", "end", "notification"].map((event) => client.listenerCount(event))).toEqual([0, 0, 0]);
    expect((await client.query("SHOW statement_timeout")).rows).toEqual([{ statement_timeout: "0" }]);
    client.release();
    await expect(db.query("SELECT 1")).rejects.toMatchObject({ code: "Unavailable", message: "The store is closed" });
  });

  test("a program survives the end of its idle connections", async () => {
    const pool = new pg.Pool({ connectionString: database().url });
    opened.push({ close: () => pool.end() });
    const db = await open({ database: pool });
    await db.query("SELECT 1");
    await database().disconnectAll();
    await expect(db.query("SELECT 1")).resolves.toMatchObject({ count: 1 });
  });
});
