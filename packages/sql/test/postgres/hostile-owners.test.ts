import { afterEach, describe, expect, test } from "vitest";
import { eraseOwner, type Store, type TaskAppend } from "@parley/server/store";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { startPooler } from "../../../../test/postgres/pooler.ts";
import { done, making } from "./given.ts";

/* Erasure and purge, through PgBouncer, of owners whose names are attacks (docs/retention.md). */

const database = useDatabase();
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
});

async function pooled(schema: string): Promise<Store> {
  const pooler = await startPooler(database().url, "transaction");
  open.push(pooler);
  const store = await postgresStore({ database: pooler.url, schema });
  open.push(store);
  return store;
}

/** A finished task of an owner. */
function over(owner: string, taskId: string): TaskAppend {
  const made = making(taskId);
  return { ...made, task: { agent: "agent", owner, taskId }, records: [...made.records, done(taskId)] };
}

const names: readonly string[] = [
  "alice",
  "alice'",
  `alice"; DROP TABLE tasks; --`,
  "alice\\",
  "alice\0",
  "%",
  "_____",
  "Alice",
  "\u0430lice",
  "al\u0131ce",
  "alice\u200b",
  "e\u0301",
  "\u00e9",
  "\ud800",
  "\u0001",
  "x".repeat(1 << 20),
  `${"x".repeat((1 << 20) - 1)}y`,
];

describe("owners whose names are attacks", () => {
  test("are erased separately, whatever their name is", async () => {
    const store = await pooled("hostile_names");
    await store.append(names.map((owner, at) => over(owner, `t${at}`)));
    const left = new Map(names.map((owner, at) => [owner, `t${at}`]));
    for (const owner of names) {
      await eraseOwner(store, { agent: "agent", owner });
      expect(await store.head({ agent: "agent", owner }, left.get(owner) ?? "")).toBeUndefined();
      left.delete(owner);
      const found = await Promise.all([...left].map(([each, id]) => store.head({ agent: "agent", owner: each }, id)));
      expect(found.every((head) => head !== undefined)).toBe(true);
    }
    expect(await store.upkeep?.owners({ limit: 99 })).toEqual([]);
  });

  test("keep rows that are written while a purge is interrupted and repeated", async () => {
    const store = await pooled("hostile_purge");
    const owner = "alice'; --";
    await store.append(Array.from({ length: 200 }, (_, at) => over(owner, `old${at}`)));
    let isOver = false;
    const purge = async (): Promise<void> => {
      for (let more = true; more;) {
        const removed = await store.upkeep?.remove({ owner, before: 1_001 }, 10).catch(() => ({ more: true }));
        more = removed?.more ?? false;
      }
      isOver = true;
    };
    const cut = async (): Promise<void> => {
      for (let at = 0; at < 5 && !isOver; at += 1) await database().disconnectAll();
    };
    const written: string[] = [];
    const write = async (): Promise<void> => {
      for (let at = 0; at < 50; at += 1) {
        const made = making(`new${at}`, "fresh", 2_000);
        const task = { agent: "agent", owner, taskId: `new${at}` };
        const [outcome] = await store.append([{ ...made, task }]);
        if (outcome?.ok === true) written.push(task.taskId);
      }
    };
    await Promise.all([purge(), cut(), write()]);
    expect(written).toHaveLength(50);
    const page = await store.list({ agent: "agent", owner }, { limit: 1_000, artifacts: false });
    expect(page.tasks.map(({ task }) => task.id).toSorted()).toEqual(written.toSorted());
  });
});
