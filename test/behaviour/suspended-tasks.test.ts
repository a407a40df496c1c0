import { defineAgent, silentLogger, type Store } from "@parley/server";
import type { StoredRun } from "@parley/server/store";
import { resumeTask, suspendedTasks } from "../../packages/server/test/operate/suspended.ts";
import { callContext, fakeClock, inProcess } from "@parley/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { placeOfTest, stores } from "./stores.ts";

/*
 * Tests suspended tasks (docs/decisions/suspended-tasks.md) when operators act at the wrong moment, and what callers see in the meantime. The servers
 * have a stopped clock, so they do not poll unless a test advances the clock.
 */

const ada = (): ReturnType<typeof callContext> => callContext({ subject: "ada" });
/** Servers handle notifications at most once a second, and poll every ten seconds. */
const soon = 1_500;
const agentId = { agent: "agent" };

async function database(name: (typeof stores)[number]) {
  const place = await placeOfTest(name);
  const open = async (): Promise<Store> => {
    const store = await place.open();
    onTestFinished(() => store.close());
    return store;
  };
  const attempts: number[] = [];
  /** Starts a server whose agent waits for an abort. With `ends`, the agent completes the task instead. */
  async function server(options: { ends?: boolean } = {}) {
    const store = await open();
    const clock = fakeClock();
    const agent = defineAgent({
      name: "Test",
      description: "A test",
      version: "1",
      skills: [],
      resumable: true,
      mayReplyDirectly: false,
      async *onMessage(turn) {
        attempts.push(turn.attempt);
        yield turn.working(`attempt ${turn.attempt}`);
        if (options.ends === true) return yield turn.completed(turn.message.parts.map(({ text }) => text).join());
        await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      },
    });
    const lease = { isGone: (holder: string) => holder === "dead" };
    const made = inProcess(agent, { store, clock, lease, logger: silentLogger, ownerOf: ({ subject }) => subject });
    onTestFinished(() => made.engine.close());
    const send = async (text: string, taskId?: string): Promise<string> => {
      const message = {
        messageId: crypto.randomUUID(),
        role: "ROLE_USER" as const,
        parts: [{ text }],
        ...(taskId !== undefined && { taskId }),
      };
      const request = { message, configuration: { returnImmediately: true } };
      return (await made.service.call("SendMessage", request, ada())).payload.value.task?.id ?? "";
    };
    const get = async (id: string) => (await made.service.call("GetTask", { id }, ada())).payload.value;
    const cancel = async (id: string) => (await made.service.call("CancelTask", { id }, ada())).payload.value;
    return { ...made, clock, store, send, get, cancel };
  }
  return { open, server, attempts };
}

/** Suspends a task in the store, as a server does. */
async function suspend(store: Store, id: string): Promise<void> {
  const head = await store.head(agentId, id);
  if (head?.run === undefined) throw new Error("The task has no run");
  const run: StoredRun = { ...head.run, deaths: 2, suspended: true };
  const effects = [
    { effect: "lease", op: "revoke" },
    { effect: "run", run },
  ] as const;
  expect(await store.append([{ task: head.task, fence: head.fence, records: [], effects }])).toMatchObject([
    { ok: true },
  ]);
}

/** Creates a suspended task, which no server runs. */
async function suspended(name: (typeof stores)[number]) {
  const { open, server, attempts } = await database(name);
  const first = await server();
  const id = await first.send("Go");
  await expect.poll(async () => (await first.get(id)).status.state).toBe("TASK_STATE_WORKING");
  await suspend(first.store, id);
  await first.engine.close();
  return { open, server, attempts, id, store: await open() };
}

describe.each(stores.filter((name) => name !== "memory"))("a suspended task, with %s", (name) => {
  it("is taken over immediately when it is resumed, without waiting for the next poll", async () => {
    const { server, store, attempts, id } = await suspended(name);
    const second = await server({ ends: true });
    await second.engine.round(true);
    expect(attempts).toEqual([1]);
    expect(await resumeTask(store, "agent", id)).toBe(true);
    second.clock.advance(soon);
    await expect.poll(async () => (await second.get(id)).status.state).toBe("TASK_STATE_COMPLETED");
    expect(attempts).toEqual([1, 2]);
  });

  it("is resumed once if two operators do so at once, and one server takes it", async () => {
    const { server, open, attempts, id } = await suspended(name);
    const servers = [await server({ ends: true }), await server({ ends: true })];
    const operators = await Promise.all(Array.from({ length: 6 }, () => open()));
    const results = await Promise.all(operators.map((each) => resumeTask(each, "agent", id)));
    expect(results.filter(Boolean)).toHaveLength(1);
    for (const { clock } of servers) clock.advance(soon);
    await expect.poll(async () => (await servers[0]?.get(id))?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(attempts).toEqual([1, 2]);
  });

  it("is the only kind that can be resumed: not a task whose node is alive, an ended task, or an unknown task", async () => {
    const { server, open, attempts } = await database(name);
    const alive = await server();
    const id = await alive.send("Go");
    await expect.poll(async () => (await alive.get(id)).status.state).toBe("TASK_STATE_WORKING");
    const store = await open();
    const before = await store.head(agentId, id);
    expect(await resumeTask(store, "agent", id)).toBe(false);
    expect(await resumeTask(store, "other", id)).toBe(false);
    expect(await resumeTask(store, "agent", "unknown")).toBe(false);
    expect(await store.head(agentId, id)).toEqual(before);
    await alive.cancel(id);
    expect(await resumeTask(store, "agent", id)).toBe(false);
    expect(attempts).toEqual([1]);
  });

  it("is canceled like any other, and not resumed after that; canceled and resumed at once, it ends canceled", async () => {
    for (const isRace of [false, true]) {
      const { server, store, id } = await suspended(name);
      const second = await server();
      const resumed = isRace ? resumeTask(store, "agent", id) : undefined;
      expect((await second.cancel(id)).status.state).toBe("TASK_STATE_CANCELED");
      await resumed;
      expect(await resumeTask(store, "agent", id)).toBe(false);
      expect(await suspendedTasks(store)).toEqual([]);
      await second.engine.round(true);
      expect((await second.get(id)).status.state).toBe("TASK_STATE_CANCELED");
      expect((await store.head(agentId, id))?.run).toBeUndefined();
    }
  });

  it("shows its callers no new state: streams stay open, messages are stored, and both continue when it is resumed", async () => {
    const { server, store, id } = await suspended(name);
    const second = await server({ ends: true });
    const states: string[] = [];
    const { batches } = await second.service.stream("SubscribeToTask", { id }, ada());
    let isOpen = true;
    const reading = (async () => {
      for await (const batch of batches)
        for (const { payload } of batch) {
          const { task, statusUpdate } = payload.value;
          states.push(task?.status.state ?? statusUpdate?.status.state ?? "");
        }
      isOpen = false;
    })();
    await expect.poll(() => states).toEqual(["TASK_STATE_WORKING"]);
    expect(await second.send("More", id)).toBe(id);
    await second.engine.round(true);
    expect(isOpen).toBe(true);
    expect(await suspendedTasks(store)).toEqual([id]);
    await resumeTask(store, "agent", id);
    second.clock.advance(soon);
    await reading;
    expect(states.at(-1)).toBe("TASK_STATE_COMPLETED");
    const { history = [] } = await second.get(id);
    expect(history.filter(({ role }) => role === "ROLE_USER")).toHaveLength(2);
  });

  it("remains, however old it becomes: neither retention nor a clock jump of ten years deletes it or takes it over", async () => {
    const { server, store, attempts, id } = await suspended(name);
    const second = await server({ ends: true });
    second.clock.jump(10 * 365 * 86_400_000);
    await second.engine.round(true);
    second.clock.advance(10 * 60_000);
    await second.engine.round(true);
    await store.sweep({ now: second.clock.now(), deleteBefore: second.clock.now(), limit: 1_000 });
    expect(await suspendedTasks(store)).toEqual([id]);
    expect(attempts).toEqual([1]);
    expect(await resumeTask(store, "agent", id)).toBe(true);
    const stateLater = async (): Promise<string> => {
      second.clock.advance(soon);
      return (await second.get(id)).status.state;
    };
    await expect.poll(stateLater).toBe("TASK_STATE_COMPLETED");
  });

  it("is one of ten thousand, which are listed page by page", async () => {
    const { open } = await database(name);
    const store = await open();
    const time = 1;
    for (let page = 0; page < 20; page += 1) {
      await store.append(
        Array.from({ length: 500 }, (_, at) => {
          const taskId = `task-${page}-${at}`;
          const json = JSON.stringify({ id: taskId, contextId: taskId, status: { state: "TASK_STATE_WORKING" } });
          const record = { kind: "task", state: "TASK_STATE_WORKING", json, time, actor: "user", turn: 1 } as const;
          const run = { turn: 1, attempt: 3, input: 1, deaths: 2, suspended: true } as const;
          return {
            task: { ...agentId, owner: "ada", taskId },
            create: { contextId: taskId },
            records: [{ ...record, attempt: 1 }],
            effects: [{ effect: "run", run }],
          };
        }),
      );
    }
    let largest = 0;
    let pages = 0;
    const counted: Store = {
      ...store,
      stranded: (query) => store.stranded(query),
      async claimable(query) {
        const page = await store.claimable(query);
        pages += 1;
        largest = Math.max(largest, page.heads.length);
        return page;
      },
    };
    expect(new Set(await suspendedTasks(counted)).size).toBe(10_000);
    expect(largest).toBeLessThanOrEqual(500);
    expect(pages).toBeGreaterThanOrEqual(20);
  });
});
