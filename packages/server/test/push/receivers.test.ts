import { describe, expect, it } from "vitest";
import { deferred } from "@parley/a2a/internal/base/index";
import type { Dialer } from "@parley/a2a/internal/net/index";
import { memoryStore, type Store, type StoreNotes } from "../../src/store/index.ts";
import { fakeClock, type FakeClock } from "@parley/testing";
import { making, working } from "../../../testing/src/store/given.ts";
import { bound } from "../engine/support.ts";
import { configRow, harness, until, type Harness } from "./support.ts";

/* Tests that processes share their knowledge of receivers, so that a new process does not start without it (docs/decisions/webhooks.md). */

const host = "receiver.example.com";

/** Creates a receiver that many processes call. `answer` handles a process's request; the process is named when its dialer is created. */
function receiving(answer: (process: string) => number | Promise<number>) {
  const asked: string[] = [];
  const open = { now: 0, most: 0 };
  const dialerOf = (process: string): Dialer => ({
    resolve: () => Promise.resolve([{ address: "192.168.0.1", family: 4 }]),
    async fetch() {
      asked.push(process);
      open.now += 1;
      open.most = Math.max(open.most, open.now);
      const status = await answer(process);
      open.now -= 1;
      return new Response(null, { status });
    },
  });
  return { asked, open, dialerOf };
}

/** Stores this many tasks, each with an event that is due for the receiver. */
async function fill(store: Store, clock: FakeClock, name: string, count: number): Promise<void> {
  const items = Array.from({ length: count }, (_, at) => {
    const made = making(`${name}${at}`);
    const records = [...made.records, working(`${name}${at}`)];
    return { ...made, records, effects: [configRow("c", `https://${host}/${name}${at}`, clock.now())] };
  });
  await store.append(items);
}

/** Creates a process that starts to deliver. */
function starting(store: Store, clock: FakeClock, dialer: Dialer): Harness {
  const made = harness({ store, clock, settings: { dialer } });
  made.outbox.start();
  return made;
}

const dueNow = (store: Store, clock: FakeClock) =>
  store.dueFeatures({ feature: "push", now: clock.now(), limit: 1_000 });

/** Returns rows that are due, or that would be due again if the process that claimed them ended. */
async function unsettled(store: Store, clock: FakeClock): Promise<readonly string[]> {
  const rows = await store.dueFeatures({ feature: "push", now: Infinity, limit: 1_000 });
  return rows.filter(({ due, value }) => due <= clock.now() || value.includes('"claim"')).map(({ value }) => value);
}

/** Advances the clock in small steps until the check passes. */
const soon = (clock: FakeClock, check: () => unknown): Promise<void> =>
  until(async () => {
    clock.advance(20);
    await check();
  });

/** Makes a process fail until it pauses its requests and publishes the pause. */
async function giveUp(made: Harness, clock: FakeClock, asked: readonly string[]): Promise<void> {
  await fill(made.store, clock, "given-up", 50);
  made.outbox.poll();
  await until(() => expect(asked).toHaveLength(5));
  await until(async () => expect(await unsettled(made.store, clock)).toEqual([]));
  // The process publishes the pause soon, not only when it stops.
  clock.advance(250);
}

describe("a fresh process", () => {
  it("sends nothing to a receiver that is known to be down until its next attempt, then one request", async () => {
    const [store, clock] = [memoryStore(), fakeClock()];
    const { asked, dialerOf } = receiving(() => 503);
    const old = starting(store, clock, dialerOf("old"));
    await giveUp(old, clock, asked);
    await old.outbox.stop(60_000);
    await fill(store, clock, "new", 200);
    const fresh = starting(store, clock, dialerOf("fresh"));
    // The rows are deferred without an attempt.
    await until(async () => expect(await dueNow(store, clock)).toEqual([]));
    const rows = await store.dueFeatures({ feature: "push", now: Infinity, limit: 1_000 });
    expect(rows.filter(({ value }) => value.includes("problem"))).toHaveLength(5);
    expect(asked).toHaveLength(5);
    clock.advance(25_000);
    await soon(clock, () => expect(asked).toContain("fresh"));
    await until(async () => expect(await dueNow(store, clock)).toEqual([]));
    expect(asked).toHaveLength(6);
    await fresh.outbox.stop(0);
  });

  it("begins with as many requests at a time as a receiver is known to accept", async () => {
    const [store, clock] = [memoryStore(), fakeClock()];
    const gate = deferred<number>();
    const { open, asked, dialerOf } = receiving((process) => (process === "old" ? 204 : gate.promise));
    const old = starting(store, clock, dialerOf("old"));
    await fill(store, clock, "first", 20);
    await soon(clock, () => expect(asked).toHaveLength(20));
    await old.outbox.stop(60_000);
    open.most = 0;
    await fill(store, clock, "second", 20);
    starting(store, clock, dialerOf("fresh"));
    // The clock does not advance, and the receiver answers no request.
    await until(() => expect(open.now).toBe(8));
    expect(asked).toHaveLength(28);
    gate.resolve(204);
    await soon(clock, () => expect(asked).toHaveLength(40));
    expect(open.most).toBe(8);
  });

  it.each<readonly [string, StoreNotes]>([
    ["that fail", { read: () => Promise.reject(new Error("away")), write: () => Promise.reject(new Error("away")) }],
    ["that are not JSON", { read: async (keys) => new Map(keys.map((key) => [key, "]"])), write: async () => {} }],
    ["of another form", { read: async (keys) => new Map(keys.map((key) => [key, '{"at":0}'])), write: async () => {} }],
  ])("delivers without notes, and logs at most at debug, if there are notes %s", async (_which, notes) => {
    const clock = fakeClock();
    const { asked, dialerOf } = receiving(() => 204);
    const made = starting({ ...bound(memoryStore()), notes }, clock, dialerOf("a"));
    await fill(made.store, clock, "t", 20);
    await soon(clock, () => expect(asked).toHaveLength(20));
    await made.outbox.stop(0);
    expect(made.log.filter(({ level }) => level !== "debug")).toEqual([]);
  });
});

describe("a process that has asked a receiver itself", () => {
  it("decides with one more request if another one failed: it answers, and a fresh process knows", async () => {
    const [store, clock] = [memoryStore(), fakeClock()];
    const { asked, open, dialerOf } = receiving((process) => (process === "cut off" ? 503 : 204));
    const able = harness({ store, clock, settings: { dialer: dialerOf("able") }, pollInterval: 3_600_000 });
    able.outbox.start();
    await fill(store, clock, "one", 1);
    able.outbox.poll();
    await until(() => expect(asked).toEqual(["able"]));
    clock.advance(5_000);
    asked.length = 0;
    const cutOff = starting(store, clock, dialerOf("cut off"));
    await giveUp(cutOff, clock, asked);
    await cutOff.outbox.stop(0);
    clock.advance(1);
    asked.length = 0;
    await fill(store, clock, "two", 1);
    able.outbox.poll();
    await until(() => expect(asked).toEqual(["able"]));
    clock.advance(250);
    await able.outbox.stop(60_000);
    asked.length = 0;
    open.most = 0;
    await fill(store, clock, "three", 10);
    starting(store, clock, dialerOf("fresh"));
    await soon(clock, () => expect(asked.length).toBeGreaterThanOrEqual(10));
  });
});

describe("published notes", () => {
  it("name no host, and are few, however much is delivered", async () => {
    const [inner, clock] = [memoryStore(), fakeClock()];
    const written: string[] = [];
    let reads = 0;
    const notes: StoreNotes = {
      read(keys, now) {
        reads += 1;
        return inner.notes?.read(keys, now) ?? Promise.resolve(new Map());
      },
      async write(all, now) {
        written.push(...all.map((note) => JSON.stringify(note)));
        await inner.notes?.write(all, now);
      },
    };
    const { asked, dialerOf } = receiving(() => 204);
    const made = starting({ ...bound(inner), notes }, clock, dialerOf("a"));
    for (let round = 1; round <= 5; round += 1) {
      await fill(made.store, clock, `r${round}-`, 200);
      await soon(clock, () => expect(asked).toHaveLength(200 * round));
    }
    const passed = clock.elapsed();
    await made.outbox.stop(0);
    expect(written.length).toBeGreaterThan(0);
    expect(written.length).toBeLessThanOrEqual(3);
    expect(reads).toBeLessThanOrEqual(1 + passed / 5_000);
    expect(written.join()).not.toMatch(/receiver|example/);
  });
});
