import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { defineAgent } from "../../src/agent/index.ts";
import { text } from "@parley/a2a/internal/model/index";
import { memoryStore } from "../../src/store/index.ts";
import { fakeClock, testAgent, type TestAgent } from "@parley/testing";
import { eventually, gate, harness, type Harness } from "./support.ts";
import { immediately, minute, over, waits } from "./waiting.ts";

/** Tests `turn.sleep()` and `turn.waitFor()` (docs/decisions/waiting.md). */

describe("a woken task", () => {
  it("does not run in the async context of the sender of the event", async () => {
    const storage = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const on = harness(async function* (turn) {
      seen.push(storage.getStore());
      yield* turn.waitFor("paid");
      yield turn.completed("Done");
    });
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    await storage.run("a transaction", () => on.engine.signal(id, "paid"));
    expect(await over(on, id)).toBe("COMPLETED Done");
    expect(seen).toEqual([undefined, undefined]);
  });
});

describe("turn.sleep()", () => {
  it("ends the function, and calls it again after the wait, with its events stored once", async () => {
    const clock = fakeClock();
    const calls: number[] = [];
    let cleanedUp = 0;
    const on = harness(
      async function* (turn) {
        calls.push(turn.attempt);
        try {
          yield turn.working("Good night", { keep: true });
          yield turn.artifact({ parts: [text("before")] });
          yield* turn.sleep(90 * minute);
          yield turn.completed("Good morning");
        } finally {
          cleanedUp += 1;
        }
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    expect(cleanedUp).toBe(1);
    expect((await on.get(id)).status.state).toBe("TASK_STATE_WORKING");
    clock.advance(89 * minute);
    await on.engine.round();
    expect(calls).toEqual([1]);
    clock.advance(minute);
    expect(await over(on, id)).toBe("COMPLETED Good morning");
    expect(calls).toEqual([1, 2]);
    const task = await on.get(id);
    expect(task.artifacts).toHaveLength(1);
    expect(task.history?.map(({ parts }) => parts[0]?.text)).toEqual(["Go", "Good night", "Good morning"]);
    expect(on.log.filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
  });

  it("sleeps in sequence, and does not repeat a finished sleep", async () => {
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        for (let day = 1; day <= 3; day += 1) {
          yield turn.working(`Day ${day}`, { keep: true });
          yield* turn.sleep(new Date(Date.UTC(2026, 0, 1 + day)));
        }
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    for (let day = 1; day <= 3; day += 1) {
      await waits(on, id);
      clock.advance(24 * 60 * minute);
      await eventually(async () => (await on.store.head({ agent: "agent" }, id))?.statusTime === clock.now());
    }
    expect(await over(on, id)).toBe("COMPLETED");
    const { history } = await on.get(id);
    expect(history?.map(({ parts }) => parts[0]?.text)).toEqual(["Go", "Day 1", "Day 2", "Day 3"]);
  });

  it("does not wait for a time that has passed", async () => {
    const on = harness(async function* (turn) {
      yield turn.working();
      yield* turn.sleep(0);
      yield* turn.sleep(new Date(0));
      yield turn.completed(`attempt ${turn.attempt}`);
    });
    expect((await on.send("Go")).status.message?.parts[0]?.text).toBe("attempt 1");
  });

  it("continues from the checkpoint, with waits that this process has not seen", async () => {
    const clock = fakeClock();
    const asked: string[] = [];
    const on = harness(
      async function* (turn) {
        for (let at = (turn.checkpoint as number | undefined) ?? 1; at <= 3; at += 1) {
          asked.push(`${turn.attempt}: ${at}`);
          yield turn.saveCheckpoint(at);
          yield* turn.sleep(minute);
        }
        yield turn.completed("Ready");
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    for (let at = 1; at <= 3; at += 1) {
      await eventually(() => asked.length > 0 && asked.at(-1)?.endsWith(`${at}`) === true);
      await waits(on, id);
      clock.advance(minute);
      await eventually(
        async () =>
          (await on.store.features({ agent: "agent" }, id, "wait"))[0]?.value.includes(String(clock.now() + minute)) ??
          true,
      );
    }
    expect(await over(on, id)).toBe("COMPLETED Ready");
    expect(asked).toEqual(["1: 1", "2: 1", "2: 2", "3: 2", "3: 3", "4: 3"]);
  });

  it("does not count as an idle turn, nor as a long one", async () => {
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        yield* turn.sleep(30 * 24 * 60 * minute);
        yield turn.completed();
      },
      { clock, behaviour: { idleTimeout: minute, turnTimeout: 5 * minute } },
    );
    const { id, status } = await on.send("Go", immediately);
    expect(status.state).toMatch(/SUBMITTED|WORKING/);
    await waits(on, id);
    expect((await on.get(id)).status.state).toBe("TASK_STATE_WORKING");
    for (let day = 0; day < 30; day += 1) clock.advance(24 * 60 * minute);
    expect(await over(on, id)).toBe("COMPLETED");
  });
});

describe("turn.waitFor()", () => {
  it("continues with the data of an external event", async () => {
    const on = harness(async function* (turn) {
      yield turn.working("Waiting for approval");
      const approval = yield* turn.waitFor("approved");
      yield turn.completed(JSON.stringify(approval));
    });
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    await on.engine.signal(id, "other", 1);
    await on.engine.signal(id, "approved", { by: "ada" });
    expect(await over(on, id)).toBe('COMPLETED {"by":"ada"}');
  });

  it("takes earlier events too, each once, in order", async () => {
    const clock = fakeClock();
    const first = gate();
    const on = harness(
      async function* (turn) {
        yield turn.working();
        await first.opened;
        const got = [yield* turn.waitFor("word"), yield* turn.waitFor("word")];
        yield* turn.sleep(minute);
        got.push(yield* turn.waitFor("word"));
        yield turn.completed(JSON.stringify(got));
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    for (const word of ["one", "two", "three"]) await on.engine.signal(id, "word", word);
    first.open();
    await waits(on, id);
    clock.advance(minute);
    expect(await over(on, id)).toBe('COMPLETED ["one","two","three"]');
  });

  it("returns undefined after its timeout, also in a later attempt", async () => {
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        const first = yield* turn.waitFor("approved", { timeout: minute });
        yield* turn.sleep(minute);
        yield turn.completed(JSON.stringify(first) ?? "none");
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    clock.advance(minute);
    await eventually(async () => (await on.store.features({ agent: "agent" }, id, "step")).length > 0);
    await waits(on, id);
    await on.engine.signal(id, "approved", "late");
    clock.advance(minute);
    expect(await over(on, id)).toBe("COMPLETED none");
  });

  it("ignores an event with an id that it had before", async () => {
    const on = harness(async function* (turn) {
      yield turn.working();
      const one = yield* turn.waitFor("paid");
      const two = yield* turn.waitFor("paid");
      yield turn.completed(JSON.stringify([one, two]));
    });
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    await on.engine.signal(id, "paid", 1, { id: "event-1" });
    await eventually(async () => (await on.store.features({ agent: "agent" }, id, "step")).length > 0);
    await waits(on, id);
    await on.engine.signal(id, "paid", 1, { id: "event-1" });
    expect((await on.get(id)).status.state).toBe("TASK_STATE_WORKING");
    await on.engine.signal(id, "paid", 2, { id: "event-2" });
    expect(await over(on, id)).toBe("COMPLETED [1,2]");
    // The engine ignores repeated events even if the task has ended.
    await on.engine.signal(id, "paid", 2, { id: "event-2" });
    await expect(on.engine.signal(id, "paid", 3, { id: "event-3" })).rejects.toMatchObject({
      code: "UnsupportedOperation",
    });
  });

  it.each(["支".repeat(67), "x".repeat(201), "\uD800", "a\0b", ""])(
    "rejects the id %j of an event, and nothing else fails",
    async (event) => {
      const on = harness(async function* (turn) {
        yield turn.completed(JSON.stringify(yield* turn.waitFor("go")));
      });
      const { id } = await on.send("Go", immediately);
      await waits(on, id);
      const [refused, taken] = await Promise.allSettled([
        on.engine.signal(id, "go", 1, { id: event }),
        on.engine.signal(id, "go", 2, { id: "支".repeat(66) }),
      ]);
      expect([refused, taken]).toMatchObject([{ reason: { code: "InvalidParams" } }, { status: "fulfilled" }]);
      expect(await over(on, id)).toBe("COMPLETED 2");
    },
  );

  it("rejects events of unknown and terminal tasks, too many of them, and data that is large or not JSON", async () => {
    const on = harness(async function* (turn) {
      yield turn.working();
      yield* turn.waitFor("end");
    });
    await expect(on.engine.signal("unknown", "end")).rejects.toMatchObject({ code: "TaskNotFound" });
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    await expect(on.engine.signal(id, "")).rejects.toMatchObject({ code: "InvalidParams" });
    await expect(on.engine.signal(id, "big", "x".repeat(16 << 10))).rejects.toThrow(/takes 16386 bytes/);
    await expect(on.engine.signal(id, "bad", (() => 1) as never)).rejects.toThrow(/must be JSON/);
    for (let count = 0; count < 32; count += 1) await on.engine.signal(id, "nobody");
    await expect(on.engine.signal(id, "end")).rejects.toMatchObject({ code: "TooManyRequests" });
    await on.cancel(id);
    await expect(on.engine.signal(id, "end")).rejects.toMatchObject({ code: "UnsupportedOperation" });
  });
});

describe("a waiting task", () => {
  it("answers its message when its turn ends, even if it waits in the commit that creates it (A2A 1.0 §3.2.2)", async () => {
    const on = harness(async function* (turn) {
      if (turn.text === "say") yield turn.working("One moment");
      yield* turn.sleep(20);
      yield turn.completed("Done");
    });
    const states = [];
    // Repeats each message, because loading code delays the first wait.
    for (const words of ["say", "say", "sleep", "sleep"]) states.push((await on.send(words)).status.state);
    expect(states).toEqual(Array(4).fill("TASK_STATE_COMPLETED"));
  });

  it("is canceled at once, and its function is not called again", async () => {
    const clock = fakeClock();
    let calls = 0;
    const on = harness(
      async function* (turn) {
        calls += 1;
        yield* turn.sleep(minute);
        yield turn.completed();
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    expect((await on.cancel(id)).status.state).toBe("TASK_STATE_CANCELED");
    clock.advance(10 * minute);
    await on.engine.round();
    await eventually(async () => (await on.store.features({ agent: "agent" }, id, "wait")).length === 0);
    expect(calls).toBe(1);
  });

  it("keeps messages for the next turn, even if they arrived before the wait", async () => {
    const clock = fakeClock();
    const began = gate();
    const goOn = gate();
    const on = harness(
      async function* (turn) {
        yield turn.working();
        if (turn.number === 1) {
          began.open();
          await goOn.opened;
          yield* turn.sleep(minute);
        }
        yield turn.artifact({ parts: [text(`${turn.number}: ${turn.text}`)] });
      },
      { clock },
    );
    const { id } = await on.send("one", immediately);
    await began.opened;
    await on.send("two", { ...immediately, message: { taskId: id } });
    goOn.open();
    await waits(on, id);
    await on.send("three", { ...immediately, message: { taskId: id } });
    await waits(on, id);
    clock.advance(minute);
    expect(await over(on, id)).toBe("COMPLETED");
    const { artifacts } = await on.get(id);
    expect(artifacts?.map(({ parts }) => parts[0]?.text)).toEqual(["1: one", "2: two", "3: three"]);
  });

  it("continues in another process, if its time passes while none runs", async () => {
    const clock = fakeClock();
    const store = memoryStore();
    const function_ = async function* (turn: Parameters<Parameters<typeof harness>[0]>[0]) {
      yield turn.working("Sleeping", { keep: true });
      yield* turn.sleep(minute);
      yield turn.completed(`attempt ${turn.attempt}`);
    };
    const first = harness(function_, { clock, store });
    const { id } = await first.send("Go", immediately);
    await waits(first, id);
    await first.engine.close();
    clock.advance(60 * minute);
    const second = harness(function_, { clock, store });
    expect(await over(second, id)).toBe("COMPLETED attempt 2");
  });

  it("is woken by one of two processes", async () => {
    const clock = fakeClock();
    const store = memoryStore();
    let calls = 0;
    const on = [1, 2].map(() =>
      harness(
        async function* (turn) {
          calls += 1;
          yield* turn.sleep(minute);
          yield turn.completed(`attempt ${turn.attempt}`);
        },
        { clock, store },
      ),
    ) as [Harness, Harness];
    const ids: string[] = [];
    for (let count = 0; count < 10; count += 1)
      ids.push((await on[count % 2 === 0 ? 0 : 1].send("Go", immediately)).id);
    for (const id of ids) await waits(on[0], id);
    clock.advance(minute);
    for (const id of ids) expect(await over(on[0], id)).toBe("COMPLETED attempt 2");
    expect(calls).toBe(20);
  });

  it("keeps the answer to turn.authRequired() waiting, with a link", async () => {
    const on = harness(async function* (turn) {
      yield turn.authRequired("Open https://example.com/consent");
      const token = yield* turn.waitFor("consent");
      yield turn.artifact({ parts: [text(JSON.stringify(token))] });
    });
    const { id } = await on.send("Go");
    await waits(on, id);
    expect((await on.get(id)).status.state).toBe("TASK_STATE_AUTH_REQUIRED");
    await on.engine.signal(id, "consent", "given");
    expect(await over(on, id)).toBe("COMPLETED");
  });
});

describe("a waiting task, and processes that die", () => {
  /** Creates an agent in a process that can crash. */
  async function crashing(isResumable: boolean, onMessage: Parameters<typeof harness>[0]): Promise<TestAgent> {
    const base = { name: "test", description: "a test", version: "1", skills: [] };
    const agent = await testAgent(defineAgent({ ...base, resumable: isResumable, onMessage }));
    onTestFinished(() => agent.close());
    return agent;
  }
  async function begin({ client }: TestAgent): Promise<string> {
    const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "Go" }] } as const;
    const { task } = await client.sendMessage({ message, configuration: { returnImmediately: true } });
    return task?.id ?? "";
  }

  it("wakes again if its process died before the wait was over, although its agent is not resumable", async () => {
    let attempts = 0;
    const on = await crashing(false, async function* (turn) {
      attempts += 1;
      yield turn.working("Waiting");
      // The process dies before the function reaches its wait.
      if (turn.attempt === 2) await new Promise(() => {});
      yield turn.completed(JSON.stringify(yield* turn.waitFor("word")));
    });
    const id = await begin(on);
    await on.clock.settle();
    await on.signal(id, "word", "hello");
    await eventually(() => attempts === 2);
    await on.crash();
    await on.restart();
    expect((await on.client.waitFor(id)).status.message?.parts[0]?.text).toBe('"hello"');
    expect(attempts).toBe(3);
  });

  it("is suspended after its attempts if it ends each process that wakes it", async () => {
    let attempts = 0;
    const on = await crashing(true, async function* (turn) {
      attempts += 1;
      if (turn.attempt > 1) await new Promise(() => {});
      yield* turn.sleep(minute);
    });
    const id = await begin(on);
    await on.clock.settle();
    await on.clock.advance(minute);
    for (let life = 2; life < 5; life += 1) {
      await eventually(() => attempts === life);
      await on.crash();
      await on.restart();
    }
    await on.clock.settle();
    expect((await on.client.getTask(id)).status.state).not.toBe("TASK_STATE_FAILED");
    expect(attempts).toBe(4);
  });

  it("drops an event that does not match its schema, with an error in the log, and keeps waiting", async () => {
    const on = await crashing(false, async function* (turn) {
      const { by } = yield* turn.waitFor("approved", { schema: z.object({ by: z.string() }) });
      yield* turn.sleep(minute);
      yield turn.completed(by);
    });
    const id = await begin(on);
    await on.clock.settle();
    await on.signal(id, "approved", { by: 7 });
    await on.clock.settle();
    expect((await on.client.getTask(id)).status.state).toBe("TASK_STATE_WORKING");
    await on.signal(id, "approved", { by: "ada" });
    await on.clock.settle();
    await on.clock.advance(minute);
    expect((await on.client.waitFor(id)).status.message?.parts[0]?.text).toBe("ada");
    expect(on.problems.map((line) => line.split("\n")[0])).toEqual([
      expect.stringContaining("Event does not match its schema; dropped"),
    ]);
  });
});

describe("turn.all() with waits", () => {
  it("releases the process once all wait, and continues with each in its time", async () => {
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        const [, word, late] = yield* turn.all([
          turn.sleep(2 * minute),
          turn.waitFor("word"),
          turn.waitFor("never", { timeout: minute }),
        ]);
        yield turn.completed(JSON.stringify([word, late ?? null]));
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    await on.engine.signal(id, "word", "hello");
    await eventually(async () => (await on.store.features({ agent: "agent" }, id, "step")).length > 0);
    await waits(on, id);
    clock.advance(minute);
    await eventually(async () => (await on.store.features({ agent: "agent" }, id, "wait")).length === 1);
    await waits(on, id);
    clock.advance(minute);
    expect(await over(on, id)).toBe('COMPLETED ["hello",null]');
  });

  it("continues with a finished wait while another generator works", async () => {
    const clock = fakeClock();
    const work = gate();
    const on = harness(
      async function* (turn) {
        yield turn.working();
        async function* works() {
          await work.opened;
          yield turn.artifact({ parts: [text("worked")] });
        }
        async function* sleeps() {
          yield* turn.sleep(minute);
          yield turn.artifact({ parts: [text("slept")] });
          const event = yield* turn.waitFor("word");
          yield turn.artifact({ parts: [text(JSON.stringify(event))] });
          work.open();
        }
        yield* turn.all([works(), sleeps()]);
        yield turn.completed(`attempt ${turn.attempt}`);
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    await eventually(async () => (await on.store.features({ agent: "agent" }, id, "wait")).length === 1);
    clock.advance(minute);
    await eventually(async () => (await on.get(id)).artifacts?.length === 1);
    await on.engine.signal(id, "word", "heard");
    await eventually(async () => {
      clock.advance(1000);
      return (await on.get(id)).status.state === "TASK_STATE_COMPLETED";
    });
    const { artifacts, status } = await on.get(id);
    expect(artifacts?.map(({ parts }) => parts[0]?.text)).toEqual(["slept", '"heard"', "worked"]);
    expect(status.message?.parts[0]?.text).toBe("attempt 1");
  });

  it("forgets a wait if another generator throws", async () => {
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        yield turn.working();
        async function* fails() {
          await turn.flush();
          yield turn.working("Failing");
          throw new Error("no");
        }
        await Promise.resolve();
        try {
          yield* turn.all([turn.sleep(minute), fails()]);
        } catch {
          yield turn.inputRequired("What now?");
        }
      },
      { clock },
    );
    const { id, status } = await on.send("Go");
    expect(status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    await eventually(async () => (await on.store.features({ agent: "agent" }, id, "wait")).length === 0);
  });
});
