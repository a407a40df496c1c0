import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NewRecord } from "@parley/a2a/internal/model/index";
import { sqliteStore } from "@parley/sql/sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readConversation } from "../../src/sqlite/queries.ts";
import type { Driver, Row, Value } from "../../src/sqlite/driver.ts";
import { ScopeIds } from "../../src/sqlite/scopes.ts";
import { openDriver } from "./drivers.ts";

/** The cost of reading a conversation depends on the requested part, not on the length of the conversation. */

const owner = { agent: "agent", owner: "alice" };
const conversation = { ...owner, contextId: "c" };
const replies = 100_000;
const chunks = 400;
const chunkBytes = 100_000;

const folder = await mkdtemp(join(tmpdir(), "parley-conversation-"));
const path = join(folder, "tasks.db");
let driver: Driver;

beforeAll(async () => {
  const store = await sqliteStore({ path, synchronous: "NORMAL" });
  const json = JSON.stringify({ messageId: "m", role: "ROLE_AGENT", parts: [{ text: "a direct reply" }] });
  for (let from = 0; from < replies; from += 10_000) {
    const effects = Array.from({ length: 10_000 }, (_, n) => ({
      effect: "contextMessage" as const,
      json,
      time: from + n,
    }));
    await store.append([{ context: conversation, effects }]);
  }
  const record = { actor: "agent", turn: 1, attempt: 1 } as const;
  const task = { ...owner, taskId: "t" };
  const text = "x".repeat(chunkBytes);
  const records = Array.from({ length: chunks }, (_, n): NewRecord => {
    const artifact = { artifactId: "a", parts: [{ text }] };
    const update = { taskId: "t", contextId: "c", artifact, ...(n > 0 && { append: true }) };
    return { ...record, kind: "artifactUpdate", time: replies + n, json: JSON.stringify(update) };
  });
  const state = "TASK_STATE_WORKING";
  const history = [{ messageId: "q", role: "ROLE_USER", parts: [{ text: "Go" }] }];
  const made = JSON.stringify({ id: "t", contextId: "c", status: { state }, history });
  const first: NewRecord = { ...record, actor: "user", kind: "task", state, time: replies, json: made };
  await store.append([{ task, create: { contextId: "c" }, records: [first] }]);
  for (let from = 0; from < chunks; from += 50) {
    await store.append([{ task, records: records.slice(from, from + 50) }]);
  }
  await store.close();
  driver = openDriver(path);
});

afterAll(async () => {
  driver.close();
  await rm(folder, { recursive: true });
});

/** A driver that counts the returned rows and text. */
function counting() {
  const seen = { rows: 0, characters: 0, statements: new Map<string, readonly Value[]>() };
  function count(sql: string, values: readonly Value[], rows: readonly Row[]): void {
    seen.statements.set(sql, values);
    seen.rows += rows.length;
    for (const value of rows.flat()) if (typeof value === "string") seen.characters += value.length;
  }
  const counted: Driver = {
    exec: (sql) => driver.exec(sql),
    transaction: (mode, body) => driver.transaction(mode, body),
    close: () => driver.close(),
    prepare(sql) {
      const statement = driver.prepare(sql);
      return {
        run: (...values) => statement.run(...values),
        get(...values) {
          const row = statement.get(...values);
          count(sql, values, row === undefined ? [] : [row]);
          return row;
        },
        all(...values) {
          const rows = statement.all(...values);
          count(sql, values, rows);
          return rows;
        },
      };
    },
  };
  return { seen, counted };
}

describe("reading a conversation of 100,000 replies and 40 MB of an artifact", () => {
  it("reads only the rows and the text that were asked for", () => {
    for (const [bounds, entries, rows, characters] of [
      [{ limit: 0 }, 0, 5, 1_000],
      [{ limit: 20, bytes: 250_000 }, 1, 100, 300_000],
      [{ limit: 1, bytes: 1_000_000_000 }, 1, 900, chunks * (chunkBytes + 200)],
      [{ limit: 20, bytes: 250_000, before: { taskId: "t", turn: 1, seq: 1 } }, 20, 90, 10_000],
      [{ limit: 1_000, bytes: 2_000, before: { taskId: "t", turn: 1, seq: 1 } }, 27, 1_100, 10_000],
    ] as const) {
      const { seen, counted } = counting();
      const found = readConversation(counted, new ScopeIds(counted), conversation, bounds).entries;
      expect([bounds, found.length]).toEqual([bounds, entries]);
      expect(seen.rows, JSON.stringify(bounds)).toBeLessThan(rows);
      expect(seen.characters, JSON.stringify(bounds)).toBeLessThan(characters);
    }
  });

  it("uses an index in every statement, and sorts nothing", () => {
    const { seen, counted } = counting();
    const before = { taskId: "t", turn: 9, seq: 999 };
    readConversation(counted, new ScopeIds(counted), conversation, { limit: 20, bytes: 250_000, before });
    expect(seen.statements.size).toBeGreaterThan(6);
    for (const [sql, values] of seen.statements) {
      const plan = driver.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values);
      const steps = plan.map((row) => String(row[3]));
      expect(steps, sql).not.toEqual([]);
      for (const step of steps) expect(step, sql).toMatch(/^SEARCH /u);
    }
  });
});
