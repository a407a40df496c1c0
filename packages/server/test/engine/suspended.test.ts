import { describe, expect, it, onTestFinished } from "vitest";
import { defineAgent } from "../../src/agent/index.ts";
import type { LogFields } from "@parley/a2a/internal/base/index";
import type { EngineLimits } from "../../src/engine/index.ts";
import { memoryStore, type Store } from "../../src/store/index.ts";
import { resumeTask } from "../operate/suspended.ts";
import { callContext, fakeClock, inProcess } from "@parley/testing";
import { bound, eventually, messageOf, Reading, type Line, type OnMessage } from "./support.ts";

/**
 * Runs consecutive processes on one store. If a process dies, it is disconnected from the store, and its successor knows that the process has
 * ended.
 */
function processes(onMessage: (turn: Parameters<OnMessage>[0], die: () => void) => ReturnType<OnMessage>) {
  const shared = memoryStore();
  const clock = fakeClock();
  const log: Line[] = [];
  const write =
    (level: string) =>
    (message: string, fields: LogFields = {}): void =>
      void log.push({ ...fields, level, message });
  const logger = { debug: () => {}, info: write("info"), warn: write("warn"), error: write("error") };
  const dead = new Set<string>();
  let count = 0;

  function start(options: { limits?: EngineLimits; change?: (store: Store) => Partial<Store> } = {}) {
    const holder = `process-${(count += 1)}`;
    const cut: Store = {
      ...bound(shared),
      append: (items) => (dead.has(holder) ? new Promise(() => {}) : shared.append(items)),
    };
    const store: Store = { ...cut, ...options.change?.(cut) };
    const die = (): void => void dead.add(holder);
    const agent = defineAgent({
      name: "test",
      description: "a test",
      version: "1",
      skills: [],
      resumable: true,
      mayReplyDirectly: false,
      onMessage: (turn) => onMessage(turn, die),
    });
    const lease = { ttl: 3_000, holder, isGone: (other: string) => dead.has(other) };
    const made = inProcess(agent, { clock, store, logger, lease, ...(options.limits && { limits: options.limits }) });
    onTestFinished(() => void made.engine.close());
    const send = async (text: string): Promise<string> => {
      const { batches } = await made.service.stream(
        "SendStreamingMessage",
        { message: messageOf(text) },
        callContext(),
      );
      const reading = new Reading(batches);
      const id = (await reading.next())?.payload.value.task?.id ?? "";
      await reading.next();
      return id;
    };
    const get = async (id: string) => (await made.service.call("GetTask", { id }, callContext())).payload.value;
    return { ...made, die, isDead: () => dead.has(holder), send, get };
  }
  return { shared, clock, log, start };
}

const never = new Promise<void>(() => {});

describe("a task that makes its process crash when it is resumed", () => {
  it("is suspended and logged once it has crashed a process alone, and the other tasks complete", async () => {
    const { log, start, shared } = processes(async function* (turn, die) {
      yield turn.working();
      if (turn.attempt === 1) await never;
      if (turn.text === "kill") {
        die();
        await never;
      }
      yield turn.artifact({ parts: [{ text: "done" }] });
    });
    const first = start();
    const ids: string[] = [];
    for (const text of ["one", "two", "kill", "three", "four"]) ids.push(await first.send(text));
    const [one = "", two = "", killer = "", three = "", four = ""] = ids;
    first.die();

    const runOf = async (taskId: string) => (await shared.head({ agent: "agent" }, taskId))?.run;
    let starts = 0;
    let last = first;
    while (last.isDead()) {
      last = start();
      starts += 1;
      await eventually(async () => last.isDead() || (await runOf(killer))?.suspended === true);
    }
    // The task crashes three processes: together with all others, together with some, and alone. The last process does not crash.
    expect(starts).toBeGreaterThanOrEqual(3);
    expect(starts).toBeLessThanOrEqual(4);
    for (const id of [one, two, three, four])
      await eventually(async () => (await last.get(id)).status.state === "TASK_STATE_COMPLETED");
    // The user sees no new state.
    expect((await last.get(killer)).status.state).toBe("TASK_STATE_WORKING");
    const lines = log.filter(({ message }) => message.startsWith("Task suspended"));
    expect(lines).toEqual([
      {
        level: "error",
        message: "Task suspended: its process died on every attempt",
        agent: "agent",
        taskId: killer,
        contextId: expect.any(String) as string,
        deaths: starts - 1,
        option: "lease.maxDeaths",
        command: `parley ops resume ${killer} --agent agent`,
      },
    ]);
  });

  it("is counted by the log of each process that starts later, because the one that suspended it may have died before logging", async () => {
    const { log, start, shared } = processes(async function* (turn) {
      yield turn.working();
      await never;
    });
    const first = start();
    for (const text of ["one", "two", "three"]) {
      const id = await first.send(text);
      const head = await shared.head({ agent: "agent" }, id);
      if (text === "three" || head?.run === undefined) continue;
      const effects = [
        { effect: "lease", op: "revoke" },
        { effect: "run", run: { ...head.run, suspended: true } },
      ] as const;
      // The suspension is stored, but not logged.
      await shared.append([{ task: head.task, fence: head.fence, records: [], effects }]);
    }
    first.die();
    const told = (): readonly unknown[] =>
      log.filter(({ message }) => message === "Suspended tasks wait for an operator");
    const line = { level: "warn", tasks: 2, command: "parley ops list --suspended" };
    const second = start();
    await eventually(() => told().length > 0);
    await second.engine.round(true);
    await second.engine.round(true);
    expect(told()).toEqual([expect.objectContaining(line)]);
  });

  it("starts with few other tasks that also stored nothing since a crash: one, then two", async () => {
    let begun = 0;
    let together = 0;
    const sizes: number[] = [];
    const { start, clock } = processes(async function* (turn, die) {
      yield turn.working();
      if (turn.attempt === 1) await never;
      if (turn.attempt === 2) {
        if ((begun += 1) === 4) die();
        await never;
      }
      sizes.push((together += 1));
      await new Promise<void>((resolve) => clock.after(1_000, resolve));
      together -= 1;
      yield turn.artifact({ parts: [{ text: "done" }] });
    });
    const first = start();
    const ids: string[] = [];
    for (let n = 0; n < 4; n += 1) ids.push(await first.send("Go"));
    first.die();
    const second = start();
    await eventually(() => second.isDead());
    const third = start();
    await eventually(async () => {
      clock.advance(500);
      const tasks = await Promise.all(ids.map((id) => third.get(id)));
      return tasks.every(({ status }) => status.state === "TASK_STATE_COMPLETED");
    });
    expect(sizes).toEqual([1, 1, 2, 1]);
  });

  it("is not blamed for a crash that a queued task causes: that one begins when the trial is over", async () => {
    const begun: string[] = [];
    const { start, clock, shared } = processes(async function* (turn, die) {
      begun.push(`${turn.text} ${turn.attempt}`);
      yield turn.working();
      if (turn.text === "queued") die();
      if (turn.attempt < 4) await never;
      yield turn.artifact({ parts: [{ text: "done" }] });
    });
    const first = start({ limits: { runs: 1 } });
    const id = await first.send("lost");
    const request = { message: messageOf("queued"), configuration: { returnImmediately: true } };
    await first.service.call("SendMessage", request, callContext());
    first.die();
    // The task is lost again when this process dies, but it did not cause the crash.
    const second = start({ limits: { runs: 1 } });
    await eventually(() => begun.length === 2);
    second.die();
    const third = start({ limits: { runs: 10 } });
    await eventually(() => begun.length === 3);
    clock.advance(4_900);
    for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setTimeout(resolve, 0));
    expect(begun).toEqual(["lost 1", "lost 2", "lost 3"]);
    expect((await shared.head({ agent: "agent" }, id))?.run).toMatchObject({ deaths: 2, alone: true });
    await eventually(() => {
      clock.advance(100);
      return third.isDead();
    });
    expect(begun.slice(3)).toEqual(["queued 1"]);
    // The other task also crashes each process that takes that task over.
    const stateOf = async () => (await shared.head({ agent: "agent" }, id))?.state;
    for (let last = third; last.isDead();) {
      last = start({ limits: { runs: 10 } });
      await eventually(async () => last.isDead() || (await stateOf()) !== "TASK_STATE_WORKING");
    }
    expect(await stateOf()).toBe("TASK_STATE_COMPLETED");
  });

  it("is not suspended for deaths while its server stops, and resumes if an operator says so", async () => {
    const { start, shared, clock } = processes(async function* (turn) {
      yield turn.working();
      await never;
    });
    const first = start();
    const id = await first.send("Go");
    const runOf = async () => (await shared.head({ agent: "agent" }, id))?.run;
    first.die();
    // Simulates deployments, in which each process is told to stop, and is killed within its grace period.
    for (let attempt = 2; attempt <= 8; attempt += 1) {
      const next = start();
      await eventually(async () => (await runOf())?.attempt === attempt);
      const before = await runOf();
      void next.engine.close({ grace: 10_000 });
      await eventually(async () => (await runOf())?.deaths !== before?.deaths);
      next.die();
      expect((await runOf())?.deaths).toBeUndefined();
    }
    // Kills each process without a warning.
    for (let attempt = 9; attempt <= 11; attempt += 1) {
      const next = start();
      await eventually(async () => (await runOf())?.attempt === attempt || (await runOf())?.suspended === true);
      next.die();
    }
    start();
    await eventually(async () => (await runOf())?.suspended === true);
    // `parley ops why` shows when the task was suspended.
    const [row] = await shared.features({ agent: "agent" }, id, "suspended");
    expect(row?.value).toBe(`${clock.now()}`);
    expect(await resumeTask(shared, "agent", id)).toBe(true);
    expect(await resumeTask(shared, "agent", id)).toBe(false);
    expect(await runOf()).toMatchObject({ turn: 1, input: 1 });
    expect((await runOf())?.deaths).toBeUndefined();
  });

  it("is not suspended while others begin beside it, or each attempt gets further than the previous one", async () => {
    const { start, shared } = processes(async function* (turn, die) {
      if (turn.text === "crash") {
        die();
        await never;
      }
      yield turn.working();
      if (turn.text !== "steps") await never;
      // Each attempt starts one more step, and dies in that step.
      for (let step = 1; step < turn.attempt; step += 1)
        await turn.step(`${step}`, () => (step + 1 < turn.attempt ? undefined : never));
      await never;
    });
    const first = start();
    const [quiet, steps] = [await first.send("quiet"), await first.send("steps")];
    const runOf = async (taskId: string) => (await shared.head({ agent: "agent" }, taskId))?.run;
    first.die();
    for (let lives = 0; lives < 5; lives += 1) {
      const next = start();
      const deaths = (await runOf(quiet))?.deaths ?? 0;
      await eventually(async () => ((await runOf(quiet))?.deaths ?? 0) > deaths);
      // During the task's trial, a message arrives repeatedly that crashes the process.
      next.send("crash").catch(() => {});
      await eventually(() => next.isDead());
      expect((await runOf(quiet))?.alone).toBeUndefined();
    }
    expect((await runOf(quiet))?.suspended).toBeUndefined();
    expect((await runOf(steps))?.suspended).toBeUndefined();
  });

  it.each([
    { moves: true, what: "is not suspended while each attempt repeats more stored events than the attempt before" },
    { moves: false, what: "is suspended if each attempt repeats the same stored events" },
  ])("$what", async ({ moves }) => {
    const { start, shared } = processes(async function* (turn) {
      const last = turn.attempt === 1 ? 8 : moves ? turn.attempt : 2;
      for (let event = 1; event <= last; event += 1)
        yield turn.artifact({ artifactId: `${event}`, parts: [{ text: "" }] });
      await turn.flush();
      await never;
    });
    let last = start();
    const id = await last.send("Go");
    const headOf = () => shared.head({ agent: "agent" }, id);
    await eventually(async () => ((await headOf())?.seq ?? 0) >= 9);
    const reached = async () => Number((await shared.features({ agent: "agent" }, id, "replay"))[0]?.value ?? 0);
    for (let attempt = 2; attempt <= 6 && (await headOf())?.run?.suspended !== true; attempt += 1) {
      last.die();
      const before = await reached();
      last = start();
      await eventually(async () => {
        const run = (await headOf())?.run;
        if (run?.suspended === true) return true;
        return run?.attempt === attempt && (moves || before === 0 ? (await reached()) > before : true);
      });
    }
    expect((await headOf())?.run?.suspended === true).toBe(!moves);
  });

  it("is cleared of crashes when something new of it is stored, and of one when it is released normally", async () => {
    const { start, shared, clock } = processes(async function* (turn, die) {
      yield turn.working();
      if (turn.attempt === 2) yield turn.working("something new");
      if (turn.attempt === 3) {
        await turn.flush();
        die();
      }
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    });
    const first = start();
    const id = await first.send("Go");
    const runOf = async () => (await shared.head({ agent: "agent" }, id))?.run;
    first.die();
    const second = start();
    await eventually(async () => {
      const run = await runOf();
      return run?.attempt === 2 && run.deaths === undefined;
    });
    second.die();
    // The third process stores no new data and crashes.
    const third = start();
    await eventually(() => third.isDead());
    expect(await runOf()).toMatchObject({ attempt: 3, deaths: 1 });
    // The fourth process starts the task alone, stores no new data, and releases the task.
    const fourth = start();
    await eventually(async () => (await runOf())?.attempt === 4);
    expect(await runOf()).toMatchObject({ deaths: 2, alone: true });
    await fourth.engine.close();
    expect(await runOf()).toEqual({ turn: 1, attempt: 4, input: 1, deaths: 1 });
    // The fifth process runs for some seconds. If it crashes later, the crash does not count for this task alone.
    start();
    await eventually(async () => {
      clock.advance(1_000);
      const run = await runOf();
      return run?.attempt === 5 && run.alone === undefined && run.outlived === run.deaths;
    });
  });

  it("that is quiet is never on trial if it outlives each start, and is suspended after ten of them", async () => {
    const { start, shared, clock } = processes(async function* (turn) {
      yield turn.working();
      await never;
    });
    let last = start();
    const ids = await Promise.all(Array.from({ length: 5 }, () => last.send("Go")));
    const runs = async () =>
      Promise.all(ids.map(async (taskId) => (await shared.head({ agent: "agent" }, taskId))?.run));
    for (let lost = 1; lost <= 10; lost += 1) {
      last.die();
      last = start();
      // No time passes before all tasks are taken over.
      await eventually(async () => (await runs()).every((run) => run?.deaths === lost && run.alone === undefined));
      await eventually(async () => {
        clock.advance(1_000);
        return (await runs()).every((run) => run?.outlived === lost);
      });
    }
    last.die();
    last = start();
    await eventually(async () => (await runs()).every((run) => run?.suspended === true));
  });

  it("is recovered without capacity for another lost task", async () => {
    const { start, shared, clock } = processes(async function* (turn) {
      yield turn.working();
      await never;
    });
    const first = start();
    const ids = await Promise.all(Array.from({ length: 3 }, () => first.send("Go")));
    first.die();
    start({ limits: { runs: 2 } });
    await eventually(async () => {
      clock.advance(1_000);
      const heads = await Promise.all(ids.map((taskId) => shared.head({ agent: "agent" }, taskId)));
      return heads.filter((head) => head?.run?.outlived === 1).length === 2;
    });
  });

  it("that cannot be taken over is logged once and retried with growing pauses, and other tasks continue", async () => {
    const { start, clock, log } = processes(async function* (turn) {
      yield turn.working();
      if (turn.attempt === 1) await never;
      yield turn.artifact({ parts: [{ text: "done" }] });
    });
    const first = start();
    const [broken, other] = [await first.send("one"), await first.send("two")];
    first.die();
    let tries = 0;
    const second = start({
      change: (store) => ({
        append(items) {
          const hit = items.some((item) => "task" in item && item.task.taskId === broken && item.records.length === 0);
          if (!hit) return store.append(items);
          tries += 1;
          return Promise.reject(new Error("the row is corrupt"));
        },
      }),
    });
    await eventually(async () => (await second.get(other)).status.state === "TASK_STATE_COMPLETED");
    for (let seconds = 0; seconds < 60; seconds += 1) {
      clock.advance(1_000);
      for (let turns = 0; turns < 4; turns += 1) await new Promise((resolve) => setTimeout(resolve, 0));
    }
    expect(tries).toBeGreaterThan(1);
    // If an item fails together with others, the engine appends it once more, alone.
    expect(tries).toBeLessThan(10);
    const lines = log.filter(({ message }) => message.startsWith("Failed to take over a lost task"));
    expect(lines).toMatchObject([{ level: "error", taskId: broken }]);
  });

  it("whose log cannot be read is suspended and logged", async () => {
    const { start, log } = processes(async function* (turn) {
      yield turn.working();
      if (turn.attempt === 1) await never;
      yield turn.artifact({ parts: [{ text: "done" }] });
    });
    const first = start();
    const [broken, other] = [await first.send("one"), await first.send("two")];
    first.die();
    const second = start({
      change: (store) => ({
        read: (scope, id, options) =>
          id === broken ? Promise.reject(new SyntaxError("corrupt")) : store.read(scope, id, options),
      }),
    });
    await eventually(async () => (await second.get(other)).status.state === "TASK_STATE_COMPLETED");
    await eventually(async () => (await second.get(broken)).status.state === "TASK_STATE_FAILED");
    expect(log).toContainEqual(
      expect.objectContaining({
        level: "error",
        taskId: broken,
        message: "Lost task failed: its log cannot be read",
      }),
    );
  });
});

describe("lost tasks of agents that are not hosted", () => {
  it("do not hold up other tasks, and are logged once with their agent and number", async () => {
    const { start, shared, log, clock } = processes(async function* (turn) {
      yield turn.working();
      if (turn.attempt === 1) await never;
      yield turn.artifact({ parts: [{ text: "done" }] });
    });
    const first = start();
    const id = await first.send("Go");
    first.die();
    const time = clock.now() - 60_000;
    const json = (taskId: string) =>
      JSON.stringify({ id: taskId, contextId: "c", status: { state: "TASK_STATE_WORKING" } });
    await shared.append(
      Array.from({ length: 110 }, (_, n) => ({
        task: { agent: "renamed", owner: "o", taskId: `t-${n}` },
        create: { contextId: "c" },
        records: [
          { kind: "task", json: json(`t-${n}`), time, turn: 1, attempt: 1, actor: "user", state: "TASK_STATE_WORKING" },
        ],
        effects: [{ effect: "run", run: { turn: 1, attempt: 1, input: 1 } }],
      })),
    );
    const second = start();
    await eventually(async () => (await second.get(id)).status.state === "TASK_STATE_COMPLETED");
    for (let seconds = 0; seconds < 30; seconds += 1) {
      clock.advance(1_000);
      for (let turns = 0; turns < 4; turns += 1) await new Promise((resolve) => setTimeout(resolve, 0));
    }
    const lines = log.filter(({ message }) => message.startsWith("Lost tasks wait"));
    expect(lines).toEqual([
      { level: "warn", message: "Lost tasks wait for an agent that is not hosted here", agent: "renamed", tasks: 110 },
    ]);
  });
});

describe("limits.totalBytes", () => {
  const large = 256 << 10;

  it("lets recovery resume as many tasks as fit, and eventually all of them", async () => {
    const waiting: (() => void)[] = [];
    let most = 0;
    const { start, clock } = processes(async function* (turn) {
      yield turn.working();
      if (turn.attempt === 1) await never;
      yield turn.working("again");
      await new Promise<void>((resolve) => (most = Math.max(most, waiting.push(resolve))));
      yield turn.artifact({ parts: [{ text: "done" }] });
    });
    const first = start();
    const ids: string[] = [];
    for (let n = 0; n < 10; n += 1) ids.push(await first.send("x".repeat(large)));
    first.die();
    // One owner gets half of the memory, which is enough for three messages.
    const second = start({ limits: { totalBytes: 7 * large } });
    await eventually(async () => {
      clock.advance(1_000);
      await new Promise((resolve) => setTimeout(resolve, 0));
      for (const resolve of waiting.splice(0)) resolve();
      const tasks = await Promise.all(ids.map((id) => second.get(id)));
      return tasks.every(({ status }) => status.state === "TASK_STATE_COMPLETED");
    });
    expect(most).toBeLessThanOrEqual(3);
  });

  it("makes messages beyond it wait and then rejects them, while small ones and other owners are served", async () => {
    const done: (() => void)[] = [];
    const { start, clock } = processes(async function* (turn) {
      yield turn.working();
      if (turn.text !== "small") await new Promise<void>((resolve) => done.push(resolve));
      yield turn.artifact({ parts: [{ text: "done" }] });
    });
    const { service } = start({ limits: { totalBytes: 7 * large } });
    const send = (text: string, subject: string) =>
      service.call("SendMessage", { message: messageOf(text) }, callContext({ subject }));
    const long = "x".repeat(large);
    const served = [1, 2, 3].map(() => send(long, "ada"));
    await eventually(() => done.length === 3);
    const waits = send(long, "ada");
    const [refused] = [send(long, "ada").catch((error: unknown) => error)];
    expect((await send("small", "ada")).payload.value.task?.status.state).toBe("TASK_STATE_COMPLETED");
    const other = send(long, "bob");
    await eventually(() => done.length === 4);
    // One turn ends, so the server accepts the first waiting message.
    done.shift()?.();
    await served[0];
    await eventually(() => done.length === 4);
    clock.advance(10_000);
    expect(await refused).toMatchObject({ code: "Unavailable", retryAfter: 5 });
    for (const resolve of done) resolve();
    for (const { payload } of await Promise.all([...served, waits, other]))
      expect(payload.value.task?.status.state).toBe("TASK_STATE_COMPLETED");
  });
});
