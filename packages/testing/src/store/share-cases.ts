import type { TaskState } from "@parley/a2a/internal/model/index";
import type {
  RateTaken,
  RateUse,
  Store,
  StoreNode,
  StoreNodes,
  StoreNote,
  StoreNotes,
  StoreRates,
  TaskAppend,
} from "@parley/server/internal/store/index";
import {
  adding,
  alice,
  codeOf,
  completed,
  folded,
  making,
  plain,
  status,
  sharing,
  type Case,
  type Cases,
} from "./given.ts";
import type { Expect } from "../runner.ts";

/** Two stores with the same data: each sees the other's changes. */

export const sharesTasks: Case = sharing(async ({ store, other, expect }) => {
  const look = async (): Promise<unknown[]> => {
    const options = { artifacts: true };
    const loaded = await store.load(alice, "t", options);
    const [listed] = (await store.list(alice, { ...options, limit: 1 })).tasks;
    return [plain(loaded?.task), plain(listed?.task)];
  };
  for (const [text, time] of [
    ["first", 10],
    ["second", 20],
  ] as const) {
    const item = making("t", { time, text });
    await other.append([item]);
    expect(await look()).toEqual([folded(item.records), folded(item.records)]);
    const records = [completed("t", { time })];
    await other.append([adding("t", ...records)]);
    const whole = folded([...item.records, ...records]);
    expect(await look()).toEqual([whole, whole]);
    // The next task reuses the id, and possibly the internal number.
    await other.sweep({ now: 0, deleteBefore: time + 1, limit: 9 });
    expect(await store.load(alice, "t", { artifacts: true })).toEqual(undefined);
  }
});

/** Enough tasks that a store maintains counters instead of counting. */
const many = 2_500;
const [working, done] = ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"] as const;

export const totalsByTime: Case = sharing(async ({ store, other, expect }) => {
  const tasks = new Tasks(other);
  const check = (): Promise<void> => tasks.check(store, expect);
  const each = (from: number, to: number, step = 2): string[] =>
    Array.from({ length: Math.ceil((to - from) / step) }, (_, i) => `t${from + i * step}`);

  for (const state of [working, done]) {
    await tasks.make(each(state === working ? 0 : 1, many * 2), state, (at) => 10_000 + 20 * at);
  }
  await check();
  await check();
  // Old tasks get a new status, some of them in the same state.
  await tasks.move(each(0, 20), working, 70_000);
  await check();
  await tasks.move(each(100, 120), done, 71_000);
  await check();
  // Adds a late task at a past time from which another task has moved away, so the count at that time is unchanged.
  await tasks.make(["late"], working, () => 20_000);
  await tasks.move(each(200, 202), working, 71_500);
  await check();
  await tasks.move(each(40, 42), working, 12_000);
  await check();
  await tasks.move(each(44, 46), done, 30_000);
  await check();
  // Many new tasks.
  await tasks.make(
    Array.from({ length: many }, (_, i) => `new${i}`),
    done,
    (at) => 80_000 + at,
  );
  await check();
  await tasks.move(each(300, 304), done, 85_000);
  await check();
  await tasks.sweep(14_000);
  await check();
});

/** The tasks that the store must have. */
class Tasks {
  readonly #store: Store;
  readonly #places = new Map<string, { state: TaskState; time: number }>();

  constructor(store: Store) {
    this.#store = store;
  }

  async make(ids: readonly string[], state: TaskState, timeOf: (at: number) => number): Promise<void> {
    await this.#append(
      ids.map((id, at) => {
        const time = timeOf(at);
        this.#places.set(id, { state, time });
        return making(id, { state, time });
      }),
    );
  }

  async move(ids: readonly string[], state: TaskState, time: number): Promise<void> {
    await this.#append(
      ids.map((id) => {
        this.#places.set(id, { state, time });
        return adding(id, status(id, state, { time }));
      }),
    );
  }

  async sweep(deleteBefore: number): Promise<void> {
    while ((await this.#store.sweep({ now: 0, deleteBefore, limit: 500 })).more);
    for (const [id, { state, time }] of this.#places) {
      if (state === done && time < deleteBefore) this.#places.delete(id);
    }
  }

  async check(store: Store, expect: Expect): Promise<void> {
    for (const state of [undefined, working, done]) {
      const found: number[] = [];
      const wanted: number[] = [];
      for (const since of [0, 12_000, 12_001, 20_000, 30_000, 59_000, 70_000, 81_500, 90_000]) {
        const query = { limit: 1, artifacts: false, since, ...(state !== undefined && { state }) };
        found.push((await store.list(alice, query)).total);
        const places = [...this.#places.values()];
        wanted.push(places.filter((at) => at.time >= since && (state === undefined || at.state === state)).length);
      }
      expect(found).toEqual(wanted);
    }
  }

  async #append(items: readonly TaskAppend[]): Promise<void> {
    const outcomes = await this.#store.append(items);
    if (!outcomes.every(({ ok }) => ok)) throw new Error("the store rejected a task");
  }
}

/** For stores that count processes: every process sees the heartbeats of all, measured by the store's clock. */
export const countsProcesses: Case = sharing(async ({ store, other, expect }) => {
  if (store.nodes === undefined || other.nodes === undefined) return;
  const names = async (nodes: StoreNodes): Promise<string[]> =>
    (await nodes.beat("one")).map(({ name }) => name).sort();
  const first = await store.nodes.beat("one");
  expect(first.map(({ name }) => name)).toEqual(["one"]);
  const odd = "two, \u{1f600} and 'more'";
  const second = await other.nodes.beat(odd);
  expect(second.map(({ name }) => name).sort()).toEqual(["one", odd]);
  const beatsOf = (found: readonly StoreNode[], name: string): number | undefined =>
    found.find((node) => node.name === name)?.beats;
  const third = await store.nodes.beat("one");
  // The call counts its own heartbeat. The other process has sent none since the previous call.
  expect(beatsOf(third, "one") === beatsOf(second, "one")).toEqual(false);
  expect(beatsOf(third, odd)).toEqual(beatsOf(second, odd));
  expect(third.every(({ silent }) => silent >= 0 && silent < 60_000)).toEqual(true);
  await other.nodes.forget(["one", "nobody"]);
  expect((await other.nodes.beat(odd)).map(({ name }) => name)).toEqual([odd]);
  expect(await names(store.nodes)).toEqual(["one", odd]);
});

/* Budgets that processes share. A store without them passes. Most cases use a week, so that nothing refills while a case runs. */

const week = 7 * 24 * 60 * 60_000;

function using(key: string, use: Partial<RateUse>): RateUse {
  return { key, requests: 10, per: week, used: 0, wanted: 0, ...use };
}

/** The used requests of a budget of ten, rounded, because the clock runs during a case. */
function usedOf({ back }: RateTaken): number {
  return Math.round((back / week) * 10);
}

async function take(rates: StoreRates, key: string, use: Partial<RateUse>): Promise<[taken: number, used: number]> {
  const [answer = { taken: NaN, back: NaN }] = await rates.take([using(key, use)]);
  return [answer.taken, usedOf(answer)];
}

function withRates(body: (rates: StoreRates, expect: Expect) => Promise<void>): Case {
  return async ({ store, expect }) => {
    if (store.rates !== undefined) await body(store.rates, expect);
  };
}

export const rateCases: Cases = {
  "a budget grants what is left and no more": withRates(async (rates, expect) => {
    expect(await take(rates, "a", { wanted: 4 })).toEqual([4, 4]);
    expect(await take(rates, "a", { wanted: 4 })).toEqual([4, 8]);
    expect(await take(rates, "a", { wanted: 4 })).toEqual([2, 10]);
    expect(await take(rates, "a", { wanted: 4 })).toEqual([0, 10]);
    expect(await take(rates, "b", { wanted: 20 })).toEqual([10, 10]);
  }),

  "a query uses nothing": withRates(async (rates, expect) => {
    expect(await take(rates, "a", {})).toEqual([0, 0]);
    expect(await take(rates, "a", { wanted: 1 })).toEqual([1, 1]);
    expect(await take(rates, "a", {})).toEqual([0, 1]);
  }),

  "usage is subtracted before a request is granted, and a debt is at most one budget": withRates(
    async (rates, expect) => {
      expect(await take(rates, "a", { used: 7, wanted: 5 })).toEqual([3, 10]);
      expect(await take(rates, "a", { used: 4, wanted: 1 })).toEqual([0, 14]);
      expect(await take(rates, "a", { used: 1_000_000 })).toEqual([0, 20]);
      expect(await take(rates, "b", { used: 12, wanted: 1 })).toEqual([0, 12]);
      expect(await take(rates, "c", { used: 1_000_000, wanted: 1_000_000 })).toEqual([0, 20]);
    },
  ),

  "budgets refill evenly": withRates(async (rates, expect) => {
    const quick = { requests: 100, per: 1_000 };
    // The budget refills at 100 per second.
    const began = performance.now();
    expect((await rates.take([using("a", { ...quick, wanted: 100 })]))[0]?.taken).toEqual(100);
    let taken = 0;
    while (taken < 5) taken += (await rates.take([using("a", { ...quick, wanted: 1 })]))[0]?.taken ?? NaN;
    expect(performance.now() - began > 30).toEqual(true);
    // A full budget does not grow.
    const small = { requests: 1, per: 1 };
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await rates.take([using("b", { ...small, wanted: 9 })]))[0]?.taken).toEqual(1);
  }),

  "many budgets in one call are answered in order, with any names": withRates(async (rates, expect) => {
    const names = [
      "",
      "z",
      "a",
      "\0",
      "\ud800",
      "'; DROP TABLE x",
      "é",
      "e\u0301",
      "long ".repeat(2_000),
      "long ".repeat(2_001),
    ];
    const answers = await rates.take(names.map((name, at) => using(name, { wanted: at + 1 })));
    expect(answers.map(({ taken }) => taken)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(answers.map(usedOf)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(await take(rates, names.at(-2) ?? "", { wanted: 9 })).toEqual([1, 10]);
    expect(await rates.take([])).toEqual([]);
    const thousand = Array.from({ length: 1_000 }, (_, at) => using(`many ${at}`, { wanted: 1 }));
    expect((await rates.take(thousand)).every((answer) => answer.taken === 1 && usedOf(answer) === 1)).toEqual(true);
  }),

  "a closed store rejects with Unavailable": async ({ store, expect }) => {
    if (store.rates === undefined) return;
    const { rates } = store;
    await store.close();
    expect(await codeOf(() => rates.take([using("a", { wanted: 1 })]))).toEqual("Unavailable");
  },
};

export const sharesRates: Case = sharing(async ({ store, other, expect }) => {
  const [one, two] = [store.rates, other.rates];
  if (one !== undefined && two !== undefined) {
    expect(await take(one, "a", { used: 3 })).toEqual([0, 3]);
    expect(await take(two, "a", { wanted: 5 })).toEqual([5, 8]);
    expect(await take(one, "a", { wanted: 5 })).toEqual([2, 10]);
    // Concurrent calls take many budgets in different orders: none exceeds a budget, and none deadlocks.
    const names = Array.from({ length: 50 }, (_, at) => `n${at}`);
    const calls = Array.from({ length: 12 }, (_, at) => {
      const order = at % 2 === 0 ? names : names.toReversed();
      return (at % 3 === 0 ? one : two).take(order.map((name) => using(name, { wanted: 1 })));
    });
    const taken = (await Promise.all(calls)).flat().reduce((sum, answer) => sum + answer.taken, 0);
    expect(taken).toEqual(500);
  }
});

/* Notes between processes. A store without notes passes. */

const now = 1_700_000_000_000;

function noteOf(key: string, value: string, until: number = now + 1_000): StoreNote {
  return { key, value, until };
}

async function read(notes: StoreNotes, keys: readonly string[], at: number = now): Promise<readonly unknown[]> {
  const found = await notes.read(keys, at);
  return keys.map((key) => found.get(key));
}

function withNotes(body: (notes: StoreNotes, expect: Expect) => Promise<void>): Case {
  return async ({ store, expect }) => {
    if (store.notes !== undefined) await body(store.notes, expect);
  };
}

export const noteCases: Cases = {
  "a note replaces the previous one with its key": withNotes(async (notes, expect) => {
    await notes.write([noteOf("a", "1"), noteOf("b", "2")], now);
    await notes.write([noteOf("a", "3")], now);
    expect(await read(notes, ["b", "none", "a"])).toEqual(["2", undefined, "3"]);
    expect((await notes.read(["none"], now)).size).toEqual(0);
  }),

  "an expired note is gone, and can be written again": withNotes(async (notes, expect) => {
    await notes.write([noteOf("a", "1", now + 10), noteOf("b", "2", now + 20)], now);
    expect(await read(notes, ["a", "b"], now + 9.5)).toEqual(["1", "2"]);
    expect(await read(notes, ["a", "b"], now + 10)).toEqual([undefined, "2"]);
    await notes.write([noteOf("a", "3", now + 100), noteOf("c", "4", now + 100)], now + 50);
    expect(await read(notes, ["a", "b", "c"], now + 50)).toEqual(["3", undefined, "4"]);
    // Expired notes are deleted, so not even a reader whose clock is behind finds them.
    expect(await read(notes, ["a", "b"], now)).toEqual(["3", undefined]);
  }),

  "a call may write a thousand notes of the maximum size, or none": withNotes(async (notes, expect) => {
    const keys = Array.from({ length: 1_000 }, (_, at) => String(at).padEnd(128, "~"));
    const value = "~".repeat(1_024);
    await notes.write(
      keys.map((key) => noteOf(key, value)),
      now,
    );
    expect((await read(notes, keys)).every((found) => found === value)).toEqual(true);
    await notes.write([], now);
    expect((await notes.read([], now)).size).toEqual(0);
  }),

  "concurrent calls that write notes in different orders store all of them": withNotes(async (notes, expect) => {
    const keys = Array.from({ length: 50 }, (_, at) => `k${at}`);
    await notes.write(
      keys.map((key) => noteOf(key, "old", now + 1)),
      now,
    );
    const calls = Array.from({ length: 12 }, (_, at) =>
      notes.write(
        (at % 2 === 0 ? keys : keys.toReversed()).map((key) => noteOf(key, "new")),
        now + 1,
      ),
    );
    await Promise.all(calls);
    expect(new Set(await read(notes, keys, now + 1))).toEqual(new Set(["new"]));
  }),

  "a closed store rejects with Unavailable": async ({ store, expect }) => {
    const { notes } = store;
    if (notes === undefined) return;
    await store.close();
    expect(await codeOf(() => notes.read(["a"], now))).toEqual("Unavailable");
    expect(await codeOf(() => notes.write([noteOf("a", "1")], now))).toEqual("Unavailable");
  },
};

export const sharesNotes: Case = sharing(async ({ store, other, expect }) => {
  if (store.notes !== undefined && other.notes !== undefined) {
    await store.notes.write([noteOf("a", "1")], now);
    expect(await read(other.notes, ["a"])).toEqual(["1"]);
    await other.notes.write([noteOf("a", "2")], now);
    expect(await read(store.notes, ["a"])).toEqual(["2"]);
  }
});
