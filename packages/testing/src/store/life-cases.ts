import {
  adding,
  alice,
  append,
  chunk,
  codeOf,
  completed,
  context,
  key,
  making,
  plain,
  said,
  verdicts,
  working,
  type Case,
  type Cases,
} from "./given.ts";

export const lifeCases: Cases = {
  async "check reports a working store as writable, and changes nothing"({ store, expect }) {
    // `check` is optional.
    if (store.check === undefined) return;
    await append(store, making("t"));
    const before = await store.head(alice, "t");
    const found = await store.check(new AbortController().signal);
    expect([found.writable, found.reason]).toEqual([true, undefined]);
    expect([undefined, "told", "polled", "unseen"].includes(found.changes)).toEqual(true);
    expect(await store.head(alice, "t")).toEqual(before);
    expect((await Promise.all([store.check(), store.check()])).map(({ writable }) => writable)).toEqual([true, true]);
  },

  async "check of a closed store rejects with Unavailable"({ store, expect }) {
    if (store.check === undefined) return;
    await store.close();
    expect(await codeOf(async () => store.check?.())).toEqual("Unavailable");
  },

  async "concurrent appends take effect in call order"({ store, expect }) {
    const outcomes = await Promise.all([
      store.append([making("t")]),
      ...Array.from({ length: 20 }, (_, i) =>
        store.append([{ task: key("t"), expect: 1 + i, records: [said(`${i}`)] }]),
      ),
    ]);
    expect(verdicts(outcomes.flat())).toEqual(Array.from({ length: 21 }, () => "ok"));
    expect((await store.load(alice, "t", { artifacts: false }))?.task.history?.length).toEqual(21);
  },

  async "an append that fails or rejects does not affect later ones"({ store, expect }) {
    const stale = { task: key("t"), expect: 7, records: [said("stale")] };
    const malformed = adding("u", ...making("u").records);
    const calls = [[making("t")], [stale], [malformed], [{ task: key("t"), expect: 1, records: [said("fine")] }]];
    const settled = await Promise.allSettled(calls.map((items) => store.append(items)));
    expect(settled.map((one) => (one.status === "fulfilled" ? verdicts(one.value)[0] : "rejected"))).toEqual([
      "ok",
      "stale",
      "rejected",
      "ok",
    ]);
  },

  async "every read sees all earlier acknowledged appends, while others are running"({ store, expect }) {
    await append(store, making("t"));
    const others: Promise<unknown>[] = [];
    for (let n = 1; n <= 20; n += 1) {
      const id = `t${n}`;
      await append(store, { ...making(id), effects: [{ effect: "once", key: id, hash: "h", now: 1 }] });
      others.push(store.append([adding("t", said(`${n}`))]));
      const reads = [
        async () => store.once(alice, id, 1),
        () => store.head(alice, id),
        () => store.load(alice, id, { artifacts: true }),
        () => store.read(alice, id, { after: 0, limit: 1 }),
      ];
      const found = await Promise.all(reads.map((read): Promise<unknown> => read()));
      expect(found.map((one) => one !== undefined)).toEqual([true, true, true, true]);
      expect((await store.list(alice, { limit: 1, artifacts: false })).total).toEqual(n + 1);
      expect(
        (await store.conversation({ ...alice, contextId: context }, { limit: 99 })).entries.length >= n + 1,
      ).toEqual(true);
    }
    await Promise.all(others);
  },

  async "a closed store rejects every call, and can be closed again"({ store, expect }) {
    await append(store, making("t"));
    await store.close();
    for (const call of [
      () => store.append([making("u")]),
      () => store.head(alice, "t"),
      () => store.load(alice, "t", { artifacts: true }),
      () => store.read(alice, "t", { after: 0, limit: 1 }),
      () => store.list(alice, { limit: 1, artifacts: true }),
      async () => store.once(alice, "k", 0),
      () => store.conversation({ ...alice, contextId: context }, { limit: 1 }),
      () => store.claimable({ now: 0, agents: ["agent"], limit: 1 }),
      () => store.stranded({ now: 0, agents: [], limit: 1 }),
      () => store.features(alice, "t", "f"),
      () => store.dueFeatures({ feature: "f", agents: ["agent"], now: 0, limit: 1 }),
      () => store.sweep({ now: 0, limit: 1 }),
    ]) {
      expect(await codeOf(call)).toEqual("Unavailable");
    }
    await store.close();
  },
};

/** For persistent stores. */
export const closingLosesNothing: Case = async ({ store, expect, reopen }) => {
  if (reopen === undefined) return;
  const tasks = Array.from({ length: 20 }, (_, n) => `t${n}`);
  const appends = Promise.all(tasks.map((id) => store.append([making(id)])));
  const again = await reopen(store);
  expect(verdicts((await appends).flat())).toEqual(tasks.map(() => "ok"));
  expect((await again.list(alice, { limit: 1, artifacts: false })).total).toEqual(tasks.length);
  await again.close();
};

/** For persistent stores. */
export const everythingStays: Case = async ({ store, expect, reopen }) => {
  if (reopen === undefined) return;
  await store.append([
    {
      ...making("t"),
      effects: [
        { effect: "once", key: "k", hash: "h", now: 1, until: 50, answer: "1" },
        { effect: "lease", op: "acquire", holder: "n1", now: 1, until: 50 },
        { effect: "run", run: { turn: 1, attempt: 1, input: 1 } },
        { effect: "checkpoint", value: '{"step":3}' },
        { effect: "taskState", value: '{"cart":["a"]}' },
        { effect: "contextState", value: '{"n":1}' },
        { effect: "feature", op: "set", feature: "f", key: "a", value: '{"n":2}', due: 50 },
      ],
    },
    adding("t", working("t", { text: "kept", keep: true }), chunk("t", "a", "x")),
    making("u", { time: 2000 }),
    adding("u", completed("u", { time: 3000 })),
  ]);
  const look = async (from: typeof store): Promise<unknown> => ({
    head: await from.head(alice, "t"),
    task: plain((await from.load(alice, "t", { artifacts: true }))?.task),
    log: await from.read(alice, "t", { after: 0, limit: 9 }),
    once: await from.once(alice, "k", 1),
    conversation: await from.conversation({ ...alice, contextId: context }, { limit: 9 }),
    claimable: await from.claimable({ now: 50, agents: ["agent"], limit: 9 }),
    features: await from.features(alice, "t", "f"),
    due: await from.dueFeatures({ feature: "f", agents: ["agent"], now: 50, limit: 9 }),
    list: plain(await from.list(alice, { limit: 1, artifacts: true })),
  });
  const before = await look(store);
  const again = await reopen(store);
  expect(await look(again)).toEqual(before);
  expect(await append(again, { task: key("t"), expect: 3, fence: 1, records: [said("on")] })).toEqual({
    ok: true,
    seq: 4,
    fence: 1,
  });
  await again.close();
};
