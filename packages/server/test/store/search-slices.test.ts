import { describe, expect, it } from "vitest";
import { memoryStore } from "@parley/server";
import { decide, readItem, searchTerms } from "@parley/server/store";
import { MemorySearch } from "../../src/store/memory/search.ts";
import type { StoredTask } from "../../src/store/memory/rows.ts";
import { MemoryTables } from "../../src/store/memory/tables.ts";
import { alice, append, making } from "../../../testing/src/store/given.ts";

const words = (from: number, count: number): string =>
  Array.from({ length: count }, (_, at) => (from + at).toString(36)).join(" ");

/** Counts the turns of the event loop while a promise is pending. */
async function turnsOf<T>(work: Promise<T>): Promise<{ readonly turns: number; readonly value: T }> {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const value = await work.finally(() => (isOver = true));
  return { turns, value };
}

/** Stores a task in the tables, with one message. */
function stored(tables: MemoryTables, id: string, text: string): StoredTask {
  const read = readItem(making(id, { text }));
  const head = decide(read, undefined);
  if (typeof head === "string") throw new Error(head);
  return tables.create(read, head);
}

async function searched(most?: number) {
  const tables = new MemoryTables();
  const search = new MemorySearch(() => tables, most);
  await search.use(true);
  const find = (query: string) => search.find(alice, { terms: searchTerms(query), limit: 5 });
  return { tables, search, find };
}

describe("a search in memory", () => {
  it("yields to other work, on the first search and with an existing index", async () => {
    const store = memoryStore();
    await store.search?.use(true);
    for (let at = 0; at < 30; at += 1) await append(store, making(`t${at}`, { text: words(at * 9000 + 50_000, 9000) }));
    const query = { terms: searchTerms("zero* 1jbk c d e f g h"), limit: 5 };
    const find = () => store.search?.find(alice, query);
    // The first search splits 1.1 MB into words, and compares them with eight terms.
    const first = await turnsOf(Promise.resolve(find()));
    expect(first.value?.total).toBe(0);
    expect(first.turns).toBeGreaterThan(8);
    const second = await turnsOf(Promise.resolve(find()));
    expect(second.turns).toBeGreaterThan(1);
    expect(second.turns).toBeLessThan(first.turns);
  });

  it("yields to other work if there are very many small tasks", async () => {
    const { tables, find } = await searched();
    for (let at = 0; at < 4000; at += 1) stored(tables, `t${at}`, "boat");
    const { turns, value } = await turnsOf(find("boat"));
    expect(value.total).toBe(4000);
    expect(turns).toBeGreaterThan(2);
  });

  it("finds a task that was added, and none that was deleted or changed its state, during the search", async () => {
    const { tables, search } = await searched();
    const tasks = Array.from({ length: 8 }, (_, at) => stored(tables, `t${at}`, `boat ${words(0, 9000)}`));
    const found = search.find(alice, { terms: searchTerms("boat"), state: "TASK_STATE_SUBMITTED", limit: 99 });
    await new Promise((resolve) => setImmediate(resolve));
    const [first, second] = tasks;
    if (first === undefined || second === undefined) throw new Error("There are no tasks");
    tables.delete(first);
    const read = readItem({ task: second.head.task, records: [completedRecord] });
    const head = decide(read, second.head);
    if (typeof head === "string") throw new Error(head);
    tables.change(second, read, head);
    expect((await found).hits.map(({ taskId }) => taskId)).toEqual(["t7", "t6", "t5", "t4", "t3", "t2"]);
    expect((await search.find(alice, { terms: searchTerms("boat"), limit: 99 })).total).toBe(7);
  });

  it("caches a bounded number of bytes of the latest searched words, and still finds the others", async () => {
    const { tables, search, find } = await searched(100_000);
    for (let at = 0; at < 20; at += 1) stored(tables, `t${at}`, `boat number${at} ${words(50_000, 3000)}`);
    for (let turn = 0; turn < 2; turn += 1) {
      expect((await find("boat")).total).toBe(20);
      expect(search.bytes).toBeGreaterThan(70_000);
      expect(search.bytes).toBeLessThanOrEqual(100_000);
    }
    for (const at of [0, 9, 19]) expect((await find(`number${at}`)).hits).toMatchObject([{ taskId: `t${at}` }]);
    // Characters beyond Latin take two bytes.
    stored(tables, "wide", "ж ".repeat(30_000));
    expect((await find("ж")).total).toBe(1);
    expect(search.bytes).toBeLessThanOrEqual(100_000);
  });

  it("keeps no words of a deleted task, and none when it is switched off", async () => {
    const { tables, search, find } = await searched();
    const tasks = ["one", "two"].map((id) => stored(tables, id, "boat"));
    await find("boat");
    const { bytes } = search;
    for (const task of tasks) {
      tables.delete(task);
      expect(search.bytes).toBe(task === tasks[0] ? bytes / 2 : 0);
    }
    stored(tables, "three", "boat");
    await find("boat");
    expect(search.bytes).toBe(bytes / 2);
    await search.use(false);
    expect(search.bytes).toBe(0);
  });
});

const completedRecord = {
  kind: "statusUpdate",
  json: JSON.stringify({ status: { state: "TASK_STATE_COMPLETED", timestamp: "2026-01-01T00:00:00.000Z" } }),
  time: 2000,
  state: "TASK_STATE_COMPLETED",
  actor: "agent",
  turn: 1,
  attempt: 1,
} as const;
