import { describe, expect, it } from "vitest";
import { A2AError } from "@parley/a2a/internal/model/index";
import { memoryStore, type Store } from "../../src/store/index.ts";
import { fakeClock } from "@parley/testing";
import { bound, eventually, gate, harness, type Harness, type Line, type OnMessage } from "./support.ts";

/* Tests a database that is unavailable for a while, with runs in progress (docs/operate.md). */

const immediately = { configuration: { returnImmediately: true } };
/** No lease expires in these tests, so if work resumes, it has not waited for a lease. */
const lease = { ttl: 3_600_000 };

/** Creates a store that can be unavailable. `tried`: the number of appends while the store was unavailable. */
function failing(check = true) {
  const shared = memoryStore();
  const state = { isAway: false, tried: 0, checks: 0 };
  const store: Store = {
    ...bound(shared),
    append(items) {
      if (!state.isAway) return shared.append(items);
      state.tried += 1;
      return Promise.reject(new A2AError("Unavailable", "The database is away"));
    },
    ...(check && {
      check() {
        state.checks += 1;
        return Promise.resolve({ writable: !state.isAway });
      },
    }),
  };
  return { store, state };
}

const severe = (log: readonly Line[]): readonly Line[] =>
  log.filter(({ level }) => level === "warn" || level === "error");

/** Creates an agent that works until the test tells it to finish, and counts parallel turns. */
function worker() {
  const finish = gate();
  const write = new Set<() => void>();
  const active = new Map<string, number>();
  const seen = { most: 0, attempts: new Map<string, number[]>() };
  const onMessage: OnMessage = async function* (turn) {
    const now = (active.get(turn.taskId) ?? 0) + 1;
    active.set(turn.taskId, now);
    seen.most = Math.max(seen.most, now);
    seen.attempts.set(turn.taskId, [...(seen.attempts.get(turn.taskId) ?? []), turn.attempt]);
    try {
      yield turn.working("on it");
      await turn.flush();
      if (turn.attempt === 1) await new Promise<void>((resolve) => write.add(resolve));
      yield turn.artifact({ parts: [{ text: "half" }] });
      await turn.flush();
      await finish.opened;
    } finally {
      active.set(turn.taskId, (active.get(turn.taskId) ?? 1) - 1);
    }
  };
  return {
    onMessage,
    seen,
    finish: () => finish.open(),
    waiting: () => write.size,
    /** Makes each run store an event. */
    write: () => write.forEach((resolve) => resolve()),
    active: () => [...active.values()].reduce((sum, each) => sum + each, 0),
  };
}

async function begin({ send }: Harness, count: number): Promise<readonly string[]> {
  const tasks = await Promise.all(Array.from({ length: count }, () => send("go", immediately)));
  return tasks.map(({ id }) => id);
}

async function states({ get }: Harness, ids: readonly string[]): Promise<ReadonlySet<string>> {
  return new Set((await Promise.all(ids.map((id) => get(id)))).map(({ status }) => status.state));
}

describe("an unavailable database", () => {
  it("is logged once with the number of runs, and once at its end; the same process resumes the runs, however long its leases last", async () => {
    const clock = fakeClock();
    const { store, state } = failing();
    const { onMessage, seen, waiting, write, active, finish } = worker();
    const node = harness(onMessage, { store, clock, lease, behaviour: { resumable: true } });
    const ids = await begin(node, 50);
    await eventually(() => waiting() === 50);
    state.isAway = true;
    write();
    await eventually(() => active() === 0 && state.checks > 0);
    const tried = state.tried;
    for (let seconds = 0; seconds < 60; seconds += 1) {
      clock.advance(1_000);
      await node.engine.round();
    }
    expect(severe(node.log)).toMatchObject([
      {
        level: "error",
        message: "Database unavailable; resumable runs resume when it is back, tasks of other agents fail",
        runs: 50,
        resumable: 50,
        cause: { message: "The database is away" },
      },
    ]);
    // The engine polls at most every five seconds, and does not try to take over tasks between two polls.
    expect(state.tried).toBe(tried);
    expect(state.checks).toBeGreaterThan(10);
    expect(state.checks).toBeLessThan(25);

    state.isAway = false;
    finish();
    await eventually(async () => {
      clock.advance(1_000);
      return (await states(node, ids)).has("TASK_STATE_COMPLETED") && (await states(node, ids)).size === 1;
    });
    expect([...seen.attempts.values()]).toEqual(ids.map(() => [1, 2]));
    expect(seen.most).toBe(1);
    await eventually(() => {
      clock.advance(1_000);
      return node.log.some(({ message }) => message === "Database available again");
    });
    expect(severe(node.log)).toHaveLength(1);
    const [back] = node.log.filter(({ message }) => message === "Database available again");
    expect(back).toMatchObject({ level: "info", runs: 50, resumable: 50 });
    expect(back?.["outageMs"]).toBeGreaterThanOrEqual(60_000);
  });

  it("fails the tasks of agents that cannot resume, as logged, without waiting for their leases", async () => {
    const clock = fakeClock();
    const { store, state } = failing();
    const { onMessage, seen, waiting, write, active } = worker();
    const node = harness(onMessage, { store, clock, lease });
    const ids = await begin(node, 3);
    await eventually(() => waiting() === 3);
    state.isAway = true;
    write();
    await eventually(() => active() === 0 && state.checks > 0);
    clock.advance(1_000);
    state.isAway = false;
    await eventually(async () => {
      clock.advance(1_000);
      return (await states(node, ids)).has("TASK_STATE_FAILED") && (await states(node, ids)).size === 1;
    });
    expect([...seen.attempts.values()]).toEqual(ids.map(() => [1]));
    expect(severe(node.log)).toMatchObject([{ runs: 3, resumable: 0 }]);
  });

  it("does not resume a run whose function ignores its signal, until that has returned", async () => {
    const clock = fakeClock();
    const { store, state } = failing();
    const stubborn = gate();
    const attempts: number[] = [];
    let active = 0;
    let most = 0;
    const node = harness(
      async function* (turn) {
        attempts.push(turn.attempt);
        most = Math.max(most, (active += 1));
        try {
          yield turn.working();
          await turn.flush();
          state.isAway = turn.attempt === 1;
          yield turn.artifact({ parts: [{ text: "half" }] });
          if (turn.attempt === 1) await stubborn.opened;
        } finally {
          active -= 1;
        }
      },
      { store, clock, lease, behaviour: { resumable: true } },
    );
    const [id = ""] = await begin(node, 1);
    await eventually(() => state.checks > 0);
    state.isAway = false;
    for (let seconds = 0; seconds < 60; seconds += 1) {
      clock.advance(1_000);
      await node.engine.round(true);
    }
    expect([attempts, active]).toEqual([[1], 1]);
    stubborn.open();
    await eventually(async () => {
      clock.advance(1_000);
      return (await node.get(id)).status.state === "TASK_STATE_COMPLETED";
    });
    expect([attempts, most]).toEqual([[1, 2], 1]);
  });

  it("that fails again in the same moment is the same outage, and is retried at most every five seconds", async () => {
    const clock = fakeClock();
    const { store, state } = failing(false);
    let calls = 0;
    const node = harness(
      async function* (turn) {
        calls += 1;
        state.isAway = false;
        yield turn.working();
        await turn.flush();
        state.isAway = true;
        yield turn.artifact({ parts: [{ text: "half" }] });
        await turn.flush().catch(() => {});
        // A small write succeeds, but the agent's write does not.
        state.isAway = false;
      },
      { store, clock, lease, behaviour: { resumable: true } },
    );
    await begin(node, 1);
    for (let tenths = 0; tenths < 600; tenths += 1) {
      clock.advance(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(calls).toBeGreaterThan(10);
    expect(calls).toBeLessThan(16);
    expect(severe(node.log)).toHaveLength(1);
  });

  it("does not delay queued tasks further: they begin when it is back, without a log line each", async () => {
    const clock = fakeClock();
    const { store, state } = failing();
    const { onMessage, waiting, write, active, finish } = worker();
    const node = harness(onMessage, { store, clock, lease, limits: { runs: 2 }, behaviour: { resumable: true } });
    const ids = await begin(node, 6);
    await eventually(() => waiting() === 2);
    state.isAway = true;
    write();
    await eventually(() => active() === 0 && state.checks > 0);
    clock.advance(30_000);
    state.isAway = false;
    finish();
    await eventually(async () => {
      clock.advance(1_000);
      write();
      return (await states(node, ids)).has("TASK_STATE_COMPLETED") && (await states(node, ids)).size === 1;
    });
    expect(severe(node.log)).toMatchObject([{ runs: 2, resumable: 2 }]);
  });
});
