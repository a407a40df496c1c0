import { describe, expect, it, onTestFinished } from "vitest";
import { defineAgent } from "../../src/agent/index.ts";
import type { Clock } from "@parley/a2a/internal/base/index";
import { memoryStore, type Store } from "../../src/store/index.ts";
import { callContext, fakeClock, inProcess } from "@parley/testing";
import { bound, eventually, gate, gist, harness, messageOf, Reading, type Line } from "./support.ts";

const minute = 60_000;
const ttl = 3_000;

describe("the fake clock", () => {
  it("advances wall and monotonic time together, and only the wall time by a jump", () => {
    const clock = fakeClock(1_000_000);
    const rung: number[] = [];
    clock.after(10, () => rung.push(clock.elapsed()));
    const began = clock.elapsed();
    clock.jump(60 * minute);
    clock.advance(5);
    expect([clock.now(), clock.elapsed() - began, rung]).toEqual([1_000_000 + 60 * minute + 5, 5, []]);
    clock.jump(-120 * minute);
    clock.advance(5);
    expect([clock.now(), clock.elapsed() - began, rung]).toEqual([1_000_000 - 60 * minute + 10, 10, [began + 10]]);
  });
});

describe("a jump of the wall clock", () => {
  it("does not end an idle timeout: a task that was silent for three seconds continues after a jump of ten minutes", async () => {
    const clock = fakeClock();
    const { opened, open } = gate();
    const { stream, log } = harness(
      async function* (turn) {
        yield turn.working();
        await opened;
        yield turn.working("still here");
      },
      { clock, behaviour: { idleTimeout: 10_000, turnTimeout: 5 * minute } },
    );
    const reading = await stream("Go");
    await reading.next();
    await reading.next();
    for (let seconds = 0; seconds < 3; seconds += 1) await tick(clock);
    clock.jump(10 * minute);
    await tick(clock);
    open();
    expect((await reading.all()).map(({ payload }) => gist(payload.value))).toEqual(["working", "completed"]);
    const jumps = log.filter(({ message }) => message === "Wall clock jumped");
    expect(jumps).toEqual([{ level: "warn", message: "Wall clock jumped", jump: 10 * minute }]);
  });

  it("does not change how long a direct reply is remembered, after a jump of a day", async () => {
    const clock = fakeClock();
    let runs = 0;
    const { ask } = harness((turn) => Promise.resolve(turn.reply(`answer ${(runs += 1)}`)), {
      clock,
      dedupe: { window: 10 * minute },
    });
    const again = { message: { messageId: "m-1" } };
    const { message: first } = await ask("Go", again);
    clock.jump(24 * 60 * minute);
    clock.advance(9 * minute);
    expect((await ask("Go", again)).message).toEqual(first);
    clock.advance(2 * minute);
    expect((await ask("Go", again)).message).not.toEqual(first);
    expect(runs).toBe(2);
  });

  it("does not change the delay of a writer, after a jump of an hour back", async () => {
    const clock = fakeClock();
    const { send } = harness(
      async function* (turn) {
        const writer = turn.writer({ maxDelay: 50 });
        yield writer.write("1");
        clock.jump(-60 * minute);
        clock.advance(60);
        yield writer.write("2");
        yield writer.end();
      },
      { clock, mergeTextParts: false },
    );
    const { artifacts } = await send("Go");
    expect(artifacts?.[0]?.parts.map(({ text }) => text)).toEqual(["1", "2", ""]);
  });
});

/** Creates two engines on one store. `kill` disconnects the first engine from the store. */
function twoNodes() {
  const shared = memoryStore();
  const clock = fakeClock();
  const attempts: number[] = [];
  const log: Line[] = [];
  const { opened, open } = gate();
  const agent = defineAgent({
    name: "test",
    description: "a test",
    version: "1",
    skills: [],
    resumable: true,
    async *onMessage(turn) {
      attempts.push(turn.attempt);
      yield turn.working();
      if (turn.attempt === 1) await opened;
      yield turn.artifact({ parts: [{ text: "done" }] });
    },
  });
  let alive = true;
  const cut: Store = {
    ...bound(shared),
    append: (items) => (alive ? shared.append(items) : new Promise(() => {})),
  };
  const warn = (message: string, fields: object = {}): unknown => log.push({ level: "warn", message, ...fields });
  const logger = { debug: () => {}, info: () => {}, warn, error: () => {} };
  const node = (store: Store, own: Clock) => {
    const made = inProcess(agent, { clock: own, store, lease: { ttl }, logger });
    onTestFinished(() => void made.engine.close());
    return made;
  };
  return {
    clock,
    attempts,
    log,
    open,
    kill: () => (alive = false),
    first: () => node(cut, clock),
    second: (skew = 0) => node(shared, { ...clock, now: () => clock.now() + skew }),
  };
}

/** Starts a task on one node. Returns a function that reads the task's state through a given node. */
async function atWork({ service }: ReturnType<typeof inProcess>) {
  const { batches } = await service.stream("SendStreamingMessage", { message: messageOf("Go") }, callContext());
  const reading = new Reading(batches);
  const id = (await reading.next())?.payload.value.task?.id ?? "";
  await reading.next();
  return async (other: ReturnType<typeof inProcess>) =>
    (await other.service.call("GetTask", { id }, callContext())).payload.value.status.state;
}

/** Advances the clock by a second, and then lets timers run. */
async function tick(clock: ReturnType<typeof fakeClock>): Promise<void> {
  clock.advance(1_000);
  for (let turns = 0; turns < 5; turns += 1) await new Promise((resolve) => setTimeout(resolve, 0));
}

describe("leases while the wall clock jumps", () => {
  it.each([
    ["while the survivor runs", true],
    ["before the survivor starts", false],
  ])("an hour back %s: the task of a dead holder is taken over after one lease and a scan", async (_how, watched) => {
    const nodes = twoNodes();
    const stateBy = await atWork(nodes.first());
    let survivor = watched ? nodes.second() : undefined;
    await tick(nodes.clock);
    nodes.kill();
    nodes.clock.jump(-60 * minute);
    survivor ??= nodes.second();
    let seconds = 0;
    for (; (await stateBy(survivor)) !== "TASK_STATE_COMPLETED" && seconds < 60; seconds += 1) await tick(nodes.clock);
    // Until the lease has been unchanged for its `ttl`, its holder may be alive, so the takeover must wait that long.
    expect(seconds).toBeGreaterThan(ttl / 1_000 - 1);
    expect(seconds).toBeLessThanOrEqual((2 * ttl) / 1_000);
    expect(nodes.attempts).toEqual([1, 2]);
  });

  it.each([
    ["ten minutes forward", 10 * minute],
    ["an hour back", -60 * minute],
  ])("%s: live holders keep their tasks", async (_how, jump) => {
    const nodes = twoNodes();
    // The survivor starts first, so it scans before the holder renews the lease.
    const survivor = nodes.second();
    await tick(nodes.clock);
    const holder = nodes.first();
    const stateBy = await atWork(holder);
    await tick(nodes.clock);
    nodes.clock.jump(jump);
    for (let seconds = 0; seconds < 20; seconds += 1) await tick(nodes.clock);
    expect(nodes.attempts).toEqual([1]);
    nodes.open();
    await eventually(async () => (await stateBy(survivor)) === "TASK_STATE_COMPLETED");
    expect(nodes.attempts).toEqual([1]);
    expect(nodes.log.filter(({ message }) => message === "Wall clock jumped")).toHaveLength(2);
  });

  it.each([10 * minute, -10 * minute])(
    "a survivor whose wall clock is off by %i ms leaves a renewed lease, and takes over an expired one",
    async (skew) => {
      const nodes = twoNodes();
      const survivor = nodes.second(skew);
      await tick(nodes.clock);
      const stateBy = await atWork(nodes.first());
      for (let seconds = 0; seconds < 20; seconds += 1) await tick(nodes.clock);
      expect(nodes.attempts).toEqual([1]);
      nodes.kill();
      // Every tenth scan reads all leases, so one of these scans finds the lease that ends in the future.
      for (let seconds = 0; seconds < 20; seconds += 1) await tick(nodes.clock);
      expect(await stateBy(survivor)).toBe("TASK_STATE_COMPLETED");
      expect(nodes.attempts).toEqual([1, 2]);
    },
  );
});
