import type { Owner, Store, SweepOptions, Upkeep } from "@parley/server/internal/store/index";
import type { TaskState } from "@parley/a2a/internal/model/index";
import {
  adding,
  alice,
  append,
  bob,
  chunk,
  completed,
  context,
  headOf,
  key,
  making,
  status,
  sharing,
  type Case,
  type Cases,
  type Given,
} from "./given.ts";

/** Optional: retention by agent and state, and operators' deletion and export. */

/** A case for stores with `upkeep`. Passes without it. */
function keeping(body: (given: Given & { readonly upkeep: Upkeep }) => Promise<void>): Case {
  return async (given) => {
    const { upkeep } = given.store;
    if (upkeep !== undefined) await body({ ...given, upkeep });
  };
}

const other = { agent: "other", owner: "alice" } as const;
const failed = "TASK_STATE_FAILED";
const completedState = "TASK_STATE_COMPLETED";
const asking = "TASK_STATE_INPUT_REQUIRED";

/** Creates a task whose last status has this state and time. */
async function put(store: Store, id: string, state: TaskState, time: number, owner: Owner = alice): Promise<void> {
  await append(store, making(id, { time: 1, owner, contextId: `of ${id}` }));
  const records = [status(id, state, { time, contextId: `of ${id}`, text: `said ${id}` })];
  await append(store, { task: key(id, owner), records });
}

async function left(store: Store): Promise<readonly string[]> {
  const pages = await Promise.all(
    [alice.agent, other.agent].map((agent) => store.list({ agent }, { limit: 99, artifacts: false })),
  );
  return pages.flatMap(({ tasks }) => tasks.map(({ task }) => task.id)).sort();
}

const message = (text: string): string =>
  JSON.stringify({ messageId: `m-${text}`, role: "ROLE_USER", parts: [{ text }] });

/** Creates a conversation with a state, keys and direct replies, but no task. */
async function talk(store: Store, owner: Owner, contextId: string, texts: readonly string[]): Promise<void> {
  await append(store, {
    context: { ...owner, contextId },
    effects: [
      { effect: "contextState", value: JSON.stringify(`state of ${owner.owner}`) },
      { effect: "once", key: `key ${contextId}`, hash: "h", now: 1, answer: message("answer") },
      ...texts.map((text, at) => ({ effect: "contextMessage", json: message(text), time: at + 1 }) as const),
    ],
  });
}

/** Deletes all data of an owner, in rounds, as a caller must. */
async function eraseAll(upkeep: Upkeep, owner: Owner, limit = 100): Promise<void> {
  while ((await upkeep.remove(owner, limit)).more);
  for (let round = 0; (await upkeep.forget(owner, limit)).more; round += 1) {
    if (round > 100) throw new Error("forget never ends");
  }
}

export const upkeepCases: Cases = {
  "a sweep deletes by the first matching rule, or else by deleteBefore": keeping(async ({ store, expect }) => {
    await put(store, "completed", completedState, 50);
    await put(store, "failed", failed, 50);
    await put(store, "failed young", failed, 80);
    await put(store, "of other", completedState, 50, other);
    await put(store, "failed of other", failed, 50, other);
    await put(store, "asks", asking, 1);
    const rules: SweepOptions["rules"] = [
      { agent: "other", state: failed, deleteBefore: 10 },
      { agent: "other", deleteBefore: 51 },
      { state: failed, deleteBefore: 80 },
    ];
    const sweep = { now: 0, deleteBefore: 50, rules, limit: 1 };
    expect(await store.sweep(sweep)).toEqual({ deleted: 1, compacted: 0, more: true });
    expect(await store.sweep(sweep)).toEqual({ deleted: 1, compacted: 0, more: false });
    expect(await left(store)).toEqual(["asks", "completed", "failed of other", "failed young"]);
    await store.sweep({ ...sweep, deleteBefore: 1e9, rules: [{ deleteBefore: -Infinity }], limit: 9 });
    expect((await left(store)).length).toEqual(4);
    await store.sweep({ now: 0, rules: [{ state: failed, deleteBefore: 81 }], limit: 9 });
    expect(await left(store)).toEqual(["asks", "completed"]);
  }),

  "conversations without a task follow the rule of their agent": keeping(async ({ store, expect }) => {
    for (const owner of [alice, other]) await talk(store, owner, "c", ["hello"]);
    const rules = [
      { state: failed, deleteBefore: 1e9 },
      { agent: "other", deleteBefore: -Infinity },
    ] as const;
    await store.sweep({ now: 0, deleteBefore: 100, rules, limit: 9 });
    const entries = async (owner: Owner): Promise<number> =>
      (await store.conversation({ ...owner, contextId: "c" }, { limit: 9 })).entries.length;
    expect([await entries(alice), await entries(other)]).toEqual([0, 1]);
  }),

  "remove deletes the tasks that count and find select, oldest first, except tasks with a run": keeping(
    async ({ store, upkeep, expect }) => {
      await put(store, "b", completedState, 20);
      await put(store, "a", failed, 10);
      await put(store, "c", completedState, 30, bob);
      await put(store, "d", completedState, 40, other);
      await put(store, "asks", asking, 5);
      await put(store, "runs", "TASK_STATE_WORKING", 5);
      await append(store, {
        task: key("runs"),
        records: [],
        effects: [{ effect: "run", run: { turn: 1, attempt: 1, input: 1 } }],
      });
      const found = async (...asked: Parameters<Upkeep["find"]>): Promise<readonly string[]> =>
        (await upkeep.find(...asked)).map(({ task }) => task.taskId);
      const over = [completedState, failed] as const;
      expect(await found({ states: over }, 9)).toEqual(["a", "b", "c", "d"]);
      expect(await found({ states: over }, 2)).toEqual(["a", "b"]);
      expect(await found({ states: over, before: 20 }, 9)).toEqual(["a"]);
      expect(await found({ agent: "agent", states: [completedState] }, 9)).toEqual(["b", "c"]);
      expect(await found({ owner: "alice", states: over }, 9)).toEqual(["a", "b", "d"]);
      expect(await found({ ...bob }, 9)).toEqual(["c"]);
      expect(await found({ agent: "nobody's" }, 9)).toEqual([]);
      expect([...(await found({ ...alice }, 9))].sort()).toEqual(["a", "asks", "b", "runs"]);
      expect((await upkeep.find({ ...bob }, 1))[0]).toEqual(await headOf(store, key("c", bob)));

      expect(await upkeep.count({})).toEqual(5);
      expect(await upkeep.count({ owner: "alice", before: 40 })).toEqual(3);
      expect(await upkeep.remove({ ...alice }, 2)).toEqual({ deleted: 2, conversations: 2, more: true });
      expect(await left(store)).toEqual(["b", "c", "d", "runs"]);
      expect(await upkeep.remove({ before: 40 }, 9)).toEqual({ deleted: 2, conversations: 2, more: false });
      expect(await left(store)).toEqual(["d", "runs"]);
      expect((await store.list(alice, { limit: 9, artifacts: false })).total).toEqual(1);
      expect(await store.load(bob, "c", { artifacts: true })).toEqual(undefined);
    },
  ),

  "remove deletes a task's keys, feature rows and values": keeping(async ({ store, upkeep, expect }) => {
    await append(store, {
      ...making("t"),
      effects: [
        { effect: "once", key: "k", hash: "h", now: 1 },
        { effect: "taskState", value: "1" },
        { effect: "feature", op: "set", feature: "f", key: "a", value: "1", due: 5 },
      ],
    });
    await append(store, adding("t", chunk("t", "a", "x"), completed("t", { time: 2 })));
    expect(await upkeep.remove({}, 9)).toEqual({ deleted: 1, conversations: 1, more: false });
    expect(await store.once(alice, "k", 1)).toEqual(undefined);
    expect(await store.dueFeatures({ feature: "f", now: 9, limit: 9 })).toEqual([]);
    expect((await store.conversation({ ...alice, contextId: context }, { limit: 9 })).entries).toEqual([]);
    await append(store, making("t"));
    expect("taskState" in (await headOf(store, key("t")))).toEqual(false);
    expect(await store.features(alice, "t", "f")).toEqual([]);
  }),

  "remove deletes conversations that it leaves without a task, within the selection's age and owners": keeping(
    async ({ store, upkeep, expect }) => {
      const contexts = async (owner: Owner): Promise<readonly string[]> =>
        (await upkeep.contexts(owner, { limit: 99 })).map(({ contextId }) => contextId);
      for (const id of ["a", "b", "c"]) await put(store, id, completedState, 10);
      await put(store, "failed", failed, 10);
      await put(store, "young", completedState, 80);
      await put(store, "of bob", completedState, 10, bob);
      await talk(store, alice, "replies", ["1", "2", "3"]);
      // Its task is old, but the conversation has a newer direct reply.
      await put(store, "used", completedState, 10);
      await append(store, {
        context: { ...alice, contextId: "of used" },
        effects: [{ effect: "contextMessage", json: message("later"), time: 70 }],
      });
      // An unexpired idempotency key keeps its conversation.
      await append(store, {
        context: { ...alice, contextId: "known" },
        effects: [{ effect: "once", key: "lasting", hash: "h", now: 1, until: 500, answer: message("answer") }],
      });

      expect(await upkeep.remove({ states: [failed] }, 9)).toEqual({ deleted: 1, conversations: 0, more: false });
      const over = { owner: "alice", states: [completedState, failed], before: 50 } as const;
      // "of failed" no longer has a task, and "replies" was last used at time 3.
      expect(await upkeep.remove(over, 3)).toEqual({ deleted: 3, conversations: 3, more: true });
      expect(await upkeep.remove(over, 3)).toEqual({ deleted: 1, conversations: 2, more: false });
      expect(await upkeep.remove(over, 3)).toEqual({ deleted: 0, conversations: 0, more: false });
      expect(await contexts(alice)).toEqual(["known", "of used", "of young"]);
      expect(await contexts(bob)).toEqual(["of of bob"]);
      expect((await store.once(alice, "lasting", 1))?.hash).toEqual("h");

      await upkeep.remove({}, 9);
      expect([await contexts(alice), await contexts(bob)]).toEqual([["known"], []]);
      await store.sweep({ now: 500, limit: 9 });
      expect(await upkeep.remove({}, 9)).toEqual({ deleted: 0, conversations: 1, more: false });
      // A deleted conversation starts again empty.
      await put(store, "a", completedState, 90);
      expect(await contexts(alice)).toEqual(["of a"]);
    },
  ),

  "owners, their conversations and direct replies are listed in pages": keeping(async ({ store, upkeep, expect }) => {
    for (const owner of [alice, bob, other]) await talk(store, owner, "c1", ["1", "2", "3"]);
    await append(store, making("t", { contextId: "c2" }));
    const every: Owner[] = [];
    for (let last: Owner | undefined, isFirst = true; isFirst || last !== undefined; isFirst = false) {
      const page = await upkeep.owners({ limit: 2, ...(last && { after: last }) });
      every.push(...page);
      last = page.at(-1);
    }
    expect(every).toEqual([alice, bob, other]);
    expect(await upkeep.owners({ agent: "agent", limit: 9 })).toEqual([alice, bob]);
    expect(await upkeep.owners({ owner: "alice", limit: 9 })).toEqual([alice, other]);
    const state = JSON.stringify("state of alice");
    expect(await upkeep.contexts(alice, { limit: 1 })).toEqual([{ contextId: "c1", state }]);
    expect(await upkeep.contexts(alice, { limit: 9, after: "c1" })).toEqual([{ contextId: "c2" }]);
    const first = await upkeep.replies({ ...alice, contextId: "c1" }, { limit: 2 });
    expect(first.map(({ time, json }) => [time, json])).toEqual([
      [1, message("1")],
      [2, message("2")],
    ]);
    const rest = await upkeep.replies({ ...alice, contextId: "c1" }, { limit: 2, after: first[1]?.place ?? 0 });
    expect(rest.map(({ json }) => json)).toEqual([message("3")]);
    expect(await upkeep.replies({ ...alice, contextId: "c2" }, { limit: 2 })).toEqual([]);
  }),

  "forget deletes all other data of an owner without tasks, and nothing while it has tasks": keeping(
    async ({ store, upkeep, expect }) => {
      await talk(store, alice, "c1", ["1", "2", "3"]);
      await talk(store, alice, "c2", ["4"]);
      await talk(store, bob, "c1", ["5"]);
      await put(store, "t", completedState, 5);
      expect(await upkeep.forget(alice, 9)).toEqual({ deleted: 0, more: true });
      expect((await store.conversation({ ...alice, contextId: "c1" }, { limit: 9 })).entries.length).toEqual(3);
      await eraseAll(upkeep, alice, 2);
      for (const contextId of ["c1", "c2", "of t"]) {
        expect(await store.conversation({ ...alice, contextId }, { limit: 9 })).toEqual({ entries: [] });
        expect(await store.once(alice, `key ${contextId}`, 1)).toEqual(undefined);
      }
      expect(await upkeep.owners({ limit: 9 })).toEqual([bob]);
      expect(await upkeep.forget(alice, 9)).toEqual({ deleted: 0, more: false });
      expect((await store.conversation({ ...bob, contextId: "c1" }, { limit: 9 })).entries.length).toEqual(1);
      expect((await store.once(bob, "key c1", 1))?.hash).toEqual("h");
    },
  ),

  "a deleted owner can return, and starts empty": keeping(async ({ store, upkeep, expect }) => {
    await put(store, "old", completedState, 5);
    await put(store, "of bob", completedState, 5, bob);
    await eraseAll(upkeep, alice);
    await upkeep.scrub();
    expect((await store.list(alice, { limit: 9, artifacts: false })).total).toEqual(0);
    await put(store, "new", completedState, 5);
    await talk(store, alice, "c", ["again"]);
    const page = await store.list(alice, { limit: 9, artifacts: false });
    expect([page.total, page.tasks.map(({ task }) => task.id)]).toEqual([1, ["new"]]);
    expect((await headOf(store, key("new"))).task).toEqual(key("new"));
    expect((await store.conversation({ ...alice, contextId: "c" }, { limit: 9 })).entries.length).toEqual(1);
    expect((await store.once(alice, "key c", 1))?.hash).toEqual("h");
    expect(await left(store)).toEqual(["new", "of bob"]);
  }),
};

/** Processes cache owners. A process must not confuse an owner that another process deleted with later owners. */
export const sharesDeletedOwners: Case = sharing(async ({ store, other: second, expect }) => {
  const { upkeep } = store;
  if (upkeep === undefined) return;
  const carol = { agent: "agent", owner: "carol" } as const;
  await put(store, "first", completedState, 5);
  await put(second, "second", completedState, 5);
  await talk(second, alice, "c", ["hello"]);
  for (const each of [store, second]) expect((await each.list(alice, { limit: 9, artifacts: false })).total).toEqual(2);
  await eraseAll(upkeep, alice);
  // Another owner may reuse the internal number.
  await put(store, "of carol", completedState, 5, carol);
  expect((await second.list(alice, { limit: 9, artifacts: false })).total).toEqual(0);
  await talk(second, alice, "c", ["hello again"]);
  await put(second, "third", completedState, 5);
  for (const each of [store, second]) {
    const { tasks, total } = await each.list(alice, { limit: 9, artifacts: false });
    expect([total, tasks.map(({ task }) => task.id)]).toEqual([1, ["third"]]);
    expect((await each.conversation({ ...alice, contextId: "c" }, { limit: 9 })).entries.length).toEqual(1);
    expect((await each.once(alice, "key c", 1))?.hash).toEqual("h");
    expect((await each.list(carol, { limit: 9, artifacts: false })).total).toEqual(1);
  }
});
