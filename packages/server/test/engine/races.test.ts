import { describe, expect, it } from "vitest";
import { callContext, fakeClock, inProcess } from "@parley/testing";
import { defineAgent } from "../../src/agent/index.ts";
import type { AgentEvent, Turn } from "@parley/a2a/internal/protocol/index";
import { memoryStore, type Store, type TaskHead } from "../../src/store/index.ts";
import { bound, eventually, gate, harness, messageOf } from "./support.ts";

const owner = { agent: "agent", owner: JSON.stringify([null, "anonymous"]) };

describe("a change by another process between a read and an append", () => {
  it("does not let a process fail a task that ended its turn, because it thought the run lost", async () => {
    const store = memoryStore();
    const clock = fakeClock();
    let stale: TaskHead | undefined;
    let asked = 0;
    const { send, get } = harness(
      async function* (turn) {
        yield turn.working();
        await turn.flush();
        stale = await store.head(owner, turn.taskId);
        yield turn.inputRequired("Which?");
      },
      { store, clock },
    );
    const { id } = await send("Go");
    expect(stale?.run).toBeDefined();
    // The engine read the task while the lease was expired, but appends only now.
    const late: Store = {
      ...bound(store),
      claimable: async () => ({ heads: (asked += 1) === 1 ? [stale as TaskHead] : [] }),
    };
    clock.advance(60_000);
    harness(async function* () {}, { store: late, clock });
    // If a second scan starts, the first scan has ended.
    await eventually(() => {
      clock.advance(10_000);
      return asked > 1;
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await get(id)).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  });

  it("rejects one of two messages with the same id and different content, if onConflict is refuse", async () => {
    const store = memoryStore();
    const dedupe = { onConflict: "refuse" } as const;
    const agent = defineAgent({
      name: "test",
      description: "a test",
      version: "1",
      skills: [],
      async *onMessage(turn) {
        yield turn.artifact({ parts: [{ text: turn.text }] });
      },
    });
    const nodes = [inProcess(agent, { store, dedupe }), inProcess(agent, { store, dedupe })];
    const answers = await Promise.allSettled(
      nodes.map(({ service }, at) =>
        service.call("SendMessage", { message: messageOf(`content ${at}`, { messageId: "m" }) }, callContext()),
      ),
    );
    await Promise.all(nodes.map(({ engine }) => engine.close()));
    expect(answers.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const refused = answers.find((answer) => answer.status === "rejected");
    expect(refused?.reason).toMatchObject({ code: "InvalidParams", fields: [{ field: "message.messageId" }] });
  });

  it("makes one direct reply of two, if the store keeps replies", async () => {
    const store = memoryStore();
    let turns = 0;
    const agent = defineAgent({
      name: "test",
      description: "a test",
      version: "1",
      skills: [],
      onMessage: async (turn) => turn.reply(`reply ${(turns += 1)}`),
    });
    const nodes = [
      inProcess(agent, { store, conversations: "store" }),
      inProcess(agent, { store, conversations: "store" }),
    ];
    const message = messageOf("Hi", { messageId: "m" });
    const answers = await Promise.all(
      nodes.map(async ({ service }) => (await service.call("SendMessage", { message }, callContext())).payload.value),
    );
    await Promise.all(nodes.map(({ engine }) => engine.close()));
    expect(answers[1]).toEqual(answers[0]);
  });
});

describe("a direct reply that is not stored yet", () => {
  it("is the answer, and directReplyWithin does not create a task for it", async () => {
    const clock = fakeClock();
    const shared = memoryStore();
    const { opened, open } = gate();
    let keeping = false;
    const store: Store = {
      ...bound(shared),
      async append(items) {
        if (items.some((item) => "context" in item)) {
          keeping = true;
          await opened;
        }
        return shared.append(items);
      },
    };
    const replying = async (turn: Turn): Promise<AgentEvent> => turn.reply("Here");
    const { ask, engine } = harness(replying, { store, clock, conversations: "store" });
    const answer = ask("Hi", { configuration: { returnImmediately: true } });
    await eventually(() => keeping);
    clock.advance(10_000);
    open();
    expect((await answer).message?.parts[0]?.text).toBe("Here");
    await new Promise((resolve) => setTimeout(resolve, 20));
    await engine.close();
    expect((await shared.list(owner, { limit: 10, artifacts: false })).total).toBe(0);
  });
});

describe("periodic work", () => {
  it("lets requests be answered while a long backlog is swept", async () => {
    const clock = fakeClock();
    const order: string[] = [];
    let left = 5;
    const store: Store = {
      ...bound(memoryStore()),
      async sweep() {
        if (order.length === 0) setImmediate(() => order.push("other"));
        order.push("sweep");
        left -= 1;
        return { deleted: 0, compacted: 0, more: left > 0 };
      },
    };
    harness(async function* () {}, { store, clock });
    await eventually(() => {
      clock.advance(60_000);
      return order.filter((each) => each === "sweep").length >= 5;
    });
    expect(order.indexOf("other")).toBeLessThan(order.lastIndexOf("sweep"));
    expect(order.indexOf("other")).toBeGreaterThan(-1);
  });

  it("takes over other tasks although one of them cannot be read", async () => {
    const shared = memoryStore();
    const clock = fakeClock();
    const { opened } = gate();
    const behaviour = { resumable: true };
    const ids: string[] = [];
    const first = harness(
      async function* (turn) {
        ids.push(turn.taskId);
        yield turn.working();
        await opened;
      },
      { store: shared, clock, behaviour },
    );
    for (let count = 0; count < 2; count += 1) {
      await first.send("Go", { configuration: { returnImmediately: true } });
    }
    await eventually(() => ids.length === 2);
    await Promise.all(
      [...ids].map((id) => eventually(async () => (await first.get(id)).status.state !== "TASK_STATE_SUBMITTED")),
    );
    await first.engine.close();
    const broken = ids[0] as string;
    const store: Store = {
      ...bound(shared),
      async read(scope, id, options) {
        if (id === broken) throw new Error("A page is damaged");
        return shared.read(scope, id, options);
      },
    };
    const resumed: string[] = [];
    harness(
      async function* (turn) {
        resumed.push(turn.taskId);
        yield turn.working();
      },
      { store, clock, behaviour },
    );
    await eventually(() => resumed.length === 1);
    expect(resumed).toEqual([ids[1]]);
  });
});
