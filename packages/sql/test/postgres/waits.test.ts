import { describe, expect, onTestFinished, test, vi } from "vitest";
import { defineAgent, systemClock, type AgentYield, type Turn } from "@parley/server";
import { postgresStore } from "@parley/sql/postgres";
import { callContext, inProcess, type InProcess } from "@parley/testing";
import { liveMemory } from "../../../../test/heap.ts";
import { useDatabase } from "../../../../test/postgres/database.ts";

/* Steps and waits of tasks on PostgreSQL, in processes that share the database (docs/waiting.md). */

const database = useDatabase();
const day = 24 * 3_600_000;
const patient = { interval: 10 };

/** A clock that a test can advance. */
function clockOf(time: { later: number }) {
  return { ...systemClock, now: () => Date.now() + time.later };
}

async function process(
  schema: string,
  onMessage: (turn: Turn) => AsyncGenerator<AgentYield, void, void>,
  time = { later: 0 },
): Promise<InProcess> {
  const agent = defineAgent({ name: "Waiter", description: "Waits", version: "1", skills: [], onMessage });
  const store = await postgresStore({ database: database().url, schema });
  const made = inProcess(agent, { store, clock: clockOf(time) });
  onTestFinished(async () => {
    await made.engine.close();
    await store.close();
  });
  return made;
}

async function send({ service }: InProcess, text: string): Promise<string> {
  const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] } as const;
  const request = { message, configuration: { returnImmediately: true } };
  return (await service.call("SendMessage", request, callContext())).payload.value.task?.id ?? "";
}

async function waits({ store }: InProcess, id: string): Promise<void> {
  await vi.waitFor(async () => {
    const head = await store.head({ agent: "agent" }, id);
    expect(head?.run).toBeUndefined();
    expect(head?.checkpoint).toContain("waiting");
  }, patient);
}

async function said({ service }: InProcess, id: string): Promise<string | undefined> {
  return vi.waitFor(async () => {
    const { status } = (await service.call("GetTask", { id }, callContext())).payload.value;
    expect(status.state).toBe("TASK_STATE_COMPLETED");
    return status.message?.parts[0]?.text;
  }, patient);
}

describe("two processes", () => {
  test("share a waiting task: an event sent to either one, or a timer, wakes it, and its step runs once", async () => {
    const time = { later: 0 };
    let booked = 0;
    const waiter = async function* (turn: Turn): AsyncGenerator<AgentYield, void, void> {
      const booking = await turn.step("book", () => (booked += 1));
      const by = yield* turn.waitFor("approved");
      yield* turn.sleep(day);
      yield turn.completed(JSON.stringify([booking, by, turn.attempt]));
    };
    const [one, two] = [await process("shared", waiter, time), await process("shared", waiter, time)];
    const id = await send(one, "Go");
    await waits(one, id);
    await two.engine.signal(id, "approved", "ada", { id: "event-1" });
    await two.engine.signal(id, "approved", "ada", { id: "event-1" });
    await vi.waitFor(
      async () => expect((await two.store.features({ agent: "agent" }, id, "wait"))[0]?.value).toContain("until"),
      patient,
    );
    await waits(two, id);
    // The process that took the message no longer exists when the sleep ends.
    await one.engine.close();
    time.later = day;
    expect(await said(two, id)).toBe('[1,"ada",3]');
    expect(booked).toBe(1);
  });

  test("share a working task: an event sent to one reaches the run of the other", async () => {
    let goOn = (): void => {};
    const told = new Promise<void>((resolve) => (goOn = resolve));
    const calls: string[] = [];
    const waiter = (name: string) =>
      async function* (turn: Turn): AsyncGenerator<AgentYield, void, void> {
        calls.push(name);
        yield turn.working("Working");
        await told;
        yield turn.completed(JSON.stringify(yield* turn.waitFor("paid")));
      };
    const [one, two] = [await process("busy", waiter("one")), await process("busy", waiter("two"))];
    const id = await send(one, "Go");
    await two.engine.signal(id, "paid", 7);
    goOn();
    expect(await said(one, id)).toBe("7");
    expect(calls).toEqual(["one"]);
  });
});

test("400 tasks that wait for a human or a timer are rows: they need no run and no heap", async () => {
  const tasks = 400;
  const time = { later: 0 };
  let calls = 0;
  const on = await process(
    "many",
    async function* (turn) {
      calls += 1;
      // A suspended function would hold 48 kB, which is 19 MB in all.
      const load = Array.from({ length: 6000 }, () => calls);
      if (turn.text === "sleep") yield* turn.sleep(30 * day);
      else yield* turn.waitFor("approved");
      yield turn.completed(String(load.length > 0));
    },
    time,
  );
  const before = liveMemory().heapUsed;
  const ids: string[] = [];
  for (let from = 0; from < tasks; from += 100) {
    const texts = Array.from({ length: 100 }, (_, at) => (at % 2 === 0 ? "sleep" : "wait"));
    ids.push(...(await Promise.all(texts.map((text) => send(on, text)))));
  }
  await vi.waitFor(() => expect(on.engine.isBusy()).toBe(false), patient);
  expect(calls).toBe(tasks);
  expect(liveMemory().heapUsed - before).toBeLessThan(8 << 20);
  const { heads } = await on.store.claimable({ agents: ["agent"], now: Number.MAX_SAFE_INTEGER, limit: 1 });
  expect(heads).toEqual([]);
  // The tasks still exist: one of each kind is woken.
  const [sleeper = "", waiter = ""] = ids;
  await on.engine.signal(waiter, "approved");
  expect(await said(on, waiter)).toBe("true");
  const query = { feature: "wait", now: Infinity, limit: 5000 };
  expect(await on.store.dueFeatures(query)).toHaveLength(tasks / 2);
  expect(await on.store.head({ agent: "agent" }, sleeper)).toMatchObject({ state: "TASK_STATE_WORKING" });
});
