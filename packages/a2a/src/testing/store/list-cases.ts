import type { ListPosition, ListQuery, Store } from "../../store/index.ts";
import type { TaskState } from "../../model/index.ts";
import { totalsByTime } from "./share-cases.ts";
import {
  alice,
  append,
  bob,
  chunk,
  completed,
  folded,
  headOf,
  key,
  making,
  plain,
  status,
  working,
  type Cases,
} from "./given.ts";

const bare = { limit: 100, artifacts: false } as const;

async function idsOf(store: Store, query: Partial<ListQuery> = {}): Promise<readonly string[]> {
  return (await store.list(alice, { ...bare, ...query })).tasks.map(({ task }) => task.id);
}

/** Every page of a list, from the newest on. */
async function walk(
  store: Store,
  query: Partial<ListQuery>,
  between: (page: number) => Promise<unknown> = async () => {},
): Promise<string[]> {
  const found: string[] = [];
  let after: ListPosition | undefined;
  for (let number = 1; ; number += 1) {
    const page = await store.list(alice, { ...bare, ...query, ...(after && { after }) });
    found.push(...page.tasks.map(({ task }) => task.id));
    if (page.next === undefined) return found;
    after = page.next;
    await between(number);
  }
}

/** A2A 1.0 §3.1.4. */
export const listCases: Cases = {
  async "nothing is a page too"({ store, expect }) {
    expect(await store.list(alice, bare)).toEqual({ tasks: [], total: 0 });
  },

  async "newest status first, ties by creation, newest first"({ store, expect }) {
    await store.append([
      making("a", { time: 10 }),
      making("b", { time: 30 }),
      making("c", { time: 20 }),
      making("d", { time: 20 }),
      { task: key("a"), records: [working("a", { time: 25 })] },
    ]);
    expect(await idsOf(store)).toEqual(["b", "a", "d", "c"]);
    await append(store, { task: key("c"), records: [completed("c", { time: 30 })] });
    expect(await idsOf(store)).toEqual(["c", "b", "a", "d"]);
    await append(store, { task: key("d"), records: [chunk("d", "x", "y")] });
    expect(await idsOf(store)).toEqual(["c", "b", "a", "d"]);
  },

  async "a status that keeps the state moves its task to its time"({ store, expect }) {
    await store.append([making("a", { time: 10 }), making("b", { time: 20 })]);
    await append(store, { task: key("a"), records: [working("a", { time: 15 })] });
    await append(store, { task: key("a"), records: [working("a", { time: 30 })] });
    expect((await headOf(store, key("a"))).statusTime).toEqual(30);
    expect(await idsOf(store)).toEqual(["a", "b"]);
    expect(await idsOf(store, { state: "TASK_STATE_WORKING", since: 30 })).toEqual(["a"]);
  },

  async "filters by context, state and time, alone and together; total counts what matches"({ store, expect }) {
    const states: readonly TaskState[] = ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"];
    const tasks = Array.from({ length: 30 }, (_, i) => ({
      id: `t${i}`,
      time: 100 + 7 * (i % 5),
      contextId: `c${i % 2}`,
      state: states[i % 3] ?? "TASK_STATE_WORKING",
    }));
    await store.append(tasks.map(({ id, ...options }) => making(id, { ...options, state: "TASK_STATE_SUBMITTED" })));
    await store.append(tasks.map(({ id, state, time }) => ({ task: key(id), records: [status(id, state, { time })] })));
    await store.append([making("bobs", { owner: bob, contextId: "c0" })]);
    for (const contextId of [undefined, "c0", "c1", "nothing"]) {
      for (const state of [undefined, ...states, "TASK_STATE_FAILED"] as const) {
        for (const since of [undefined, 0, 107, 108, 128, 129]) {
          const wanted = tasks
            .map((task, number) => ({ ...task, number }))
            .filter((task) => contextId === undefined || task.contextId === contextId)
            .filter((task) => state === undefined || task.state === state)
            .filter((task) => since === undefined || task.time >= since)
            .sort((a, b) => b.time - a.time || b.number - a.number)
            .map(({ id }) => id);
          const query = {
            ...(contextId !== undefined && { contextId }),
            ...(state !== undefined && { state }),
            ...(since !== undefined && { since }),
          };
          const page = await store.list(alice, { ...bare, ...query, limit: 4 });
          expect(page.total).toEqual(wanted.length);
          expect(page.tasks.map(({ task }) => task.id)).toEqual(wanted.slice(0, 4));
          expect(page.next !== undefined).toEqual(wanted.length > 4);
          expect(await walk(store, { ...query, limit: 4 })).toEqual(wanted);
        }
      }
    }
  },

  "totals by time are exact, whatever moves, comes late and goes": totalsByTime,

  async "the last page has no next, even when it is full"({ store, expect }) {
    await store.append(["a", "b", "c", "d"].map((id) => making(id)));
    const first = await store.list(alice, { ...bare, limit: 2 });
    expect(first.next !== undefined).toEqual(true);
    const second = await store.list(alice, { ...bare, limit: 2, ...(first.next && { after: first.next }) });
    expect([second.tasks.length, "next" in second, second.total]).toEqual([2, false, 4]);
  },

  async "reading on never repeats or skips a task that did not change, whatever the others do"({ store, expect }) {
    const count = 60;
    await store.append(Array.from({ length: count }, (_, i) => making(`t${i}`, { time: 100 + (i >> 2) })));
    const still = new Set(Array.from({ length: count }, (_, i) => `t${i}`));
    const found = await walk(store, { limit: 7 }, async (page) => {
      // One that was read, one that will be, and the very one that the position names move to the top; one is new.
      const moving = [`t${count - page}`, `t${page}`, `t${count - 7 * page}`];
      for (const id of moving) still.delete(id);
      await store.append(moving.map((id) => ({ task: key(id), records: [working(id, { time: 1000 + page })] })));
      await store.append([making(`new${page}`, { time: 2000 + page })]);
    });
    expect(found.filter((id) => still.has(id))).toEqual(
      Array.from({ length: count }, (_, i) => `t${count - 1 - i}`).filter((id) => still.has(id)),
    );
  },

  async "many tasks of one millisecond are read in pages too"({ store, expect }) {
    const ids = Array.from({ length: 250 }, (_, i) => `t${i}`);
    await store.append(ids.map((id) => making(id)));
    expect(await walk(store, { limit: 9 })).toEqual(ids.reverse());
  },

  async "each task comes with as much as was asked for"({ store, expect }) {
    const item = making("t");
    const records = [...item.records, chunk("t", "a", "x"), completed("t", { text: "done" })];
    await append(store, { ...item, records });
    for (const options of [
      { artifacts: false },
      { artifacts: true, history: 1 },
      { artifacts: true, history: 0 },
      { artifacts: false, history: 9 },
    ]) {
      const [snapshot] = (await store.list(alice, { limit: 1, ...options })).tasks;
      expect(plain(snapshot?.task)).toEqual(folded(records, options));
    }
  },
};
