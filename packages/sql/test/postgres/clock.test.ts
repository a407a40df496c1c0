import { afterEach, describe, expect, test, vi } from "vitest";
import { createHandler, defineAgent } from "@parley/server";
import { fakeClock } from "@parley/testing";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { DatabaseClock } from "../../src/postgres/clock.ts";

const database = useDatabase();
afterEach(() => void vi.restoreAllMocks());

async function timeOfDatabase(): Promise<number> {
  const { rows } = await database().run("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now");
  return (rows[0] as { now: number }).now;
}

describe("the clock of the store", () => {
  test("is that of the database, whatever the node's clock says", async () => {
    vi.spyOn(Date, "now").mockReturnValue(0);
    const store = await postgresStore({ database: database().url, schema: "clock" });
    try {
      const before = await timeOfDatabase();
      const now = store.clock?.now() ?? 0;
      expect(Number.isSafeInteger(now)).toBe(true);
      // The response took part of that time.
      expect(Math.abs(now - before)).toBeLessThan(10_000);
      const agent = defineAgent({
        name: "Waits",
        description: "Waits for an answer.",
        version: "1.0.0",
        skills: [],
        async *onMessage(turn) {
          yield turn.working("Busy");
          await new Promise<void>((resolve) => turn.signal.addEventListener("abort", () => resolve()));
        },
      });
      const handler = createHandler(agent, { store, publicUrl: "http://agent.example" });
      const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "hello" }] };
      const response = await handler.fetch(
        new Request("http://agent.example/", {
          method: "POST",
          headers: { "content-type": "application/json", "a2a-version": "1.0" },
          body: JSON.stringify({
            jsonrpc: "2.0",
            id: 1,
            method: "SendMessage",
            params: { message, configuration: { returnImmediately: true } },
          }),
        }),
      );
      const { result } = (await response.json()) as { result: { task: { id: string } } };
      await vi.waitFor(async () => {
        const head = await store.head({ agent: "/" }, result.task.id);
        expect((head?.leaseUntil ?? 0) - now).toBeGreaterThan(0);
        expect(Math.abs((head?.statusTime ?? 0) - now)).toBeLessThan(60_000);
      });
      await handler.close({ grace: 0 });
    } finally {
      await store.close();
    }
  });

  test("continues by the monotonic clock, is corrected by later samples, and survives an outage of the database", async () => {
    const base = fakeClock();
    let answer = 5_000_000;
    let isAway = false;
    const clock = new DatabaseClock(async () => {
      if (isAway) throw new Error("away");
      return [[answer]];
    }, base);
    await clock.open();
    expect(clock.now()).toBe(5_000_000);
    base.advance(4_000);
    expect(clock.now()).toBe(5_004_000);
    answer = 5_010_500;
    base.advance(6_000);
    await vi.waitFor(() => expect(clock.now()).toBe(5_010_500));
    isAway = true;
    base.advance(30_000);
    expect(clock.now()).toBe(5_040_500);
    clock.close();
  });

  test("distrusts a delayed answer: it moves no further than the answer proves", async () => {
    const base = fakeClock();
    const start = base.elapsed();
    const truth = (): number => 5_000_000 + base.elapsed() - start;
    let wait = 0;
    const clock = new DatabaseClock(async () => {
      await Promise.resolve();
      // The call waits for a connection, so the database answers at the end of this time.
      base.advance(wait);
      return [[truth()]];
    }, base);
    await clock.open();
    wait = 8_000;
    base.advance(10_000);
    await vi.waitFor(() => expect(base.elapsed() - start).toBeGreaterThanOrEqual(18_000));
    expect(clock.now()).toBe(truth());
    clock.close();
  });

  test("asks again on opening if the first answer took long", async () => {
    const base = fakeClock();
    const start = base.elapsed();
    const waits = [6_000, 20, 0];
    let asked = 0;
    const clock = new DatabaseClock(async () => {
      base.advance(waits[asked++] ?? 0);
      return [[5_000_000 + base.elapsed() - start]];
    }, base);
    await clock.open();
    expect(asked).toBe(2);
    expect(Math.abs(clock.now() - 5_006_020)).toBeLessThanOrEqual(20);
    clock.close();
  });
});
