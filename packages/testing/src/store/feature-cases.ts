import {
  featureBounds,
  type DueFeature,
  type FeatureEffect,
  type Store,
  type TaskAppend,
} from "@parley/server/internal/store/index";
import {
  adding,
  alice,
  append,
  bob,
  codeOf,
  completed,
  effects,
  headOf,
  key,
  making,
  sharing,
  verdict,
  verdicts,
  working,
  type Case,
  type Cases,
} from "./given.ts";

/** Rows that features store with tasks. */

function set(name: string, value: string, more: { due?: number; if?: { value: string; due?: number } | null } = {}) {
  return { effect: "feature", op: "set", feature: "f", key: name, value, ...more } as const;
}

function remove(name: string, more: { if?: { value: string; due?: number } | null } = {}) {
  return { effect: "feature", op: "delete", feature: "f", key: name, ...more } as const;
}

function wake(due: number, feature = "f"): FeatureEffect {
  return { effect: "feature", op: "wake", feature, due };
}

/** A value that the types do not allow. */
function invalid(value: unknown): never {
  return value as never;
}

/** With `agents: "all"`, the query omits `agents`. */
async function dueKeys(
  store: Store,
  now: number,
  { agents = ["agent"], ...more }: { agents?: string[] | "all"; after?: number; limit?: number } = {},
): Promise<string[]> {
  const named = agents === "all" ? {} : { agents };
  const rows = await store.dueFeatures({ feature: "f", ...named, now, limit: 99, ...more });
  return rows.map((row) => `${row.task.taskId}/${row.key}`);
}

export const featureCases: Cases = {
  async "rows are stored with the records of their item, and can be deleted separately"({ store, expect }) {
    const row = set("a", '{"n":1}', { due: 5 });
    await append(store, { ...making("t"), effects: [row, set("b", "2"), { ...set("a", "3"), feature: "other" }] });
    const rows = (feature = "f"): Promise<unknown> => store.features(alice, "t", feature);
    expect(await rows()).toEqual([
      { key: "a", value: '{"n":1}', due: 5 },
      { key: "b", value: "2" },
    ]);
    expect(await rows("other")).toEqual([{ key: "a", value: "3" }]);
    expect(await rows("none")).toEqual([]);
    // Setting an existing row keeps its position. Without `due`, the row loses its due time.
    await append(store, { ...effects("t", set("a", "4"), remove("none")), records: [working("t")] });
    expect(await rows()).toEqual([
      { key: "a", value: "4" },
      { key: "b", value: "2" },
    ]);
    await append(store, effects("t", remove("a")));
    await append(store, effects("t", set("a", "5")));
    expect(await rows()).toEqual([
      { key: "b", value: "2" },
      { key: "a", value: "5" },
    ]);
    expect((await headOf(store, key("t"))).seq).toEqual(2);
  },

  async "a rejected item does not change rows"({ store, expect }) {
    await append(store, { ...making("t"), effects: [set("a", "1")] });
    const outcomes = await store.append([
      { ...effects("t", set("a", "2"), set("b", "2")), expect: 9 },
      { ...effects("t", remove("a"), wake(1)), fence: 9 },
      effects("nothing", set("a", "2")),
    ]);
    expect(verdicts(outcomes)).toEqual(["stale", "fenced", "missing"]);
    expect(await store.features(alice, "t", "f")).toEqual([{ key: "a", value: "1" }]);
  },

  async "effects are applied in order, across all items of a batch"({ store, expect }) {
    await store.append([
      { ...making("t"), effects: [set("a", "1"), wake(3), set("b", "1"), set("a", "2"), remove("b"), set("c", "1")] },
      effects("t", set("d", "1"), wake(4), remove("c")),
    ]);
    expect(await store.features(alice, "t", "f")).toEqual([
      { key: "a", value: "2", due: 4 },
      { key: "d", value: "1", due: 4 },
    ]);
  },

  async "an item whose condition does not match the row fails as changed"({ store, expect }) {
    await append(store, { ...making("t"), effects: [set("a", "1", { due: 5, if: null })] });
    const read = { value: "1", due: 5 };
    const item = (effect: FeatureEffect): TaskAppend => ({ ...effects("t", effect), records: [working("t")] });
    const head = await headOf(store, key("t"));
    for (const wrong of [null, { value: "1" }, { value: "1", due: 6 }, { value: "2", due: 5 }]) {
      expect(await append(store, item(set("a", "9", { if: wrong })))).toEqual({ ok: false, reason: "changed", head });
      expect(await append(store, item(remove("a", { if: wrong })))).toEqual({ ok: false, reason: "changed", head });
    }
    expect(await verdict(store, item(set("b", "1", { if: read })))).toEqual("changed");
    // If two processes read the same row, only one claims it.
    const claims = [set("a", "1", { due: 30, if: read }), set("a", "1", { due: 31, if: read })];
    expect(verdicts(await store.append(claims.map(item)))).toEqual(["ok", "changed"]);
    expect(await store.features(alice, "t", "f")).toEqual([{ key: "a", value: "1", due: 30 }]);
    expect(await verdict(store, item(remove("a", { if: { value: "1", due: 30 } })))).toEqual("ok");
    expect(await verdict(store, item(set("a", "2", { if: null })))).toEqual("ok");
  },

  async "conditions see the rows before the item, and are checked after all other conditions"({ store, expect }) {
    await append(store, { ...making("t"), effects: [set("a", "1")] });
    const twice = effects("t", set("a", "2", { if: { value: "1" } }), set("a", "3", { if: { value: "1" } }));
    expect(await verdict(store, twice)).toEqual("ok");
    const wrong = effects("t", set("a", "4", { if: null }));
    const once = { effect: "once", key: "k", hash: "h", now: 1 } as const;
    const outcomes = await store.append([
      { ...wrong, expect: 7 },
      { ...wrong, records: [working("t")], maxBytes: 1 },
      { ...wrong, effects: [...(wrong.effects ?? []), once] },
      { ...wrong, effects: [once] },
      { ...wrong, effects: [...(wrong.effects ?? []), once] },
    ]);
    expect(verdicts(outcomes)).toEqual(["stale", "full", "changed", "ok", "duplicate"]);
  },

  async "wake sets due on rows without one, only of its feature and task"({ store, expect }) {
    await store.append([
      { ...making("t"), effects: [set("a", "1"), set("b", "1", { due: 9 }), { ...set("c", "1"), feature: "other" }] },
      { ...making("u"), effects: [set("a", "1")] },
      { ...effects("t", wake(4)), records: [working("t")] },
      { ...making("v"), effects: [wake(1)] },
    ]);
    expect(await dueKeys(store, 99)).toEqual(["t/a", "t/b"]);
    expect(await store.features(alice, "t", "f")).toEqual([
      { key: "a", value: "1", due: 4 },
      { key: "b", value: "1", due: 9 },
    ]);
    // Also wakes rows of an earlier batch.
    await append(store, effects("u", wake(5)));
    expect(await dueKeys(store, 99)).toEqual(["t/a", "u/a", "t/b"]);
  },

  async "due rows are returned in order of due, with their tasks"({ store, expect }) {
    const elsewhere = { agent: "elsewhere", owner: "alice" };
    await store.append([
      { ...making("t"), effects: [set("late", "1", { due: 20 }), set("soon", "1", { due: 10 }), set("never", "1")] },
      { ...making("u", { owner: bob }), effects: [set("same", '"x"', { due: 10 }), set("first", "1", { due: -1 })] },
      { ...making("w", { owner: elsewhere }), effects: [set("there", "1", { due: 10 })] },
    ]);
    expect(await dueKeys(store, 20)).toEqual(["u/first", "t/soon", "u/same", "t/late"]);
    expect(await dueKeys(store, 19)).toEqual(["u/first", "t/soon", "u/same"]);
    expect(await dueKeys(store, 99, { limit: 2 })).toEqual(["u/first", "t/soon"]);
    expect(await dueKeys(store, 99, { limit: 0 })).toEqual([]);
    expect(await dueKeys(store, 10, { agents: ["elsewhere", "agent", "elsewhere", "none"] })).toEqual([
      "u/first",
      "t/soon",
      "u/same",
      "w/there",
    ]);
    expect(await dueKeys(store, 99, { agents: [] })).toEqual([]);
    expect(await dueKeys(store, 99, { after: -1 })).toEqual(["t/soon", "u/same", "t/late"]);
    expect(await dueKeys(store, Infinity, { after: 10, limit: 1 })).toEqual(["t/late"]);
    expect(await dueKeys(store, 99, { after: 20 })).toEqual([]);
    expect(await dueKeys(store, 99, { after: -Infinity, limit: 1 })).toEqual(["u/first"]);
    expect(await dueKeys(store, 99, { after: Infinity })).toEqual([]);
    // Operators omit `agents`, and get the rows of all agents.
    expect(await dueKeys(store, 10, { agents: "all" })).toEqual(["u/first", "t/soon", "u/same", "w/there"]);
    expect(await dueKeys(store, 99, { agents: "all", after: -1, limit: 1 })).toEqual(["t/soon"]);
    for (const ever of [Number.MAX_SAFE_INTEGER, 2 ** 53, Infinity]) {
      expect(await dueKeys(store, ever)).toEqual(["u/first", "t/soon", "u/same", "t/late"]);
    }
    expect(await dueKeys(store, -Infinity)).toEqual([]);
    const [, , row] = await store.dueFeatures({ feature: "f", agents: ["agent"], now: 10, limit: 9 });
    expect(row).toEqual({ task: key("u", bob), key: "same", value: '"x"', due: 10 } satisfies DueFeature);
    // A claim sets a later `due`. When done, a process deletes the row, or sets it without `due`.
    await store.append([
      effects("t", set("soon", "1", { due: 50, if: { value: "1", due: 10 } }), remove("late")),
      { ...effects("u", set("same", "2")), task: key("u", bob) },
    ]);
    expect(await dueKeys(store, 99)).toEqual(["u/first", "t/soon"]);
  },

  async "a scope sees only the rows of its own tasks"({ store, expect }) {
    await append(store, { ...making("t"), effects: [set("a", "1")] });
    const row = [{ key: "a", value: "1" }];
    expect(await store.features(bob, "t", "f")).toEqual([]);
    expect(await store.features({ agent: "other", owner: "alice" }, "t", "f")).toEqual([]);
    expect(await store.features({ agent: "agent" }, "t", "f")).toEqual(row);
    expect(await store.features(alice, "nothing", "f")).toEqual([]);
    const foreign = { ...effects("t", set("a", "2")), task: key("t", bob) };
    expect(await verdict(store, foreign)).toEqual("missing");
    expect(await store.features(alice, "t", "f")).toEqual(row);
  },

  async "rows survive the end and the compaction of their task, and are deleted with it"({ store, expect }) {
    await append(store, { ...making("t"), effects: [set("a", "1", { due: 5 })] });
    await append(store, adding("t", completed("t", { time: 10 })));
    await append(store, effects("t", set("b", "1")));
    await store.sweep({ now: 0, compactBefore: 11, limit: 9 });
    expect(await store.features(alice, "t", "f")).toEqual([
      { key: "a", value: "1", due: 5 },
      { key: "b", value: "1" },
    ]);
    await store.sweep({ now: 0, deleteBefore: 11, limit: 9 });
    expect(await store.features(alice, "t", "f")).toEqual([]);
    expect(await dueKeys(store, 99)).toEqual([]);
    await append(store, { ...making("t"), effects: [wake(1)] });
    expect(await store.features(alice, "t", "f")).toEqual([]);
    expect(await verdict(store, effects("t", set("a", "2", { if: null })))).toEqual("ok");
  },

  async "a task's rows are limited in number; rows that are too large or not JSON are malformed"({ store, expect }) {
    const { rows, name, key: keyBytes, value } = featureBounds;
    const many = Array.from({ length: rows }, (_, n) => ({ ...set(`${n}`, "1"), feature: n % 2 === 0 ? "f" : "g" }));
    await append(store, { ...making("t"), effects: many });
    const head = await headOf(store, key("t"));
    const full = { ok: false, reason: "full", head };
    expect(await append(store, effects("t", set("more", "1")))).toEqual(full);
    expect(await append(store, effects("t", remove("0"), set("more", "1"), set("most", "1")))).toEqual(full);
    const outcomes = await store.append([
      effects("t", set("0", "2")),
      effects("t", remove("0"), set("more", "1")),
      effects("t", set("gone", "1"), remove("gone")),
      effects("t", set("0", "1")),
    ]);
    expect(verdicts(outcomes)).toEqual(["ok", "ok", "ok", "full"]);
    expect((await store.features(alice, "t", "f")).length).toEqual(rows / 2);
    const largest = { ...set("k".repeat(keyBytes), "1".repeat(value)), feature: "f".repeat(name) };
    expect(await verdict(store, { ...making("u"), effects: [largest] })).toEqual("ok");
    expect(await store.features(alice, "u", largest.feature)).toEqual([{ key: largest.key, value: largest.value }]);
    for (const wrong of [
      { ...largest, feature: "ü".repeat(name / 2 + 1) },
      { ...largest, feature: "" },
      { ...largest, key: "k".repeat(keyBytes + 1) },
      { ...largest, key: "" },
      { ...largest, value: "1".repeat(value + 1) },
      { ...largest, value: invalid(1) },
      ...["", "{", "NaN", "1 2", '"\u0000"', '"\ud800"', "undefined"].map((value) => ({ ...largest, value })),
      { ...largest, key: invalid(1) },
      { ...largest, due: 1.5 },
      wake(Number.NaN),
      wake(invalid(undefined)),
      { ...largest, op: invalid("unknown") },
    ]) {
      expect(await codeOf(() => store.append([making("v"), effects("u", wrong)]))).toEqual("TypeError");
    }
    expect(await store.head(alice, "v")).toEqual(undefined);
  },

  async "a call with an unknown effect rejects and stores nothing"({ store, expect }) {
    const unknown = invalid({ effect: "unknown" });
    expect(await codeOf(() => store.append([making("t"), effects("t", unknown)]))).toEqual("TypeError");
    expect(await store.head(alice, "t")).toEqual(undefined);
  },
};

/** For stores that several processes share: each process sees the rows of the others, and only one claims a row. */
export const sharesFeatures: Case = sharing(async ({ store, other, expect }) => {
  await append(store, making("t"));
  // The first store has read the task before the other one adds rows.
  await append(other, effects("t", set("a", "1")));
  await append(store, { ...effects("t", wake(5)), records: [working("t")] });
  const query = { feature: "f", agents: ["agent"], now: 9, limit: 9 };
  const due = [{ task: key("t"), key: "a", value: "1", due: 5 }];
  expect(await store.dueFeatures(query)).toEqual(due);
  expect(await other.dueFeatures(query)).toEqual(due);
  const claim = (time: number): TaskAppend => effects("t", set("a", "1", { due: time, if: { value: "1", due: 5 } }));
  const outcomes = await Promise.all([append(store, claim(50)), append(other, claim(51))]);
  expect(verdicts(outcomes).toSorted()).toEqual(["changed", "ok"]);
  expect(await store.features(alice, "t", "f")).toEqual(await other.features(alice, "t", "f"));
});
