import { describe, expect, it, onTestFinished } from "vitest";
import { Nodes } from "../../src/engine/supervise/nodes.ts";
import { memoryStore, type Store } from "../../src/store/index.ts";
import { fakeClock } from "@parley/testing";

/* Tests how a store's heartbeats show which processes are alive, by the observer's monotonic clock and the default `lease.ttl`. */

const ttl = 2_600;
const interval = ttl / 16;

/** Creates an observing process "a", and other processes whose heartbeats the test controls. */
function cluster() {
  const clock = fakeClock();
  const database = { isAway: false, jump: 0, calls: 0, latency: 0 };
  const rows = new Map<string, { beats: number; at: number }>();
  const now = (): number => clock.elapsed() + database.jump;
  const beatOf = (name: string): void => void rows.set(name, { beats: (rows.get(name)?.beats ?? 0) + 1, at: now() });
  const store: Store = Object.assign(memoryStore(), {
    nodes: {
      async beat(name: string) {
        database.calls += 1;
        if (database.isAway) throw new Error("away");
        beatOf(name);
        const found = [...rows].map(([each, { beats, at }]) => ({ name: each, beats, silent: now() - at }));
        if (database.latency > 0) await new Promise<void>((resolve) => clock.after(database.latency, resolve));
        return found;
      },
      async forget(names: readonly string[]) {
        for (const name of names) rows.delete(name);
      },
    },
  });
  const gone: number[] = [];
  const absent: number[] = [];
  const cutOff: number[] = [];
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const lease = {
    ttl,
    holder: "a",
    term: 1,
    maxAttempts: 1,
    maxDeaths: 1,
    isGone: () => false,
    wasKilled: () => false,
  };
  const nodes = new Nodes({
    settings: { store, clock, logger, lease },
    outage: { failed: () => Promise.resolve(false) },
  });
  nodes.gone.on(() => gone.push(clock.elapsed()));
  nodes.wasAbsent.on(() => absent.push(clock.elapsed()));
  nodes.cutOff.on(() => cutOff.push(clock.elapsed()));
  onTestFinished(() => nodes.stop());
  nodes.start(true);
  /** Advances the time. `b`: whether the other process is alive in that time. */
  async function pass(ms: number, b: boolean): Promise<void> {
    const end = clock.elapsed() + ms;
    while (clock.elapsed() < end) {
      if (b && clock.elapsed() - (lastOfB ?? -Infinity) >= interval) {
        beatOf("b");
        lastOfB = clock.elapsed();
      }
      clock.advance(Math.min(5, end - clock.elapsed()));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  let lastOfB: number | undefined;
  return { clock, rows, database, nodes, gone, absent, cutOff, pass, diedAt: () => lastOfB ?? NaN };
}

describe("a process whose heartbeats are not answered", () => {
  it("knows that it is cut off `lease.ttl` after its last answered heartbeat, and not before", async () => {
    const { database, cutOff, pass, clock } = cluster();
    await pass(4 * ttl, true);
    expect(cutOff).toEqual([]);
    database.isAway = true;
    const left = clock.elapsed();
    await pass(ttl - interval - 5, true);
    expect(cutOff).toEqual([]);
    await pass(4 * ttl, true);
    expect(cutOff).toHaveLength(1);
    expect((cutOff[0] ?? 0) - left).toBeLessThanOrEqual(ttl);
    database.isAway = false;
    await pass(ttl, true);
    database.isAway = true;
    await pass(2 * ttl, true);
    expect(cutOff).toHaveLength(2);
  });
});

describe("a silent process", () => {
  it("counts as dead after lease.ttl, and its tasks are searched a second time after four times that", async () => {
    const { gone, pass, diedAt, nodes } = cluster();
    await pass(1_500, true);
    await pass(2_400, false);
    expect(gone).toEqual([]);
    await pass(9_000, false);
    const [first = 0, second = 0, ...more] = gone.map((at) => at - diedAt());
    expect(first).toBeGreaterThanOrEqual(ttl);
    expect(first).toBeLessThan(ttl + 50);
    expect(second).toBeGreaterThanOrEqual(4 * ttl);
    expect(second).toBeLessThan(4 * ttl + 50);
    expect(more).toEqual([]);
    expect(nodes.silence("b")).toBeGreaterThan(4 * ttl);
  });

  it("is not dead if it was only blocked for two seconds", async () => {
    const { gone, pass } = cluster();
    for (let times = 0; times < 3; times += 1) {
      await pass(1_500, true);
      await pass(2_000, false);
    }
    await pass(1_000, true);
    expect(gone).toEqual([]);
  });

  it("is dead after lease.ttl even if a failover emptied the table, and alive once it is in the table again", async () => {
    const { gone, pass, database, nodes, rows, clock } = cluster();
    await pass(1_500, true);
    database.isAway = true;
    await pass(3_000, false);
    rows.clear();
    database.isAway = false;
    await pass(400, false);
    const back = clock.elapsed();
    // The observer searches for lost tasks immediately, and again once the process has been silent for `ttl`.
    await pass(ttl + 500, false);
    expect(gone.length).toBeGreaterThanOrEqual(2);
    expect(nodes.silence("b")).toBeGreaterThanOrEqual(ttl);
    expect((gone.at(-1) ?? 0) - back).toBeGreaterThan(ttl - 500);
    await pass(500, true);
    expect(nodes.silence("b")).toBeLessThan(ttl);
    expect(nodes.isSilent("b")).toBe(false);
  });

  it("is forgotten after an hour", async () => {
    const { clock, rows, pass } = cluster();
    await pass(500, true);
    for (let minutes = 0; minutes < 62; minutes += 1) {
      for (let steps = 0; steps < 60; steps += 1) {
        clock.advance(1_000);
        for (let turns = 0; turns < 8; turns += 1) await Promise.resolve();
      }
    }
    expect([...rows.keys()]).toEqual(["a"]);
  });
});

describe("a database whose answers all take longer than half of lease.ttl", () => {
  it("does not keep a silent process alive, and does not make a beating one dead", async () => {
    const { gone, pass, database, diedAt } = cluster();
    await pass(1_500, true);
    database.latency = 1_400;
    await pass(15_000, true);
    expect(gone).toEqual([]);
    await pass(10_000, false);
    expect(gone.length).toBeGreaterThan(0);
    expect((gone[0] ?? 0) - diedAt()).toBeGreaterThan(ttl);
    // Answers pending calls, so that the process can stop.
    database.latency = 0;
    await pass(2_000, false);
  });
});

describe("a process that has not polled for half of lease.ttl", () => {
  it("does not say how long others have been silent: they may have beaten since", async () => {
    const { clock, pass, nodes, database } = cluster();
    await pass(1_500, true);
    await pass(4_000, false);
    expect(nodes.silence("b")).toBeGreaterThan(ttl);
    expect(nodes.isSilent("b")).toBe(true);
    database.isAway = true;
    clock.advance(ttl / 2 + 1);
    expect(nodes.silence("b")).toBe(0);
    expect(nodes.isSilent("b")).toBe(false);
    expect(nodes.silence("nobody")).toBeUndefined();
  });
});

describe("a process stays alive through", () => {
  it("a clock jump of the database, forward and back", async () => {
    const { gone, pass, database, diedAt } = cluster();
    await pass(1_500, true);
    database.jump = 3_600_000;
    await pass(3_000, true);
    database.jump = -3_600_000;
    await pass(3_000, true);
    expect(gone).toEqual([]);
    // If the clock jumps, a dead process does not seem alive, either.
    database.jump = -7_200_000;
    await pass(3_000, false);
    expect(gone).toHaveLength(1);
    expect((gone[0] ?? 0) - diedAt()).toBeLessThan(ttl + interval + 50);
  });

  it("an outage of the database, and a pause of the observer, which then counts anew", async () => {
    const { clock, gone, absent, pass, database } = cluster();
    await pass(1_500, true);
    database.isAway = true;
    await pass(10_000, false);
    database.isAway = false;
    await pass(2_000, true);
    expect(gone).toEqual([]);
    expect(absent).toHaveLength(1);
    // The observer's event loop was blocked, so the observer missed the others' heartbeats.
    clock.advance(5_000);
    await pass(2_000, true);
    expect(gone).toEqual([]);
    expect(absent).toHaveLength(2);
    // If a process dies now, the observer detects this after lease.ttl.
    await pass(3_000, false);
    expect(gone).toHaveLength(1);
  });
});
