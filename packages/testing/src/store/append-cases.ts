import { recordBytes, type TaskEffect } from "@parley/server/internal/store/index";
import {
  adding,
  alice,
  all,
  append,
  bob,
  chunk,
  codeOf,
  completed,
  context,
  headOf,
  key,
  making,
  said,
  status,
  userMessage,
  verdict,
  verdicts,
  working,
  type Cases,
} from "./given.ts";

/** Items that `append` stores, and items that it rejects. */
export const appendCases: Cases = {
  async "the log of a new task starts at 1"({ store, expect }) {
    const item = making("t");
    expect(await append(store, item)).toEqual({ ok: true, seq: 1, fence: 0 });
    expect(await store.head(alice, "t")).toEqual({
      task: key("t"),
      contextId: context,
      state: "TASK_STATE_SUBMITTED",
      statusTime: 1000,
      seq: 1,
      firstSeq: 1,
      generation: 1,
      bytes: item.records.reduce((sum, record) => sum + recordBytes(record), 0),
      fence: 0,
    });
  },

  async "an existing task cannot be created again"({ store, expect }) {
    await append(store, making("t"));
    expect(await append(store, making("t", { text: "other" }))).toEqual({
      ok: false,
      reason: "exists",
      head: await headOf(store, key("t")),
    });
  },

  async "one call creates and changes many tasks, each with its context and key"({ store, expect }) {
    const ids = Array.from({ length: 23 }, (_, n) => `t${n}`);
    const makeAll = ids.map((id) => {
      const once: TaskEffect = { effect: "once", key: `k${id}`, hash: id, now: 1 };
      return { ...making(id, { contextId: `c${id}` }), effects: [once] };
    });
    const moveAll = ids.map((id) => adding(id, completed(id)));
    expect(verdicts(await store.append([...makeAll, ...moveAll, ...makeAll]))).toEqual([
      ...ids.map(() => "ok"),
      ...ids.map(() => "ok"),
      ...ids.map(() => "duplicate"),
    ]);
    for (const id of ids) {
      const { contextId, state, seq } = await headOf(store, key(id));
      expect({ contextId, state, seq }).toEqual({ contextId: `c${id}`, state: "TASK_STATE_COMPLETED", seq: 2 });
      expect(await store.once(alice, `k${id}`, 2)).toEqual({ key: `k${id}`, hash: id, taskId: id, seq: 1 });
      const own = await store.list(alice, { contextId: `c${id}`, limit: 2, artifacts: false });
      expect(own.tasks.map(({ task }) => task.id)).toEqual([id]);
    }
  },

  async "an item for an unknown task fails as missing"({ store, expect }) {
    expect(await append(store, adding("t", working("t")))).toEqual({ ok: false, reason: "missing" });
    expect(await store.head(alice, "t")).toEqual(undefined);
  },

  async "an item that expects another seq fails as stale and returns the task's head"({ store, expect }) {
    await store.append([making("t"), adding("t", working("t"))]);
    const late = { task: key("t"), expect: 1, records: [completed("t")] };
    expect(await append(store, late)).toEqual({ ok: false, reason: "stale", head: await headOf(store, key("t")) });
    expect(await append(store, { ...late, expect: 2 })).toEqual({ ok: true, seq: 3, fence: 0 });
  },

  async "an item with another fence fails as fenced"({ store, expect }) {
    await append(store, { ...making("t"), effects: [{ effect: "lease", op: "revoke" }] });
    const head = await headOf(store, key("t"));
    const late = { task: key("t"), fence: 0, records: [working("t")] };
    expect(await append(store, late)).toEqual({ ok: false, reason: "fenced", head });
    expect(await append(store, { ...late, fence: 1 })).toEqual({ ok: true, seq: 2, fence: 1 });
  },

  async "an item that expects another run fails as stale and stores nothing"({ store, expect }) {
    const run = { turn: 2, attempt: 3, input: 1 };
    await append(store, { ...making("t"), effects: [{ effect: "run", run }] });
    const head = await headOf(store, key("t"));
    const others = [null, { ...run, turn: 1 }, { ...run, attempt: 2 }, { ...run, input: 2 }, { ...run, deaths: 1 }];
    for (const other of [
      ...others,
      { ...run, outlived: 1 },
      { ...run, alone: true as const },
      { ...run, suspended: true as const },
    ]) {
      const item = { task: key("t"), run: other, records: [working("t")] };
      expect(await append(store, item)).toEqual({ ok: false, reason: "stale", head });
    }
    expect(await headOf(store, key("t"))).toEqual(head);
    const same = { task: key("t"), run: { ...run, deaths: 0 }, records: [working("t")] };
    expect(await verdict(store, same)).toEqual("ok");
    const suspect = { ...run, deaths: 2, alone: true as const };
    await append(store, { task: key("t"), run, records: [], effects: [{ effect: "run", run: suspect }] });
    expect(await verdict(store, { task: key("t"), run: suspect, records: [working("t")] })).toEqual("ok");
  },

  async "an item fails as stale if it expects no run and the task has one, or the reverse"({ store, expect }) {
    const run = { turn: 1, attempt: 1, input: 1 };
    await append(store, making("t"));
    const give: TaskEffect = { effect: "run", run };
    const outcomes = await store.append([
      { task: key("t"), run, records: [working("t")] },
      { task: key("t"), run: null, records: [], effects: [give] },
      { task: key("t"), run: null, records: [working("t")] },
      { task: key("t"), run, records: [], effects: [{ effect: "run", run: null }] },
      { task: key("t"), run: null, records: [working("t")] },
    ]);
    expect(verdicts(outcomes)).toEqual(["stale", "ok", "stale", "ok", "ok"]);
    expect((await headOf(store, key("t"))).seq).toEqual(2);
  },

  async "a stale item does not affect the other items"({ store, expect }) {
    await store.append([making("a"), making("b"), making("c")]);
    const outcomes = await store.append([
      { task: key("a"), expect: 1, records: [working("a")] },
      { task: key("b"), expect: 7, records: [working("b"), said("lost")] },
      { task: key("c"), expect: 1, records: [working("c")] },
    ]);
    expect(verdicts(outcomes)).toEqual(["ok", "stale", "ok"]);
    expect((await headOf(store, key("a"))).seq).toEqual(2);
    expect((await headOf(store, key("b"))).seq).toEqual(1);
    expect((await headOf(store, key("c"))).state).toEqual("TASK_STATE_WORKING");
  },

  async "later items of a batch see the changes of earlier items to the same task"({ store, expect }) {
    const outcomes = await store.append([
      making("t"),
      { task: key("t"), expect: 1, records: [working("t"), chunk("t", "a", "1")] },
      { task: key("t"), expect: 1, records: [said("too late")] },
      { task: key("t"), expect: 3, records: [completed("t")] },
      adding("t", said("over")),
      making("t"),
    ]);
    expect(verdicts(outcomes)).toEqual(["ok", "ok", "stale", "ok", "terminal", "exists"]);
    expect((await headOf(store, key("t"))).seq).toEqual(4);
  },

  async "a failed item can be retried in the same batch"({ store, expect }) {
    const early = adding("t", working("t"));
    expect(verdicts(await store.append([early, making("t"), early]))).toEqual(["missing", "ok", "ok"]);
  },

  async "a terminal task accepts no records, even if the item's conditions match (A2A 1.0 §3.1.1)"({ store, expect }) {
    for (const [index, state] of (
      ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"] as const
    ).entries()) {
      const id = `t${index}`;
      await store.append([making(id), adding(id, status(id, state))]);
      const before = await headOf(store, key(id));
      for (const record of [working(id), said("more"), chunk(id, "a", "x"), status(id, state)]) {
        expect(await append(store, adding(id, record))).toEqual({ ok: false, reason: "terminal", head: before });
        expect(await verdict(store, { task: key(id), expect: 2, fence: 0, records: [record] })).toEqual("terminal");
      }
      expect(await headOf(store, key(id))).toEqual(before);
    }
  },

  async "an item with records after a terminal status stores nothing"({ store, expect }) {
    await append(store, making("t"));
    const outcome = await append(store, adding("t", completed("t"), chunk("t", "a", "x")));
    expect(verdicts([outcome])).toEqual(["terminal"]);
    expect((await headOf(store, key("t"))).seq).toEqual(1);
  },

  async "a terminal task accepts items without records"({ store, expect }) {
    await store.append([making("t"), adding("t", completed("t"))]);
    expect(await append(store, { task: key("t"), records: [], effects: [{ effect: "lease", op: "revoke" }] })).toEqual({
      ok: true,
      seq: 2,
      fence: 1,
    });
  },

  async "a task may be created in a terminal state"({ store, expect }) {
    await append(store, making("t", { state: "TASK_STATE_REJECTED" }));
    expect(await verdict(store, adding("t", working("t")))).toEqual("terminal");
  },

  async "an item without records or effects changes nothing"({ store, expect }) {
    await append(store, making("t"));
    const before = await headOf(store, key("t"));
    expect(await append(store, { task: key("t"), records: [] })).toEqual({ ok: true, seq: 1, fence: 0 });
    expect(await headOf(store, key("t"))).toEqual(before);
    expect(await store.append([])).toEqual([]);
  },

  async "a call with a malformed item rejects and stores nothing"({ store, expect }) {
    const malformed = [
      { ...making("t"), records: [] },
      { ...making("t"), records: [working("t")] },
      adding("a", ...making("a").records),
      { ...making("t"), records: [...making("t").records, ...making("t").records] },
      { task: key("a"), records: [], effects: [{ effect: "lease", op: "renew", until: 9 }] },
    ] as const;
    await append(store, making("a"));
    for (const item of malformed) expect(await codeOf(() => store.append([making("b"), item]))).toEqual("TypeError");
    expect(await store.head(alice, "b")).toEqual(undefined);
    expect(await store.head(alice, "t")).toEqual(undefined);
  },

  async "generation counts creation, status and artifacts, not the user's messages (1.1 draft)"({ store, expect }) {
    await append(store, making("t"));
    await append(store, adding("t", said("1"), working("t"), said("2"), chunk("t", "a", "x")));
    expect((await headOf(store, key("t"))).generation).toEqual(3);
    expect((await headOf(store, key("t"))).seq).toEqual(5);
  },

  async "state and status time come from the last status record"({ store, expect }) {
    await append(store, making("t", { time: 1000 }));
    await append(
      store,
      adding(
        "t",
        working("t", { time: 2000 }),
        status("t", "TASK_STATE_INPUT_REQUIRED", { time: 3000 }),
        said("x", 4000),
      ),
    );
    const { state, statusTime } = await headOf(store, key("t"));
    expect([state, statusTime]).toEqual(["TASK_STATE_INPUT_REQUIRED", 3000]);
  },

  async "a task id is unique per agent"({ store, expect }) {
    const elsewhere = { agent: "other", owner: "alice" };
    const outcomes = await store.append([
      making("t"),
      making("t", { owner: bob }),
      making("t", { owner: elsewhere, text: "another" }),
    ]);
    expect(verdicts(outcomes)).toEqual(["ok", "exists", "ok"]);
    expect("head" in (outcomes[1] ?? {})).toEqual(false);
    expect((await store.load(elsewhere, "t", all))?.task.history?.[0]?.parts).toEqual([{ text: "another" }]);
  },

  async "times may have fractions of milliseconds, and nothing expires too early"({ store, expect }) {
    const near = (time: number | undefined, wanted: number): boolean =>
      time !== undefined && time >= wanted && time < wanted + 1;
    const item = await append(store, {
      ...making("t", { time: 1000.25 }),
      effects: [
        { effect: "run", run: { turn: 1, attempt: 1, input: 1 } },
        { effect: "lease", op: "acquire", holder: "node", now: 1000.25, until: 1333.3 },
        { effect: "once", key: "k", hash: "h", now: 1000.25, until: 1500.5 },
      ],
    });
    expect(item.ok).toEqual(true);
    const head = await headOf(store, key("t"));
    expect([near(head.statusTime, 1000.25), near(head.leaseUntil, 1333.3)]).toEqual([true, true]);
    const page = await store.read(alice, "t", { after: 0, limit: 9 });
    expect(page?.records.map(({ time }) => near(time, 1000.25))).toEqual([true]);
    expect((await store.once(alice, "k", 1500.4))?.hash).toEqual("h");
    expect(await store.once(alice, "k", 1502)).toEqual(undefined);
    const free = async (now: number): Promise<number> =>
      (await store.claimable({ now, agents: [alice.agent], limit: 9 })).heads.length;
    expect([await free(1333.2), await free(1335)]).toEqual([0, 1]);
    const total = async (since: number): Promise<number> =>
      (await store.list(alice, { since, limit: 9, artifacts: false })).total;
    expect([await total(1000.1), await total(1001.5)]).toEqual([1, 0]);
    const swept = await store.sweep({ now: 1333.2, deleteBefore: 1000.1, compactBefore: 1000.1, limit: 9 });
    expect(swept).toEqual({ deleted: 0, compacted: 0, more: false });
    const reply = { effect: "contextMessage", json: JSON.stringify(userMessage("hi")), time: 2000.75 } as const;
    expect((await append(store, { context: { ...alice, contextId: "direct" }, effects: [reply] })).ok).toEqual(true);
  },
};
