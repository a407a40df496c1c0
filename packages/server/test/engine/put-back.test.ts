import { describe, expect, it } from "vitest";
import { A2AError } from "@parley/a2a/internal/model/index";
import { memoryStore, queueFeature, type Store } from "../../src/store/index.ts";
import { bound, eventually, gate, harness, type OnMessage } from "./support.ts";

/* A turn is not lost if its start is stored but the engine cannot call the agent. */

const immediately = { configuration: { returnImmediately: true } };

/** Returns a store that is slow, or fails once, after a process has taken the lease for a turn that it starts. */
function troubled(shared: Store) {
  const { opened, open } = gate();
  const trouble = { of: "none" as "none" | "slow" | "away", met: false };
  let taken = false;
  const meet = async (): Promise<void> => {
    if (!taken || trouble.met) return;
    trouble.met = true;
    if (trouble.of === "slow") await opened;
    else throw new A2AError("Unavailable");
  };
  const store: Store = {
    ...shared,
    async append(items) {
      const outcomes = await shared.append(items);
      const takes = items.some(({ effects = [] }) =>
        effects.some((each) => each.effect === "lease" && each.op === "acquire"),
      );
      if (trouble.of !== "none" && takes) taken = true;
      return outcomes;
    },
    async read(...query) {
      await meet();
      return shared.read(...query);
    },
    async load(...query) {
      await meet();
      return shared.load(...query);
    },
  };
  return { store, trouble, open };
}

/** Returns an agent that asks on "ask" and then waits, and completes any other turn when `ends` resolves. */
function agent(ends: Promise<unknown>): OnMessage {
  return async function* (turn) {
    if (turn.text.startsWith("ask")) yield turn.inputRequired("What?");
    else yield turn.working("on it");
    const aborted = new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    if (turn.text === "ask") return;
    await Promise.race([ends, aborted]);
    if (!turn.text.startsWith("ask")) yield turn.artifact({ parts: [{ text: `done: ${turn.text}` }] });
  };
}

const atOnce = Promise.resolve();

describe.each(["slow", "away"] as const)("if the store is %s after the lease was taken", (of) => {
  it("a queued task keeps its place in the queue", async () => {
    const shared: Store = { ...bound(memoryStore()), close: async () => {} };
    const { store, trouble, open } = troubled(shared);
    const first = gate();
    const { send, engine, get } = harness(agent(first.opened), { store, limits: { runs: 1 }, lease: { ttl: 100 } });
    await send("one", immediately);
    const { id } = await send("two", immediately);
    trouble.of = of;
    first.open();
    await eventually(() => trouble.met);
    if (of === "away") {
      await eventually(async () => (await get(id)).status.state === "TASK_STATE_COMPLETED");
      return;
    }
    const closing = engine.close();
    open();
    await closing;
    expect((await shared.head({ agent: "agent" }, id))?.state).toBe("TASK_STATE_SUBMITTED");
    expect(await shared.features({ agent: "agent" }, id, queueFeature)).toMatchObject([{ due: 1 }]);
    const next = harness(agent(atOnce), { store: shared });
    await eventually(async () => (await next.get(id)).status.state === "TASK_STATE_COMPLETED");
  });

  it("an answer that starts a turn is accepted, and its turn begins later", async () => {
    const shared: Store = { ...bound(memoryStore()), close: async () => {} };
    const { store, trouble, open } = troubled(shared);
    const { send, engine, get } = harness(agent(atOnce), { store });
    const { id } = await send("ask");
    trouble.of = of;
    const answered = send("answer", { message: { taskId: id }, ...immediately });
    await eventually(() => trouble.met);
    if (of === "away") {
      expect((await answered).id).toBe(id);
      await eventually(async () => (await get(id)).status.state === "TASK_STATE_COMPLETED");
      return;
    }
    const closing = engine.close();
    open();
    await closing;
    expect((await answered).id).toBe(id);
    const next = harness(agent(atOnce), { store: shared });
    await eventually(async () => (await next.get(id)).status.state === "TASK_STATE_COMPLETED");
    expect((await next.get(id)).artifacts?.[0]?.parts[0]?.text).toBe("done: answer");
  });

  it("an answer to the question of a lost run starts its turn later", async () => {
    const shared: Store = { ...bound(memoryStore()), close: async () => {} };
    const lost = harness(agent(new Promise(() => {})), { store: shared, lease: { holder: "dead" } });
    const { id } = await lost.send("ask and wait", immediately);
    await eventually(async () => (await lost.get(id)).status.state === "TASK_STATE_INPUT_REQUIRED");
    await lost.send("answer", { message: { taskId: id }, ...immediately });
    const { store, trouble, open } = troubled(shared);
    trouble.of = of;
    const lease = { isGone: (holder: string) => holder === "dead", ttl: 100 };
    const { engine, get } = harness(agent(atOnce), { store, lease });
    await eventually(() => trouble.met);
    if (of === "away") {
      await eventually(async () => (await get(id)).status.state === "TASK_STATE_COMPLETED");
      return;
    }
    const closing = engine.close();
    open();
    await closing;
    const next = harness(agent(atOnce), { store: shared, lease });
    await eventually(async () => (await next.get(id)).status.state === "TASK_STATE_COMPLETED");
    expect((await next.get(id)).artifacts?.[0]?.parts[0]?.text).toBe("done: answer");
  });
});

it("a task that returns to the queue stays in it, even if another process has just seen it begin", async () => {
  const shared: Store = { ...bound(memoryStore()), close: async () => {} };
  const { store, trouble, open } = troubled(shared);
  const first = gate();
  const one = harness(agent(first.opened), { store, limits: { runs: 1 } });
  await one.send("one", immediately);
  const { id } = await one.send("two", immediately);
  const rows = await shared.dueFeatures({ feature: queueFeature, now: Number.MAX_SAFE_INTEGER, limit: 9 });
  expect(rows).toHaveLength(1);
  trouble.of = "slow";
  first.open();
  await eventually(() => trouble.met);
  // The other process has already read the queue. It removes the row after the first process has put the row back.
  const late = gate();
  let reads = 0;
  let isLate = false;
  const two = harness(agent(atOnce), {
    store: {
      ...shared,
      dueFeatures: async (query) =>
        query.feature === queueFeature && (reads += 1) === 1 ? rows : shared.dueFeatures(query),
      async append(items) {
        const leaves = items.some(({ effects = [] }) =>
          effects.some((each) => each.effect === "feature" && each.op === "delete" && each.feature === queueFeature),
        );
        if (leaves && !isLate) {
          isLate = true;
          await late.opened;
        }
        return shared.append(items);
      },
    },
  });
  await eventually(() => isLate);
  const closed = one.engine.close();
  open();
  await closed;
  late.open();
  await eventually(async () => (await two.get(id)).status.state === "TASK_STATE_COMPLETED");
});
