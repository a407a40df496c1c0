import type { Store, StoreNode, StoreNodes, TaskAppend } from "@parley/server/internal/store/index";
import type { TaskState } from "@parley/a2a/internal/model/index";
import { alice, completed, folded, key, making, plain, status, type Case, type Expectation } from "./given.ts";

/** Two stores that have the same data open: each sees what the other one wrote. */

export const sharesTasks: Case = async ({ store, expect, share }) => {
  const other = share === undefined ? store : await share(store);
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
    await other.append([{ task: key("t"), records }]);
    const whole = folded([...item.records, ...records]);
    expect(await look()).toEqual([whole, whole]);
    // The next task has the same id, and may get the same internal number.
    await other.sweep({ now: 0, deleteBefore: time + 1, limit: 9 });
    expect(await store.load(alice, "t", { artifacts: true })).toEqual(undefined);
  }
  if (other !== store) await other.close();
};

/** Enough tasks that a store keeps counters instead of counting them. */
const many = 2_500;
const [working, done] = ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"] as const;

export const totalsByTime: Case = async ({ store, expect, share }) => {
  const other = share === undefined ? store : await share(store);
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
  // Late tasks have a time in the past, from which others moved away, so that the counts there are the same as before.
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
  if (other !== store) await other.close();
};

/** The tasks that a store should have. */
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
        return { task: key(id), records: [status(id, state, { time })] };
      }),
    );
  }

  async sweep(deleteBefore: number): Promise<void> {
    while ((await this.#store.sweep({ now: 0, deleteBefore, limit: 500 })).more);
    for (const [id, { state, time }] of this.#places) {
      if (state === done && time < deleteBefore) this.#places.delete(id);
    }
  }

  async check(store: Store, expect: (actual: unknown) => Expectation): Promise<void> {
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
    if (!outcomes.every(({ ok }) => ok)) throw new Error("a task was refused");
  }
}

/** Where a store counts its processes: all of them see the heartbeats of each, by the clock of the store. */
export const countsProcesses: Case = async ({ store, expect, share }) => {
  const other = share === undefined ? store : await share(store);
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
  // Its own heartbeat counts in the same call. The other one has said nothing since.
  expect(beatsOf(third, "one") === beatsOf(second, "one")).toEqual(false);
  expect(beatsOf(third, odd)).toEqual(beatsOf(second, odd));
  expect(third.every(({ silent }) => silent >= 0 && silent < 60_000)).toEqual(true);
  await other.nodes.forget(["one", "nobody"]);
  expect((await other.nodes.beat(odd)).map(({ name }) => name)).toEqual([odd]);
  expect(await names(store.nodes)).toEqual(["one", odd]);
  if (other !== store) await other.close();
};
