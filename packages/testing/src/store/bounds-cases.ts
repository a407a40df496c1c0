import { gist } from "./conversation-cases.ts";
import { utf8Length } from "@parley/a2a/internal/base/index";
import {
  recordBytes,
  roomless,
  type ClaimPosition,
  type ListPosition,
  type Room,
  type TaskEffect,
} from "@parley/server/internal/store/index";
import {
  adding,
  alice,
  append,
  chunk,
  completed,
  context,
  headOf,
  key,
  making,
  said,
  verdict,
  verdicts,
  type Cases,
} from "./given.ts";

const tenThousand = "x".repeat(10_000);

/** Results are bounded in bytes, and paging omits nothing. */
export const boundsCases: Cases = {
  async "a task's head has the size of its log in bytes"({ store, expect }) {
    const first = { ...making("t"), records: making("t").records.map((record) => ({ ...record, call: '{"ü":"😀"}' })) };
    await append(store, first);
    const more = [said("größer"), chunk("t", "a", "字😀"), completed("t", { text: "done" })];
    await append(store, adding("t", ...more));
    const bytes = [...first.records, ...more].reduce((sum, record) => sum + recordBytes(record), 0);
    expect((await headOf(store, key("t"))).bytes).toEqual(bytes);
    await append(store, { task: key("t"), records: [], effects: [{ effect: "lease", op: "revoke" }] });
    expect((await headOf(store, key("t"))).bytes).toEqual(bytes);
  },

  async "an item that makes its task larger than maxBytes fails as full and stores nothing"({ store, expect }) {
    await append(store, making("t"));
    const { bytes } = await headOf(store, key("t"));
    const record = said("more");
    const room = bytes + recordBytes(record);
    const item = adding("t", record);
    const head = await headOf(store, key("t"));
    expect(await append(store, { ...item, maxBytes: room - 1 })).toEqual({ ok: false, reason: "full", head });
    expect(await headOf(store, key("t"))).toEqual(head);
    const outcomes = await store.append([
      { ...item, maxBytes: room },
      { ...item, maxBytes: room },
      { ...making("u"), maxBytes: 1 },
    ]);
    expect(verdicts(outcomes)).toEqual(["ok", "full", "full"]);
    expect(await store.head(alice, "u")).toEqual(undefined);
    // An item without records never fails as full.
    expect(await verdict(store, { task: key("t"), records: [], maxBytes: 1 })).toEqual("ok");
    // `terminal` takes precedence over `full`.
    await append(store, adding("t", completed("t")));
    expect(await verdict(store, { ...item, maxBytes: 1 })).toEqual("terminal");
  },

  async "a record, a checkpoint and a state of the maximum size are stored"({ store, expect }) {
    const { recordBytes: most = 1 << 20 } = store;
    const item = making("t");
    // Metadata can be up to a quarter of the first record.
    const [first] = item.records;
    const metadata = { note: "x".repeat(most / 4 - 20) };
    const history = [{ messageId: "m", role: "ROLE_USER", parts: [{ text: "x".repeat((most / 4) * 3 - 500) }] }];
    const json = JSON.stringify({ ...JSON.parse(first.json), history, metadata });
    const large = JSON.stringify("x".repeat(most - 2));
    await append(store, { ...item, records: [{ ...first, json }] });
    const second = chunk("t", "a", "x".repeat(most - 500));
    const effects: TaskEffect[] = [
      { effect: "checkpoint", value: large },
      { effect: "contextState", value: large },
    ];
    await append(store, { task: key("t"), records: [second], effects });
    expect([most - json.length < 1_000, most - second.json.length < 1_000]).toEqual([true, true]);
    const page = await store.read(alice, "t", { after: 0, limit: 9 });
    expect(page?.records.map((record) => record.json.length)).toEqual([json.length, second.json.length]);
    expect((await headOf(store, key("t"))).checkpoint).toEqual(large);
    const { state } = await store.conversation({ ...alice, contextId: context }, { limit: 1 });
    expect(state).toEqual(large);
    const task = (await store.load(alice, "t", { artifacts: true }))?.task;
    expect([task?.metadata, task?.artifacts?.length]).toEqual([metadata, 1]);
  },

  async "memory for a large result is reserved before it is read"({ store, expect }) {
    const asked: number[] = [];
    let during = async (): Promise<unknown> => undefined;
    const room: Room = {
      async reserve(bytes) {
        asked.push(bytes);
        await during();
      },
    };
    const item = making("t");
    const big = chunk("t", "a", "x".repeat(roomless));
    await append(store, { ...item, records: [...item.records, chunk("t", "b", "small")] });
    const load = async (): Promise<number | undefined> =>
      (await store.load(alice, "t", { artifacts: true, room }))?.task.artifacts?.length;
    const list = async (artifacts: boolean): Promise<number> =>
      (await store.list(alice, { limit: 9, artifacts, room })).tasks.length;
    const read = async (after: number, bytes: number): Promise<number | undefined> =>
      (await store.read(alice, "t", { after, limit: 9, bytes, room }))?.records.length;
    expect([await load(), await list(true), await read(0, roomless), asked]).toEqual([1, 1, 2, []]);

    await append(store, adding("t", big));
    const { bytes } = await headOf(store, key("t"));
    expect([await load(), asked.splice(0)]).toEqual([2, [bytes]]);
    expect([await list(true), asked.splice(0)]).toEqual([1, [bytes]]);
    // Artifacts that the query does not request need no reservation.
    expect([await list(false), asked.splice(0)]).toEqual([1, []]);
    expect([await read(0, roomless), asked.splice(0)]).toEqual([2, []]);
    expect([await read(2, roomless), asked.splice(0)]).toEqual([1, [recordBytes(big)]]);

    // If the task grows meanwhile, the store reserves memory again.
    during = async () => {
      during = async () => undefined;
      await append(store, adding("t", chunk("t", "c", "more")));
    };
    const loaded = await load();
    expect([loaded, asked.splice(0)]).toEqual([3, [bytes, (await headOf(store, key("t"))).bytes]]);

    const refused = new RangeError("no room");
    during = () => Promise.reject(refused);
    for (const ask of [load, () => list(true), () => read(2, roomless)]) {
      expect(await ask().catch((thrown: unknown) => thrown)).toEqual(refused);
    }
  },

  async "a page of the log stays within the byte limit, and is empty only at the end"({ store, expect }) {
    const item = making("t");
    const large = said(tenThousand);
    const chunks = Array.from({ length: 5 }, (_, n) => chunk("t", "a", `${n}`, n > 0 ? { append: true } : {}));
    await append(store, { ...item, records: [...item.records, ...chunks, large, large] });
    const page = async (after: number, bytes: number, limit = 99): Promise<unknown> =>
      (await store.read(alice, "t", { after, limit, bytes }))?.records.map(({ seq }) => seq);
    const chunkBytes = recordBytes(chunks[1] ?? large);
    expect(await page(2, 3 * chunkBytes)).toEqual([3, 4, 5]);
    expect(await page(2, 3 * chunkBytes - 1)).toEqual([3, 4]);
    expect(await page(2, 3 * chunkBytes, 1)).toEqual([3]);
    expect(await page(2, 0)).toEqual([3]);
    expect(await page(5, 5_000)).toEqual([6]);
    expect(await page(6, 5_000)).toEqual([7]);
    expect(await page(7, 5_000)).toEqual([8]);
    expect(await page(8, 5_000)).toEqual([]);
    expect(await page(0, 1_000_000)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    const kinds = await store.read(alice, "t", { after: 1, limit: 9, bytes: 5_000, kinds: ["message"] });
    expect(kinds?.records.map(({ seq }) => seq)).toEqual([7]);
  },

  async "a page of tasks stays within the byte limit, and has the position of the next page"({ store, expect }) {
    for (let n = 0; n < 6; n += 1) {
      const text = n % 2 === 0 ? tenThousand : "little";
      await append(store, {
        ...making(`t${n}`, { time: n }),
        records: [...making(`t${n}`, { time: n }).records, chunk(`t${n}`, "a", text)],
      });
    }
    const pages = async (bytes: number, artifacts: boolean): Promise<unknown> => {
      const found: string[][] = [];
      let after: ListPosition | undefined;
      do {
        const page = await store.list(alice, { limit: 4, bytes, artifacts, ...(after && { after }) });
        expect(page.total).toEqual(6);
        const size = page.tasks.reduce((sum, { json, task }) => sum + utf8Length(json ?? JSON.stringify(task)), 0);
        expect(page.tasks.length === 1 || size <= bytes).toEqual(true);
        found.push(page.tasks.map(({ task }) => task.id));
        after = page.next;
      } while (after !== undefined);
      return found;
    };
    expect(await pages(1, true)).toEqual([["t5"], ["t4"], ["t3"], ["t2"], ["t1"], ["t0"]]);
    expect(await pages(12_000, true)).toEqual([["t5", "t4", "t3"], ["t2", "t1"], ["t0"]]);
    expect(await pages(100_000, true)).toEqual([
      ["t5", "t4", "t3", "t2"],
      ["t1", "t0"],
    ]);
    // Artifacts that the query does not request do not count.
    expect(await pages(12_000, false)).toEqual([
      ["t5", "t4", "t3", "t2"],
      ["t1", "t0"],
    ]);
  },

  async "a conversation returns its newest messages within the byte limit"({ store, expect }) {
    const here = { ...alice, contextId: context };
    await append(store, making("t"));
    await append(store, adding("t", said(tenThousand), said("a"), said("b")));
    const reply = { effect: "contextMessage", json: said("c").json, time: 2000 } as const;
    await append(store, { context: here, effects: [reply] });
    const told = async (limit: number, bytes?: number): Promise<unknown> =>
      (await store.conversation(here, { limit, ...(bytes !== undefined && { bytes }) })).entries.map(
        (entry) => gist(entry).length,
      );
    expect(await told(9)).toEqual([5, 10_000, 1, 1, 1]);
    expect(await told(9, 5_000)).toEqual([1, 1, 1]);
    expect(await told(2, 5_000)).toEqual([1, 1]);
    expect(await told(9, 0)).toEqual([1]);
    expect(await told(0, 5_000)).toEqual([]);
  },

  async "claimable returns only runs of the agents in the query, in pages"({ store, expect }) {
    const run: TaskEffect = { effect: "run", run: { turn: 1, attempt: 1, input: 1 } };
    const lease = (until: number): TaskEffect => ({ effect: "lease", op: "acquire", holder: "n", now: 0, until });
    const others = { agent: "gone", owner: "alice" };
    const third = { agent: "third", owner: "alice" };
    await store.append([
      ...Array.from({ length: 20 }, (_, n) => ({ ...making(`x${n}`, { owner: others }), effects: [run] })),
      { ...making("c"), effects: [run, lease(7)] },
      { ...making("d", { owner: third }), effects: [run, lease(7)] },
      { ...making("e"), effects: [run, lease(7)] },
      { ...making("f"), effects: [run, lease(99)] },
      { ...making("a", { owner: third }), effects: [run] },
      {
        ...making("b"),
        effects: [run, { effect: "checkpoint", value: `"${tenThousand}"` }, { effect: "taskState", value: "1" }],
      },
      { ...making("g"), effects: [run, lease(8)] },
    ]);
    const all = async (limit: number, agents: readonly string[]): Promise<unknown> => {
      const found: string[] = [];
      let after: ClaimPosition | undefined;
      do {
        const page = await store.claimable({ now: 8, agents, limit, ...(after && { after }) });
        expect(page.heads.length <= limit).toEqual(true);
        expect(page.heads.some((head) => "checkpoint" in head || "taskState" in head)).toEqual(false);
        found.push(...page.heads.map(({ task }) => task.taskId));
        after = page.next;
      } while (after !== undefined);
      return found;
    };
    for (const limit of [1, 2, 3, 100]) {
      expect(await all(limit, ["agent", "third", "unknown"])).toEqual(["a", "b", "c", "d", "e", "g"]);
      expect(await all(limit, ["third", "third"])).toEqual(["a", "d"]);
    }
    expect(await all(5, [])).toEqual([]);
    const ever = await store.claimable({ now: Infinity, agents: ["agent"], limit: 9 });
    expect(ever.heads.map(({ task }) => task.taskId)).toEqual(["b", "c", "e", "g", "f"]);
    const stranded = await store.stranded({ now: Infinity, agents: ["gone", "third"], limit: 9 });
    expect(stranded).toEqual([{ agent: "agent", tasks: 5 }]);
  },

  async "a position among the runs stays valid after the task there is taken over"({ store, expect }) {
    const run: TaskEffect = { effect: "run", run: { turn: 1, attempt: 1, input: 1 } };
    const acquire: TaskEffect = { effect: "lease", op: "acquire", holder: "n", now: 5, until: 50 };
    for (const id of ["a", "b", "c"]) await append(store, { ...making(id), effects: [run] });
    const first = await store.claimable({ now: 5, agents: ["agent"], limit: 1 });
    await append(store, { task: key("a"), records: [], effects: [acquire] });
    const rest = await store.claimable({
      now: 5,
      agents: ["agent"],
      limit: 9,
      ...(first.next && { after: first.next }),
    });
    expect([...first.heads, ...rest.heads].map(({ task }) => task.taskId)).toEqual(["a", "b", "c"]);
  },

  async "compaction makes a log smaller"({ store, expect }) {
    const item = making("t");
    const chunks = Array.from({ length: 50 }, (_, n) => chunk("t", "a", `${n}`, n > 0 ? { append: true } : {}));
    await append(store, { ...item, records: [...item.records, ...chunks, completed("t")] });
    const before = await headOf(store, key("t"));
    await store.sweep({ now: 0, compactBefore: 2000, limit: 9 });
    const { bytes } = await headOf(store, key("t"));
    expect(bytes > 0 && bytes < before.bytes / 2).toEqual(true);
  },
};
