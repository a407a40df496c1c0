import type { NewRecord } from "@parley/a2a/internal/model/index";
import {
  adding,
  alice,
  all,
  append,
  chunk,
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
  working,
  type Cases,
} from "./given.ts";

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

function pushTo(list: unknown, value: string): void {
  if (Array.isArray(list)) list.push(value);
}

/** `load` returns the fold of the log, `read` the log itself. */
export const readCases: Cases = {
  async "load returns the fold of the log, with the requested history and artifacts"({ store, expect }) {
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

  async "chunks that change more than parts are folded"({ store, expect }) {
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

  async "adjacent texts of an artifact are joined on request, and stay separate in the log"({ store, expect }) {
    const merged = { artifacts: true, mergeTextParts: true } as const;
    const markdown = { text: "*c*", mediaType: "text/markdown" };
    const records = [
      chunk("t", "a", 'a "1" \\'),
      chunk("t", "a", "\ud83d", { append: true }),
      chunk("t", "a", "\ude00\n", { append: true }),
      chunk("t", "b", "beside"),
      chunk("t", "a", "", { append: true, parts: [markdown, markdown, { text: "named", filename: "a.txt" }] }),
      chunk("t", "a", "", {
        append: true,
        parts: [{ text: "x" }, { text: "", metadata: {} }, { data: 1 }, { text: "y" }],
      }),
      chunk("t", "a", "z", { append: true, lastChunk: true }),
    ];
    const item = making("t");
    await append(store, { ...item, records: [...item.records, ...records] });
    const look = async (): Promise<void> => {
      for (const options of [all, merged, all]) {
        const task = folded([...item.records, ...records], options);
        expect(plain((await store.load(alice, "t", options))?.task)).toEqual(task);
        const { tasks } = await store.list(alice, { limit: 1, ...options });
        expect(tasks.map((listed) => plain(listed.task))).toEqual([task]);
      }
    };
    await look();
    expect((await store.read(alice, "t", { after: 1, limit: 99 }))?.records.map(({ json }) => json)).toEqual(
      records.map(({ json }) => json),
    );
    await append(store, adding("t", completed("t", { time: 10 })));
    records.push(completed("t", { time: 10 }));
    await store.sweep({ now: 0, compactBefore: 11, limit: 9 });
    await look();
  },

  async "a task without history or artifacts lacks these members"({ store, expect }) {
    const task = { id: "t", contextId: context, status: { state: "TASK_STATE_SUBMITTED" } };
    const record = { ...making("t").records[0], json: JSON.stringify(task) };
    await append(store, { ...making("t"), records: [record] });
    expect(plain((await store.load(alice, "t", all))?.task)).toEqual(task);
  },

  async "load returns the head, and a copy of the task that the caller may change"({ store, expect }) {
    await append(store, making("t"));
    const snapshot = await store.load(alice, "t", all);
    expect(snapshot?.head).toEqual(await headOf(store, key("t")));
    spoil(() => pushTo(snapshot?.task.history, "x"));
    spoil(() => Object.assign(snapshot?.task.status ?? {}, { state: "x" }));
    spoil(() => Object.assign(snapshot?.head ?? {}, { seq: 9 }));
    expect(plain((await store.load(alice, "t", all))?.task)).toEqual(folded(making("t").records));
    expect((await headOf(store, key("t"))).seq).toEqual(1);
  },

  async "load returns the current task, even if it was loaded before"({ store, expect }) {
    const made = making("t").records;
    await append(store, making("t"));
    const look = async (): Promise<unknown[]> => {
      const snapshot = await store.load(alice, "t", all);
      return [snapshot?.head.fence, plain(snapshot?.task)];
    };
    expect([await look(), await look()]).toEqual([
      [0, folded(made)],
      [0, folded(made)],
    ]);
    // Renewing a lease changes only the head.
    await append(store, {
      task: key("t"),
      records: [],
      effects: [{ effect: "lease", op: "acquire", holder: "n", now: 1, until: 9 }],
    });
    expect(await look()).toEqual([1, folded(made)]);
    await append(store, adding("t", chunk("t", "a", "x")));
    expect(await look()).toEqual([1, folded([...made, chunk("t", "a", "x")])]);
    expect(await store.load({ ...alice, owner: "bob" }, "t", all)).toEqual(undefined);
  },

  async "read returns the appended records unchanged, numbered from 1"({ store, expect }) {
    const rich: NewRecord = {
      ...working("t", { keep: false }),
      actor: "system",
      turn: 3,
      attempt: 2,
      extensions: ["urn:a", "urn:b"],
      trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    };
    const records = [{ ...making("t").records[0], call: '{"version":"1.0"}' }, rich, said("x"), chunk("t", "a", "y")];
    await append(store, { ...making("t"), records });
    const page = await store.read(alice, "t", { after: 0, limit: 10 });
    expect(page?.records).toEqual(records.map((record, index) => ({ ...record, seq: index + 1 })));
    expect(page?.head).toEqual(await headOf(store, key("t")));
  },

  async "read continues after a position, in pages"({ store, expect }) {
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

  async "read can filter by kind, and the limit counts only matching records"({ store, expect }) {
    await append(store, { ...making("t"), records: story });
    const kinds = async (options: Parameters<typeof store.read>[2]): Promise<unknown> =>
      (await store.read(alice, "t", options))?.records.map((record) => record.seq);
    expect(await kinds({ after: 0, limit: 9, kinds: ["message", "task"] })).toEqual([1, 5, 10]);
    expect(await kinds({ after: 3, limit: 2, kinds: ["artifactUpdate"] })).toEqual([4, 6]);
    expect(await kinds({ after: 6, limit: 9, kinds: ["artifactUpdate"] })).toEqual([7, 8, 12]);
    expect(await kinds({ after: 0, limit: 9, kinds: ["statusUpdate"] })).toEqual([2, 3, 9, 11, 13]);
    expect(await kinds({ after: 0, limit: 9, kinds: [] })).toEqual([]);
  },

  async "changing an item after the call has no effect"({ store, expect }) {
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
    spoil(() => pushTo(page?.records[0]?.extensions, "urn:c"));
    spoil(() => pushTo(page?.records, "x"));
    expect((await store.read(alice, "t", { after: 1, limit: 1 }))?.records).toEqual([
      { ...said("x"), extensions: ["urn:a"], seq: 2 },
    ]);
  },

  async "any text is stored exactly: NUL, lone surrogates, four-byte characters, quotes, megabytes"({ store, expect }) {
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
      "x".repeat(Math.min(2_000_000, (store.recordBytes ?? Infinity) - 1_000)),
    ];
    const parts = texts.map((text) => ({ text }));
    const id = 'i\u0000d "\\ \ud800 😀';
    const contextId = "c\u0000\udfff";
    const owner = { agent: "a\u0000", owner: 'o"\u0000\ud800' };
    const message = { messageId: id, role: "ROLE_USER", parts } as const;
    const task = { id, contextId, status: { state: "TASK_STATE_SUBMITTED" }, history: [message] };
    const first = { ...making("t").records[0], json: JSON.stringify(task), trace: "t\u0000", call: '{"a":"\\u0000"}' };
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
        { effect: "taskState", value: '"\\ud800\\u0000"' },
        { effect: "contextState", value: '"\\u0000😀"' },
      ],
    });
    expect((await store.load(owner, id, all))?.task).toEqual(folded([first, second]));
    expect((await store.read(owner, id, { after: 0, limit: 2 }))?.records).toEqual([
      { ...first, seq: 1 },
      { ...second, seq: 2 },
    ]);
    const head = await store.head(owner, id);
    expect([head?.task, head?.contextId, head?.holder, head?.checkpoint, head?.taskState]).toEqual([
      { ...owner, taskId: id },
      contextId,
      "n\u0000",
      '"\\u0000\\ud800"',
      '"\\ud800\\u0000"',
    ]);
    expect(await store.once(owner, "k\u0000\ud800", 1)).toEqual({
      key: "k\u0000\ud800",
      hash: "h\u0000",
      taskId: id,
      seq: 2,
      answer: '"\\u0000"',
    });
    expect((await store.list(owner, { contextId, limit: 5, artifacts: false })).total).toEqual(1);
    expect(await store.conversation({ ...owner, contextId }, { limit: 5 })).toEqual({
      state: '"\\u0000😀"',
      entries: [
        { time: 1000, message },
        { time: 1000, taskId: id, artifact: update.artifact },
      ],
    });
    for (const near of ["i", "k", "k\u0000"]) expect(await store.once(owner, near, 1)).toEqual(undefined);
    expect(await store.head(owner, "i")).toEqual(undefined);
  },
};
