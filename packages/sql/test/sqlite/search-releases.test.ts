import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { searchTerms, type Store } from "@parley/server/store";
import { sqliteStore } from "@parley/sql/sqlite";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { alice, append, chunk, completed, key, making, said } from "../../../testing/src/store/given.ts";
import type { Driver } from "../../src/sqlite/driver.ts";
import { migrate } from "../../src/sqlite/migrations.ts";
import { count } from "../../src/sqlite/rows.ts";
import { openDriver } from "./drivers.ts";

/*
 * A process of release 0.1.0 has version 5 of the tables. It checks the version only when it opens a file, so it continues after a
 * process of this release has changed the tables. These are its statements.
 */

const folder = await mkdtemp(join(tmpdir(), "parley-"));
afterAll(() => rm(folder, { recursive: true }));

/** Deletes a task like `sweep` of 0.1.0. */
function deleteAs010(driver: Driver, number: number): void {
  driver.transaction("write", () => {
    for (const sql of [
      "DELETE FROM tasks WHERE number = ?",
      "DELETE FROM checkpoints WHERE task = ?",
      "DELETE FROM task_states WHERE task = ?",
      "DELETE FROM keys WHERE task = ?",
      "DELETE FROM features WHERE task = ?",
    ]) {
      expect(driver.prepare(sql).run(number).changes).toBe(sql.includes("tasks") ? 1 : 0);
    }
    driver.prepare("DELETE FROM log WHERE key > ? AND key <= ?").run(number * 2 ** 24, (number + 1) * 2 ** 24 - 1);
  });
}

/** Stores a new task like 0.1.0, with the number after the highest one. */
function createAs010(driver: Driver, like: number, id: string, text: string): number {
  return driver.transaction("write", () => {
    const number = 1 + count(driver.prepare("SELECT coalesce(max(number), 0) FROM tasks").get());
    for (const [table, column, value] of [
      ["tasks", "number", number],
      ["log", "key", number * 2 ** 24 + 1],
    ] as const) {
      const of = table === "tasks" ? like : like * 2 ** 24 + 1;
      driver.exec(`CREATE TEMP TABLE copied AS SELECT * FROM ${table} WHERE ${column} = ${of};
        UPDATE temp.copied SET ${column} = ${value};`);
      if (table === "tasks") driver.prepare("UPDATE temp.copied SET id = ?, seq = 1, first_seq = 1").run(id);
      else driver.prepare("UPDATE temp.copied SET json = replace(json, 'pattern', ?)").run(text);
      driver.exec(`INSERT INTO ${table} SELECT * FROM temp.copied; DROP TABLE temp.copied`);
    }
    return number;
  });
}

async function found(store: Store, query: string): Promise<readonly string[]> {
  const page = await store.search?.find(alice, { terms: searchTerms(query), limit: 9 });
  const ids = page?.hits.map(({ taskId }) => taskId) ?? [];
  expect(page?.total).toBe(ids.length);
  return ids;
}

/** The number of an owner's texts with a word in FTS5. */
function textsOf(driver: Driver, word: string): number {
  const match = "SELECT count(*) FROM search_index WHERE search_index MATCH ?";
  const owner = count(driver.prepare("SELECT owner FROM tasks LIMIT 1").get());
  return count(driver.prepare(match).get(`"${owner.toString(36)}\u00b7${word}"`));
}

async function both() {
  const path = join(folder, `${Math.random()}.db`);
  const old = openDriver(path);
  migrate(old, 5);
  const store = await sqliteStore({ path });
  onTestFinished(async () => {
    await store.close();
    old.close();
  });
  await store.search?.use(true);
  await append(store, making("stays", { text: "pattern" }));
  await append(store, making("goes", { text: "sailboat sailboat sailboat" }));
  await append(store, { task: key("goes"), records: [chunk("goes", "a", "lighthouse"), completed("goes")] });
  expect(await found(store, "sailboat lighthouse")).toEqual(["goes"]);
  return { old, store };
}

const [stays, goes] = [1, 2];

it("a task that a process of 0.1.0 deletes is no longer found", async () => {
  const { old, store } = await both();
  deleteAs010(old, goes);
  for (const query of ["sailboat", "lighthouse", "sail*", '"sailboat sailboat"']) {
    expect(await found(store, query)).toEqual([]);
  }
  expect(await found(store, "pattern")).toEqual(["stays"]);
  // The file has none of the task's texts, and none of its words once a process of this release deletes another task.
  expect(count(old.prepare("SELECT count(*) FROM search_texts WHERE key > ?").get(goes * 2 ** 24))).toBe(0);
  await append(store, making("other", { text: "one" }));
  await append(store, { task: key("other"), records: [completed("other")] });
  await store.sweep({ now: 0, deleteBefore: 9000, limit: 9 });
  expect([textsOf(old, "sailboat"), textsOf(old, "pattern")]).toEqual([0, 1]);
  expect(count(old.prepare("SELECT count(*) FROM search_gone").get())).toBe(0);
});

it("a task that gets the number of a deleted one from a process of 0.1.0 is not found by the deleted texts", async () => {
  const { old, store } = await both();
  deleteAs010(old, goes);
  expect(createAs010(old, stays, "new", "airship")).toBe(goes);
  expect(await found(store, "sailboat")).toEqual([]);
  expect(await found(store, "lighthouse")).toEqual([]);
  // After its next message in a process of this release, searches find it by its own texts.
  await append(store, { task: key("new"), records: [said("rowing")] });
  expect(await found(store, "airship rowing")).toEqual(["new"]);
  expect([await found(store, "sailboat"), await found(store, "lighthouse")]).toEqual([[], []]);
  expect([textsOf(old, "sailboat"), textsOf(old, "airship")]).toEqual([0, 1]);
});

it("a number that this release reuses after 0.1.0 deleted its task has only the new texts", async () => {
  const { old, store } = await both();
  deleteAs010(old, goes);
  await append(store, making("new", { text: "airship" }));
  expect([await found(store, "airship"), await found(store, "sailboat")]).toEqual([["new"], []]);
  expect(textsOf(old, "sailboat")).toBe(0);
});

it("a task that 0.1.0 deleted while the search was off is not found when it is on again", async () => {
  const { old, store } = await both();
  await store.search?.use(false);
  deleteAs010(old, goes);
  createAs010(old, stays, "new", "airship");
  await store.search?.use(true);
  expect([await found(store, "sailboat"), await found(store, "airship")]).toEqual([[], ["new"]]);
  expect(textsOf(old, "sailboat")).toBe(0);
});
