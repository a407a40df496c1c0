import pg from "pg";
import { afterEach, describe, expect, test, vi } from "vitest";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { connect } from "../../src/postgres/connect.ts";
import type { Connection } from "../../src/postgres/driver.ts";
import { poolDriver, type PoolClientLike, type PoolLike } from "../../src/postgres/pool.ts";
import { making, verdicts } from "./given.ts";

const database = useDatabase();
const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  vi.restoreAllMocks();
  for (const one of opened.splice(0).reverse()) await one.close();
});

function poolWith(config: object = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: database().url, ...config });
  opened.push({ close: () => pool.end() });
  return pool;
}

/** Node's warnings until the test ends. */
function warnings(): string[] {
  const lines: string[] = [];
  const note = (warning: Error): void => void lines.push(warning.message);
  process.on("warning", note);
  opened.push({
    async close() {
      process.off("warning", note);
    },
  });
  return lines;
}

describe("a pool of the program", () => {
  test("without a pipeline gets one statement at a time, so pg does not warn", async () => {
    const lines = warnings();
    const store = await postgresStore({ database: poolWith(), schema: "chained" });
    opened.push(store);
    expect(verdicts(await store.append([making("a"), making("b")]))).toEqual(["ok", "ok"]);
    await store.load({ agent: "agent", owner: "alice" }, "a", { artifacts: true });
    // Node reports warnings in a later tick.
    await new Promise((resolve) => setImmediate(resolve));
    expect(lines).toEqual([]);
  });

  test("is reported by the store: how many connections are open, idle, and waited for", async () => {
    const pool = poolWith({ max: 2 });
    const store = await postgresStore({ database: pool, schema: "used", wakeup: false });
    opened.push(store);
    const taken = [await pool.connect(), await pool.connect()];
    const waiting = pool.connect();
    expect(store.connections?.()).toEqual({ total: 2, idle: 0, waiting: 1 });
    for (const client of taken) client.release();
    (await waiting).release();
    expect(store.connections?.()).toEqual({ total: 2, idle: 2, waiting: 0 });
  });

  test("that is exhausted and has no own limit: calls throw Unavailable, and no client is lost", async () => {
    const pool = poolWith({ max: 1 });
    await pool.query("SELECT 1");
    const db = await connect({ database: pool, connectTimeout: 500, outageTimeout: 1 });
    const taken = await pool.connect();
    await expect(db.query("SELECT 1")).rejects.toMatchObject({ code: "Unavailable" });
    taken.release();
    // The pool still gives a client to the abandoned call, which returns it.
    const isBack = (): Promise<boolean> => db.query("SELECT 1").then(Boolean, () => false);
    await expect.poll(isBack).toBe(true);
    expect([pool.totalCount, pool.waitingCount]).toEqual([1, 0]);
    await db.close();
  });

  test("may report the end of a client at the moment of lending it", async () => {
    const errors: string[] = [];
    const client = {
      on: (event: string, listener: (error: Error) => void) => event === "error" && errors.push("heard") && listener,
      off: () => undefined,
      removeAllListeners: () => undefined,
      release: () => undefined,
      query: () => Promise.reject(new Error("Connection terminated")),
    } as unknown as PoolClientLike;
    let heard = 0;
    const pool: PoolLike = {
      connect(callback) {
        callback(undefined, client);
        heard = errors.length;
      },
      on: () => undefined,
      off: () => undefined,
      end: async () => undefined,
    };
    await expect(poolDriver(pool, { silence: 0, owned: true }).query("SELECT 1")).rejects.toThrow("terminated");
    expect(heard).toBe(1);
  });

  test("hears nothing of clients that the store has closed", async () => {
    const pool = poolWith();
    const driver = poolDriver(pool, { silence: 1000, owned: false });
    let client: pg.PoolClient | undefined;
    pool.on("acquire", (lent) => (client = lent));
    const failing = driver.hold(() => Promise.reject(new Error("no")));
    await expect(failing).rejects.toThrow("no");
    await driver.close();
    expect(pool.listenerCount("error")).toBe(0);
    // Without a listener, this error would end the process.
    client?.emit("error", new Error("read ECONNRESET"));
  });
});

describe("a pool of the store", () => {
  test("that is closed survives errors of its ending connections", async () => {
    const pool = new pg.Pool({ connectionString: database().url });
    const driver = poolDriver(pool, { silence: 1000, owned: true });
    let client: pg.PoolClient | undefined;
    pool.on("acquire", (lent) => (client = lent));
    await driver.query("SELECT 1");
    await driver.close();
    // Without a listener, this error would end the process.
    client?.emit("error", Object.assign(new Error("terminating connection"), { code: "57P01" }));
    expect(client).toBeDefined();
  });
});

describe("time limits", () => {
  test("0 means no limit, also for a standalone statement", async () => {
    const silences: unknown[] = [];
    const query = vi.spyOn(pg.Client.prototype, "query");
    const db = await connect({ database: database().url, statementTimeout: 0 });
    opened.push(db);
    await db.query("SELECT 815");
    for (const [config] of query.mock.calls as unknown as [{ text?: string; query_timeout?: number }][]) {
      if (config.text === "SELECT 815") silences.push(config.query_timeout);
    }
    expect(silences).toEqual([0]);
    expect((await db.query("SHOW statement_timeout")).rows).toEqual([["0"]]);
  });

  test.each([
    ["statementTimeout", -1],
    ["lockTimeout", Number.NaN],
    ["outageTimeout", Number.POSITIVE_INFINITY],
    ["connectTimeout", 2 ** 31],
    ["connections", 0],
    ["connections", 1.5],
  ])("%s of %d is rejected", async (name, ms) => {
    await expect(connect({ database: database().url, [name]: ms })).rejects.toMatchObject({
      code: "Unavailable",
      message: expect.stringContaining(name),
    });
  });

  test("many calls that wait for an unavailable database are not a leak to Node", async () => {
    const lines = warnings();
    const pool = poolWith();
    const plain = poolDriver(pool, { silence: 1000, owned: false });
    let isAway = false;
    let asked = 0;
    const db = await connect({
      database: {
        ...plain,
        hold(body, silence) {
          asked += 1;
          return isAway
            ? Promise.reject(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }))
            : plain.hold(body, silence);
        },
      },
    });
    isAway = true;
    const calls = Array.from({ length: 30 }, () => db.query("SELECT 1"));
    await expect.poll(() => asked).toBeGreaterThan(60);
    isAway = false;
    await Promise.all(calls);
    await db.close();
    expect(lines).toEqual([]);
  });
});

describe("a store that fails to open", () => {
  test("leaves no connection that listens or reconnects", async () => {
    const pool = poolWith();
    const plain = poolDriver(pool, { silence: 1000, owned: false });
    let listens = 0;
    let open = 0;
    const opening = postgresStore({
      schema: "fails",
      database: {
        ...plain,
        hold: (body, silence) =>
          plain.hold((connection) => {
            const query: Connection["query"] = (text, ...rest) =>
              text === "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
                ? Promise.reject(Object.assign(new Error("denied"), { code: "42501" }))
                : connection.query(text, ...rest);
            return body({ backend: connection.backend, query });
          }, silence),
        async listen(channel, listener) {
          listens += 1;
          open += 1;
          const listening = await (plain.listen as NonNullable<typeof plain.listen>)(channel, listener);
          return {
            query: (text, values) => listening.query(text, values),
            close() {
              open -= 1;
              return listening.close();
            },
          };
        },
      },
    });
    await expect(opening).rejects.toMatchObject({
      code: "Unavailable",
      message: "The user of the database lacks a privilege",
    });
    expect([listens, open]).toEqual([1, 0]);
  });
});
