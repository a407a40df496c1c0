import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { A2AError, Store } from "@parley/server";
import { postgresStore } from "@parley/sql/postgres";
import { startPooler } from "../../../../test/postgres/pooler.ts";
import { startPostgres, type PostgresServer } from "../../../../test/postgres/server.ts";
import { alice, making } from "./given.ts";

/** A separate server for crashes. Its commits wait for each other, so that many are in progress. */
let server: PostgresServer;
const opened: { close(): Promise<unknown> }[] = [];

beforeAll(async () => {
  server = await startPostgres({ settings: { commit_delay: "20000", commit_siblings: "1" } });
});
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});
afterAll(() => server.remove());

async function open(url: string, schema: string): Promise<Store> {
  const store = await postgresStore({ database: url, schema, outageTimeout: 60_000, pollInterval: 60_000 });
  opened.push(store);
  return store;
}

/** Appends from several stores until `harm` ends. Every acknowledged append is stored once, and all others completely or not at all. */
async function survives(stores: readonly Store[], name: string, harm: () => Promise<void>): Promise<number> {
  let isOver = false;
  const acknowledged: string[] = [];
  const working = stores.map(async (store, at) => {
    for (let count = 0; !isOver; count += 1) {
      const id = `${name}-${at}-${count}`;
      try {
        const [outcome] = await store.append([making(id, `c${at}`)]);
        // If a commit that took effect ran again, it would be rejected as existing.
        expect(outcome).toMatchObject({ ok: true });
        acknowledged.push(id);
      } catch (thrown) {
        expect((thrown as A2AError).code).toBe("Unavailable");
      }
    }
  });
  await harm();
  isOver = true;
  await Promise.all(working);
  for (const id of acknowledged) expect(await stores[0]?.head(alice, id), id).toMatchObject({ seq: 1 });
  return acknowledged.length;
}

describe("a server that crashes in the middle of commits", () => {
  test("has every acknowledged append, and none twice, on all nodes", async () => {
    const stores = await Promise.all([1, 2, 3, 4].map(() => open(server.url, "crashed")));
    for (let round = 0; round < 3; round += 1) {
      const before = Math.random();
      const count = await survives(stores, `r${round}-${before}`, async () => {
        await stores[0]?.append([making(`warm${round}`)]);
        await server.crash();
        await server.start();
        await stores[0]?.append([making(`back${round}`)]);
      });
      expect(count).toBeGreaterThan(0);
    }
  });
});

describe("a server that restarts behind PgBouncer", () => {
  test("is waited for, and has every acknowledged append", async () => {
    const pooler = await startPooler(server.url, "transaction");
    opened.push(pooler);
    const stores = await Promise.all([open(pooler.url, "restarted"), open(pooler.url, "restarted")]);
    const count = await survives(stores, "r", async () => {
      await stores[0]?.append([making("warm")]);
      await server.stop();
      const waiting = stores[0]?.append([making("waits")]);
      await server.start();
      await waiting;
    });
    expect(count).toBeGreaterThan(0);
  });
});

describe("a node behind a pooler, and one that is not", () => {
  test("a process that listens learns at once of the other's tasks", async () => {
    const pooler = await startPooler(server.url, "transaction");
    opened.push(pooler);
    const [behind, direct] = [await open(pooler.url, "mixed"), await open(server.url, "mixed")];
    const told: (string | undefined)[] = [];
    direct.watch?.((taskId) => void told.push(taskId));
    await behind.append([making("t")]);
    // Polling would take ten minutes.
    await expect.poll(() => told).toContain("t");
    expect((await behind.check?.())?.changes).toBe("polled");
  });
});
