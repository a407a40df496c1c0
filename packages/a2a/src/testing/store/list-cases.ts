import type { ListPosition, ListQuery, Store } from "../../store/index.ts";
import type { TaskState } from "../../model/index.ts";
import {
  alice,
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

const bare = { limit: 100, artifacts: false } as const;

async function idsOf(store: Store, query: Partial<ListQuery> = {}): Promise<readonly string[]> {
  return (await store.list(alice, { ...bare, ...query })).tasks.map(({ head }) => head.task.taskId);
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
    found.push(...page.tasks.map(({ head }) => head.task.taskId));
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
          expect(page.tasks.map(({ head }) => head.task.taskId)).toEqual(wanted.slice(0, 4));
          expect(page.next !== undefined).toEqual(wanted.length > 4);
          expect(await walk(store, { ...query, limit: 4 })).toEqual(wanted);
        }
      }
    }
  },

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
      expect(snapshot?.head).toEqual(await headOf(store, key("t")));
    }
  },
};

const all = { artifacts: true } as const;

/** Retention: what `sweep` deletes and compacts. */
export const retentionCases: Cases = {
  async "terminal tasks older than the limit are deleted with all they have"({ store, expect }) {
    await store.append([
      { ...making("old", { time: 10 }), effects: [{ effect: "once", key: "k", hash: "h", now: 1 }] },
      making("running", { time: 10 }),
      making("young", { time: 10 }),
      making("alone", { time: 10, contextId: "its own" }),
      { task: key("old"), records: [chunk("old", "a", "x"), completed("old", { time: 99, text: "bye" })] },
      { task: key("young"), records: [completed("young", { time: 100 })] },
      {
        task: key("alone"),
        records: [completed("alone", { time: 50 })],
        effects: [
          { effect: "contextState", value: "1" },
          { effect: "checkpoint", value: "1" },
        ],
      },
    ]);
    expect(await store.sweep({ now: 0, deleteBefore: 100, limit: 9 })).toEqual({
      deleted: 2,
      compacted: 0,
      more: false,
    });
    for (const id of ["old", "alone"]) {
      expect(await store.head(alice, id)).toEqual(undefined);
      expect(await store.load(alice, id, all)).toEqual(undefined);
      expect(await store.read(alice, id, { after: 0, limit: 1 })).toEqual(undefined);
    }
    expect(await store.once(alice, "k", 1)).toEqual(undefined);
    expect(await idsOf(store)).toEqual(["young", "running"]);
    expect((await store.list(alice, bare)).total).toEqual(2);
    expect((await store.list(alice, { ...bare, state: "TASK_STATE_COMPLETED" })).total).toEqual(1);
    expect(await store.conversation({ ...alice, contextId: "its own" }, 9)).toEqual({ messages: [] });
    expect((await store.conversation({ ...alice, contextId: context }, 9)).messages.length).toEqual(2);
    expect(await append(store, making("old"))).toEqual({ ok: true, seq: 1, fence: 0 });
    expect((await headOf(store, key("old"))).contextId).toEqual(context);
    expect("checkpoint" in (await headOf(store, key("old")))).toEqual(false);
  },

  async "contexts are deleted once they have no task and nothing touched them"({ store, expect }) {
    const effects = (time: number) =>
      [
        {
          effect: "contextMessage",
          json: JSON.stringify({ messageId: "m", role: "ROLE_USER", parts: [{ text: "x" }] }),
          time,
        },
        { effect: "once", key: `k${time}`, hash: "h", now: time },
        { effect: "contextState", value: "1" },
      ] as const;
    await store.append([
      { context: { ...alice, contextId: "old" }, effects: effects(10) },
      { context: { ...alice, contextId: "young" }, effects: effects(100) },
      { context: { ...alice, contextId: "touched" }, effects: effects(11) },
      { context: { ...alice, contextId: "touched" }, effects: effects(101) },
      { context: { ...alice, contextId: context }, effects: effects(12) },
      making("t", { time: 12 }),
    ]);
    const counts = async (): Promise<unknown> =>
      Promise.all(
        ["old", "young", "touched", context].map(
          async (contextId) => (await store.conversation({ ...alice, contextId }, 9)).messages.length,
        ),
      );
    expect(await counts()).toEqual([1, 1, 2, 2]);
    await store.sweep({ now: 0, deleteBefore: 100, limit: 9 });
    expect(await counts()).toEqual([0, 1, 2, 2]);
    expect(await store.once(alice, "k10", 0)).toEqual(undefined);
    expect((await store.once(alice, "k11", 0))?.hash).toEqual("h");
  },

  async "keys that ran out are deleted, others stay"({ store, expect }) {
    await append(store, {
      ...making("t"),
      effects: [
        { effect: "once", key: "short", hash: "h", now: 1, until: 10 },
        { effect: "once", key: "long", hash: "h", now: 1, until: 11 },
        { effect: "once", key: "ever", hash: "h", now: 1 },
      ],
    });
    await store.sweep({ now: 10, limit: 9 });
    // Asked as of an earlier time: only what was deleted is gone.
    expect(await store.once(alice, "short", 1)).toEqual(undefined);
    expect((await store.once(alice, "long", 1))?.hash).toEqual("h");
    expect((await store.once(alice, "ever", 1))?.hash).toEqual("h");
  },

  async "compaction changes what read gives and nothing of what load gives"({ store, expect }) {
    const item = making("t", { metadata: { a: 1 } });
    const records = [
      ...item.records,
      working("t", { text: "progress", metadata: { b: 2 } }),
      chunk("t", "one", "1", { name: "One" }),
      chunk("t", "two", "2"),
      chunk("t", "one", "3", { append: true, lastChunk: true }),
      status("t", "TASK_STATE_INPUT_REQUIRED", { text: "question" }),
      completed("t", { text: "done", time: 99, metadata: { a: 3 } }),
    ];
    await append(store, { ...item, records });
    await append(store, making("running", { time: 1 }));
    const before = await headOf(store, key("t"));
    expect(await store.sweep({ now: 0, compactBefore: 99, limit: 9 })).toEqual({
      deleted: 0,
      compacted: 0,
      more: false,
    });
    expect(await store.sweep({ now: 0, compactBefore: 100, limit: 9 })).toEqual({
      deleted: 0,
      compacted: 1,
      more: false,
    });
    expect(await store.sweep({ now: 0, compactBefore: 100, limit: 9 })).toEqual({
      deleted: 0,
      compacted: 0,
      more: false,
    });
    const head = await headOf(store, key("t"));
    expect(head).toEqual({ ...before, firstSeq: head.firstSeq });
    expect(head.firstSeq > 1).toEqual(true);
    for (const artifacts of [true, false]) {
      for (const history of [undefined, 0, 1, 2]) {
        const options = { artifacts, ...(history !== undefined && { history }) };
        expect(plain((await store.load(alice, "t", options))?.task)).toEqual(folded(records, options));
      }
    }
    const left = records.map((record, index) => ({ ...record, seq: index + 1 })).slice(head.firstSeq - 1);
    expect((await store.read(alice, "t", { after: 0, limit: 99 }))?.records).toEqual(left);
    expect((await store.conversation({ ...alice, contextId: context }, 9)).messages.length).toEqual(4);
    expect(await store.sweep({ now: 0, deleteBefore: 100, limit: 9 })).toEqual({
      deleted: 1,
      compacted: 0,
      more: false,
    });
    expect(await store.load(alice, "t", all)).toEqual(undefined);
  },

  async "a sweep does at most so many tasks, and says when there is more"({ store, expect }) {
    const ids = ["a", "b", "c", "d", "e"];
    await store.append(ids.map((id) => making(id, { time: 10 })));
    await store.append(
      ids.map((id, index) => ({ task: key(id), records: [chunk(id, "x", "y"), completed(id, { time: 10 + index })] })),
    );
    const sweep = { now: 0, deleteBefore: 13, compactBefore: 99, limit: 2 };
    expect(await store.sweep(sweep)).toEqual({ deleted: 2, compacted: 0, more: true });
    expect(await idsOf(store)).toEqual(["e", "d", "c"]);
    expect(await store.sweep(sweep)).toEqual({ deleted: 1, compacted: 1, more: true });
    expect(await store.sweep(sweep)).toEqual({ deleted: 0, compacted: 1, more: false });
    expect(await store.sweep(sweep)).toEqual({ deleted: 0, compacted: 0, more: false });
  },
};
