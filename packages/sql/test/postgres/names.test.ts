import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { alice, done, making, verdicts } from "./given.ts";

const database = useDatabase();

test("conversations and keys may have names of any length, which are not in an index", async () => {
  const store = await postgresStore({ database: database().url, schema: "names" });
  try {
    // Names that cannot be compressed, and that start with the same text.
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

test("owners, agents, tasks and keys of features may have names of any length, which are not in an index", async () => {
  const store = await postgresStore({ database: database().url, schema: "owners" });
  try {
    const long = randomBytes(20_000).toString("hex");
    const key = Array.from(randomBytes(512), (byte) => String.fromCharCode(1 + (byte % 31))).join("");
    const feature = key.slice(0, 256);
    for (const end of ["", "y"]) {
      const owner = { agent: `a${long}${end}`, owner: `o${long}${end}` };
      const task = { ...owner, taskId: `t${long}${end}` };
      const rows = { effect: "feature", op: "set", feature, key, value: "1", due: 5 } as const;
      const once = { effect: "once", key: "k", hash: "h", now: 1 } as const;
      const run = { effect: "run", run: { turn: 1, attempt: 1, input: 1 } } as const;
      const item = { ...making(task.taskId), task, effects: [rows, once, run] };
      expect(verdicts(await store.append([item]))).toEqual(["ok"]);
      expect(verdicts(await store.append([{ ...item, effects: [] }]))).toEqual(["exists"]);
      expect((await store.head(owner, task.taskId))?.task).toEqual(task);
      expect((await store.load(owner, task.taskId, { artifacts: false }))?.task.id).toBe(task.taskId);
      const page = await store.list(owner, { limit: 9, artifacts: false });
      expect(page.tasks.map((listed) => listed.task.id)).toEqual([task.taskId]);
      expect(await store.features(owner, task.taskId, feature)).toEqual([{ key, value: "1", due: 5 }]);
      const due = await store.dueFeatures({ feature, now: 5, limit: 9, agents: [owner.agent] });
      expect(due.map((each) => [each.task, each.key])).toEqual([[task, key]]);
      expect((await store.once(owner, "k", 1))?.taskId).toBe(task.taskId);
      const { heads } = await store.claimable({ now: 1, agents: [owner.agent], limit: 9 });
      expect(heads.map((head) => head.task)).toEqual([task]);
      const others = await store.stranded({ now: 1, agents: ["other"], limit: 9 });
      expect(others.map(({ agent }) => agent)).toContain(owner.agent);
      const gone = { effect: "feature", op: "delete", feature, key } as const;
      expect(verdicts(await store.append([{ task, records: [done(task.taskId)], effects: [gone] }]))).toEqual(["ok"]);
      expect(await store.features(owner, task.taskId, feature)).toEqual([]);
    }
  } finally {
    await store.close();
  }
});

test("times with fractions of milliseconds, or out of range, are compared exactly", async () => {
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
