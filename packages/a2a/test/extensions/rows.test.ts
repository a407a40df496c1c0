import { describe, expect, onTestFinished, test } from "vitest";
import type { Extension, TaskRows } from "../../src/protocol/index.ts";
import { defineAgent } from "@parley/server/internal/agent/index";
import { memoryStore, type DueFeature, type Store, type TaskKey } from "@parley/server/internal/store/index";
import { callContext, fakeClock, inProcess } from "@parley/testing";
import {
  bound,
  eventually,
  gate,
  harness,
  messageOf,
  type Harness,
  type OnMessage,
} from "../../../server/test/engine/support.ts";

const uri = "https://example.com/extensions/toy/v1";
const other = "https://example.com/extensions/other/v1";
const active = { extensions: [uri, other] };
const scope = { agent: "agent", owner: JSON.stringify([null, "anonymous"]) };

function extended(onMessage: OnMessage, extensions: readonly Extension[], options: Parameters<typeof harness>[1] = {}) {
  const card = {
    capabilities: { streaming: true, extensions: extensions.map((extension) => ({ uri: extension.uri })) },
  };
  return harness(onMessage, { extensions, card, ...options });
}

/** Creates an extension that sets a row for each message and for each artifact. */
function notes(of = uri): Extension {
  return {
    uri: of,
    onAccept(input, { rows }) {
      rows.set(`message ${input.message.messageId}`, JSON.stringify(of));
      return input;
    },
    onAppend(event, { rows }) {
      if (event.kind === "artifact") rows?.set(`artifact ${event.artifact.artifactId}`, "1", { due: 5 });
      return event;
    },
  };
}

async function keysOf({ store }: Pick<Harness, "store">, taskId: string, feature = uri): Promise<readonly string[]> {
  return (await store.features(scope, taskId, feature)).map(({ key }) => key);
}

describe("rows that an extension keeps with a task", () => {
  test("are stored with their message and events, separately for each extension", async () => {
    const made = extended(
      async function* (turn) {
        yield turn.artifact({ artifactId: "a", parts: [{ text: turn.text }] });
        yield turn.inputRequired("More?");
      },
      [notes(), notes(other)],
    );
    const { id } = await made.send("go", { ...active, message: { messageId: "m1" } });
    expect(await made.store.features(scope, id, uri)).toEqual([
      { key: "message m1", value: JSON.stringify(uri) },
      { key: "artifact a", value: "1", due: 5 },
    ]);
    expect((await made.store.features(scope, id, other))[0]?.value).toBe(JSON.stringify(other));
    // Sends the next message of the task, in a call that activates only one of the extensions.
    await made.send("on", { extensions: [uri], message: { messageId: "m2", taskId: id } });
    expect(await keysOf(made, id)).toEqual(["message m1", "artifact a", "message m2"]);
    expect(await keysOf(made, id, other)).toEqual(["message m1", "artifact a"]);
  });

  test("are stored with a message that waits for its turn", async () => {
    const { opened, open } = gate();
    const made = extended(
      async function* (turn) {
        yield turn.working();
        if (turn.text === "go") await opened;
      },
      [notes()],
    );
    const reading = await made.stream("go", { ...active, message: { messageId: "m1" } });
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    const waiting = made.stream("wait", { ...active, message: { messageId: "m2", taskId: id } });
    await eventually(async () => (await keysOf(made, id)).length === 2);
    open();
    await (await waiting).all();
    expect(await keysOf(made, id)).toEqual(["message m1", "message m2"]);
  });

  test("can be read, changed and deleted by the extension that keeps them, with the next message", async () => {
    const read: unknown[] = [];
    const counting: Extension = {
      uri,
      async onAccept(input, { rows }) {
        const [row] = await rows.read();
        read.push(row);
        rows.set("count", JSON.stringify(Number(row?.value ?? 0) + 1));
        rows.delete("none");
        return input;
      },
    };
    const made = extended(
      async function* (turn) {
        yield turn.inputRequired("More?");
      },
      [counting, notes(other)],
    );
    const { id } = await made.send("go", active);
    await made.send("on", { ...active, message: { taskId: id } });
    expect(read).toEqual([undefined, { key: "count", value: "1" }]);
    expect(await made.store.features(scope, id, uri)).toEqual([{ key: "count", value: "2" }]);
  });

  test("are not kept for a direct answer, which does not make a task", async () => {
    const seen: unknown[] = [];
    const watching: Extension = {
      uri,
      onAccept(input, { rows }) {
        rows.set("a", "1", { due: 1 });
        return input;
      },
      onAppend(event, { rows }) {
        seen.push(rows);
        return event;
      },
    };
    const { ask, store } = extended((turn) => turn.reply("Hello"), [watching]);
    expect((await ask("hi", active)).message?.parts[0]?.text).toBe("Hello");
    expect(seen).toEqual([undefined]);
    expect(await store.dueFeatures({ feature: uri, agents: ["agent"], now: 9, limit: 9 })).toEqual([]);
  });

  test("are not kept if the message is rejected or the event is not stored", async () => {
    const made = extended(
      async function* (turn) {
        yield turn.artifact({ artifactId: "a", parts: [{ text: "small" }] });
        await turn.flush();
        yield turn.artifact({ artifactId: "b", parts: [{ text: "x".repeat(20_000) }] });
      },
      [
        notes(),
        { uri: other, onAccept: ({ message }) => (message.messageId === "m2" ? (null as never) : { message }) },
      ],
      { limits: { taskBytes: 4_000 } },
    );
    const task = await made.send("go", { ...active, message: { messageId: "m1" } });
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    expect(await keysOf(made, task.id)).toEqual(["message m1", "artifact a"]);
    await expect(made.send("no", { ...active, message: { messageId: "m2" } })).rejects.toMatchObject({
      code: "InternalError",
    });
    expect(await made.store.dueFeatures({ feature: uri, agents: ["agent"], now: 9, limit: 9 })).toHaveLength(1);
  });

  test("fail the task, or reject the message, if the store would reject them; after the hook they are too late", async () => {
    let late: TaskRows | undefined;
    const wrong: Extension = {
      uri,
      onAccept(input, { rows }) {
        late = rows;
        if (input.message.messageId === "m2") rows.set("", "1");
        return input;
      },
      onAppend(event, { rows }) {
        rows?.set("a", "1".repeat(40_000));
        return event;
      },
    };
    const { send, log } = extended(
      async function* (turn) {
        yield turn.artifact({ parts: [{ text: "x" }] });
      },
      [wrong],
    );
    expect((await send("go", active)).status.state).toBe("TASK_STATE_FAILED");
    const causes = log.map(({ cause }) => (cause instanceof Error ? String(cause.cause) : ""));
    expect(causes).toEqual([expect.stringContaining(`onAppend of the extension ${uri} failed: TypeError: The value`)]);
    await expect(send("no", { ...active, message: { messageId: "m2" } })).rejects.toMatchObject({
      code: "InternalError",
    });
    expect(() => late?.set("a", "1")).toThrow(TypeError);
  });
});

/**
 * A feature that delivers every event of a task at least once, in order. Its only row for a task has the `seq` of the last delivered
 * event, and each record of the task wakes the row. Any node that shares the store does the work.
 */
const deliveries: Extension = {
  uri,
  wakeRows: true,
  onAccept(input, { rows }) {
    if (input.message.taskId === undefined) rows.set("cursor", "0");
    return input;
  },
};

/** Polls once for work. If `deliver` throws, the row is due again a second later. */
async function work(store: Store, now: number, deliver: (task: TaskKey, seq: number) => Promise<void>): Promise<void> {
  for (const row of await store.dueFeatures({ feature: uri, agents: ["agent"], now, limit: 10 })) {
    const claimed = await change(store, row, row.value, now + longest);
    if (claimed === undefined) continue;
    const { records = [], head } = (await store.read(row.task, row.task.taskId, {
      after: Number(row.value),
      limit: 100,
    })) ?? { head: undefined };
    let done = row.value;
    try {
      for (const { seq } of records) {
        await deliver(row.task, seq);
        done = String(seq);
      }
      // If an event has arrived in the meantime, this change fails, and the row is due immediately.
      const idle = await change(store, claimed, done, undefined, head?.seq);
      if (idle === undefined) await change(store, claimed, done, now);
    } catch {
      await change(store, claimed, done, now + 1_000);
    }
  }
}

/** The maximum time for which a row of the feature is claimed or deferred. */
const longest = 30_000;

/** Makes rows due now whose `due` is too late because they were set before the clock was set back. */
async function afterClock(store: Store, now: number): Promise<void> {
  for (const row of await store.dueFeatures({ feature: uri, agents: ["agent"], now: Infinity, limit: 10 })) {
    if (row.due > now + longest) await change(store, row, row.value, now);
  }
}

async function change(
  store: Store,
  row: DueFeature,
  value: string,
  due: number | undefined,
  expected?: number,
): Promise<DueFeature | undefined> {
  const set = { effect: "feature", op: "set", feature: uri, key: row.key, value, if: row } as const;
  const effects = [due === undefined ? set : { ...set, due }];
  const condition = expected === undefined ? {} : { expect: expected };
  const [outcome] = await store.append([{ task: row.task, records: [], effects, ...condition }]);
  return outcome?.ok === true ? { ...row, value, due: due ?? 0 } : undefined;
}

describe("a feature that works through events on several nodes", () => {
  const card = { capabilities: { streaming: true, extensions: [{ uri }] } };
  async function* three(turn: Parameters<OnMessage>[0]) {
    for (const text of ["one", "two", "three"]) yield turn.artifact({ parts: [{ text }] });
  }

  test("delivers each record in order, retries after an error, and rests until there is more", async () => {
    const store = memoryStore();
    const clock = fakeClock();
    const now = clock.now();
    const { send } = harness(
      async function* (turn) {
        yield* three(turn);
        yield turn.inputRequired("More?");
      },
      { store, clock, card, extensions: [deliveries] },
    );
    const { id } = await send("go", active);
    const seen: number[] = [];
    let fails = 1;
    const deliver = async (_: TaskKey, seq: number): Promise<void> => {
      if (seq === 3 && (fails -= 1) >= 0) throw new Error("The receiver is down");
      seen.push(seq);
    };
    await work(store, now, deliver);
    expect([seen.splice(0), await store.features(scope, id, uri)]).toEqual([
      [1, 2],
      [{ key: "cursor", value: "2", due: now + 1_000 }],
    ]);
    await work(store, now + 999, deliver);
    expect(seen).toEqual([]);
    await work(store, now + 1_000, deliver);
    expect([seen.splice(0), await store.features(scope, id, uri)]).toEqual([
      [3, 4, 5],
      [{ key: "cursor", value: "5" }],
    ]);
    await work(store, now + 9_000, deliver);
    expect(seen).toEqual([]);
    await send("on", { ...active, message: { taskId: id } });
    await work(store, now + 9_000, deliver);
    expect(seen).toEqual([6, 7, 8, 9, 10, 11]);
  });

  test("costs nothing for tasks without its rows, and follows a task that the server ends to its end", async () => {
    const store = memoryStore();
    const clock = fakeClock();
    const { send, cancel } = harness(
      async function* (turn) {
        yield turn.inputRequired("More?");
      },
      { store, clock, card, extensions: [deliveries] },
    );
    const { id } = await send("go", active);
    await send("go");
    const seen: string[] = [];
    const deliver = async ({ taskId }: TaskKey, seq: number): Promise<void> => void seen.push(`${taskId} ${seq}`);
    await work(store, clock.now(), deliver);
    expect(seen.splice(0)).toEqual([`${id} 1`, `${id} 2`]);
    await cancel(id);
    await work(store, clock.now(), deliver);
    expect(seen).toEqual([`${id} 3`]);
  });

  test("delivers a record once if two nodes look at the same time, and survives the death of a node", async () => {
    const shared = memoryStore();
    const clock = fakeClock();
    const now = clock.now();
    let alive = true;
    const cut: Store = { ...bound(shared), append: (items) => (alive ? shared.append(items) : new Promise(() => {})) };
    const agent = defineAgent({ name: "a", description: "a", version: "1", skills: [], onMessage: three });
    const node = inProcess(agent, { store: cut, clock, card, extensions: [deliveries] });
    onTestFinished(() => void node.engine.close());
    const ask = { message: messageOf("go") };
    const { task } = (await node.service.call("SendMessage", ask, callContext({ extensions: [uri] }))).payload.value;
    const seen: string[] = [];
    const { opened, open } = gate();
    onTestFinished(open);
    const by =
      (name: string, dies = false) =>
      async (_: TaskKey, seq: number): Promise<void> => {
        seen.push(`${name} ${seq}`);
        if (!dies || seq < 3) return;
        alive = false;
        await opened;
      };
    // The first node dies while it delivers the third record, before it has stored its earlier deliveries.
    void work(cut, now, by("first", true));
    await eventually(() => !alive);
    await Promise.all([work(shared, now + 29_999, by("second")), work(shared, now + 29_999, by("third"))]);
    expect(seen.splice(0)).toEqual(["first 1", "first 2", "first 3"]);
    await Promise.all([work(shared, now + 30_000, by("second")), work(shared, now + 30_000, by("third"))]);
    const [winner] = seen[0]?.split(" ") ?? [];
    expect(seen).toEqual([1, 2, 3, 4, 5].map((seq) => `${winner} ${seq}`));
    expect(await shared.features(scope, task?.id ?? "", uri)).toEqual([{ key: "cursor", value: "5" }]);
  });
});

describe("a clock that is set back (docs/decisions/feature-effects.md)", () => {
  test("does not take a claim from its node; its row is found although it is due an hour later", async () => {
    const store = memoryStore();
    const clock = fakeClock();
    const card = { capabilities: { streaming: true, extensions: [{ uri }] } };
    const agent: OnMessage = (turn) => Promise.resolve(turn.completed("ok"));
    const { send } = harness(agent, { store, clock, card, extensions: [deliveries] });
    const { id } = await send("go", active);
    const seen: string[] = [];
    const { opened, open } = gate();
    const slow = work(store, clock.now(), async (_, seq) => {
      seen.push(`slow ${seq}`);
      await opened;
    });
    await eventually(() => seen.length > 0);
    const back = clock.now() - 3_600_000;
    const next = async (_: TaskKey, seq: number): Promise<void> => void seen.push(`next ${seq}`);
    await work(store, back + longest, next);
    expect(seen).toEqual(["slow 1"]);
    await afterClock(store, back);
    await work(store, back, next);
    const whole = seen.splice(0);
    expect(whole).toEqual(["slow 1", "next 1", "next 2"]);
    // The slow node has lost its claim, so it stores nothing.
    open();
    await slow;
    expect(await store.features(scope, id, uri)).toEqual([{ key: "cursor", value: "2" }]);
  });
});

describe("a task without space for the rows of an extension (docs/extension-api.md: as if its hook had thrown)", () => {
  const failed = "The agent failed and could not complete this task.";
  /** Sets 300 rows for the text or artifact "many", 200 for "some", and one for any other text or artifact. */
  const sets = (of: string, rows: Pick<TaskRows, "set"> | undefined, by = ""): void => {
    const count = of === "many" ? 300 : of === "some" ? 200 : 1;
    for (let n = 0; n < count; n += 1) rows?.set(`${by}${of} ${n}`, "1");
  };
  const setting: Extension = {
    uri,
    onAccept(input, { rows }) {
      sets(input.message.parts[0]?.text ?? "", rows, "message ");
      return input;
    },
    onAppend(event, { rows }) {
      if (event.kind === "artifact") sets(event.artifact.artifactId ?? "", rows);
      return event;
    },
  };
  const artifact = (turn: Parameters<OnMessage>[0], artifactId: string, of = artifactId) =>
    turn.artifact({ artifactId, parts: [{ text: of }] });
  const artifactsOf = (task: { artifacts?: readonly { artifactId: string }[] }) =>
    (task.artifacts ?? []).map(({ artifactId }) => artifactId);

  test("rejects a message that would create it, and other tasks are unaffected", async () => {
    const { ask, send, store } = extended(
      async function* (turn) {
        yield artifact(turn, "a");
      },
      [setting, { ...setting, uri: other }],
    );
    const both = [ask("many", active), ask("some", active)];
    const tasks = await Promise.all([send("go", active), ...both.map((each) => each.catch((error: unknown) => error))]);
    expect(tasks).toMatchObject([
      { status: { state: "TASK_STATE_COMPLETED" } },
      { code: "InternalError", cause: { message: expect.stringContaining("onAccept of the extension") } },
      { code: "InternalError", cause: { message: expect.stringContaining("at most 256 rows") } },
    ]);
    expect((await store.list({ agent: "agent" }, { limit: 9, artifacts: false })).total).toBe(1);
  });

  test("rejects a message to it as the hook's failure, and keeps waiting", async () => {
    const made = extended(
      async function* (turn) {
        yield turn.inputRequired("More?");
      },
      [setting],
    );
    const { id } = await made.send("some", active);
    const more = { ...active, message: { taskId: id, parts: [{ text: "some" }] } };
    expect((await made.send("some", more)).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    for (let n = 0; n < 56; n += 1) await made.send(`n${n}`, { ...active, message: { taskId: id } });
    await expect(made.send("one", { ...active, message: { taskId: id } })).rejects.toMatchObject({
      code: "InternalError",
      cause: { message: expect.stringContaining("at most 256 rows") },
    });
    expect((await made.send("some", more)).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(await keysOf(made, id)).toHaveLength(256);
  });

  test.each(["flushed", "at once", "in one array"])(
    "fails at the event whose rows do not fit, and keeps earlier events with their rows: %s",
    async (how) => {
      const ids = ["a", "b", "c", "some", "d"];
      const made = extended(
        async function* (turn) {
          if (how === "in one array") yield ids.map((id) => artifact(turn, id));
          else {
            for (const id of ids) {
              yield artifact(turn, id);
              if (how === "flushed") await turn.flush().catch(() => {});
            }
          }
        },
        [setting, { uri: other, onAccept: setting.onAccept as NonNullable<Extension["onAccept"]> }],
      );
      const task = await made.send("go", active);
      const { id } = task;
      // The task has space for these 200 rows, but not in addition to the 200 rows of the message.
      expect([task.status.state, artifactsOf(task)]).toEqual(["TASK_STATE_COMPLETED", ids]);
      const full = await made.send("some", { ...active, extensions: [uri] });
      expect([full.status.state, full.status.message?.parts[0]?.text]).toEqual(["TASK_STATE_FAILED", failed]);
      expect(artifactsOf(full)).toEqual(["a", "b", "c"]);
      const keys = await keysOf(made, full.id);
      expect(keys.filter((key) => !key.startsWith("message"))).toEqual(["a 0", "b 0", "c 0"]);
      expect(keys).toHaveLength(203);
      expect(made.log).toMatchObject([{ message: "A task failed", taskId: full.id }]);
      expect(id).not.toBe(full.id);
    },
  );

  test("keeps the rows of events that fit if a later one of the same array does not", async () => {
    const made = extended(
      async function* (turn) {
        yield [artifact(turn, "a"), artifact(turn, "b"), artifact(turn, "c", "x".repeat(20_000)), artifact(turn, "d")];
      },
      [setting],
      { limits: { taskBytes: 4_000 } },
    );
    const task = await made.send("go", active);
    expect([task.status.state, artifactsOf(task)]).toEqual(["TASK_STATE_FAILED", ["a", "b"]]);
    expect(await keysOf(made, task.id)).toEqual(["message go 0", "a 0", "b 0"]);
  });

  test("fails even with few bytes left: rows are dropped until its last event fits", async () => {
    const hundred: Extension = {
      uri,
      onAppend(event, { rows }) {
        if (event.kind !== "artifact") return event;
        for (let n = 0; n < 100; n += 1) rows?.set(`${event.artifact.artifactId} ${n}`, "1");
        return event;
      },
    };
    const seen = new Set<string>();
    for (let taskBytes = 200; taskBytes <= 1_000; taskBytes += 10) {
      const made = extended(
        async function* (turn) {
          yield ["a", "b", "c", "d"].map((id) => artifact(turn, id));
        },
        [hundred],
        { limits: { taskBytes } },
      );
      const task = await made.send("go", active);
      expect([taskBytes, task.status.state]).toEqual([taskBytes, "TASK_STATE_FAILED"]);
      expect(await keysOf(made, task.id)).toHaveLength(100 * artifactsOf(task).length);
      seen.add(`${artifactsOf(task).join()} ${task.status.message?.parts[0]?.text === failed}`);
    }
    expect([...seen]).toEqual(["a,b true"]);
  });

  test("keeps one change of a row that a hook sets again and again", async () => {
    let effects = 0;
    const shared = memoryStore();
    const store: Store = {
      ...bound(shared),
      append(items) {
        for (const item of items) effects += (item.effects ?? []).filter(({ effect }) => effect === "feature").length;
        return shared.append(items);
      },
    };
    const busy: Extension = {
      uri,
      onAccept(input, { rows }) {
        for (let n = 0; n < 1_000; n += 1) rows.set(`${n % 2}`, String(n));
        rows.delete("0");
        rows.set("0", '"last"');
        return input;
      },
    };
    const made = extended((turn) => Promise.resolve(turn.completed("ok")), [busy], { store });
    const { id } = await made.send("go", active);
    expect(effects).toBe(3);
    expect(await shared.features(scope, id, uri)).toEqual([
      { key: "1", value: "999" },
      { key: "0", value: '"last"' },
    ]);
  });
});
