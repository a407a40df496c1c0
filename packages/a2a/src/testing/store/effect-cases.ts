import { gist } from "./conversation-cases.ts";
import type { TaskAppend, TaskEffect } from "../../store/index.ts";
import {
  agentMessage,
  alice,
  append,
  bob,
  chunk,
  completed,
  context,
  headOf,
  key,
  making,
  said,
  status,
  userMessage,
  verdicts,
  working,
  type Cases,
} from "./given.ts";

function effects(taskId: string, ...list: readonly TaskEffect[]): TaskAppend {
  return { task: key(taskId), records: [], effects: list };
}

function acquire(holder: string, now: number, until: number): TaskEffect {
  return { effect: "lease", op: "acquire", holder, now, until };
}

/** D6: a run holds a lease with a fence. */
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

  async "a lease that is held cannot be taken, not even by its holder, until it has run out"({ store, expect }) {
    await append(store, { ...making("t"), effects: [acquire("n1", 10, 20)] });
    const head = await headOf(store, key("t"));
    for (const holder of ["n1", "n2"]) {
      expect(await append(store, effects("t", acquire(holder, 19, 30)))).toEqual({ ok: false, reason: "leased", head });
    }
    expect(await append(store, effects("t", acquire("n2", 20, 30)))).toEqual({ ok: true, seq: 1, fence: 2 });
    expect((await headOf(store, key("t"))).holder).toEqual("n2");
  },

  async "an item that cannot have its lease stores none of its records"({ store, expect }) {
    await append(store, { ...making("t"), effects: [acquire("n1", 10, 20)] });
    const item = { ...effects("t", acquire("n2", 11, 30)), records: [working("t")] };
    expect(verdicts([await append(store, item)])).toEqual(["leased"]);
    expect((await headOf(store, key("t"))).seq).toEqual(1);
  },

  async "renew moves the end, release gives back, both with the fence alone"({ store, expect }) {
    await append(store, { ...making("t"), effects: [acquire("n1", 10, 20)] });
    const renew = { effect: "lease", op: "renew", until: 50 } as const;
    const release = { effect: "lease", op: "release" } as const;
    expect(verdicts([await append(store, { ...effects("t", renew), fence: 0 })])).toEqual(["fenced"]);
    expect(await append(store, { ...effects("t", renew), fence: 1 })).toEqual({ ok: true, seq: 1, fence: 1 });
    expect((await headOf(store, key("t"))).leaseUntil).toEqual(50);
    expect(verdicts([await append(store, effects("t", acquire("n2", 49, 60)))])).toEqual(["leased"]);
    expect(verdicts([await append(store, { ...effects("t", release), fence: 0 })])).toEqual(["fenced"]);
    expect(await append(store, { ...effects("t", release), fence: 1 })).toEqual({ ok: true, seq: 1, fence: 1 });
    const head = await headOf(store, key("t"));
    expect(["holder" in head, "leaseUntil" in head]).toEqual([false, false]);
    expect(verdicts([await append(store, { ...effects("t", renew), fence: 1 })])).toEqual(["fenced"]);
    expect(await append(store, effects("t", acquire("n2", 49, 60)))).toEqual({ ok: true, seq: 1, fence: 2 });
  },

  async "renewing a lease that has run out but that nobody took keeps it"({ store, expect }) {
    await append(store, { ...making("t"), effects: [acquire("n1", 10, 20)] });
    const item = { ...effects("t", { effect: "lease", op: "renew", until: 90 }), fence: 1 };
    expect(verdicts([await append(store, item)])).toEqual(["ok"]);
    expect(verdicts([await append(store, effects("t", acquire("n2", 80, 99)))])).toEqual(["leased"]);
  },

  async "revoke takes the lease from whoever has it, and nothing of that run is accepted any more"({ store, expect }) {
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

  async "a run, its checkpoint and its end"({ store, expect }) {
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

  async "a run keeps how often processes ended while they had it"({ store, expect }) {
    const run = { turn: 1, attempt: 3, input: 1, deaths: 2, alone: true } as const;
    await append(store, making("t"));
    for (const each of [run, { turn: 1, attempt: 3, input: 1 }]) {
      await append(store, effects("t", { effect: "run", run: each }));
      expect((await headOf(store, key("t"))).run).toEqual(each);
    }
  },

  async "stranded are the runs of other agents that nobody holds"({ store, expect }) {
    const of = (agent: string, taskId: string): TaskAppend => ({
      ...making(taskId),
      task: { ...key(taskId), agent },
    });
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

  async "claimable are the runs that nobody holds, oldest lease first"({ store, expect }) {
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
};

/** D8: retry is safe. */
export const onceCases: Cases = {
  async "a key is stored with its task and the last seq of its item"({ store, expect }) {
    const once: TaskEffect = { effect: "once", key: "k", hash: "h", now: 10 };
    await append(store, { ...making("t"), records: [...making("t").records, working("t")], effects: [once] });
    expect(await store.once(alice, "k", 10)).toEqual({ key: "k", hash: "h", taskId: "t", seq: 2 });
    expect(await store.once(alice, "other", 10)).toEqual(undefined);
  },

  async "a key that stands refuses the item, and says what is under it"({ store, expect }) {
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

  async "duplicate comes before every other reason, so that a retry finds its answer"({ store, expect }) {
    const once: TaskEffect = { effect: "once", key: "k", hash: "h", now: 10 };
    await store.append([
      { ...making("t"), effects: [once] },
      { task: key("t"), records: [completed("t")] },
    ]);
    const outcomes = await store.append([
      { ...making("t"), effects: [once] },
      { task: key("t"), expect: 1, fence: 7, records: [said("x")], effects: [once] },
      { task: key("nothing"), records: [], effects: [once] },
    ]);
    expect(verdicts(outcomes)).toEqual(["duplicate", "duplicate", "duplicate"]);
  },

  async "later items of a batch see the key; a failed item leaves none"({ store, expect }) {
    const once = { effect: "once", key: "k", hash: "h", now: 10 } as const;
    const outcomes = await store.append([
      { task: key("nothing"), records: [], effects: [once] },
      { ...making("t"), effects: [once] },
      { ...making("u"), effects: [once] },
    ]);
    expect(verdicts(outcomes)).toEqual(["missing", "ok", "duplicate"]);
  },

  async "a key that ran out is free again"({ store, expect }) {
    const once: TaskEffect = { effect: "once", key: "k", hash: "h", now: 10, until: 20 };
    await append(store, { ...making("t"), effects: [once] });
    expect((await store.once(alice, "k", 19))?.hash).toEqual("h");
    expect(await store.once(alice, "k", 20)).toEqual(undefined);
    expect(verdicts([await append(store, { ...making("u"), effects: [{ ...once, now: 19 }] })])).toEqual(["duplicate"]);
    const again: TaskEffect = { effect: "once", key: "k", hash: "new", now: 20, until: 30 };
    expect(verdicts([await append(store, { ...making("u"), effects: [again] })])).toEqual(["ok"]);
    expect(await store.once(alice, "k", 25)).toEqual({ key: "k", hash: "new", taskId: "u", seq: 1 });
  },

  async "a direct reply is kept under its key in its context"({ store, expect }) {
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

/** A2A 1.0 §3.4.1: what belongs to a conversation. */
export const contextCases: Cases = {
  async "an unknown context is empty"({ store, expect }) {
    expect(await store.conversation({ ...alice, contextId: "nothing" }, { limit: 10 })).toEqual({ entries: [] });
  },

  async "state is set by tasks and by direct replies, and forgotten with null"({ store, expect }) {
    const here = { ...alice, contextId: context };
    const state = async (): Promise<unknown> => (await store.conversation(here, { limit: 0 })).state;
    await append(store, { ...making("t"), effects: [{ effect: "contextState", value: '{"n":1}' }] });
    expect(await state()).toEqual('{"n":1}');
    await append(store, { context: here, effects: [{ effect: "contextState", value: '{"n":2}' }] });
    expect(await state()).toEqual('{"n":2}');
    await append(store, effects("t", { effect: "contextState", value: null }));
    expect(await store.conversation(here, { limit: 0 })).toEqual({ entries: [] });
  },

  async "a refused item leaves the state alone"({ store, expect }) {
    await append(store, { ...making("t"), effects: [{ effect: "contextState", value: "1" }] });
    await append(store, { ...effects("t", { effect: "contextState", value: "2" }), expect: 9 });
    expect((await store.conversation({ ...alice, contextId: context }, { limit: 0 })).state).toEqual("1");
  },

  async "messages are those of histories and direct replies, as they came, the newest so many"({ store, expect }) {
    const here = { ...alice, contextId: context };
    await store.append([
      making("t", { text: "one", time: 1 }),
      { context: here, effects: [{ effect: "contextMessage", json: JSON.stringify(userMessage("two")), time: 2 }] },
      { context: here, effects: [{ effect: "contextMessage", json: JSON.stringify(agentMessage("three")), time: 3 }] },
      { task: key("t"), records: [working("t", { text: "progress", time: 4 }), said("four", 4)] },
      making("u", { text: "five", time: 5 }),
      { task: key("t"), records: [completed("t", { text: "six", time: 6 })] },
      making("v", { text: "elsewhere", contextId: "other" }),
      { task: key("u"), records: [completed("u", { text: "seven", time: 7 })] },
    ]);
    const texts = async (limit: number): Promise<unknown> =>
      (await store.conversation(here, { limit })).entries.map((entry) => [entry.time, gist(entry)]);
    const said7 = [
      [1, "one"],
      [2, "two"],
      [3, "three"],
      [4, "four"],
      [5, "five"],
      [6, "six"],
      [7, "seven"],
    ];
    expect(await texts(100)).toEqual(said7);
    expect(await texts(7)).toEqual(said7);
    expect(await texts(3)).toEqual(said7.slice(-3));
    expect(await texts(0)).toEqual([]);
  },
};
