import type { TaskState } from "@parley/a2a/internal/model/index";
import type { ListPosition, ListQuery, Store } from "@parley/server/internal/store/index";
import {
  adding,
  alice,
  all,
  bare,
  idsOf,
  append,
  bob,
  chunk,
  completed,
  context,
  folded,
  headOf,
  key,
  making,
  plain,
  status,
  working,
  type Cases,
} from "./given.ts";
import { totalsByTime } from "./share-cases.ts";

/** Reads every page of a list, newest first. */
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

/** Lists of tasks (A2A 1.0 §3.1.4). */
export const listCases: Cases = {
  async "a list without tasks has one empty page"({ store, expect }) {
    expect(await store.list(alice, bare)).toEqual({ tasks: [], total: 0 });
  },

  async "a page position reveals nothing of other owners' tasks, and stays valid after its task is deleted"({
    store,
    expect,
  }) {
    const state = "TASK_STATE_COMPLETED";
    await store.append([making("a", { time: 10 }), making("b", { time: 10 }), making("c", { time: 10, state })]);
    const page = await store.list(alice, { ...bare, limit: 1 });
    expect(page.next).toEqual({ statusTime: 10, taskId: "c" });
    await store.append(["d", "e"].map((id) => making(id, { time: 10, owner: bob })));
    expect((await store.list(alice, { ...bare, limit: 1 })).next).toEqual(page.next);
    await store.sweep({ now: 100, deleteBefore: 50, limit: 9 });
    const rest = await store.list(alice, { ...bare, ...(page.next && { after: page.next }) });
    expect(rest.tasks.map(({ task }) => task.id)).toEqual(["b", "a"]);
    // Another owner's task is an unknown position.
    const foreign = await store.list(alice, { ...bare, after: { statusTime: 10, taskId: "d" } });
    expect(foreign.tasks.map(({ task }) => task.id)).toEqual(["b", "a"]);
  },

  async "tasks are ordered by status time, then by creation, newest first"({ store, expect }) {
    await store.append([
      making("a", { time: 10 }),
      making("b", { time: 30 }),
      making("c", { time: 20 }),
      making("d", { time: 20 }),
      adding("a", working("a", { time: 25 })),
    ]);
    expect(await idsOf(store)).toEqual(["b", "a", "d", "c"]);
    await append(store, adding("c", completed("c", { time: 30 })));
    expect(await idsOf(store)).toEqual(["c", "b", "a", "d"]);
    await append(store, adding("d", chunk("d", "x", "y")));
    expect(await idsOf(store)).toEqual(["c", "b", "a", "d"]);
  },

  async "a new status moves its task to the new time, even if the state is the same"({ store, expect }) {
    await store.append([making("a", { time: 10 }), making("b", { time: 20 })]);
    await append(store, adding("a", working("a", { time: 15 })));
    await append(store, adding("a", working("a", { time: 30 })));
    expect((await headOf(store, key("a"))).statusTime).toEqual(30);
    expect(await idsOf(store)).toEqual(["a", "b"]);
    expect(await idsOf(store, { state: "TASK_STATE_WORKING", since: 30 })).toEqual(["a"]);
  },

  async "a list is filtered by context, state and time, and total counts the matches"({ store, expect }) {
    const states: readonly TaskState[] = ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"];
    const tasks = Array.from({ length: 30 }, (_, i) => ({
      id: `t${i}`,
      time: 100 + 7 * (i % 5),
      contextId: `c${i % 2}`,
      state: states[i % 3] ?? "TASK_STATE_WORKING",
    }));
    await store.append(tasks.map(({ id, ...options }) => making(id, { ...options, state: "TASK_STATE_SUBMITTED" })));
    await store.append(tasks.map(({ id, state, time }) => adding(id, status(id, state, { time }))));
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

  "totals by time are exact after tasks are changed, created with old times, and deleted": totalsByTime,

  async "the last page has no next, even if it is full"({ store, expect }) {
    await store.append(["a", "b", "c", "d"].map((id) => making(id)));
    const first = await store.list(alice, { ...bare, limit: 2 });
    expect(first.next !== undefined).toEqual(true);
    const second = await store.list(alice, { ...bare, limit: 2, ...(first.next && { after: first.next }) });
    expect([second.tasks.length, "next" in second, second.total]).toEqual([2, false, 4]);
  },

  async "paging never repeats or skips a task that did not change, while other tasks change"({ store, expect }) {
    const count = 60;
    await store.append(Array.from({ length: count }, (_, i) => making(`t${i}`, { time: 100 + (i >> 2) })));
    const still = new Set(Array.from({ length: count }, (_, i) => `t${i}`));
    const found = await walk(store, { limit: 7 }, async (page) => {
      // Moves three tasks to the top: one that was read, one that was not, and the one at the position. Adds one task.
      const moving = [`t${count - page}`, `t${page}`, `t${count - 7 * page}`];
      for (const id of moving) still.delete(id);
      await store.append(moving.map((id) => adding(id, working(id, { time: 1000 + page }))));
      await store.append([making(`new${page}`, { time: 2000 + page })]);
    });
    expect(found.filter((id) => still.has(id))).toEqual(
      Array.from({ length: count }, (_, i) => `t${count - 1 - i}`).filter((id) => still.has(id)),
    );
  },

  async "many tasks with the same status time are read in pages"({ store, expect }) {
    const ids = Array.from({ length: 250 }, (_, i) => `t${i}`);
    await store.append(ids.map((id) => making(id)));
    expect(await walk(store, { limit: 9 })).toEqual(ids.reverse());
  },

  async "each task has the history and artifacts that the query requests"({ store, expect }) {
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

/** Other owners cannot see or change an owner's data. */
export const ownerCases: Cases = {
  async "every read of another owner or agent finds nothing"({ store, expect }) {
    await append(store, {
      ...making("t"),
      effects: [
        { effect: "once", key: "k", hash: "h", now: 1 },
        { effect: "contextState", value: "1" },
      ],
    });
    for (const other of [bob, { agent: "other", owner: "alice" }, { agent: "other" }]) {
      expect(await store.head(other, "t")).toEqual(undefined);
      expect(await store.load(other, "t", all)).toEqual(undefined);
      expect(await store.read(other, "t", { after: 0, limit: 1 })).toEqual(undefined);
      expect(await store.list(other, { limit: 9, artifacts: true })).toEqual({ tasks: [], total: 0 });
      expect(await store.list(other, { contextId: context, limit: 9, artifacts: true })).toEqual({
        tasks: [],
        total: 0,
      });
      if (other.owner === undefined) continue;
      const owner = { agent: other.agent, owner: other.owner };
      expect(await store.once(owner, "k", 1)).toEqual(undefined);
      expect(await store.conversation({ ...owner, contextId: context }, { limit: 9 })).toEqual({ entries: [] });
    }
  },

  async "every append of another owner behaves as if the task did not exist"({ store, expect }) {
    await append(store, making("t"));
    const before = await headOf(store, key("t"));
    for (const owner of [bob, { agent: "other", owner: "alice" }]) {
      for (const item of [
        { records: [working("t")] },
        { expect: 1, fence: 0, records: [] },
        { expect: 7, records: [] },
        { records: [], effects: [{ effect: "lease", op: "revoke" }] },
      ] as const) {
        expect(await append(store, { task: key("t", owner), ...item })).toEqual({ ok: false, reason: "missing" });
      }
    }
    expect(await headOf(store, key("t"))).toEqual(before);
  },

  async "a scope without an owner sees the tasks of all owners of its agent"({ store, expect }) {
    await store.append([
      making("a", { time: 1 }),
      making("b", { time: 2, owner: bob }),
      making("c", { time: 3, owner: { agent: "other", owner: "alice" } }),
    ]);
    const scope = { agent: "agent" };
    expect((await store.head(scope, "b"))?.task).toEqual(key("b", bob));
    expect((await store.load(scope, "a", all))?.task.id).toEqual("a");
    expect((await store.read(scope, "b", { after: 0, limit: 1 }))?.records.length).toEqual(1);
    const page = await store.list(scope, { limit: 9, artifacts: false });
    expect([page.total, page.tasks.map(({ task }) => task.id)]).toEqual([2, ["b", "a"]]);
    const inContext = await store.list(scope, { contextId: context, limit: 1, artifacts: false });
    expect([inContext.total, inContext.tasks.map(({ task }) => task.id)]).toEqual([2, ["b"]]);
    expect(await store.head(scope, "c")).toEqual(undefined);
  },

  async "contexts and keys of the same name are separate for each owner"({ store, expect }) {
    for (const owner of [alice, bob]) {
      const value = JSON.stringify(owner.owner);
      expect(
        await append(store, {
          context: { ...owner, contextId: context },
          effects: [
            { effect: "contextState", value },
            { effect: "once", key: "k", hash: owner.owner, now: 1 },
          ],
        }),
      ).toEqual({ ok: true, seq: 0, fence: 0 });
    }
    expect((await store.conversation({ ...alice, contextId: context }, { limit: 1 })).state).toEqual('"alice"');
    expect((await store.conversation({ ...bob, contextId: context }, { limit: 1 })).state).toEqual('"bob"');
    expect((await store.once(bob, "k", 1))?.hash).toEqual("bob");
  },
};
