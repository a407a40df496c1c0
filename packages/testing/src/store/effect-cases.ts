import type { TaskAppend, TaskEffect } from "@parley/server/internal/store/index";
import {
  adding,
  agentMessage,
  alice,
  append,
  bob,
  chunk,
  completed,
  context,
  effects,
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

function acquire(holder: string, now: number, until: number): TaskEffect {
  return { effect: "lease", op: "acquire", holder, now, until };
}

/** A run holds a lease with a fence. */
export const leaseCases: Cases = {
  async "acquire takes a free lease and raises the fence"({ store, expect }) {
    expect(await append(store, { ...making("t"), effects: [acquire("n1", 10, 20)] })).toEqual({
      ok: true,
      seq: 1,
      fence: 1,
    });
    const { holder, leaseUntil, fence } = await headOf(store, key("t"));
    expect([holder, leaseUntil, fence]).toEqual(["n1", 20, 1]);
  },

  async "only an expired lease can be taken, even by its holder"({ store, expect }) {
    await append(store, { ...making("t"), effects: [acquire("n1", 10, 20)] });
    const head = await headOf(store, key("t"));
    for (const holder of ["n1", "n2"]) {
      expect(await append(store, effects("t", acquire(holder, 19, 30)))).toEqual({ ok: false, reason: "leased", head });
    }
    expect(await append(store, effects("t", acquire("n2", 20, 30)))).toEqual({ ok: true, seq: 1, fence: 2 });
    expect((await headOf(store, key("t"))).holder).toEqual("n2");
  },

  async "an item that fails as leased stores none of its records"({ store, expect }) {
    await append(store, { ...making("t"), effects: [acquire("n1", 10, 20)] });
    const item = { ...effects("t", acquire("n2", 11, 30)), records: [working("t")] };
    expect(await verdict(store, item)).toEqual("leased");
    expect((await headOf(store, key("t"))).seq).toEqual(1);
  },

  async "renew extends a lease, release frees it, and both need the fence"({ store, expect }) {
    await append(store, { ...making("t"), effects: [acquire("n1", 10, 20)] });
    const renew = { effect: "lease", op: "renew", until: 50 } as const;
    const release = { effect: "lease", op: "release" } as const;
    expect(await verdict(store, { ...effects("t", renew), fence: 0 })).toEqual("fenced");
    expect(await append(store, { ...effects("t", renew), fence: 1 })).toEqual({ ok: true, seq: 1, fence: 1 });
    expect((await headOf(store, key("t"))).leaseUntil).toEqual(50);
    expect(await verdict(store, effects("t", acquire("n2", 49, 60)))).toEqual("leased");
    expect(await verdict(store, { ...effects("t", release), fence: 0 })).toEqual("fenced");
    expect(await append(store, { ...effects("t", release), fence: 1 })).toEqual({ ok: true, seq: 1, fence: 1 });
    const head = await headOf(store, key("t"));
    expect(["holder" in head, "leaseUntil" in head]).toEqual([false, false]);
    expect(await verdict(store, { ...effects("t", renew), fence: 1 })).toEqual("fenced");
    expect(await append(store, effects("t", acquire("n2", 49, 60)))).toEqual({ ok: true, seq: 1, fence: 2 });
  },

  async "an expired lease can be renewed if no other process took it"({ store, expect }) {
    await append(store, { ...making("t"), effects: [acquire("n1", 10, 20)] });
    const item = { ...effects("t", { effect: "lease", op: "renew", until: 90 }), fence: 1 };
    expect(await verdict(store, item)).toEqual("ok");
    expect(await verdict(store, effects("t", acquire("n2", 80, 99)))).toEqual("leased");
  },

  async "after revoke, the holder's items are rejected"({ store, expect }) {
    await append(store, { ...making("t"), effects: [acquire("n1", 10, 20)] });
    const cancel = {
      ...effects("t", { effect: "lease", op: "revoke" }),
      records: [status("t", "TASK_STATE_CANCELED")],
    };
    const outcomes = await store.append([cancel, { task: key("t"), fence: 1, records: [chunk("t", "a", "late")] }]);
    expect(verdicts(outcomes)).toEqual(["ok", "fenced"]);
    const head = await headOf(store, key("t"));
    expect([head.fence, "holder" in head, head.state]).toEqual([2, false, "TASK_STATE_CANCELED"]);
  },

  async "a run and its checkpoint are set, changed and deleted"({ store, expect }) {
    const run = { turn: 2, attempt: 1, input: 1 };
    await append(store, {
      ...making("t"),
      effects: [
        { effect: "run", run },
        { effect: "checkpoint", value: '{"step":1}' },
      ],
    });
    run.turn = 9;
    const head = await headOf(store, key("t"));
    expect([head.run, head.checkpoint]).toEqual([{ turn: 2, attempt: 1, input: 1 }, '{"step":1}']);
    await append(store, effects("t", { effect: "checkpoint", value: '{"step":2}' }));
    expect((await headOf(store, key("t"))).checkpoint).toEqual('{"step":2}');
    await append(store, effects("t", { effect: "run", run: null }, { effect: "checkpoint", value: null }));
    const after = await headOf(store, key("t"));
    expect(["run" in after, "checkpoint" in after]).toEqual([false, false]);
  },

  async "a task's state can be set, changed and deleted, and outlives its run"({ store, expect }) {
    await append(store, { ...making("t"), effects: [{ effect: "taskState", value: '{"step":1}' }] });
    await append(store, making("other"));
    expect([(await headOf(store, key("t"))).taskState, "taskState" in (await headOf(store, key("other")))]).toEqual([
      '{"step":1}',
      false,
    ]);
    // The last task state of an item wins. The checkpoint is a separate value.
    const twice = [1, 2].map((step) => ({ effect: "taskState", value: JSON.stringify({ step }) }) as const);
    await append(store, effects("t", ...twice, { effect: "checkpoint", value: "7" }));
    await append(store, effects("t", { effect: "run", run: null }, { effect: "checkpoint", value: null }));
    const after = await headOf(store, key("t"));
    expect([after.taskState, "checkpoint" in after]).toEqual(['{"step":2}', false]);
    await append(store, adding("t", completed("t")));
    expect((await headOf(store, key("t"))).taskState).toEqual('{"step":2}');
    await append(store, effects("t", { effect: "taskState", value: null }));
    expect("taskState" in (await headOf(store, key("t")))).toEqual(false);
  },

  async "a failed item does not change a task's state, nor does a run that lost its lease"({ store, expect }) {
    await append(store, {
      ...making("t"),
      effects: [acquire("n1", 10, 20), { effect: "taskState", value: '"first"' }],
    });
    await append(store, effects("t", acquire("n2", 20, 30)));
    const late = { ...effects("t", { effect: "taskState", value: '"late"' }), fence: 1 };
    const stale = { ...effects("t", { effect: "taskState", value: '"stale"' }), expect: 9 };
    expect(verdicts(await store.append([late, stale]))).toEqual(["fenced", "stale"]);
    const again: TaskAppend = { ...making("t"), effects: [{ effect: "taskState", value: '"again"' }] };
    expect(await verdict(store, again)).toEqual("exists");
    expect((await headOf(store, key("t"))).taskState).toEqual('"first"');
  },

  async "a run stores its deaths, the deaths that it outlived, and its suspension"({ store, expect }) {
    const run = { turn: 1, attempt: 3, input: 1, deaths: 2, alone: true } as const;
    const { alone: _, ...together } = run;
    await append(store, making("t"));
    const outlived = [
      { ...run, outlived: 1 },
      { ...together, outlived: 2 },
      { ...together, deaths: 10_000, outlived: 10_000 },
      { ...together, suspended: true as const },
      { ...run, outlived: 1, suspended: true as const },
      { ...together, deaths: 10_000, outlived: 10_000, suspended: true as const },
    ];
    for (const each of [run, ...outlived, { turn: 1, attempt: 3, input: 1 }]) {
      await append(store, effects("t", { effect: "run", run: each }));
      expect((await headOf(store, key("t"))).run).toEqual(each);
    }
  },

  async "stranded counts unheld runs of agents that are not in the query"({ store, expect }) {
    const of = (agent: string, taskId: string): TaskAppend => ({ ...making(taskId), task: { ...key(taskId), agent } });
    const run: TaskEffect = { effect: "run", run: { turn: 1, attempt: 1, input: 1 } };
    await store.append([
      { ...making("own"), effects: [run] },
      { ...of("gone", "a"), effects: [run] },
      { ...of("gone", "b"), effects: [run, acquire("n1", 0, 50)] },
      { ...of("gone", "c"), effects: [run, acquire("n1", 0, 51)] },
      { ...of("busy", "d"), effects: [run, acquire("n1", 0, 99)] },
      of("idle", "e"),
    ]);
    const ask = (limit: number): Promise<unknown> => store.stranded({ now: 50, agents: ["agent", "none"], limit });
    expect(await ask(9)).toEqual([{ agent: "gone", tasks: 2 }]);
    expect(await ask(0)).toEqual([]);
  },

  async "claimable returns unheld runs, oldest lease first"({ store, expect }) {
    const run: TaskEffect = { effect: "run", run: { turn: 1, attempt: 1, input: 1 } };
    await store.append([
      { ...making("held"), effects: [run, acquire("n1", 0, 200)] },
      { ...making("later"), effects: [run, acquire("n1", 0, 90)] },
      { ...making("lost", { owner: bob }), effects: [run, acquire("n1", 0, 50), { effect: "checkpoint", value: "7" }] },
      { ...making("free"), effects: [run] },
      { ...making("idle"), effects: [acquire("n1", 0, 10)] },
      { ...making("ended"), effects: [run, { effect: "run", run: null }] },
    ]);
    const names = async (now: number, limit = 9): Promise<unknown> =>
      (await store.claimable({ now, agents: ["agent"], limit })).heads.map((head) => head.task.taskId);
    expect(await names(100)).toEqual(["free", "lost", "later"]);
    expect(await names(90)).toEqual(["free", "lost", "later"]);
    expect(await names(89)).toEqual(["free", "lost"]);
    expect(await names(100, 2)).toEqual(["free", "lost"]);
    const { checkpoint, ...lost } = await headOf(store, key("lost", bob));
    expect(checkpoint).toEqual("7");
    const { heads } = await store.claimable({ now: 100, agents: ["agent"], limit: 2 });
    expect(heads[1]).toEqual(lost);
    await append(store, { ...effects("free", acquire("n2", 100, 300)) });
    await append(store, {
      task: key("lost", bob),
      fence: 1,
      records: [],
      effects: [{ effect: "lease", op: "renew", until: 300 }],
    });
    await append(store, { ...effects("held", { effect: "lease", op: "release" }), fence: 1 });
    expect(await names(100)).toEqual(["held", "later"]);
  },

  async "claimable with holders returns only runs of those processes"({ store, expect }) {
    const run: TaskEffect = { effect: "run", run: { turn: 1, attempt: 1, input: 1 } };
    const odd = "n\u{0}\u{1F600}";
    await store.append([
      { ...making("a"), effects: [run, acquire("n1", 0, 90)] },
      { ...making("b"), effects: [run, acquire("n2", 0, 80)] },
      { ...making("c"), effects: [run, acquire(odd, 0, 70)] },
      { ...making("d"), effects: [run, acquire("n2", 0, 60)] },
      { ...making("free"), effects: [run] },
      { ...making("idle"), effects: [acquire("n2", 0, 10)] },
    ]);
    const names = async (holders: readonly string[], now: number, limit = 9): Promise<unknown> =>
      (await store.claimable({ now, agents: ["agent"], holders, limit })).heads.map((head) => head.task.taskId);
    expect(await names(["n2", "nobody"], 100)).toEqual(["d", "b"]);
    expect(await names(["n2"], 70)).toEqual(["d"]);
    expect(await names(["n2", odd], 100, 2)).toEqual(["d", "c"]);
    expect(await names(["nobody"], 100)).toEqual([]);
    expect(await names([], 100)).toEqual([]);
    const query = { now: 100, agents: ["agent"], holders: ["n1", "n2"], limit: 2 };
    const { heads, next } = await store.claimable(query);
    expect(heads.map((head) => head.task.taskId)).toEqual(["d", "b"]);
    expect(next === undefined).toEqual(false);
    const rest = await store.claimable({ ...query, ...(next && { after: next }) });
    expect(rest.heads.map((head) => head.task.taskId)).toEqual(["a"]);
    expect(rest.next).toEqual(undefined);
  },
};

/** Idempotency keys, which make retries safe. */
export const onceCases: Cases = {
  async "a key is stored with its task and the last seq of its item"({ store, expect }) {
    const once: TaskEffect = { effect: "once", key: "k", hash: "h", now: 10 };
    await append(store, { ...making("t"), records: [...making("t").records, working("t")], effects: [once] });
    expect(await store.once(alice, "k", 10)).toEqual({ key: "k", hash: "h", taskId: "t", seq: 2 });
    expect(await store.once(alice, "other", 10)).toEqual(undefined);
  },

  async "an item with an existing key fails as duplicate and returns the stored key"({ store, expect }) {
    const once: TaskEffect = { effect: "once", key: "k", hash: "h", now: 10, until: 20, answer: '{"a":1}' };
    await append(store, { ...making("t"), effects: [once] });
    const known = { key: "k", hash: "h", taskId: "t", seq: 1, answer: '{"a":1}' };
    expect(await append(store, { ...making("u"), effects: [{ ...once, hash: "other" }] })).toEqual({
      ok: false,
      reason: "duplicate",
      once: known,
    });
    expect(await store.head(alice, "u")).toEqual(undefined);
    expect(await append(store, { ...effects("t", once), records: [said("again")] })).toEqual({
      ok: false,
      reason: "duplicate",
      once: known,
      head: await headOf(store, key("t")),
    });
    expect(await append(store, { context: { ...alice, contextId: context }, effects: [once] })).toEqual({
      ok: false,
      reason: "duplicate",
      once: known,
    });
  },

  async "duplicate takes precedence over every other reason, so a retry gets its answer"({ store, expect }) {
    const once: TaskEffect = { effect: "once", key: "k", hash: "h", now: 10 };
    await store.append([{ ...making("t"), effects: [once] }, adding("t", completed("t"))]);
    const outcomes = await store.append([
      { ...making("t"), effects: [once] },
      { task: key("t"), expect: 1, fence: 7, records: [said("x")], effects: [once] },
      { task: key("nothing"), records: [], effects: [once] },
    ]);
    expect(verdicts(outcomes)).toEqual(["duplicate", "duplicate", "duplicate"]);
  },

  async "later items of a batch see a key, and a rejected item stores none"({ store, expect }) {
    const once = { effect: "once", key: "k", hash: "h", now: 10 } as const;
    const outcomes = await store.append([
      { task: key("nothing"), records: [], effects: [once] },
      { ...making("t"), effects: [once] },
      { ...making("u"), effects: [once] },
    ]);
    expect(verdicts(outcomes)).toEqual(["missing", "ok", "duplicate"]);
  },

  async "an expired key can be reused"({ store, expect }) {
    const once: TaskEffect = { effect: "once", key: "k", hash: "h", now: 10, until: 20 };
    await append(store, { ...making("t"), effects: [once] });
    expect((await store.once(alice, "k", 19))?.hash).toEqual("h");
    expect(await store.once(alice, "k", 20)).toEqual(undefined);
    expect(await verdict(store, { ...making("u"), effects: [{ ...once, now: 19 }] })).toEqual("duplicate");
    const again: TaskEffect = { effect: "once", key: "k", hash: "new", now: 20, until: 30 };
    expect(await verdict(store, { ...making("u"), effects: [again] })).toEqual("ok");
    expect(await store.once(alice, "k", 25)).toEqual({ key: "k", hash: "new", taskId: "u", seq: 1 });
  },

  async "a direct reply is stored under its key in its context"({ store, expect }) {
    const answer = JSON.stringify(agentMessage("hi"));
    await append(store, {
      context: { ...alice, contextId: "direct" },
      effects: [
        { effect: "contextMessage", json: JSON.stringify(userMessage("hello")), time: 5 },
        { effect: "contextMessage", json: answer, time: 6 },
        { effect: "once", key: "k", hash: "h", now: 5, until: 50, answer },
      ],
    });
    expect(await store.once(alice, "k", 6)).toEqual({ key: "k", hash: "h", seq: 0, answer });
  },
};
