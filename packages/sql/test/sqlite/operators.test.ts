import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import type { OperatorQuery } from "@parley/server/store";
import type { Driver } from "../../src/sqlite/driver.ts";
import { migrate } from "../../src/sqlite/migrations.ts";
import { driverStore } from "../../src/sqlite/store.ts";
import { driverWriter } from "../../src/sqlite/writer.ts";
import { times } from "../../../../test/counts.ts";
import { diskFolder } from "../../../../test/temporary.ts";
import { openDriver } from "./drivers.ts";

/** The cost of operators' reads (docs/decisions/operators.md). */

const folder = await mkdtemp(join(diskFolder(), "parley-"));
afterAll(() => rm(folder, { recursive: true }));

describe("the tasks of all owners", () => {
  it("are read along the index, two seeks for each agent and state, at any depth", async () => {
    const driver = openDriver(":memory:");
    migrate(driver);
    const asked: { readonly sql: string; readonly values: readonly unknown[]; readonly rows: number }[] = [];
    const reader: Driver = {
      ...driver,
      prepare: (sql) => {
        const statement = driver.prepare(sql);
        const all: typeof statement.all = (...values) => {
          const rows = statement.all(...values);
          asked.push({ sql, values, rows: rows.length });
          return rows;
        };
        return { run: statement.run, get: statement.get, all };
      },
    };
    const writer = driverWriter(driver, { busyTimeout: 100 });
    const store = driverStore(reader, writer, { durable: false, busyTimeout: 100, watchInterval: 100 });
    const state = "TASK_STATE_WORKING";
    const items = Array.from({ length: 3_000 }, (_, at) => {
      const taskId = `t${at}`;
      const json = JSON.stringify({ id: taskId, contextId: "c", status: { state } });
      const record = { kind: "task", state, json, time: 1 + (at % 3), actor: "user", turn: 1, attempt: 1 } as const;
      const task = { agent: `agent ${at % 2}`, owner: `owner ${at % 5}`, taskId };
      return { task, create: { contextId: "c" }, records: [record] };
    });
    await store.append(items);
    for (const order of ["oldest", "newest"] as const) {
      for (const filter of [{}, { owner: "owner 3" }, { agent: "agent 1", states: [state] }] as const) {
        const query: OperatorQuery = { order, limit: 10, since: 1, before: 4, ...filter };
        const first = await store.operators?.tasks(query);
        const deep = { statusTime: 2, number: 1_500 };
        asked.length = 0;
        await store.operators?.tasks({ ...query, after: deep });
        const lists = asked.filter(({ sql }) => /INDEXED BY tasks_(agent|owner)/.test(sql));
        expect(first?.heads).toHaveLength(10);
        // At most two statements for each agent and state, and few states have rows.
        expect(lists.reduce((sum, { rows }) => sum + rows, 0)).toBeLessThanOrEqual(2 * 2 * 11);
        for (const { sql, values } of lists) {
          const plan = driver.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...(values as number[]));
          expect(plan.map((row) => String(row[3]))).toEqual([
            expect.stringMatching(
              /^SEARCH tasks USING (?:COVERING )?INDEX tasks_(agent|owner) \(\w+=\? AND state=\? AND status_time/,
            ),
          ]);
        }
      }
    }
    asked.length = 0;
    await store.operators?.counts(10);
    expect(asked.map(({ rows }) => rows)).toEqual([2]);
    await store.close();
  });
});

const program = fileURLToPath(new URL("operators-list.ts", import.meta.url));
const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;

describe("100,000 tasks", () => {
  const tasks = times(5_000, 100_000);

  it("are listed by pages in a process with a heap of 256 MB, each once", async () => {
    const args = ["--max-old-space-size=256", "--conditions=@parley/source", "--import", tsx, program];
    const { stdout } = await promisify(execFile)(process.execPath, [...args, join(folder, "many.db"), String(tasks)]);
    expect(JSON.parse(stdout)).toEqual({ listed: tasks, unique: tasks, counted: tasks });
  });
});
