import { describe, expect, it } from "vitest";
import type { TaskTimes } from "../../src/engine/index.ts";
import { memoryStore } from "../../src/store/index.ts";
import { fakeClock } from "@parley/testing";
import { bound, harness, type Harness } from "./support.ts";

/** Tests the retention of tasks (docs/retention.md). */

const day = 86_400_000;

function kept(retention: TaskTimes & { readonly agents?: Readonly<Record<string, TaskTimes>> }) {
  const clock = fakeClock(100 * day);
  const store = memoryStore();
  const made = harness(
    async function* (turn) {
      if (turn.text === "ask") return yield turn.inputRequired("Which?");
      if (turn.text === "fail") throw new Error("no");
      yield turn.working();
      return undefined;
    },
    { clock, store, retention },
  );
  const after = async (days: number): Promise<readonly string[]> => {
    clock.advance(days * day);
    await made.engine.round(true);
    const { tasks } = await store.list({ agent: "agent" }, { limit: 9, artifacts: false });
    return tasks.map(({ task }) => task.status.state.slice("TASK_STATE_".length)).sort();
  };
  return { ...made, clock, after };
}

async function some({ send }: Pick<Harness, "send">): Promise<void> {
  for (const text of ["complete", "fail", "ask"]) await send(text);
}

describe("retention", () => {
  it("keeps the tasks of each state for its time, or else for the time of terminal tasks", async () => {
    const made = kept({ terminal: 3 * day, completed: 2 * day, failed: false });
    await some(made);
    expect(await made.after(1)).toEqual(["COMPLETED", "FAILED", "INPUT_REQUIRED"]);
    expect(await made.after(1.1)).toEqual(["FAILED", "INPUT_REQUIRED"]);
    expect(await made.after(4)).toEqual(["FAILED", "INPUT_REQUIRED"]);
  });

  it("keeps the tasks of an agent, and so of a tenant, for its own times", async () => {
    const made = kept({
      terminal: 9 * day,
      failed: day,
      agents: { agent: { terminal: 3 * day }, other: { terminal: 1 } },
    });
    await some(made);
    expect(await made.after(2)).toEqual(["COMPLETED", "FAILED", "INPUT_REQUIRED"]);
    expect(await made.after(1.1)).toEqual(["INPUT_REQUIRED"]);
  });

  it("cancels tasks that nobody answers in time, with a message, and later deletes them like other canceled tasks", async () => {
    const made = kept({ inputRequired: 7 * day, canceled: day });
    const asked = await made.send("ask");
    const stream = await made.subscribe(asked.id);
    expect((await stream.next())?.payload.value.task?.id).toBe(asked.id);
    expect(await made.after(6)).toEqual(["INPUT_REQUIRED"]);
    expect(await made.after(1.1)).toEqual(["CANCELED"]);
    const { status } = await made.get(asked.id);
    expect(status.message?.parts).toEqual([{ text: "The task was canceled because no answer arrived in time." }]);
    const states = (await stream.all()).map(({ payload }) => payload.value.statusUpdate?.status.state);
    expect(states.at(-1)).toBe("TASK_STATE_CANCELED");
    expect(await made.after(1.1)).toEqual([]);
  });

  it("does not cancel a task that was answered", async () => {
    const made = kept({ inputRequired: 7 * day });
    const { id, contextId } = await made.send("ask");
    await made.after(6);
    await made.send("ask", { message: { taskId: id, contextId: contextId ?? "" } });
    expect(await made.after(6)).toEqual(["INPUT_REQUIRED"]);
    expect(await made.after(2)).toEqual(["CANCELED"]);
  });

  it("deletes and cancels nothing while the wall clock is temporarily a month ahead", async () => {
    const made = kept({ terminal: 3 * day, inputRequired: 7 * day });
    await some(made);
    await made.after(1);
    made.clock.jump(30 * day);
    expect(await made.after(0)).toEqual(["COMPLETED", "FAILED", "INPUT_REQUIRED"]);
    expect(await made.after(0.03)).toEqual(["COMPLETED", "FAILED", "INPUT_REQUIRED"]);
    const [warning, ...more] = made.log.filter(({ message }) => message.includes("jumped ahead"));
    expect([warning?.level, warning?.["ahead"], more]).toEqual(["warn", 30 * day, []]);
    made.clock.jump(-30 * day);
    expect(await made.after(1)).toEqual(["COMPLETED", "FAILED", "INPUT_REQUIRED"]);
    expect(await made.after(1)).toEqual(["INPUT_REQUIRED"]);
  });

  it("deletes by a corrected clock an hour after it was behind", async () => {
    const made = kept({ terminal: 3 * day });
    await some(made);
    made.clock.jump(-9 * day);
    expect((await made.after(0)).length).toBe(3);
    made.clock.jump(13 * day);
    expect((await made.after(0)).length).toBe(3);
    expect(await made.after(0.05)).toEqual(["INPUT_REQUIRED"]);
  });

  it("rejects invalid times, which would keep tasks forever", () => {
    expect(() => kept({ terminal: Number("x") })).toThrow("retention.terminal is milliseconds");
    expect(() => kept({ failed: -1 })).toThrow(
      "retention.failed is milliseconds, 0 or more, or false, and cannot be -1",
    );
    expect(() => kept({ agents: { a: { canceled: Number.NaN } } })).toThrow("retention.agents[a].canceled");
    expect(() => kept({ completed: false, failed: 0, rejected: Infinity })).not.toThrow();
  });

  it("rejects times of states and agents with a store that would ignore them", () => {
    const { upkeep: _, ...store } = bound(memoryStore());
    const keeping = (retention: TaskTimes | { readonly agents: Readonly<Record<string, TaskTimes>> }) => () =>
      harness((turn) => Promise.resolve(turn.reply("hello")), { store, retention });
    for (const times of [
      { failed: day },
      { inputRequired: day },
      { completed: false as const },
      { agents: { agent: {} } },
    ])
      expect(keeping(times)).toThrow("no `upkeep`");
    expect(keeping({ terminal: day })).not.toThrow();
  });
});
