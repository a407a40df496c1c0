import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { searchTerms } from "../../../a2a/src/store/search.ts";
import { append, making } from "../../../a2a/src/testing/store/given.ts";
import { sqliteStore } from "@parley/sql/sqlite";
import type { Driver } from "../../src/sqlite/driver.ts";
import { ScopeIds } from "../../src/sqlite/scopes.ts";
import { findTasks } from "../../src/sqlite/search.ts";
import { openDriver } from "./drivers.ts";

const folder = await mkdtemp(join(tmpdir(), "parley-"));
afterAll(() => rm(folder, { recursive: true }));

const alice = { agent: "agent", owner: "alice" };

/** A driver that counts how often it looks into the index of words. */
function counting(driver: Driver): { readonly driver: Driver; readonly looks: () => number } {
  let looks = 0;
  const prepare: Driver["prepare"] = (sql) => {
    const statement = driver.prepare(sql);
    const terms = sql.split(" MATCH ").length - 1;
    return {
      run: (...values) => statement.run(...values),
      get: (...values) => statement.get(...values),
      all(...values) {
        looks += terms;
        return statement.all(...values);
      },
    };
  };
  return { driver: { ...driver, prepare, close: () => driver.close() }, looks: () => looks };
}

it("a search reads each term twice, however many tasks the page has", async () => {
  const path = join(folder, "search.db");
  const store = await sqliteStore({ path, thread: false });
  await store.search?.use(true);
  for (let at = 0; at < 30; at += 1) await append(store, making(`t${at}`, { text: "a red sailboat" }));
  await store.close();

  const { driver, looks } = counting(openDriver(path));
  const scopes = new ScopeIds(driver);
  const terms = searchTerms("red sailb*");
  for (const limit of [1, 30]) {
    const before = looks();
    const { hits } = findTasks(driver, scopes, alice, { terms, limit });
    expect(hits.map(({ snippets }) => snippets.length)).toEqual(Array.from({ length: limit }, () => 1));
    expect(looks() - before).toBe(4);
  }
  driver.close();
});
