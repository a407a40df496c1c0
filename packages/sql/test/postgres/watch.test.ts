import { afterEach, describe, expect, test, vi } from "vitest";
import type { Store, Wakeup } from "@parley/a2a/store";
import { postgresStore, type PostgresStoreOptions } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { making } from "./given.ts";

const database = useDatabase();
const open: Store[] = [];
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
});

/** Two nodes, and what the second one is told. */
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

/** Wake-ups that all are lost. */
const lost: Wakeup = {
  isConnected: false,
  publish: () => undefined,
  subscribe: () => () => undefined,
  close: async () => undefined,
};

describe("watch", () => {
  test("tells which task another node has changed, and nothing of one's own", async () => {
    const { one, two, told, own } = await nodes("wakes");
    expect(two.wakeup.isConnected).toBe(true);
    await one.append([making("t")]);
    await vi.waitFor(() => expect(told).toContain("t"), { timeout: 10_000 });
    expect(own).not.toContain("t");
  });

  test("stores once what was stored before a wake-up throws", async () => {
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
  ] as const)("tells it by looking where %s", async (_, schema, wakeup) => {
    const { one, two, told } = await nodes(schema, { wakeup, pollInterval: 20 });
    expect(two.wakeup.isConnected).toBe(false);
    // The first look has nothing to compare with.
    await vi.waitFor(
      async () => {
        await one.append([making(`t${Math.random()}`)]);
        expect(told.length).toBeGreaterThan(0);
      },
      { timeout: 10_000 },
    );
    expect(new Set(told)).toEqual(new Set([undefined]));
  });
});
