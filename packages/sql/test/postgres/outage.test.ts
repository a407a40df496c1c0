import { afterEach, describe, expect, test } from "vitest";
import type { A2AError, Store } from "@parley/server";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { countingDriver } from "./counting.ts";
import { alice, chunk, done, keyOf, making, verdicts } from "./given.ts";

const database = useDatabase();
const open: Store[] = [];
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
});

async function opened(options: Parameters<typeof postgresStore>[0]): Promise<Store> {
  const store = await postgresStore(options);
  open.push(store);
  return store;
}

describe("a database that becomes unavailable in the middle of an append", () => {
  test("has all of it or nothing, and the append is stored when it is back", async () => {
    const { url } = database();
    const store = await opened({ database: url, schema: "away" });
    await store.append([making("t")]);
    const ids = Array.from({ length: 40 }, (_, at) => `n${at}`);
    for (let round = 0; round < 5; round += 1) {
      const appends = ids.map((id) => store.append([making(`${round}${id}-a`), making(`${round}${id}-b`)]));
      await database().disconnectAll();
      const settled = await Promise.allSettled(appends);
      for (const [at, each] of settled.entries()) {
        const found = await Promise.all(["a", "b"].map((half) => store.head(alice, `${round}${ids[at]}-${half}`)));
        expect(new Set(found.map((head) => head !== undefined)).size).toBe(1);
        // The error states whether the append may have been committed.
        if (each.status === "fulfilled") expect(found[0]).toBeDefined();
        else expect((each.reason as A2AError).code).toBe("Unavailable");
      }
    }
    const { total } = await store.list(alice, { limit: 1, artifacts: false });
    expect((await store.list(alice, { limit: 1, artifacts: false, since: 0 })).total).toBe(total);
  });

  test("makes calls wait for one time limit in total, not one per transaction", async () => {
    const plain = countingDriver(database().url);
    let isAway = false;
    let tries = 0;
    const attempt = <T>(body: () => Promise<T>): Promise<T> => {
      if (!isAway) return body();
      tries += 1;
      return Promise.reject(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }));
    };
    const store = await opened({
      database: {
        query: (text, values) => attempt(() => plain.query(text, values)),
        hold: (body, silence) => attempt(() => plain.hold(body, silence)),
        close: () => plain.close(),
      },
      schema: "waits",
      wakeup: false,
      outageTimeout: 300,
    });
    await store.append([making("t")]);
    isAway = true;
    // Each call has its own transaction.
    const calls = Array.from({ length: 10 }, (_, call) =>
      store.append(Array.from({ length: 1000 }, (_each, at) => making(`${call}-${at}`))),
    );
    const first = await calls[0]?.catch((thrown: unknown) => thrown);
    const before = tries;
    const settled = await Promise.allSettled(calls);
    expect(first).toMatchObject({ code: "Unavailable", message: "The database cannot be reached now" });
    expect(settled.map((each) => each.status === "rejected" && (each.reason as A2AError).code)).toEqual(
      Array(10).fill("Unavailable"),
    );
    // Calls that arrived slightly later may retry once each.
    expect(tries - before).toBeLessThanOrEqual(9);

    // Log reads share statements, of which two wait at a time.
    const reads = Array.from({ length: 3000 }, () => store.read(alice, "t", { after: 0, limit: 9 }));
    const unread = await Promise.race(reads).catch((thrown: unknown) => thrown);
    const late = tries;
    expect(unread).toMatchObject({ code: "Unavailable" });
    const refused = await Promise.allSettled(reads);
    expect(refused.every(({ status }) => status === "rejected")).toBe(true);
    expect(tries - late).toBeLessThanOrEqual(9);
    isAway = false;
    expect((await store.read(alice, "t", { after: 0, limit: 9 }))?.records).toHaveLength(1);
    expect(verdicts(await store.append([making("back")]))).toEqual(["ok"]);
  });

  test("rejects an append that it cannot store, and stores the others of its transaction", async () => {
    const store = await opened({ database: database().url, schema: "poison" });
    await store.append([making("t")]);
    const broken = { ...making("broken"), records: [{ ...(making("broken").records[0] as object), time: NaN }] };
    const settled = await Promise.allSettled([
      store.append([making("one")]),
      store.append([broken as never]),
      store.append([making("two")]),
    ]);
    expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await store.head(alice, "broken")).toBeUndefined();
    expect(await store.head(alice, "two")).toBeDefined();
  });
});

describe("a pooler that gives each transaction another session", () => {
  test("changes nothing for the store", async () => {
    const store = await opened({ database: countingDriver(database().url, { pooler: true }), schema: "pooled" });
    await store.append([making("t"), making("u")]);
    const records = [chunk("t", "x", false), done("t")];
    expect(verdicts(await store.append([{ task: keyOf("t"), expect: 1, records }]))).toEqual(["ok"]);
    expect((await store.load(alice, "t", { artifacts: true }))?.task.artifacts?.length).toBe(1);
    await store.search?.use(true);
    const found = await store.search?.find(alice, { terms: [{ words: ["hello"] }], limit: 9 });
    expect(found?.hits.map(({ taskId }) => taskId)).toEqual(["u", "t"]);
    expect((await store.sweep({ now: 0, deleteBefore: 2000, limit: 9 })).deleted).toBe(1);
    expect((await store.list(alice, { limit: 9, artifacts: false })).total).toBe(1);
  });
});
