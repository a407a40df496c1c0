import type { TaskEffect } from "@parley/server/internal/store/index";
import {
  agentMessage,
  alice,
  append,
  completed,
  context,
  effects,
  headOf,
  key,
  making,
  said,
  userMessage,
  verdicts,
  working,
  type Cases,
} from "./given.ts";

/** Idempotency keys, which make retries safe. */
export const onceCases: Cases = {
  async "a key is stored with its task and the last seq of its item"({ store, expect }) {
    const once: TaskEffect = { effect: "once", key: "k", hash: "h", now: 10 };
    await append(store, { ...making("t"), records: [...making("t").records, working("t")], effects: [once] });
    expect(await store.once(alice, "k", 10)).toEqual({ key: "k", hash: "h", taskId: "t", seq: 2 });
    expect(await store.once(alice, "other", 10)).toEqual(undefined);
  },

  async "an item with an existing key is refused, with what is stored under the key"({ store, expect }) {
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

  async "duplicate comes before every other reason, so that a retry gets its answer"({ store, expect }) {
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

  async "later items of a batch see a key, and a refused item stores none"({ store, expect }) {
    const once = { effect: "once", key: "k", hash: "h", now: 10 } as const;
    const outcomes = await store.append([
      { task: key("nothing"), records: [], effects: [once] },
      { ...making("t"), effects: [once] },
      { ...making("u"), effects: [once] },
    ]);
    expect(verdicts(outcomes)).toEqual(["missing", "ok", "duplicate"]);
  },

  async "an expired key can be used again"({ store, expect }) {
    const once: TaskEffect = { effect: "once", key: "k", hash: "h", now: 10, until: 20 };
    await append(store, { ...making("t"), effects: [once] });
    expect((await store.once(alice, "k", 19))?.hash).toEqual("h");
    expect(await store.once(alice, "k", 20)).toEqual(undefined);
    expect(verdicts([await append(store, { ...making("u"), effects: [{ ...once, now: 19 }] })])).toEqual(["duplicate"]);
    const again: TaskEffect = { effect: "once", key: "k", hash: "new", now: 20, until: 30 };
    expect(verdicts([await append(store, { ...making("u"), effects: [again] })])).toEqual(["ok"]);
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
