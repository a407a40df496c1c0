import { describe, expect, it, onTestFinished } from "vitest";
import { defineAgent } from "../../src/agent/index.ts";
import { A2AError } from "@parley/a2a/internal/model/index";
import type { Turn } from "@parley/a2a/internal/protocol/index";
import { memoryStore, type Store } from "../../src/store/index.ts";
import { callContext, fakeClock, inProcess } from "@parley/testing";
import { bound, eventually, gate, harness, messageOf, type OnMessage } from "./support.ts";
import { immediately, keysOf, macrotasks, minute, over, waits } from "./waiting.ts";

/** Tests waking tasks under adverse conditions (docs/decisions/waiting.md). */

async function* sleeps(turn: Turn) {
  yield* turn.sleep(minute);
  yield turn.completed(`attempt ${turn.attempt}`);
}

describe("tasks whose time has come", () => {
  it("are woken together: 64 take few commits, and each log is read twice", async () => {
    const clock = fakeClock();
    const store = memoryStore();
    const first = harness(sleeps, { clock, store });
    const ids: string[] = [];
    for (let at = 0; at < 64; at += 1) ids.push((await first.send("Go", immediately)).id);
    for (const id of ids) await waits(first, id);
    await first.engine.close();
    clock.advance(minute);
    const asked = { append: 0, read: 0 };
    const counted: Store = {
      ...bound(store),
      append: (items) => ((asked.append += 1), store.append(items)),
      read: (scope, taskId, options) => ((asked.read += 1), store.read(scope, taskId, options)),
    };
    const second = harness(sleeps, { clock, store: counted });
    for (const id of ids) expect(await over(second, id)).toBe("COMPLETED attempt 2");
    // The engine appends the leases in one call and the ends in another, for 32 tasks at a time.
    expect(asked.append).toBeLessThanOrEqual(16);
    // The engine reads once for the message, and once for the output of the lost run.
    expect(asked.read).toBeLessThanOrEqual(2 * ids.length);
  });

  it("cost no commit while there is no capacity, and are woken once there is", async () => {
    const clock = fakeClock();
    const shared = memoryStore();
    let commits = 0;
    const counted: Store = { ...bound(shared), append: (items) => ((commits += items.length), shared.append(items)) };
    const first = harness(sleeps, { clock, store: shared });
    const ids: string[] = [];
    for (let at = 0; at < 150; at += 1) ids.push((await first.send("x".repeat(2000), immediately)).id);
    for (const id of ids) await waits(first, id);
    await first.engine.close();
    clock.advance(minute);
    const second = harness(sleeps, { clock, store: counted, limits: { totalBytes: 1000 } });
    for (let round = 0; round < 5; round += 1) {
      clock.advance(2000);
      await second.engine.round();
      await macrotasks();
    }
    expect(commits).toBe(0);
    await second.engine.close();
    const third = harness(sleeps, { clock, store: shared });
    for (const id of ids) expect(await over(third, id)).toBe("COMPLETED attempt 2");
  });

  it("are woken although others before them cannot be read", async () => {
    const clock = fakeClock();
    const shared = memoryStore();
    const bad = new Set<string>();
    const store: Store = {
      ...bound(shared),
      features: (scope, id, feature) =>
        bad.has(id) ? Promise.reject(new A2AError("Unavailable")) : shared.features(scope, id, feature),
    };
    const on = harness(
      async function* (turn) {
        if (turn.text === "many") yield* turn.all(Array.from({ length: 64 }, () => turn.sleep(minute)));
        else yield* turn.sleep(minute + 1);
        yield turn.completed();
      },
      { clock, store },
    );
    for (let at = 0; at < 3; at += 1) {
      const { id } = await on.send("many", immediately);
      await waits(on, id);
      bad.add(id);
    }
    const { id } = await on.send("one", immediately);
    await waits(on, id);
    clock.advance(2 * minute);
    expect(await over(on, id)).toBe("COMPLETED");
  });

  it("are woken although 256 that were woken before wait for other agents", async () => {
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        yield* turn.sleep(turn.text === "late" ? 2 * minute : minute);
        if (turn.text !== "late") {
          // Behaves like turn.delegate() while the other agent works.
          const rows = await turn.delegations();
          const end = rows.wait();
          await new Promise<void>((resolve) => turn.signal.addEventListener("abort", () => resolve()));
          end();
        }
        yield turn.completed();
      },
      { clock },
    );
    const ids: string[] = [];
    for (let at = 0; at < 257; at += 1) ids.push((await on.send("other", immediately)).id);
    const late = (await on.send("late", immediately)).id;
    for (const id of [...ids, late]) await waits(on, id);
    clock.advance(minute);
    await eventually(async () => (await on.store.head({ agent: "agent" }, ids[256] ?? ""))?.run !== undefined);
    clock.advance(minute);
    expect(await over(on, late)).toBe("COMPLETED");
  });

  it("are named in the log if no agent of this server has them", async () => {
    const clock = fakeClock();
    const store = memoryStore();
    const first = harness(sleeps, { clock, store });
    const { id } = await first.send("Go", immediately);
    await waits(first, id);
    await first.engine.close();
    clock.advance(2 * minute);
    const warned: unknown[] = [];
    const quiet = { debug: () => {}, info: () => {}, error: () => {} };
    const logger = { ...quiet, warn: (message: string, fields: unknown) => void warned.push([message, fields]) };
    const agent = defineAgent({ name: "other", description: "a", version: "1", skills: [], onMessage: sleeps });
    const renamed = inProcess(agent, { clock, store: renamedScope(store), logger });
    onTestFinished(() => renamed.engine.close());
    await eventually(() => warned.length > 0);
    expect(warned).toEqual([
      ["Due tasks wait for an agent that is not hosted here", { agent: "old-name", taskId: id }],
    ]);
  });

  it("are canceled in their own turn and attempt", async () => {
    const on = harness(async function* (turn) {
      if (turn.number === 1) return yield turn.inputRequired("More?");
      yield turn.working();
      yield* turn.sleep(minute);
    });
    const { id } = await on.send("Go");
    await on.send("More", { ...immediately, message: { taskId: id } });
    await waits(on, id);
    await on.cancel(id);
    const log = await on.store.read({ agent: "agent" }, id, { after: 0, limit: 100 });
    expect(log?.records.at(-1)).toMatchObject({ state: "TASK_STATE_CANCELED", turn: 2 });
  });
});

/** Returns the store after the agent was renamed, with data of an agent that is now unknown. */
function renamedScope(store: Store): Store {
  return {
    ...bound(store),
    claimable: () => Promise.resolve({ heads: [] }),
    dueFeatures: async (query) => {
      if (query.agents !== undefined) return [];
      return (await store.dueFeatures(query)).map((row) => ({ ...row, task: { ...row.task, agent: "old-name" } }));
    },
  };
}

describe("an event that arrives while a run releases its task", () => {
  it("is taken soon although the store cannot be read at that moment", async () => {
    const clock = fakeClock();
    const shared = memoryStore();
    let failing = false;
    let failures = 0;
    const store: Store = {
      ...bound(shared),
      head: (scope, id) => {
        if (!failing) return shared.head(scope, id);
        failing = false;
        failures += 1;
        return Promise.reject(new A2AError("Unavailable"));
      },
    };
    const began = gate();
    const goOn = gate();
    const on = harness(
      async function* (turn) {
        yield turn.working();
        async function* works() {
          yield turn.working("Working");
          began.open();
          await goOn.opened;
          failing = turn.attempt === 1;
        }
        const [, word] = yield* turn.all([works(), turn.waitFor("word")]);
        yield turn.completed(JSON.stringify(word));
      },
      { clock, store },
    );
    const { id } = await on.send("Go", immediately);
    await began.opened;
    await eventually(async () => (await keysOf(on, id)).length === 1);
    await on.engine.signal(id, "word", "heard");
    // A poll during the run defers the event by a minute.
    await on.engine.round();
    goOn.open();
    await eventually(() => failures === 1);
    await eventually(async () => {
      clock.advance(1000);
      return (await on.get(id)).status.state === "TASK_STATE_COMPLETED";
    });
    expect(clock.elapsed()).toBeLessThan(40_000);
  });
});

describe("tasks that crash the process that wakes them", () => {
  it("do not make another working task fail", async () => {
    const shared = memoryStore();
    const clock = fakeClock();
    const dead = new Set<string>();
    const working = gate();
    let lives = 0;
    const healed = gate();
    const trials: boolean[] = [];
    let innocent = "";
    const start = (onMessage: (turn: Turn, die: () => void) => ReturnType<OnMessage>) => {
      const holder = `process-${(lives += 1)}`;
      const store: Store = {
        ...bound(shared),
        append: (items) => (dead.has(holder) ? new Promise(() => {}) : shared.append(items)),
      };
      const agent = defineAgent({
        name: "test",
        description: "a test",
        version: "1",
        skills: [],
        resumable: true,
        onMessage: (turn) => onMessage(turn, () => void dead.add(holder)),
      });
      const lease = { ttl: 3_000, holder, isGone: (other: string) => dead.has(other) };
      const made = inProcess(agent, { clock, store, lease });
      onTestFinished(() => void made.engine.close());
      return { ...made, isDead: () => dead.has(holder), die: () => void dead.add(holder) };
    };
    const function_ = async function* (turn: Turn, die: () => void) {
      if (turn.text.startsWith("sleeper")) {
        if (turn.attempt > 1) {
          // Records whether the innocent task is on trial when a sleeper is woken.
          if (turn.attempt === 2) trials.push((await shared.head({ agent: "agent" }, innocent))?.run?.alone === true);
          die();
          await new Promise(() => {});
        }
        yield* turn.sleep(minute * Number(turn.text.slice(7)));
        return;
      }
      yield turn.working();
      // The innocent task takes a long time, and stores no data in the meantime.
      working.open();
      await healed.opened;
      yield turn.completed(`attempt ${turn.attempt}`);
    };
    const first = start(function_);
    const send = async (text: string): Promise<string> => {
      const request = { message: messageOf(text), configuration: { returnImmediately: true } };
      return (await first.service.call("SendMessage", request, callContext())).payload.value.task?.id ?? "";
    };
    const sleepers = [await send("sleeper1"), await send("sleeper2"), await send("sleeper3")];
    for (const id of sleepers) await waits({ store: shared }, id);
    innocent = await send("innocent");
    await working.opened;
    first.die();
    const stateOf = async (id: string) => (await shared.head({ agent: "agent" }, id))?.state;
    const isSuspended = async (id: string) => (await shared.head({ agent: "agent" }, id))?.run?.suspended === true;
    for (let life = 0; life < 30; life += 1) {
      // Makes another sleeper due each time.
      clock.advance(minute);
      const next = start(function_);
      // The innocent task is alone at first, even if sleepers are due.
      await eventually(async () => {
        clock.advance(500);
        await macrotasks(5);
        const over = await Promise.all(sleepers.map(isSuspended));
        return next.isDead() || over.every(Boolean);
      });
      if (!next.isDead()) break;
    }
    expect(await Promise.all(sleepers.map(isSuspended))).toEqual(sleepers.map(() => true));
    expect(await isSuspended(innocent)).toBe(false);
    expect(trials).toEqual([false, false, false]);
    healed.open();
    await eventually(async () => (await stateOf(innocent)) !== "TASK_STATE_WORKING");
    expect(await stateOf(innocent)).toBe("TASK_STATE_COMPLETED");
  });
});
