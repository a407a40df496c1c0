import { describe, expect, it } from "vitest";
import type { ClaimPosition, Store } from "@parley/server/store";
import type { Driver, Statement } from "../../src/sqlite/driver.ts";
import { migrate } from "../../src/sqlite/migrations.ts";
import { driverStore } from "../../src/sqlite/store.ts";
import { driverWriter } from "../../src/sqlite/writer.ts";
import { openDriver } from "./drivers.ts";

const run = { effect: "run", run: { turn: 1, attempt: 1, input: 1 } } as const;

/** A store that records its statements and their values. */
function watched(driver: Driver): { store: Store; asked: { sql: string; values: readonly unknown[]; rows: number }[] } {
  const asked: { sql: string; values: readonly unknown[]; rows: number }[] = [];
  const noted = (sql: string, statement: Statement): Statement => ({
    run: (...values) => statement.run(...values),
    get: (...values) => {
      const row = statement.get(...values);
      asked.push({ sql, values, rows: row === undefined ? 0 : 1 });
      return row;
    },
    all: (...values) => {
      const rows = statement.all(...values);
      asked.push({ sql, values, rows: rows.length });
      return rows;
    },
  });
  const reader: Driver = { ...driver, prepare: (sql) => noted(sql, driver.prepare(sql)) };
  const writer = driverWriter(driver, { busyTimeout: 100 });
  const store = driverStore(reader, writer, { durable: false, busyTimeout: 100, watchInterval: 100 });
  return { store, asked };
}

async function fill(store: Store, agent: string, tasks: number, until?: (n: number) => number): Promise<void> {
  const state = "TASK_STATE_WORKING";
  for (let at = 0; at < tasks; at += 1000) {
    await store.append(
      Array.from({ length: Math.min(1000, tasks - at) }, (_, n) => {
        const taskId = `${agent}-${at + n}`;
        const json = JSON.stringify({ id: taskId, contextId: "c", status: { state } });
        return {
          task: { agent, owner: "alice", taskId },
          create: { contextId: "c" },
          records: [{ kind: "task", state, json, time: 1, actor: "user", turn: 1, attempt: 1 }],
          effects: [
            run,
            ...(until === undefined
              ? []
              : [{ effect: "lease", op: "acquire", holder: "n", now: 0, until: until(at + n) } as const]),
          ],
        };
      }),
    );
  }
}

/** D6: tasks whose agents no process hosts do not slow anything down. */
describe("claimable", () => {
  it("reads only the index entries of the named agents, beside 20,000 lost tasks of an agent that no process hosts", async () => {
    const driver = openDriver(":memory:");
    migrate(driver);
    const { store, asked } = watched(driver);
    await fill(store, "renamed", 10_000);
    await fill(store, "gone", 10_000, () => 1);
    await fill(store, "here", 5);
    await fill(store, "there", 5, (n) => 3 + (n % 2));
    asked.length = 0;
    const found: string[] = [];
    let after: ClaimPosition | undefined;
    do {
      const query = { now: 9, agents: ["here", "there"], limit: 3, ...(after && { after }) };
      const page = await store.claimable(query);
      found.push(...page.heads.map(({ task }) => task.taskId));
      after = page.next;
    } while (after !== undefined);
    const [here, even, odd] = ["here-0 here-1 here-2 here-3 here-4", "there-0 there-2 there-4", "there-1 there-3"];
    expect(found).toEqual([here, even, odd].flatMap((ids) => (ids ?? "").split(" ")));
    // Reads only the rows of the pages: four pages, two agents, at most four rows of each.
    const runs = asked.filter(({ sql }) => sql.includes("tasks_runs"));
    expect(runs.reduce((sum, { rows }) => sum + rows, 0)).toBeLessThanOrEqual(4 * 2 * 4);
    for (const { sql, values } of runs) {
      const plan = driver.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...(values as number[]));
      const steps = plan.map((row) => String(row[3]));
      expect(steps).toEqual([
        expect.stringMatching(/^SEARCH tasks USING .*INDEX tasks_runs \(agent=\? AND lease_until/),
      ]);
    }
    expect(new Set(runs.map(({ sql }) => sql)).size).toBe(4);
    await store.close();
  });
});

/** Rows that are due later, and those of other features and agents, do not add costs. */
describe("dueFeatures", () => {
  it("reads only the index entries of due rows, beside 5,000 other rows", async () => {
    const driver = openDriver(":memory:");
    migrate(driver);
    const { store, asked } = watched(driver);
    const set = (feature: string, key: string, due: number) =>
      ({ effect: "feature", op: "set", feature, key, value: "1", due }) as const;
    for (const agent of ["here", "gone"]) {
      await fill(store, agent, 50);
      for (let n = 0; n < 50; n += 1) {
        const task = { agent, owner: "alice", taskId: `${agent}-${n}` };
        const later = Array.from({ length: 49 }, (_, at) => set("f", `later-${at}`, 100 + at));
        await store.append([{ task, records: [], effects: [set("f", "now", n), set("g", "now", n), ...later] }]);
      }
    }
    asked.length = 0;
    const rows = await store.dueFeatures({ feature: "f", agents: ["here"], now: 50, limit: 3 });
    expect(rows.map(({ task, due }) => [task.taskId, due])).toEqual([
      ["here-0", 0],
      ["here-1", 1],
      ["here-2", 2],
    ]);
    const [query] = asked.filter(({ sql }) => sql.includes("features_due"));
    expect(query?.rows).toBe(3);
    const plan = driver.prepare(`EXPLAIN QUERY PLAN ${query?.sql}`).all(...((query?.values ?? []) as number[]));
    expect(plan.map((row) => String(row[3]))).toEqual([
      expect.stringMatching(
        /^SEARCH features USING COVERING INDEX features_due \(feature=\? AND agent=\? AND due>\? AND due<\?\)/,
      ),
    ]);
    await store.close();
  });

  it("reads only the values of its page, however many agents have as many rows (values take 32 KiB: docs/decisions/feature-effects.md)", async () => {
    const driver = openDriver(":memory:");
    migrate(driver);
    const { store, asked } = watched(driver);
    const agents = Array.from({ length: 20 }, (_, n) => `agent-${n}`);
    for (const [at, agent] of agents.entries()) {
      await fill(store, agent, 1);
      const task = { agent, owner: "alice", taskId: `${agent}-0` };
      const effects = Array.from({ length: 5 }, (_, n) => {
        const due = n * agents.length + at;
        return { effect: "feature", op: "set", feature: "f", key: `${n}`, value: `${due}`, due } as const;
      });
      await store.append([{ task, records: [], effects }]);
    }
    asked.length = 0;
    const rows = await store.dueFeatures({ feature: "f", agents, now: 1_000, limit: 30 });
    expect(rows.map(({ due, value, task }) => [due, value, task.agent])).toEqual(
      Array.from({ length: 30 }, (_, n) => [n, `${n}`, `agent-${n % agents.length}`]),
    );
    const withValues = asked.filter(({ sql }) => sql.includes("value"));
    expect(withValues.reduce((sum, { rows: read }) => sum + read, 0)).toBe(30);
    await store.close();
  });
});
