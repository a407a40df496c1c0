import { afterEach, describe, expect, test, vi } from "vitest";
import type { Store, Wakeup } from "@parley/server/store";
import { postgresStore, type PostgresStoreOptions } from "@parley/sql/postgres";
import pg from "pg";
import { useDatabase } from "../../../../test/postgres/database.ts";
import type { Result } from "../../src/postgres/driver.ts";
import { Schema } from "../../src/postgres/schema.ts";
import { Watch } from "../../src/postgres/watch.ts";
import { alice, done, keyOf, making } from "./given.ts";
import { recorder } from "./logs.ts";

const database = useDatabase();
const open: Store[] = [];
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
});

/** Two nodes, and the second one's notifications. */
async function nodes(schema: string, options: Partial<PostgresStoreOptions> = {}) {
  const all = { database: database().url, schema, connections: 3, ...options };
  const [one, two] = [await postgresStore(all), await postgresStore(all)];
  open.push(one, two);
  const told: (string | undefined)[] = [];
  two.watch?.((taskId) => told.push(taskId));
  const own: (string | undefined)[] = [];
  one.watch?.((taskId) => own.push(taskId));
  return { one, two, told, own };
}

/** Wake-ups that are all lost. */
const lost: Wakeup = {
  isConnected: false,
  publish: () => undefined,
  subscribe: () => () => undefined,
  close: async () => undefined,
};

describe("watch", () => {
  test("reports the tasks that another node has changed, and no changes of its own", async () => {
    const { one, two, told, own } = await nodes("wakes");
    expect(two.wakeup.isConnected).toBe(true);
    await one.append([making("t")]);
    await vi.waitFor(() => expect(told).toContain("t"));
    expect(own).not.toContain("t");
  });

  test("stores an append once if the wake-up after it throws", async () => {
    const wakeup: Wakeup = {
      ...lost,
      publish() {
        throw new TypeError("no");
      },
    };
    const { one } = await nodes("throws", { wakeup });
    const outcomes = await Promise.all(["a", "b"].map((id) => one.append([making(id)])));
    expect(outcomes.flat().map(({ ok }) => ok)).toEqual([true, true]);
  });

  test.each([
    ["every wake-up is lost", "looks", lost],
    ["there are none", "alone", false],
  ] as const)("reports it by polling if %s", async (_, schema, wakeup) => {
    const { one, two, told } = await nodes(schema, { wakeup, pollInterval: 20 });
    expect(two.wakeup.isConnected).toBe(false);
    // The first poll reports that anything may have changed before it.
    await expect.poll(() => told.length).toBeGreaterThan(0);
    await quiet(told);
    await one.append([making("t")]);
    await expect.poll(() => told.length).toBeGreaterThan(0);
    expect(new Set(told)).toEqual(new Set([undefined]));
  });

  test("reports a write that others delay for longer than many polls, after its commit", async () => {
    const { one, two, told } = await nodes("late", { wakeup: false, pollInterval: 20, ...patient });
    await one.append([making("t")]);
    const blocker = new pg.Client({ connectionString: database().url });
    await blocker.connect();
    try {
      // Locks the whole table, because each connection has its own row.
      await blocker.query("BEGIN; LOCK TABLE late.counts IN SHARE MODE");
      const appending = one.append([{ task: keyOf("t"), expect: 1, records: [done("t")] }]);
      await expect.poll(async () => (await database().run(isBlocked)).rows.length).toBeGreaterThan(0);
      // The transaction has been open for many polls. Each poll reports it, so one report follows the commit.
      for (let looks = 0; looks < 10; looks += 1) await next(told);
      let state: string | undefined;
      const end = two.watch?.(() => {
        void two.head(alice, "t").then((head) => (state = head?.state));
      });
      await blocker.query("COMMIT");
      await appending;
      await expect.poll(() => state).toBe("TASK_STATE_COMPLETED");
      end?.();
      // After the commit, the reports stop.
      await quiet(told);
    } finally {
      await blocker.end();
    }
  });
});

/** Long timeouts, so that a lock waiter waits until a busy machine has noticed it. */
const patient = { lockTimeout: 60_000, statementTimeout: 60_000, outageTimeout: 120_000 };

/** Finds sessions that wait for a lock in this database. */
const isBlocked = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

/** Waits until a listener gets another report. */
async function next(told: unknown[]): Promise<void> {
  told.length = 0;
  await expect.poll(() => told.length, { interval: 5 }).toBeGreaterThan(0);
}

/** Waits until some polls report nothing. */
async function quiet(told: unknown[]): Promise<void> {
  await expect
    .poll(async () => {
      told.length = 0;
      await new Promise((resolve) => setTimeout(resolve, 100));
      return told.length;
    })
    .toBe(0);
}

/** A `Watch` whose polls the test answers with `last`, the finished transactions, and the next id. */
function watching() {
  vi.useFakeTimers();
  const asked: { resolve(result: Result): void; reject(error: Error): void }[] = [];
  const { lines, logger } = recorder();
  const queries = {
    query: () => new Promise<Result>((resolve, reject) => void asked.push({ resolve, reject })),
  };
  const watch = new Watch(queries, new Schema("parley"), { wakeup: lost, interval: 500, logger });
  let told = 0;
  watch.add(() => (told += 1));
  return {
    watch,
    asked,
    lines,
    /** How many times the next poll notified listeners. */
    async look(answer: readonly [last: number, over: number, next: number] | Error) {
      const before = told;
      await vi.advanceTimersByTimeAsync(500);
      const one = asked.at(-1);
      if (answer instanceof Error) one?.reject(answer);
      else one?.resolve({ rows: [[answer[0], String(answer[1]), String(answer[2] - 1), 1]], count: 1 });
      await vi.advanceTimersByTimeAsync(0);
      return told - before;
    },
  };
}

describe("polls", () => {
  afterEach(() => void vi.useRealTimers());

  test("subtracts this node's transactions by their ids, whatever their purpose", async () => {
    const { watch, look } = watching();
    expect(await look([10, 100, 100])).toBe(1);
    expect(await look([10, 100, 100])).toBe(1); // Transactions that began before the first poll have ended.
    expect(await look([10, 100, 100])).toBe(0);
    watch.took(11);
    watch.took(12);
    expect(await look([12, 102, 102])).toBe(0);
    // A transaction that got its place only after a poll counts as foreign in that poll, but in no other.
    expect(await look([13, 103, 103])).toBe(1);
    watch.took(13);
    expect(await look([13, 103, 103])).toBe(1);
    expect(await look([14, 104, 104])).toBe(1);
  });

  test("report until all begun transactions are over, including those with numbers above the newest finished one", async () => {
    const { look } = watching();
    await look([10, 100, 100]);
    await look([10, 100, 100]);
    // 101 has a place and is still running. The newest finished transaction is 99.
    expect(await look([11, 100, 102])).toBe(1);
    expect(await look([11, 100, 102])).toBe(1);
    expect(await look([11, 101, 103])).toBe(1);
    expect(await look([11, 103, 103])).toBe(1);
    expect(await look([11, 103, 103])).toBe(0);
  });

  test("report no longer than a write takes if another transaction of the server stays open", async () => {
    const { look } = watching();
    await look([10, 50, 100]);
    await vi.advanceTimersByTimeAsync(61_000);
    expect(await look([10, 50, 101])).toBe(1);
    expect(await look([10, 50, 101])).toBe(0);
  });

  test("keep unreported changes while they fail, and log the failure once", async () => {
    const { look, lines, watch } = watching();
    await look([10, 100, 100]);
    await look([10, 100, 100]);
    expect(await look([11, 100, 102])).toBe(1);
    const refusal = Object.assign(new Error("permission denied"), { code: "42501" });
    for (let count = 0; count < 3; count += 1) expect(await look(refusal)).toBe(0);
    expect(watch.hearing).toBe("unseen");
    expect(lines).toEqual([expect.stringContaining("failed to poll")]);
    expect(await look([11, 102, 102])).toBe(1);
    expect(await look([11, 102, 102])).toBe(0);
    expect(watch.hearing).toBe("polled");
  });

  test("run one at a time while the database does not answer", async () => {
    const { asked } = watching();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(asked.length).toBe(1);
  });
});
