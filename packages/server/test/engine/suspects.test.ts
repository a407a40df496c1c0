import { describe, expect, it } from "vitest";
import type { Run } from "../../src/engine/run/index.ts";
import { crashesOf, nextAttempt, Suspects, type Starter } from "../../src/engine/supervise/suspects.ts";
import type { StoredRun, TaskHead } from "../../src/store/index.ts";
import { fakeClock } from "@parley/testing";

/*
 * Tests tasks of a process that crashed. Some of them crash every process that starts them. Simulates consecutive processes with the engine's
 * trials and the stored counts. The rest of the engine is in suspended.test.ts, and real processes are in test/cluster.
 */

/** The default of this option in `LeaseOptions`. */
const maxDeaths = 2;

const self = { holder: "self", wasKilled: (holder: string) => holder === "killed" };

/** Returns a generator of pseudo-random numbers, determined by the seed. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

interface Tried {
  readonly failed: ReadonlySet<number>;
  readonly done: ReadonlySet<number>;
  readonly crashes: number;
  readonly rounds: number;
  readonly largest: number;
}

/** Simulates processes that try the tasks until each task is done or has failed. */
async function tryAll(count: number, poison: ReadonlySet<number>, random: () => number): Promise<Tried> {
  // The previous process took over all tasks together, and crashed.
  const runs = new Map(Array.from({ length: count }, (_, id) => [id, { turn: 1, attempt: 2, input: 1, deaths: 1 }]));
  const left = new Map<number, StoredRun>(runs);
  const failed = new Set<number>();
  const done = new Set<number>();
  let [crashes, rounds, largest] = [0, 0, 0];
  while (left.size > 0) {
    let started: number[] = [];
    let isOver = false;
    const proofs: (() => void)[] = [];
    const suspects = new Suspects(fakeClock());
    suspects.scanned();
    suspects.tried.on(() => (isOver = true));
    const starter: Starter = {
      runs: { stopping: false, room: 1_000 },
      async resume({ task }, alone) {
        const id = Number(task.taskId);
        const run = left.get(id);
        if (run === undefined) return undefined;
        left.set(id, nextAttempt(run, crashesOf({ run }, self), alone));
        started.push(id);
        const proven = new Promise<void>((resolve) => proofs.push(resolve));
        const phase = { proven: () => proven, clearCrashSuspicion: () => {}, flush: async () => {} };
        return { phase, done: new Promise<void>(() => {}) } as unknown as Run;
      },
    };
    for (const [id, run] of [...left].sort(() => random() - 0.5)) {
      const head = { task: { agent: "a", owner: "o", taskId: `${id}` }, run, holder: "gone" } as unknown as TaskHead;
      const { count: deaths, alone } = crashesOf(head, self);
      if (alone && deaths >= maxDeaths) {
        failed.add(id);
        left.delete(id);
      } else suspects.add(head, deaths);
    }
    suspects.startNext(starter);
    for (let crashed = left.size === 0; !crashed && !isOver;) {
      await new Promise((resolve) => setImmediate(resolve));
      if (started.length === 0) continue;
      rounds += 1;
      largest = Math.max(largest, started.length);
      crashed = started.some((id) => poison.has(id));
      if (crashed) crashes += 1;
      else {
        for (const id of started) {
          done.add(id);
          left.delete(id);
        }
        started = [];
        for (const prove of proofs.splice(0)) prove();
      }
    }
  }
  return { failed, done, crashes, rounds, largest };
}

describe("tasks of a process that crashed", () => {
  it.each([
    { count: 200, poisons: 0 },
    { count: 200, poisons: 1 },
    { count: 60, poisons: 3 },
    { count: 7, poisons: 7 },
    { count: 1, poisons: 1 },
    { count: 120, poisons: 5 },
  ])("fail if they crash every process, and no other does: $poisons of $count", async ({ count, poisons }) => {
    const random = chance(count + poisons);
    const ids = Array.from({ length: count }, (_, id) => id).sort(() => random() - 0.5);
    const poison = new Set(ids.slice(0, poisons));
    const { failed, done, crashes, rounds, largest } = await tryAll(count, poison, random);
    expect(failed).toEqual(poison);
    expect(done).toEqual(new Set(ids.slice(poisons)));
    expect(crashes).toBeLessThanOrEqual(2 * poisons);
    expect(rounds).toBeLessThanOrEqual(Math.log2(25) + 1 + count / 25 + 30 * poisons);
    expect(largest).toBeLessThanOrEqual(25);
  });

  it("are tried in 12 rounds if there are 200 and none crashes again", async () => {
    expect((await tryAll(200, new Set(), () => 0.5)).rounds).toBe(12);
  });
});

describe("a kill from outside", () => {
  it("is not a crash of the task, but counts for lease.maxAttempts", () => {
    let run: StoredRun = { turn: 1, attempt: 1, input: 1 };
    for (let kills = 1; kills <= 9; kills += 1) {
      const crashes = crashesOf({ run, holder: "killed" }, self);
      expect(crashes).toMatchObject({ all: kills - 1, count: 0, alone: false });
      run = nextAttempt(run, crashes, true);
    }
    expect(run).toMatchObject({ deaths: 9, outlived: 8 });
    // The next end is a crash. Of the nine ends, only the crash counts.
    expect(crashesOf({ run, holder: "gone" }, self)).toMatchObject({ all: 9, count: 1 });
  });

  it("undoes only the count of the trial, not the earlier crash", () => {
    const run: StoredRun = { turn: 1, attempt: 3, input: 1, deaths: 2, alone: true };
    expect(crashesOf({ run, holder: "gone" }, self)).toEqual({ all: 2, count: 2, alone: true });
    expect(crashesOf({ run, holder: "killed" }, self)).toEqual({ all: 2, count: 1, alone: false });
  });
});
