import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { alice, done, making, verdicts } from "./given.ts";

const database = useDatabase();

test("conversations and keys have names of any length, which an index does not have", async () => {
  const store = await postgresStore({ database: database().url, schema: "names" });
  try {
    // Names that cannot be compressed, the same at their beginning.
    const long = `${"x".repeat(100)}${randomBytes(20_000).toString("hex")}`;
    const names = [long, `${long}y`];
    for (const [at, name] of names.entries()) {
      const once = { effect: "once", key: name, hash: `h${at}`, now: 1 } as const;
      const item = { ...making(`t${at}`, name), effects: [once] };
      expect(verdicts(await store.append([item]))).toEqual(["ok"]);
      expect(verdicts(await store.append([{ ...making(`u${at}`, name), effects: [once] }]))).toEqual(["duplicate"]);
      expect((await store.head(alice, `t${at}`))?.contextId).toBe(name);
      expect(await store.once(alice, name, 1)).toMatchObject({ key: name, hash: `h${at}`, taskId: `t${at}` });
      expect((await store.conversation({ ...alice, contextId: name }, { limit: 9 })).entries.length).toBe(1);
      const page = await store.list(alice, { contextId: name, limit: 9, artifacts: false });
      expect([page.total, page.tasks.map(({ task }) => task.id)]).toEqual([1, [`t${at}`]]);
    }
  } finally {
    await store.close();
  }
});

test("times that are no whole milliseconds, or beyond all times, are compared as they are", async () => {
  const store = await postgresStore({ database: database().url, schema: "times" });
  try {
    const item = { ...making("t"), records: [...making("t").records, done("t", 1000)] };
    expect(verdicts(await store.append([item]))).toEqual(["ok"]);
    const total = async (since: number): Promise<number> =>
      (await store.list(alice, { since, limit: 9, artifacts: false })).total;
    expect([await total(999.5), await total(1000.5), await total(-Infinity), await total(Infinity)]).toEqual([
      1, 0, 1, 0,
    ]);
    expect((await store.sweep({ now: 0.5, deleteBefore: 999.5, limit: 9 })).deleted).toBe(0);
    expect((await store.sweep({ now: Infinity, deleteBefore: 1000.5, limit: 9 })).deleted).toBe(1);
    expect(await store.claimable({ now: 0.5, agents: ["agent"], limit: 9 })).toEqual({ heads: [] });
  } finally {
    await store.close();
  }
});
