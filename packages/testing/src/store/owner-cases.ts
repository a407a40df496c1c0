import { alice, append, bob, context, headOf, key, making, working, type Cases } from "./given.ts";

const all = { artifacts: true } as const;

/** The data of an owner does not exist for others. */
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

  async "a scope without owner sees the tasks of all owners of its agent"({ store, expect }) {
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
