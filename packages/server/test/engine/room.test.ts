import { describe, expect, it } from "vitest";
import { memoryStore, type Store } from "../../src/store/index.ts";
import { fakeClock } from "@parley/testing";
import { bound, eventually, gate, harness, type OnMessage } from "./support.ts";

/* An engine reserves capacity before it takes the lease of a task, so that concurrent takeovers never exceed `limits.runs`. */

const immediately = { configuration: { returnImmediately: true } };

/** Creates an agent that asks in its first turn, and counts its concurrent later turns. */
function counting() {
  let now = 0;
  const seen = { most: 0, ended: 0 };
  async function* onMessage(turn: Parameters<OnMessage>[0]) {
    if (turn.text === "ask") {
      yield turn.inputRequired("What?");
      return;
    }
    now += 1;
    seen.most = Math.max(seen.most, now);
    yield turn.working();
    await new Promise((resolve) => setImmediate(resolve));
    now -= 1;
    seen.ended += 1;
    yield turn.artifact({ parts: [{ text: "done" }] });
  }
  return { seen, onMessage };
}

describe("limits.runs", () => {
  it("holds if 50 answers to 50 questions arrive together", async () => {
    const { seen, onMessage } = counting();
    const { send } = harness(onMessage, { limits: { runs: 2 } });
    const ids: string[] = [];
    for (let at = 0; at < 50; at += 1) ids.push((await send("ask")).id);
    const answered = await Promise.all(ids.map((taskId) => send("answer", { message: { taskId } })));
    expect(new Set(answered.map(({ status }) => status.state))).toEqual(new Set(["TASK_STATE_COMPLETED"]));
    expect(seen).toEqual({ most: 2, ended: 50 });
  });

  it("holds if a starting process handles the queue, lost tasks and answers together", async () => {
    const store = memoryStore();
    const shared: Store = { ...bound(store), close: async () => {} };
    const behaviour = { resumable: true };
    const before = harness(
      async function* (turn) {
        if (turn.text === "ask") yield turn.inputRequired("What?");
        else {
          yield turn.working();
          await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
        }
      },
      { store: shared, lease: { holder: "dead" }, limits: { runs: 8 }, behaviour },
    );
    const asked: string[] = [];
    for (let at = 0; at < 8; at += 1) asked.push((await before.send("ask")).id);
    for (let at = 0; at < 16; at += 1) await before.send("work", immediately);
    const { seen, onMessage } = counting();
    const lease = { isGone: (holder: string) => holder === "dead" };
    const after = harness(onMessage, { store: shared, lease, limits: { runs: 2 }, behaviour });
    await Promise.all(asked.map((taskId) => after.send("answer", { message: { taskId } })));
    await eventually(() => seen.ended >= 24);
    expect(seen.most).toBe(2);
  });
});

describe("a task that this process is about to begin", () => {
  it("is not taken over by the same process, however long reading the task takes", async () => {
    const clock = fakeClock();
    const store = memoryStore();
    const slow = gate();
    let isSlow = false;
    let scans = 0;
    const shared: Store = {
      ...bound(store),
      async load(...query) {
        if (isSlow) await slow.opened;
        return store.load(...query);
      },
      async claimable(query) {
        const page = await store.claimable(query);
        if (page.heads.length > 0) scans += 1;
        return page;
      },
    };
    const calls: number[] = [];
    const { send, engine, get } = harness(
      async function* (turn) {
        calls.push(turn.number);
        if (turn.text === "ask") yield turn.inputRequired("What?");
        else yield turn.artifact({ parts: [{ text: "done" }] });
      },
      { store: shared, clock, lease: { ttl: 1_000 }, behaviour: { resumable: true } },
    );
    const { id } = await send("ask");
    isSlow = true;
    const answered = send("answer", { message: { taskId: id } });
    await eventually(async () => (await store.head({ agent: "agent" }, id))?.run !== undefined);
    for (let rounds = 0; rounds < 4; rounds += 1) {
      clock.advance(1_100);
      await engine.round(true);
    }
    expect(scans).toBeGreaterThanOrEqual(2);
    slow.open();
    await answered;
    expect((await get(id)).status.state).toBe("TASK_STATE_COMPLETED");
    expect(calls).toEqual([1, 2]);
  });
});
