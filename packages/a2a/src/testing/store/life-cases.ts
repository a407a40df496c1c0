import {
  alice,
  append,
  chunk,
  codeOf,
  completed,
  context,
  headOf,
  key,
  making,
  plain,
  said,
  working,
  type Case,
  type Cases,
} from "./given.ts";

export const lifeCases: Cases = {
  async "appends that are under way together are each whole"({ store, expect }) {
    await append(store, making("t"));
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, i) => store.append([{ task: key("t"), expect: 1 + i, records: [said(`${i}`)] }])),
    );
    const stored = outcomes.flat().filter((outcome) => outcome.ok).length;
    expect((await headOf(store, key("t"))).seq).toEqual(1 + stored);
    expect((await store.load(alice, "t", { artifacts: false }))?.task.history?.length).toEqual(1 + stored);
  },

  async "a closed store refuses every call, and closing it again is fine"({ store, expect }) {
    await append(store, making("t"));
    await store.close();
    for (const call of [
      () => store.append([making("u")]),
      () => store.head(alice, "t"),
      () => store.load(alice, "t", { artifacts: true }),
      () => store.read(alice, "t", { after: 0, limit: 1 }),
      () => store.list(alice, { limit: 1, artifacts: true }),
      async () => store.once(alice, "k", 0),
      () => store.conversation({ ...alice, contextId: context }, 1),
      () => store.claimable(0, 1),
      () => store.sweep({ now: 0, limit: 1 }),
    ]) {
      expect(await codeOf(call)).toEqual("Unavailable");
    }
    await store.close();
  },
};

/** For stores that outlive their process. */
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
        { effect: "contextState", value: '{"n":1}' },
      ],
    },
    { task: key("t"), records: [working("t", { text: "kept", keep: true }), chunk("t", "a", "x")] },
    making("u", { time: 2000 }),
    { task: key("u"), records: [completed("u", { time: 3000 })] },
  ]);
  const look = async (from: typeof store): Promise<unknown> => ({
    head: await from.head(alice, "t"),
    task: plain((await from.load(alice, "t", { artifacts: true }))?.task),
    log: await from.read(alice, "t", { after: 0, limit: 9 }),
    once: await from.once(alice, "k", 1),
    conversation: await from.conversation({ ...alice, contextId: context }, 9),
    claimable: await from.claimable(50, 9),
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
