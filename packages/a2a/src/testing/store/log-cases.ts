import type { NewRecord } from "../../model/index.ts";
import {
  alice,
  append,
  bob,
  chunk,
  codeOf,
  completed,
  context,
  folded,
  headOf,
  key,
  making,
  plain,
  said,
  spoil,
  status,
  verdicts,
  working,
  type Cases,
} from "./given.ts";

const all = { artifacts: true } as const;

/** D2, D3: what `append` takes and refuses. */
export const appendCases: Cases = {
  async "a new task begins its log at 1"({ store, expect }) {
    expect(await append(store, making("t"))).toEqual({ ok: true, seq: 1, fence: 0 });
    expect(await store.head(alice, "t")).toEqual({
      task: key("t"),
      contextId: context,
      state: "TASK_STATE_SUBMITTED",
      statusTime: 1000,
      seq: 1,
      firstSeq: 1,
      generation: 1,
      fence: 0,
    });
  },

  async "a task that is there cannot be made again"({ store, expect }) {
    await append(store, making("t"));
    expect(await append(store, making("t", { text: "other" }))).toEqual({
      ok: false,
      reason: "exists",
      head: await headOf(store, key("t")),
    });
  },

  async "an item for no task fails as missing"({ store, expect }) {
    expect(await append(store, { task: key("t"), records: [working("t")] })).toEqual({ ok: false, reason: "missing" });
    expect(await store.head(alice, "t")).toEqual(undefined);
  },

  async "an item that expects another seq fails as stale, and says where the task stands"({ store, expect }) {
    await store.append([making("t"), { task: key("t"), records: [working("t")] }]);
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

  async "one stale item fails alone"({ store, expect }) {
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

  async "later items of a batch see what earlier ones did to the same task"({ store, expect }) {
    const outcomes = await store.append([
      making("t"),
      { task: key("t"), expect: 1, records: [working("t"), chunk("t", "a", "1")] },
      { task: key("t"), expect: 1, records: [said("too late")] },
      { task: key("t"), expect: 3, records: [completed("t")] },
      { task: key("t"), records: [said("over")] },
      making("t"),
    ]);
    expect(verdicts(outcomes)).toEqual(["ok", "ok", "stale", "ok", "terminal", "exists"]);
    expect((await headOf(store, key("t"))).seq).toEqual(4);
  },

  async "a failed item can be tried again in the same batch"({ store, expect }) {
    const early = { task: key("t"), records: [working("t")] };
    expect(verdicts(await store.append([early, making("t"), early]))).toEqual(["missing", "ok", "ok"]);
  },

  async "nothing follows a terminal state, whatever the item says (A2A 1.0 §3.1.1)"({ store, expect }) {
    for (const [index, state] of (
      ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"] as const
    ).entries()) {
      const id = `t${index}`;
      await store.append([making(id), { task: key(id), records: [status(id, state)] }]);
      const before = await headOf(store, key(id));
      for (const record of [working(id), said("more"), chunk(id, "a", "x"), status(id, state)]) {
        expect(await append(store, { task: key(id), records: [record] })).toEqual({
          ok: false,
          reason: "terminal",
          head: before,
        });
        expect(verdicts([await append(store, { task: key(id), expect: 2, fence: 0, records: [record] })])).toEqual([
          "terminal",
        ]);
      }
      expect(await headOf(store, key(id))).toEqual(before);
    }
  },

  async "records behind a terminal status of the same item are refused with it"({ store, expect }) {
    await append(store, making("t"));
    const outcome = await append(store, { task: key("t"), records: [completed("t"), chunk("t", "a", "x")] });
    expect(verdicts([outcome])).toEqual(["terminal"]);
    expect((await headOf(store, key("t"))).seq).toEqual(1);
  },

  async "a terminal task still takes items without records"({ store, expect }) {
    await store.append([making("t"), { task: key("t"), records: [completed("t")] }]);
    expect(await append(store, { task: key("t"), records: [], effects: [{ effect: "lease", op: "revoke" }] })).toEqual({
      ok: true,
      seq: 2,
      fence: 1,
    });
  },

  async "a task may be made in its last state"({ store, expect }) {
    await append(store, making("t", { state: "TASK_STATE_REJECTED" }));
    expect(verdicts([await append(store, { task: key("t"), records: [working("t")] })])).toEqual(["terminal"]);
  },

  async "an item without records or effects changes nothing"({ store, expect }) {
    await append(store, making("t"));
    const before = await headOf(store, key("t"));
    expect(await append(store, { task: key("t"), records: [] })).toEqual({ ok: true, seq: 1, fence: 0 });
    expect(await headOf(store, key("t"))).toEqual(before);
    expect(await store.append([])).toEqual([]);
  },

  async "a malformed item rejects the call, and nothing of it is stored"({ store, expect }) {
    const malformed = [
      { ...making("t"), records: [] },
      { ...making("t"), records: [working("t")] },
      { task: key("a"), records: making("a").records },
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
    await append(store, { task: key("t"), records: [said("1"), working("t"), said("2"), chunk("t", "a", "x")] });
    expect((await headOf(store, key("t"))).generation).toEqual(3);
    expect((await headOf(store, key("t"))).seq).toEqual(5);
  },

  async "state and status time come from the last status record"({ store, expect }) {
    await append(store, making("t", { time: 1000 }));
    await append(store, {
      task: key("t"),
      records: [
        working("t", { time: 2000 }),
        status("t", "TASK_STATE_INPUT_REQUIRED", { time: 3000 }),
        said("x", 4000),
      ],
    });
    const { state, statusTime } = await headOf(store, key("t"));
    expect([state, statusTime]).toEqual(["TASK_STATE_INPUT_REQUIRED", 3000]);
  },

  async "a task id is unique for its agent, and free at another"({ store, expect }) {
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
};

const story: readonly NewRecord[] = [
  ...making("t", { metadata: { from: "maker" } }).records,
  working("t", { text: "progress" }),
  working("t", { text: "kept", keep: true }),
  chunk("t", "first", "1", { name: "First", metadata: { a: 1 } }),
  said("meanwhile"),
  chunk("t", "second", "2", { lastChunk: true }),
  chunk("t", "first", "3", { append: true }),
  chunk("t", "first", "4", { append: true, lastChunk: true }),
  status("t", "TASK_STATE_INPUT_REQUIRED", { text: "question", metadata: { step: 1, ["__proto__"]: "a key" } }),
  said("answer"),
  working("t", { metadata: { step: 2 } }),
  chunk("t", "second", "again"),
  completed("t", { text: "done" }),
];

/** D2: `load` is the fold of the log, `read` the log itself. */
export const readCases: Cases = {
  async "load gives the fold of the log, whatever of it is asked for"({ store, expect }) {
    for (const [index, record] of story.entries()) {
      await append(store, {
        task: key("t"),
        ...(index === 0 && { create: { contextId: context } }),
        records: [record],
      });
      const soFar = story.slice(0, index + 1);
      for (const artifacts of [true, false]) {
        for (const history of [undefined, 0, 1, 2, 100]) {
          const options = { artifacts, ...(history !== undefined && { history }) };
          const snapshot = await store.load(alice, "t", options);
          expect(plain(snapshot?.task)).toEqual(folded(soFar, options));
          if (snapshot?.json !== undefined) expect(JSON.parse(snapshot.json)).toEqual(folded(soFar, options));
        }
      }
    }
  },

  async "chunks that change more than parts are folded too"({ store, expect }) {
    const records = [
      chunk("t", "a", "1", { name: "one", metadata: { a: 1 }, extensions: ["urn:x"] }),
      chunk("t", "a", "2", { append: true, name: "two", metadata: { b: 2 }, extensions: ["urn:y", "urn:x"] }),
      chunk("t", "b", "3", { description: "third" }),
      chunk("t", "a", "4", { append: true, parts: [] }),
      chunk("t", "b", "5", { append: true, description: "fourth" }),
    ];
    const item = making("t");
    await append(store, { ...item, records: [...item.records, ...records] });
    expect(plain((await store.load(alice, "t", all))?.task)).toEqual(folded([...item.records, ...records]));
  },

  async "a task without history or artifacts has neither member"({ store, expect }) {
    const task = { id: "t", contextId: context, status: { state: "TASK_STATE_SUBMITTED" } };
    const record = { ...making("t").records[0], json: JSON.stringify(task) } as NewRecord;
    await append(store, { ...making("t"), records: [record] });
    expect(plain((await store.load(alice, "t", all))?.task)).toEqual(task);
  },

  async "load says where the task stands, and its task cannot be changed for others"({ store, expect }) {
    await append(store, making("t"));
    const snapshot = await store.load(alice, "t", all);
    expect(snapshot?.head).toEqual(await headOf(store, key("t")));
    spoil(() => ((snapshot?.task.history as unknown[] | undefined) ?? []).push("x"));
    spoil(() => Object.assign(snapshot?.task.status ?? {}, { state: "x" }));
    spoil(() => Object.assign(snapshot?.head ?? {}, { seq: 9 }));
    expect(plain((await store.load(alice, "t", all))?.task)).toEqual(folded(making("t").records));
    expect((await headOf(store, key("t"))).seq).toEqual(1);
  },

  async "read gives the records back as they were given, numbered from 1"({ store, expect }) {
    const rich: NewRecord = {
      ...working("t", { keep: false }),
      actor: "system",
      turn: 3,
      attempt: 2,
      extensions: ["urn:a", "urn:b"],
      trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    };
    const records = [
      { ...making("t").records[0], call: '{"version":"1.0"}' } as NewRecord,
      rich,
      said("x"),
      chunk("t", "a", "y"),
    ];
    await append(store, { ...making("t"), records });
    const page = await store.read(alice, "t", { after: 0, limit: 10 });
    expect(page?.records).toEqual(records.map((record, index) => ({ ...record, seq: index + 1 })));
    expect(page?.head).toEqual(await headOf(store, key("t")));
  },

  async "read goes on after a position, page by page"({ store, expect }) {
    const item = making("t");
    await append(store, { ...item, records: [...item.records, ...Array.from({ length: 9 }, (_, i) => said(`${i}`))] });
    const seqs = async (after: number, limit: number): Promise<unknown> =>
      (await store.read(alice, "t", { after, limit }))?.records.map((record) => record.seq);
    expect(await seqs(0, 4)).toEqual([1, 2, 3, 4]);
    expect(await seqs(4, 4)).toEqual([5, 6, 7, 8]);
    expect(await seqs(8, 4)).toEqual([9, 10]);
    expect(await seqs(10, 4)).toEqual([]);
    expect(await seqs(99, 4)).toEqual([]);
  },

  async "read can give some kinds alone; the limit is of what it gives"({ store, expect }) {
    await append(store, { ...making("t"), records: story });
    const kinds = async (options: Parameters<typeof store.read>[2]): Promise<unknown> =>
      (await store.read(alice, "t", options))?.records.map((record) => record.seq);
    expect(await kinds({ after: 0, limit: 9, kinds: ["message", "task"] })).toEqual([1, 5, 10]);
    expect(await kinds({ after: 3, limit: 2, kinds: ["artifactUpdate"] })).toEqual([4, 6]);
    expect(await kinds({ after: 6, limit: 9, kinds: ["artifactUpdate"] })).toEqual([7, 8, 12]);
    expect(await kinds({ after: 0, limit: 9, kinds: ["statusUpdate"] })).toEqual([2, 3, 9, 11, 13]);
    expect(await kinds({ after: 0, limit: 9, kinds: [] })).toEqual([]);
  },

  async "what was given in can be changed afterwards without effect"({ store, expect }) {
    const extensions = ["urn:a"];
    const record = { ...said("x"), extensions };
    const records = [...making("t").records, record];
    const task = { ...key("t") };
    await append(store, { ...making("t"), task, records });
    extensions.push("urn:b");
    Object.assign(record, { turn: 9 });
    records.pop();
    Object.assign(task, { owner: "bob" });
    const page = await store.read(alice, "t", { after: 1, limit: 1 });
    expect(page?.records).toEqual([{ ...said("x"), extensions: ["urn:a"], seq: 2 }]);
    spoil(() => Object.assign(page?.records[0] ?? {}, { json: "{}" }));
    spoil(() => (page?.records[0]?.extensions as string[] | undefined)?.push("urn:c"));
    spoil(() => (page?.records as NewRecord[] | undefined)?.pop());
    expect((await store.read(alice, "t", { after: 1, limit: 1 }))?.records).toEqual([
      { ...said("x"), extensions: ["urn:a"], seq: 2 },
    ]);
  },

  async "any text survives: NUL, lone surrogates, four-byte characters, quotes, megabytes"({ store, expect }) {
    const texts = [
      "\u0000",
      "a\u0000b",
      "\ud800",
      "\udc00x",
      "😀𝒳",
      '"\\"',
      "\\",
      "\u2028\u2029",
      "]}",
      "x".repeat(2_000_000),
    ];
    const parts = texts.map((text) => ({ text }));
    const id = 'i\u0000d "\\ \ud800 😀';
    const contextId = "c\u0000\udfff";
    const owner = { agent: "a\u0000", owner: 'o"\u0000\ud800' };
    const message = { messageId: id, role: "ROLE_USER", parts } as const;
    const task = { id, contextId, status: { state: "TASK_STATE_SUBMITTED" }, history: [message] };
    const first = {
      ...making("t").records[0],
      json: JSON.stringify(task),
      trace: "t\u0000",
      call: '{"a":"\\u0000"}',
    } as NewRecord;
    const update = { taskId: id, contextId, artifact: { artifactId: "\ud800\u0000", parts } };
    const second: NewRecord = {
      ...chunk("t", "a", "x"),
      json: JSON.stringify(update),
      extensions: ["u\u0000", "\ud800"],
    };
    const item = { task: { ...owner, taskId: id }, create: { contextId } };
    await append(store, {
      ...item,
      records: [first, second],
      effects: [
        { effect: "once", key: "k\u0000\ud800", hash: "h\u0000", now: 1, answer: '"\\u0000"' },
        { effect: "lease", op: "acquire", holder: "n\u0000", now: 1, until: 2 },
        { effect: "checkpoint", value: '"\\u0000\\ud800"' },
        { effect: "contextState", value: '"\\u0000😀"' },
      ],
    });
    expect((await store.load(owner, id, all))?.task).toEqual(folded([first, second]));
    expect((await store.read(owner, id, { after: 0, limit: 2 }))?.records).toEqual([
      { ...first, seq: 1 },
      { ...second, seq: 2 },
    ]);
    const head = await store.head(owner, id);
    expect([head?.task, head?.contextId, head?.holder, head?.checkpoint]).toEqual([
      { ...owner, taskId: id },
      contextId,
      "n\u0000",
      '"\\u0000\\ud800"',
    ]);
    expect(await store.once(owner, "k\u0000\ud800", 1)).toEqual({
      key: "k\u0000\ud800",
      hash: "h\u0000",
      taskId: id,
      seq: 2,
      answer: '"\\u0000"',
    });
    expect((await store.list(owner, { contextId, limit: 5, artifacts: false })).total).toEqual(1);
    expect(await store.conversation({ ...owner, contextId }, 5)).toEqual({
      state: '"\\u0000😀"',
      messages: [{ time: 1000, message }],
    });
    for (const near of ["i", "k", "k\u0000"]) expect(await store.once(owner, near, 1)).toEqual(undefined);
    expect(await store.head(owner, "i")).toEqual(undefined);
  },
};

/** D7: to anyone else a thing does not exist. */
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
      expect(await store.conversation({ ...owner, contextId: context }, 9)).toEqual({ messages: [] });
    }
  },

  async "every append of another owner behaves as if the task were not there"({ store, expect }) {
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

  async "contexts and keys of one name are apart for each owner"({ store, expect }) {
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
    expect((await store.conversation({ ...alice, contextId: context }, 1)).state).toEqual('"alice"');
    expect((await store.conversation({ ...bob, contextId: context }, 1)).state).toEqual('"bob"');
    expect((await store.once(bob, "k", 1))?.hash).toEqual("bob");
  },
};
