import {
  adding,
  alice,
  all,
  bare,
  idsOf,
  append,
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
import { find, ids, searching } from "./search-cases.ts";

const swept = (deleted: number, compacted: number, more = false) => ({ deleted, compacted, more });

/** Retention: what `sweep` deletes and compacts. */
export const retentionCases: Cases = {
  "search finds text that was added to an artifact and compacted while search was off": searching(
    async ({ store, search, expect }) => {
      const asked = status("t", "TASK_STATE_INPUT_REQUIRED");
      await append(store, making("t"));
      await append(store, adding("t", chunk("t", "a", "a red sail"), chunk("t", "b", "mast"), asked));
      expect(await ids(search, "red")).toEqual(["t"]);
      await search.use(false);
      const more = [chunk("t", "a", "boat on a lake", { append: true }), chunk("t", "b", "oars", { append: false })];
      await append(store, adding("t", ...more, completed("t")));
      await store.sweep({ now: 0, compactBefore: 9000, limit: 9 });
      await search.use(true);
      expect(await ids(search, "red sailboat lake")).toEqual(["t"]);
      expect([await ids(search, "oars"), await ids(search, "mast")]).toEqual([["t"], []]);
      expect((await find(search, "sailboat")).hits.map(({ snippets }) => snippets.length)).toEqual([1]);
    },
  ),

  async "terminal tasks older than deleteBefore are deleted with all their data"({ store, expect }) {
    await store.append([
      { ...making("old", { time: 10 }), effects: [{ effect: "once", key: "k", hash: "h", now: 1 }] },
      making("running", { time: 10 }),
      making("young", { time: 10 }),
      making("alone", { time: 10, contextId: "its own" }),
      adding("old", chunk("old", "a", "x"), completed("old", { time: 99, text: "bye" })),
      adding("young", completed("young", { time: 100 })),
      {
        task: key("alone"),
        records: [completed("alone", { time: 50 })],
        effects: [
          { effect: "contextState", value: "1" },
          { effect: "checkpoint", value: "1" },
          { effect: "taskState", value: "1" },
        ],
      },
    ]);
    expect(await store.sweep({ now: 0, deleteBefore: 100, limit: 9 })).toEqual(swept(2, 0));
    for (const id of ["old", "alone"]) {
      expect(await store.head(alice, id)).toEqual(undefined);
      expect(await store.load(alice, id, all)).toEqual(undefined);
      expect(await store.read(alice, id, { after: 0, limit: 1 })).toEqual(undefined);
    }
    expect(await store.once(alice, "k", 1)).toEqual(undefined);
    expect(await idsOf(store)).toEqual(["young", "running"]);
    expect((await store.list(alice, bare)).total).toEqual(2);
    expect((await store.list(alice, { ...bare, state: "TASK_STATE_COMPLETED" })).total).toEqual(1);
    expect(await store.conversation({ ...alice, contextId: "its own" }, { limit: 9 })).toEqual({ entries: [] });
    expect((await store.conversation({ ...alice, contextId: context }, { limit: 9 })).entries.length).toEqual(2);
    expect(await append(store, making("old"))).toEqual({ ok: true, seq: 1, fence: 0 });
    expect((await headOf(store, key("old"))).contextId).toEqual(context);
    expect("checkpoint" in (await headOf(store, key("old")))).toEqual(false);
    expect(await append(store, making("alone", { contextId: "its own" }))).toEqual({ ok: true, seq: 1, fence: 0 });
    expect("taskState" in (await headOf(store, key("alone")))).toEqual(false);
  },

  async "a task with the id of a deleted one has none of its data"({ store, expect }) {
    for (const text of ["first", "second"]) {
      const made = making("t", { text, time: 10 }).records;
      const records = [...made, completed("t", { time: 10 })];
      await append(store, { ...making("t"), records });
      for (let asked = 0; asked < 2; asked += 1) {
        expect(plain((await store.load(alice, "t", all))?.task)).toEqual(folded(records));
        const [listed] = (await store.list(alice, { limit: 1, artifacts: true })).tasks;
        expect(plain(listed?.task)).toEqual(folded(records));
      }
      expect((await store.sweep({ now: 0, deleteBefore: 11, limit: 9 })).deleted).toEqual(1);
    }
  },

  async "contexts without a task or a recent change are deleted"({ store, expect }) {
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
          async (contextId) => (await store.conversation({ ...alice, contextId }, { limit: 9 })).entries.length,
        ),
      );
    expect(await counts()).toEqual([1, 1, 2, 2]);
    await store.sweep({ now: 0, deleteBefore: 100, limit: 9 });
    expect(await counts()).toEqual([0, 1, 2, 2]);
    expect(await store.once(alice, "k10", 0)).toEqual(undefined);
    expect((await store.once(alice, "k11", 0))?.hash).toEqual("h");
  },

  async "a key that has not expired keeps its context, even if the context is old and has no task"({ store, expect }) {
    const nonce = { effect: "once", key: "nonce", hash: "h", now: 10, until: 200 } as const;
    await store.append([{ context: { ...alice, contextId: "old" }, effects: [nonce] }]);
    await store.append([
      { context: { ...alice, contextId: "older" }, effects: [{ effect: "once", key: "k", hash: "h", now: 9 }] },
    ]);
    await store.sweep({ now: 199, deleteBefore: 150, limit: 1 });
    expect((await store.once(alice, "nonce", 199))?.hash).toEqual("h");
    expect(await store.once(alice, "k", 199)).toEqual(undefined);
    const [again] = await store.append([
      { context: { ...alice, contextId: "new" }, effects: [{ ...nonce, hash: "other", now: 199, until: 300 }] },
    ]);
    expect(again?.ok === false && [again.reason, again.once?.hash]).toEqual(["duplicate", "h"]);
    await store.sweep({ now: 200, deleteBefore: 150, limit: 9 });
    expect(await store.once(alice, "nonce", 10)).toEqual(undefined);
  },

  async "expired keys are deleted, others stay"({ store, expect }) {
    await append(store, {
      ...making("t"),
      effects: [
        { effect: "once", key: "short", hash: "h", now: 1, until: 10 },
        { effect: "once", key: "long", hash: "h", now: 1, until: 11 },
        { effect: "once", key: "ever", hash: "h", now: 1 },
      ],
    });
    await store.sweep({ now: 10, limit: 9 });
    // Uses an earlier time, so that only deleted keys are missing, not expired ones.
    expect(await store.once(alice, "short", 1)).toEqual(undefined);
    expect((await store.once(alice, "long", 1))?.hash).toEqual("h");
    expect((await store.once(alice, "ever", 1))?.hash).toEqual("h");
  },

  async "compaction changes what read returns, not what load returns"({ store, expect }) {
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
    expect(await store.sweep({ now: 0, compactBefore: 99, limit: 9 })).toEqual(swept(0, 0));
    expect(await store.sweep({ now: 0, compactBefore: 100, limit: 9 })).toEqual(swept(0, 1));
    expect(await store.sweep({ now: 0, compactBefore: 100, limit: 9 })).toEqual(swept(0, 0));
    const head = await headOf(store, key("t"));
    expect(head).toEqual({ ...before, firstSeq: head.firstSeq, bytes: head.bytes });
    expect(head.firstSeq > 1).toEqual(true);
    for (const artifacts of [true, false]) {
      for (const history of [undefined, 0, 1, 2]) {
        const options = { artifacts, ...(history !== undefined && { history }) };
        expect(plain((await store.load(alice, "t", options))?.task)).toEqual(folded(records, options));
      }
    }
    const left = records.map((record, index) => ({ ...record, seq: index + 1 })).slice(head.firstSeq - 1);
    expect((await store.read(alice, "t", { after: 0, limit: 99 }))?.records).toEqual(left);
    expect((await store.conversation({ ...alice, contextId: context }, { limit: 9 })).entries.length).toEqual(6);
    expect(await store.sweep({ now: 0, deleteBefore: 100, limit: 9 })).toEqual(swept(1, 0));
    expect(await store.load(alice, "t", all)).toEqual(undefined);
  },

  async "a sweep handles at most `limit` tasks, and reports if there are more"({ store, expect }) {
    const ids = ["a", "b", "c", "d", "e"];
    await store.append(ids.map((id) => making(id, { time: 10 })));
    await store.append(ids.map((id, index) => adding(id, chunk(id, "x", "y"), completed(id, { time: 10 + index }))));
    const sweep = { now: 0, deleteBefore: 13, compactBefore: 99, limit: 2 };
    expect(await store.sweep(sweep)).toEqual(swept(2, 0, true));
    expect(await idsOf(store)).toEqual(["e", "d", "c"]);
    expect(await store.sweep(sweep)).toEqual(swept(1, 1, true));
    expect(await store.sweep(sweep)).toEqual(swept(0, 1));
    expect(await store.sweep(sweep)).toEqual(swept(0, 0));
  },
};
