import { describe, expect, it, vi } from "vitest";
import { callContext } from "@parley/testing";
import { memoryStore, queueFeature, type Store, type TaskAppend } from "../../src/store/index.ts";
import { agentOf, asked, posted, rest, serving } from "../intask/support.ts";
import { bound, eventually, gate, gist, harness, messageOf, type OnMessage } from "./support.ts";

/* A process runs up to `limits.runs` tasks. The other tasks wait in the store as `TASK_STATE_SUBMITTED` (A2A 1.0 §4.1.3). */

const immediately = { configuration: { returnImmediately: true } };

/** Creates an agent whose turns continue until the test releases them, one at a time. The agent records their order. */
function holding() {
  const begun: string[] = [];
  const open: (() => void)[] = [];
  return {
    begun,
    /** Ends the turn that began earliest. */
    async next() {
      await eventually(() => open.length > 0);
      open.shift()?.();
    },
    running: () => open.length,
    async *onMessage(turn: Parameters<OnMessage>[0]) {
      begun.push(turn.text);
      yield turn.working("on it");
      const { opened, open: end } = gate();
      open.push(end);
      await Promise.race([opened, new Promise((resolve) => turn.signal.addEventListener("abort", resolve))]);
      yield turn.artifact({ parts: [{ text: `done: ${turn.text}` }] });
    },
  };
}

describe("tasks beyond limits.runs", () => {
  it("are stored as SUBMITTED without a run or a lease, and begin in the order of arrival", async () => {
    const store = memoryStore();
    const { begun, next, onMessage } = holding();
    const { send, get } = harness(onMessage, { store, limits: { runs: 1 } });
    const ids: string[] = [];
    for (const text of ["one", "two", "three"]) ids.push((await send(text, immediately)).id);
    await eventually(() => begun.length === 1);
    const [one = "", two = "", three = ""] = ids;
    for (const id of [two, three]) {
      expect((await get(id)).status.state).toBe("TASK_STATE_SUBMITTED");
      const head = await store.head({ agent: "agent" }, id);
      expect(head).not.toHaveProperty("run");
      expect(head).not.toHaveProperty("holder");
      expect(head?.seq).toBe(1);
    }
    await next();
    await eventually(() => begun.length === 2);
    expect((await get(two)).status.state).toBe("TASK_STATE_WORKING");
    expect((await get(three)).status.state).toBe("TASK_STATE_SUBMITTED");
    await next();
    await next();
    for (const id of [one, two, three])
      await eventually(async () => (await get(id)).status.state === "TASK_STATE_COMPLETED");
    expect(begun).toEqual(["one", "two", "three"]);
    for (const id of ids) expect(await store.features({ agent: "agent" }, id, queueFeature)).toEqual([]);
  });

  it("alternate between their owners: 200 of one delay the first of another by one place", async () => {
    const store = memoryStore();
    const { begun, next, onMessage } = holding();
    const { send } = harness(onMessage, { store, limits: { runs: 1 } });
    const many = Array.from({ length: 201 }, (_, at) => `a${at}`);
    await Promise.all(many.map((text) => send(text, { subject: "ada", ...immediately })));
    await eventually(() => begun.length === 1);
    for (const text of ["b0", "b1", "b2"]) await send(text, { subject: "bob", ...immediately });
    await send("c0", { subject: "cyd", ...immediately });
    for (let count = 2; count <= 9; count += 1) {
      await next();
      await eventually(() => begun.length === count);
    }
    const order = begun.slice(1);
    expect(order.indexOf("b0")).toBeLessThanOrEqual(1);
    expect(order.indexOf("c0")).toBeLessThanOrEqual(2);
    expect(order.filter((text) => text.startsWith("b"))).toEqual(["b0", "b1", "b2"]);
    // The tasks of one owner stay in order, and the engine skips none of them.
    expect(order.filter((text) => text.startsWith("a"))).toEqual(["a1", "a2", "a3", "a4"]);
  });
});

describe("a queued task", () => {
  it("is canceled like any other, and its agent is never called", async () => {
    const { begun, next, onMessage } = holding();
    const { send, cancel, get, store } = harness(onMessage, { limits: { runs: 1 } });
    await send("one", immediately);
    const { id } = await send("two", immediately);
    expect((await cancel(id)).status.state).toBe("TASK_STATE_CANCELED");
    expect(await store.features({ agent: "agent" }, id, queueFeature)).toEqual([]);
    const last = await send("three", immediately);
    await next();
    await next();
    await eventually(async () => (await get(last.id)).status.state === "TASK_STATE_COMPLETED");
    expect(begun).toEqual(["one", "three"]);
  });

  it("keeps messages that arrive while it waits: each gets its own turn, after the first", async () => {
    const { begun, next, onMessage } = holding();
    const { send, get } = harness(onMessage, { limits: { runs: 1 } });
    await send("one", immediately);
    const { id } = await send("two", immediately);
    const answered = send("more", { message: { taskId: id } });
    await eventually(async () => (await get(id)).history?.length === 2);
    expect((await get(id)).status.state).toBe("TASK_STATE_SUBMITTED");
    await next();
    await next();
    await next();
    expect((await answered).status.state).toBe("TASK_STATE_COMPLETED");
    expect(begun).toEqual(["one", "two", "more"]);
  });

  it("shows its start on streams and to waiting sends", async () => {
    const { next, onMessage } = holding();
    const { send, stream, subscribe } = harness(onMessage, { limits: { runs: 1 } });
    await send("one", immediately);
    const reading = await stream("two");
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    const other = await subscribe(id);
    const first = await other.next();
    const waiting = send("three");
    await next();
    await next();
    const events = (await reading.all()).map(({ payload }) => gist(payload.value));
    expect(events).toEqual(["working", "working", "artifact done: two", "completed"]);
    expect(first && gist(first.payload.value)).toBe("task submitted");
    expect((await other.all()).map(({ payload }) => gist(payload.value))).toEqual(events);
    await next();
    expect((await waiting).status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("is the same for a repeated message", async () => {
    const { next, onMessage, begun } = holding();
    const { send } = harness(onMessage, { limits: { runs: 1 } });
    await send("one", immediately);
    const again = { message: { messageId: "m" }, ...immediately };
    const [first, second] = await Promise.all([send("two", again), send("two", again)]);
    expect(second.id).toBe(first.id);
    expect((await send("two", again)).id).toBe(first.id);
    await next();
    await eventually(() => begun.length === 2);
  });

  it("waits for a restart of its process, and begins after it", async () => {
    const store = memoryStore();
    const shared: Store = { ...bound(store), close: async () => {} };
    const first = holding();
    const before = harness(first.onMessage, { store: shared, limits: { runs: 1 } });
    await before.send("one", immediately);
    const ids = [(await before.send("two", immediately)).id, (await before.send("three", immediately)).id];
    await before.engine.close();
    const second = holding();
    const after = harness(second.onMessage, { store: shared, limits: { runs: 1 } });
    for (const id of ids) {
      await second.next();
      await eventually(async () => (await after.get(id)).status.state === "TASK_STATE_COMPLETED");
    }
    expect(second.begun).toEqual(["two", "three"]);
  });

  it("takes the answer to its question back to the queue, behind those that wait", async () => {
    const { begun, next, onMessage } = holding();
    const { send, get, stream } = harness(
      async function* (turn) {
        if (turn.text === "ask") yield turn.inputRequired("What?");
        else yield* onMessage(turn);
      },
      { limits: { runs: 1 } },
    );
    const { id } = await send("ask");
    await send("one", immediately);
    await send("two", immediately);
    const reading = await stream("answer", { message: { taskId: id } });
    await eventually(async () => (await get(id)).status.state === "TASK_STATE_SUBMITTED");
    for (let turns = 0; turns < 3; turns += 1) await next();
    expect((await reading.all()).map(({ payload }) => gist(payload.value)).at(-1)).toBe("completed");
    expect(begun).toEqual(["one", "two", "answer"]);
    expect((await get(id)).artifacts?.[0]?.parts[0]?.text).toBe("done: answer");
  });
});

describe("limits.runs", () => {
  it("creates a task for a message whose agent would reply directly, and its reply completes it", async () => {
    const { opened, open } = gate();
    const { ask } = harness(
      async (turn) => {
        if (turn.text === "one") await opened;
        return turn.reply(`re: ${turn.text}`);
      },
      { limits: { runs: 1 } },
    );
    const one = ask("one");
    const two = ask("two");
    open();
    expect((await one).message?.parts[0]?.text).toBe("re: one");
    const { task } = await two;
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task?.status.message?.parts[0]?.text).toBe("re: two");
    // There is capacity again, so the next message is answered directly.
    await eventually(async () => (await ask("three")).message !== undefined);
  });

  it("applies to each process: another process takes the next task, and both complete all of them", async () => {
    const store = memoryStore();
    const listeners = new Set<(taskId?: string) => void>();
    /** Creates processes on one store, which notify each other of changes. */
    const processOn = (held: ReturnType<typeof holding>) => {
      let own = (_taskId?: string): void => {};
      const shared: Store = {
        ...bound(store),
        async append(items) {
          const outcomes = await store.append(items);
          for (const tell of listeners)
            if (tell !== own) for (const item of items) if ("task" in item) tell(item.task.taskId);
          return outcomes;
        },
        watch(listener) {
          listeners.add((own = listener));
          return () => void listeners.delete(listener);
        },
        close: async () => {},
      };
      return harness(held.onMessage, { store: shared, limits: { runs: 2 }, pollInterval: 60_000 });
    };
    const [a, b] = [holding(), holding()];
    const first = processOn(a);
    for (const text of ["1", "2", "3", "4", "5"]) await first.send(text, immediately);
    expect(a.begun).toEqual(["1", "2"]);
    const second = processOn(b);
    await eventually(() => b.running() === 2);
    expect(b.begun).toEqual(["3", "4"]);
    // The first process has capacity before the second process. The next poll is a minute away.
    await a.next();
    await eventually(() => a.begun.length + b.begun.length === 5);
    expect(a.begun).toEqual(["1", "2", "5"]);
    for (const text of ["6", "7"]) await second.send(text, immediately);
    await a.next();
    await eventually(() => a.begun.length === 4);
    expect(a.begun).toEqual(["1", "2", "5", "6"]);
  });

  it("does not count runs that only wait: their process runs other tasks meanwhile (A2A 1.0 §7.6)", async () => {
    const served = serving(
      agentOf(async function* (turn) {
        yield turn.working();
        if (turn.text === "one") yield* turn.authorize({ form: "approval", reason: "Pay?" });
        yield turn.artifact({ parts: [{ text: `done: ${turn.text}` }] });
      }),
      { limits: { runs: 1 } },
    );
    const client = await served.client();
    const events = client.sendStreamingMessage("one")[Symbol.asyncIterator]();
    const { request } = await asked(events);
    const second = await client.sendMessage("two");
    expect(second.task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect((await posted(served, request, { decision: "approve" })).status).toBe(200);
    expect((await rest(events)).at(-1)).toBe("COMPLETED");
  });

  it("lets a lost task wait for capacity, and takes it before queued ones", async () => {
    const store = memoryStore();
    const shared: Store = { ...bound(store), close: async () => {} };
    const lost = holding();
    const behaviour = { resumable: true };
    const dead = harness(lost.onMessage, { store: shared, lease: { holder: "dead" }, behaviour });
    const ids = [(await dead.send("lost 1", immediately)).id, (await dead.send("lost 2", immediately)).id];
    await eventually(() => lost.begun.length === 2);
    const { begun, next, onMessage } = holding();
    const lease = { isGone: (holder: string) => holder === "dead" };
    const { send, get } = harness(onMessage, { store: shared, lease, limits: { runs: 1 }, behaviour });
    await eventually(() => begun.length === 1);
    const { id } = await send("new", immediately);
    for (let turns = 0; turns < 3; turns += 1) await next();
    for (const each of [...ids, id])
      await eventually(async () => (await get(each)).status.state === "TASK_STATE_COMPLETED");
    expect(begun).toEqual(["lost 1", "lost 2", "new"]);
  });
});

describe("a queue of 2,000 tasks of one owner", () => {
  it("delays another owner's first task by one place, and a starting process reads no other tasks", async () => {
    const store = memoryStore();
    const time = Date.now();
    // Queues messages like `queueMessage`, but a thousand in each transaction.
    for (let from = 0; from < 2_000; from += 1_000) {
      await store.append(
        Array.from({ length: 1_000 }, (_, at) => queued("ada", `a${from + at + 1}`, from + at + 1, time)),
      );
    }
    const { begun, next, onMessage } = holding();
    const read = vi.spyOn(store, "head");
    const { send } = harness(onMessage, { store, limits: { runs: 1 }, ownerOf: ({ subject }) => subject });
    await eventually(() => begun.length === 1);
    await send("b1", { subject: "bob", ...immediately });
    await send("a2001", { subject: "ada", ...immediately });
    for (let count = 2; count <= 4; count += 1) {
      await next();
      await eventually(() => begun.length === count);
    }
    expect(begun).toEqual(["a1", "a2", "b1", "a3"]);
    expect(read.mock.calls.length).toBeLessThan(20);
    const [last] = (
      await store.list({ agent: "agent", owner: "ada" }, { state: "TASK_STATE_SUBMITTED", limit: 1, artifacts: false })
    ).tasks;
    expect(await store.features({ agent: "agent" }, last?.task.id ?? "", queueFeature)).toMatchObject([{ due: 2_001 }]);
  });
});

/** Returns a queued task. */
function queued(owner: string, text: string, due: number, time: number): TaskAppend {
  const task = { agent: "agent", owner, taskId: text };
  const state = "TASK_STATE_SUBMITTED";
  const status = { state, timestamp: new Date(time).toISOString() };
  const json = JSON.stringify({ id: text, contextId: text, status, history: [messageOf(text)] });
  const call = JSON.stringify({
    principal: { subject: owner },
    version: "1.0",
    extensions: [],
    acceptedOutputModes: [],
  });
  return {
    task,
    create: { contextId: text },
    records: [{ kind: "task", json, call, state, time, turn: 1, attempt: 1, actor: "user" }],
    effects: [{ effect: "feature", op: "set", feature: queueFeature, key: "run", value: `{"turn":1,"input":1}`, due }],
  };
}

describe("a caller with many submitted tasks", () => {
  it("keeps its place in the queue behind its own other tasks, however many of them run without output yet", async () => {
    const store = memoryStore();
    const begun: string[] = [];
    const silent = async function* (turn: Parameters<OnMessage>[0]) {
      begun.push(turn.text);
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      yield turn.completed();
    };
    const one = harness(silent, { store, limits: { runs: 1 } });
    await one.send("running", immediately);
    const waiting = await one.send("waiting", immediately);
    const placeOf = async (id: string) => (await store.features({ agent: "agent" }, id, queueFeature))[0]?.due ?? NaN;
    const first = await placeOf(waiting.id);
    // Another process has capacity and does not see the queue, but the tasks that it gets are queued too.
    const unaware: Store = { ...bound(store), dueFeatures: async () => [] };
    const two = harness(silent, { store: unaware, limits: { runs: 6 } });
    for (let at = 0; at < 6; at += 1) await two.send(`silent ${at}`, immediately);
    const next = await one.send("next", immediately);
    expect(await placeOf(next.id)).toBe(first + 1);
    expect(begun).not.toContain("waiting");
  });

  it("gets TooManyRequests beyond limits.queuedPerCaller, and others do not; a repeated message joins its task", async () => {
    const { onMessage, next, begun } = holding();
    const { service } = harness(onMessage, { limits: { runs: 1, queuedPerCaller: 2 } });
    const send = (subject: string, text: string, message = messageOf(text)) =>
      service.call("SendMessage", { message, ...immediately }, callContext({ subject }));
    await send("ada", "runs");
    await eventually(() => begun.length === 1);
    const repeated = messageOf("waits");
    const first = await send("ada", "waits", repeated);
    await send("ada", "waits too");
    for (let times = 0; times < 3; times += 1) {
      await expect(send("ada", "one more")).rejects.toMatchObject({ code: "TooManyRequests", retryAfter: 5 });
    }
    const again = await send("ada", "waits", repeated);
    expect(again.payload.value.task?.id).toBe(first.payload.value.task?.id);
    await send("bob", "of another one");
    await next();
    await eventually(() => begun.length === 2);
    await eventually(async () => (await send("ada", "one more").catch(() => undefined)) !== undefined);
  });
});
