import pg from "pg";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent } from "@parley/server";
import type { Wakeup } from "@parley/server/store";
import { callContext, inProcess } from "@parley/testing";
import { postgresStore, type PostgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { startProxy } from "../../../../test/postgres/proxy.ts";

/* A process with a busy database still sends heartbeats in time. Otherwise others would take its tasks. */

const database = useDatabase();
const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

/** Wake-ups without the database, so that no connection listens. */
const elsewhere: Wakeup = {
  isConnected: true,
  publish: () => undefined,
  subscribe: () => () => undefined,
  close: async () => undefined,
};

async function storeOver(
  schema: string,
  max: number,
  wakeup?: Wakeup,
): Promise<{ store: PostgresStore; pool: pg.Pool }> {
  const pool = new pg.Pool({ connectionString: database().url, max });
  opened.push({ close: () => pool.end() });
  const store = await postgresStore({ database: pool, schema, ...(wakeup && { wakeup }) });
  opened.push(store);
  return { store, pool };
}

/** Occupies every free connection of a pool, and queues as many statements. The returned function releases them. */
async function fill(pool: pg.Pool, max: number): Promise<() => Promise<void>> {
  const sleeping = Array.from({ length: 2 * max }, () =>
    pool.query("/* fill */ SELECT pg_sleep(60)").catch((error: unknown) => error),
  );
  const count = `SELECT pid, pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '/* fill */%' AND state = 'active'`;
  const asleep = async (): Promise<number> =>
    (await database().run(count.replace(", pg_cancel_backend(pid)", ""))).rowCount ?? 0;
  await expect.poll(asleep, { interval: 20 }).toBe(max - 1);
  expect(pool.waitingCount).toBeGreaterThan(0);
  return async () => {
    let isOver = false;
    void Promise.all(sleeping).then(() => (isOver = true));
    while (!isOver) await database().run(count);
  };
}

/** Far longer than a normal statement, and far shorter than those that fill the pool. */
const within = 5_000;

describe("a heartbeat of a process whose pool is full", () => {
  test.each([
    ["that listens for wake-ups", "listens", undefined],
    ["for heartbeats, if none listens", "own", elsewhere],
  ])("uses a connection %s", async (_which, schema, wakeup) => {
    const { store, pool } = await storeOver(`full_${schema}`, 3, wakeup);
    await store.nodes?.beat("a", within);
    const empty = await fill(pool, 3);
    for (let at = 2; at < 5; at += 1) {
      expect(await store.nodes?.beat("a", within)).toMatchObject([{ name: "a", beats: at }]);
    }
    await empty();
  });

  test("fails within its limit if there is no other way, and the next ones do not fill its queue", async () => {
    const { store, pool } = await storeOver("small", 1, elsewhere);
    await store.nodes?.beat("a", within);
    const taken = await pool.connect();
    const before = pool.waitingCount;
    for (let times = 0; times < 3; times += 1) {
      await expect(store.nodes?.beat("a", 20)).rejects.toMatchObject({ code: "Unavailable" });
    }
    // The poll for other nodes also waits for a connection.
    expect(pool.waitingCount - before).toBeLessThanOrEqual(2);
    taken.release();
    await expect.poll(() => store.nodes?.beat("a", within).catch(() => undefined)).toMatchObject([{ name: "a" }]);
  });
});

describe("a connection that was lost silently", () => {
  test.each([
    ["that listens", "listens", undefined],
    ["of the heartbeats", "own", elsewhere],
  ])("%s: the heartbeat uses the pool at once, and so do those after it", async (_which, schema, wakeup) => {
    const url = new URL(database().url);
    const proxy = await startProxy(Number(url.port));
    opened.push(proxy);
    url.port = String(proxy.port);
    const store = await postgresStore({ database: url.href, schema: `lost_${schema}`, ...(wakeup && { wakeup }) });
    opened.push(store);
    await store.nodes?.beat("a", within);
    let swallowed = 0;
    proxy.onRequest = (text) => {
      if (!text.includes(".nodes") || swallowed > 0) return undefined;
      swallowed += 1;
      return "swallow";
    };
    expect(await store.nodes?.beat("a", 300)).toMatchObject([{ name: "a", beats: 2 }]);
    expect(swallowed).toBe(1);
    for (let at = 3; at < 6; at += 1) {
      expect(await store.nodes?.beat("a", within)).toMatchObject([{ name: "a", beats: at }]);
    }
  });
});

describe("a node whose pool is full for longer than lease.ttl", () => {
  test("keeps its tasks", async () => {
    const agents: string[] = [];
    const nodeOver = async (name: string) => {
      const { store, pool } = await storeOver("kept", 3);
      const agent = defineAgent({
        name: "Holds",
        description: "Holds",
        version: "1",
        skills: [],
        resumable: true,
        async *onMessage(turn) {
          agents.push(name);
          yield turn.working("on it");
          await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
        },
      });
      const lease = { ttl: 1_000, holder: name, isGone: () => false };
      const made = inProcess(agent, { store, lease });
      opened.push(made.engine);
      return { ...made, store, pool };
    };
    const one = await nodeOver("one");
    const message = { messageId: "m", role: "ROLE_USER" as const, parts: [{ text: "Go" }] };
    const request = { message, configuration: { returnImmediately: true } };
    const { task } = (await one.service.call("SendMessage", request, callContext())).payload.value;
    const two = await nodeOver("two");
    const empty = await fill(one.pool, 3);
    // Each heartbeat of the second process reads the first one's row. Waits for more heartbeats than fit into lease.ttl.
    const known = async (): Promise<number> =>
      Number((await database().run("SELECT beats FROM kept.nodes WHERE name = 'two'")).rows[0]?.beats);
    const until = (await known()) + 32;
    await expect.poll(known, { interval: 50 }).toBeGreaterThan(until);
    await empty();
    expect((await two.store.head({ agent: "agent" }, task?.id ?? ""))?.holder).toBe("one");
    expect(agents).toEqual(["one"]);
  });
});
