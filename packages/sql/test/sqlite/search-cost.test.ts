import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { searchTerms } from "@parley/server/internal/store/search";
import { append, chunk, completed, making, said } from "../../../testing/src/store/given.ts";
import { sqliteStore } from "@parley/sql/sqlite";
import type { Driver } from "../../src/sqlite/driver.ts";
import { ScopeIds } from "../../src/sqlite/scopes.ts";
import { findTasks, stepIndex } from "../../src/sqlite/search.ts";
import { openDriver } from "./drivers.ts";

const folder = await mkdtemp(join(tmpdir(), "parley-"));
afterAll(() => rm(folder, { recursive: true }));

const alice = { agent: "agent", owner: "alice" };

/** A driver that records the rows of each statement. */
function watched(driver: Driver, onRows: (sql: string, rows: number) => void): Driver {
  const prepare: Driver["prepare"] = (sql) => {
    const statement = driver.prepare(sql);
    return {
      run: (...values) => statement.run(...values),
      get: (...values) => statement.get(...values),
      all(...values) {
        const rows = statement.all(...values);
        onRows(sql, rows.length);
        return rows;
      },
    };
  };
  return {
    prepare,
    exec: (sql) => driver.exec(sql),
    transaction: (mode, body) => driver.transaction(mode, body),
    close: () => driver.close(),
  };
}

it("a search reads each term three times, however many tasks the page has", async () => {
  const path = join(folder, "search.db");
  const store = await sqliteStore({ path, thread: false });
  await store.search?.use(true);
  for (let at = 0; at < 30; at += 1) await append(store, making(`t${at}`, { text: "a red sailboat" }));
  await store.close();

  let looks = 0;
  const driver = watched(openDriver(path), (sql) => (looks += sql.split(" MATCH ").length - 1));
  const scopes = new ScopeIds(driver);
  const terms = searchTerms("red sailb*");
  for (const limit of [1, 30]) {
    looks = 0;
    const { hits } = findTasks(driver, scopes, alice, { terms, limit });
    expect(hits.map(({ snippets }) => snippets.length)).toEqual(Array.from({ length: limit }, () => 1));
    expect(looks).toBe(6);
  }
  driver.close();
});

it("the texts of a long task are read a few records at a time", async () => {
  const path = join(folder, "long.db");
  const store = await sqliteStore({ path, thread: false });
  await append(store, making("t"));
  const task = { ...alice, taskId: "t" };
  const messages = Array.from({ length: 50 }, (_, at) => said(`message${at}`));
  const chunks = Array.from({ length: 50 }, (_, at) => chunk("t", `a${at}`, `artifact${at}`));
  await append(store, { task, records: [...messages, ...chunks, completed("t")] });
  await store.close();

  let most = 0;
  const driver = watched(
    openDriver(path),
    (sql, rows) => (most = sql.includes("FROM log") ? Math.max(most, rows) : most),
  );
  driver.transaction("write", () => stepIndex(driver, "on"));
  expect(most).toBe(16);
  const scopes = new ScopeIds(driver);
  for (const text of ["message0", "message16", "message49", "artifact0", "artifact16", "artifact49"]) {
    const { total } = findTasks(driver, scopes, alice, { terms: searchTerms(text), limit: 1 });
    expect([text, total]).toEqual([text, 1]);
  }
  driver.close();
});
