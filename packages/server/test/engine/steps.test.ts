import { describe, expect, it, onTestFinished } from "vitest";
import { defineAgent } from "../../src/agent/index.ts";
import { text } from "@parley/a2a/internal/model/index";
import type { StepCall, Turn } from "@parley/a2a/internal/protocol/index";
import { memoryStore } from "../../src/store/index.ts";
import { fakeClock, testAgent, type TestAgent, type TestAgentOptions } from "@parley/testing";
import { eventually, gate, harness, type OnMessage } from "./support.ts";

/** Tests `turn.step()` (docs/decisions/waiting.md). test/crash/steps.test.ts kills a real process. */

/** Creates a resumable agent in a process that can crash. */
async function resumable(onMessage: OnMessage, options: TestAgentOptions = {}): Promise<TestAgent> {
  const base = { name: "test", description: "a test", version: "1", skills: [] };
  const agent = await testAgent(defineAgent({ ...base, resumable: true, onMessage }), options);
  onTestFinished(() => agent.close());
  return agent;
}

async function begin({ client }: TestAgent, message = "Go"): Promise<string> {
  const { task } = await client.sendMessage({
    message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: message }] },
    configuration: { returnImmediately: true },
  });
  return task?.id ?? "";
}

async function result({ client }: Pick<TestAgent, "client">, taskId: string): Promise<string | undefined> {
  const { status } = await client.waitFor(taskId);
  return status.message?.parts[0]?.text ?? status.state;
}

describe("turn.step()", () => {
  it("calls its function once, and returns its result again after a crash", async () => {
    let booked = 0;
    const before = gate();
    const on = await resumable(async function* (turn) {
      const booking = await turn.step("book", () => ({ number: (booked += 1) }));
      yield turn.working(`Booked ${booking.number}`, { keep: true });
      if (turn.attempt === 1) {
        before.open();
        await new Promise(() => {});
      }
      yield turn.completed(`attempt ${turn.attempt}, booking ${booking.number}`);
    });
    const id = await begin(on);
    await before.opened;
    await on.crash();
    await on.restart();
    expect(await result(on, id)).toBe("attempt 2, booking 1");
    expect(booked).toBe(1);
  });

  it("calls it again with the same key if its outcome is unknown, and says so", async () => {
    const calls: Pick<StepCall, "key" | "uncertain" | "attempt">[] = [];
    const inside = gate();
    const on = await resumable(async function* (turn) {
      const done = await turn.step("book", async ({ key, uncertain, attempt }) => {
        calls.push({ key, uncertain, attempt });
        if (turn.attempt === 1) {
          inside.open();
          await new Promise(() => {});
        }
        return "done";
      });
      yield turn.completed(done);
    });
    const id = await begin(on);
    await inside.opened;
    await on.crash();
    await on.restart();
    expect(await result(on, id)).toBe("done");
    const key = calls[0]?.key;
    expect(key).toMatch(/^[0-9a-f]{32}$/);
    expect(calls).toEqual([
      { key, uncertain: false, attempt: 1 },
      { key, uncertain: true, attempt: 1 },
    ]);
  });

  it("stores the task before the call, and the result before it continues", async () => {
    const seen: string[] = [];
    const on = harness(async function* (turn) {
      const of = async (): Promise<string> =>
        JSON.stringify((await on.store.features({ agent: "agent" }, turn.taskId, "step")).map(({ value }) => value));
      await turn.step("one", async () => {
        seen.push(`${(await on.store.head({ agent: "agent" }, turn.taskId))?.run?.turn}`);
        return "first result";
      });
      seen.push(await of());
      yield turn.completed();
    });
    await on.send("Go");
    expect(seen[0]).toBe("1");
    expect(seen[1]).toContain("first result");
  });

  it("has a key for each name, task, turn and scope", async () => {
    const keys = new Set<string>();
    const on = harness(async function* (turn) {
      for (const name of ["a", "b"]) {
        await turn.step(name, ({ key }) => void keys.add(key));
        await turn.step(name, ({ key }) => void keys.add(key), { scope: "task" });
      }
      yield turn.inputRequired("More?");
    });
    const { id } = await on.send("Go");
    expect(keys.size).toBe(4);
    // The steps of the task are remembered in its next turn.
    await on.send("Go", { message: { taskId: id } });
    expect(keys.size).toBe(6);
    await on.send("Go");
    expect(keys.size).toBe(10);
  });

  it("is remembered for a turn, or for its task", async () => {
    const called: string[] = [];
    const on = harness(async function* (turn) {
      const own = await turn.step("own", () => (called.push(`own ${turn.text}`), turn.text));
      const shared = await turn.step("shared", () => (called.push(`shared ${turn.text}`), turn.text), {
        scope: "task",
      });
      yield turn.inputRequired(`${own} ${shared}`);
    });
    const first = await on.send("one");
    expect(first.status.message?.parts[0]?.text).toBe("one one");
    const second = await on.send("two", { message: { taskId: first.id } });
    expect(second.status.message?.parts[0]?.text).toBe("two one");
    expect(called).toEqual(["own one", "shared one", "own two"]);
    // The results of an earlier turn no longer take space in the store.
    const rows = await on.store.features({ agent: "agent" }, first.id, "step");
    expect(rows.map(({ key }) => key).toSorted()).toEqual(["2.0", "task.0"]);
  });

  it("rejects a name that is used twice in a turn, also at the same time", async () => {
    for (const twice of [
      async (turn: Turn) => {
        await turn.step("book", () => 1);
        await turn.step("book", () => 2);
      },
      async (turn: Turn) => void (await Promise.all([turn.step("book", () => 1), turn.step("book", () => 2)])),
    ]) {
      const on = harness(async function* (turn) {
        yield turn.working();
        await twice(turn);
      });
      expect((await on.send("Go")).status.state).toBe("TASK_STATE_FAILED");
      expect(JSON.stringify(on.log.map(({ cause }) => String(cause)))).toContain("give each its own name");
    }
  });

  it("rejects names that are empty or too long, and values that are not functions", async () => {
    const texts: string[] = [];
    const on = harness(async function* (turn) {
      yield turn.working();
      for (const name of ["", "ä".repeat(129), 7]) {
        await turn.step(name as string, () => 1).catch((error: unknown) => texts.push(String(error)));
      }
      for (const retry of [{ attempts: 0 }, { attempts: NaN }, { attempts: 2, delay: -1 }]) {
        await turn.step("retry", () => 1, { retry }).catch((error: unknown) => texts.push(String(error)));
      }
      await turn.step("x", undefined as never).catch((error: unknown) => texts.push(String(error)));
      await turn.step("ä".repeat(128), () => 1);
    });
    expect((await on.send("Go")).status.state).toBe("TASK_STATE_COMPLETED");
    expect(texts.filter((each) => each.includes("1 to 256 bytes"))).toHaveLength(3);
    expect(texts.filter((each) => each.includes("retry.attempts"))).toHaveLength(3);
    expect(texts.at(-1)).toContain("has no function");
  });

  it("throws its function's error, stores nothing then, and may be called again", async () => {
    const on = harness(async function* (turn) {
      const fails = turn.step("book", () => Promise.reject(new Error("no room")));
      yield turn.working(await fails.catch((error: unknown) => String(error)), { keep: true });
      const uncertain = await turn.step("book", (call) => call.uncertain);
      yield turn.completed(`${uncertain}`);
    });
    const { history } = await on.send("Go");
    expect(history?.map(({ parts }) => parts[0]?.text)).toEqual(["Go", "Error: no room", "true"]);
  });

  it("retries as its options say, with growing delays", async () => {
    const clock = fakeClock();
    const calls: (readonly [number, boolean, number])[] = [];
    const start = clock.now();
    const on = harness(
      async function* (turn) {
        const done = await turn.step(
          "book",
          ({ attempt, uncertain }) => {
            calls.push([attempt, uncertain, clock.now() - start]);
            if (attempt < 4) throw new Error("busy");
            return "booked";
          },
          { retry: { attempts: 4, delay: 1000, maxDelay: 3000 } },
        );
        const error = await turn
          .step("never", () => Promise.reject(new Error("closed")), { retry: { attempts: 2, delay: 1 } })
          .catch((thrown: unknown) => String(thrown));
        yield turn.completed(`${done}, ${error}`);
      },
      { clock },
    );
    const { id } = await on.send("Go", { configuration: { returnImmediately: true } });
    await eventually(async () => {
      clock.advance(100);
      return (await on.get(id)).status.state === "TASK_STATE_COMPLETED";
    });
    expect((await on.get(id)).status.message?.parts[0]?.text).toBe("booked, Error: closed");
    expect(calls.map(([attempt, uncertain]) => [attempt, uncertain])).toEqual([
      [1, false],
      [2, true],
      [3, true],
      [4, true],
    ]);
    const times = calls.map(([, , time]) => time);
    expect(times.map((time, at) => time - (times[at - 1] ?? time))).toEqual([0, 1000, 2000, 3000]);
  });

  it("rejects results that are not JSON or too large", async () => {
    const circle: Record<string, unknown> = { list: [{}] };
    (circle["list"] as Record<string, unknown>[])[0] = { own: circle };
    let deep: unknown = [];
    for (let level = 0; level < 100_000; level += 1) deep = [deep];
    const bad: readonly (readonly [value: unknown, fault: string])[] = [
      [new Date(), "result is a Date"],
      [new Map([[1, 2]]), "result is a Map"],
      [{ order: { placed: [null, { at: new Date() }] } }, "result.order.placed[1].at is a Date"],
      [{ "the sum": 1n }, 'result["the sum"] is a bigint'],
      [{ rows: [undefined] }, "result.rows[0] is undefined"],
      [{ run: () => 1 }, "result.run is a function"],
      [{ at: Symbol("x") }, "result.at is a symbol"],
      [{ mean: NaN }, "result.mean is NaN"],
      [{ most: -Infinity }, "result.most is -Infinity"],
      [{ file: new Uint8Array(1) }, "result.file is a Uint8Array"],
      [{ cause: new Error("x") }, "result.cause is an Error"],
      [{ url: new URL("https://example.com") }, "result.url is a URL"],
      [new (class Thing {})(), "result is a Thing"],
      [circle, "result.list[0].own contains itself"],
      [deep, "result nests too deep"],
    ];
    const refused: string[] = [];
    const on = harness(async function* (turn) {
      yield turn.working();
      for (const [at, [value]] of bad.entries()) {
        await turn.step(`bad ${at}`, () => value as string).catch((error: Error) => refused.push(error.message));
      }
      await turn.step("big", () => "x".repeat(256 << 10)).catch((error: Error) => refused.push(error.message));
    });
    expect((await on.send("Go")).status.state).toBe("TASK_STATE_COMPLETED");
    const advice = "return plain objects, lists, strings, finite numbers, booleans or null";
    expect(refused.slice(0, -1)).toEqual(
      bad.map(([, fault], at) => `turn.step(): the result of "bad ${at}" is not JSON: ${fault}; ${advice}`),
    );
    expect(refused.at(-1)).toContain("takes 262146 bytes of at most 262144: store it elsewhere");
  });

  it("accepts the answer of an SDK whose members may be anything, and returns it with its type", async () => {
    interface Answer {
      readonly id: string;
      readonly raw: { readonly [name: string]: unknown };
    }
    class Page {
      readonly items = [1, 2];
      readonly next?: string;
    }
    const answer: Answer = { id: "a1", raw: { usage: { tokens: 7 }, model: "m" } };
    const seen: unknown[] = [];
    const on = harness(async function* (turn) {
      yield turn.working();
      const got: Answer = await turn.step("ask", () => Promise.resolve(answer));
      seen.push(got, (await turn.step("page", () => new Page())).items);
    });
    expect((await on.send("Go")).status.state).toBe("TASK_STATE_COMPLETED");
    expect(seen).toEqual([answer, [1, 2]]);
  });

  it("remembers every JSON value, and undefined, unchanged", async () => {
    const values = [
      null,
      false,
      0,
      "",
      [],
      {},
      { a: [1, { b: "ä \u{1f600} \ud800 \n \u0000" }] },
      { gone: undefined },
      undefined,
    ];
    const stored: unknown[][] = [];
    const over = gate();
    const on = await resumable(async function* (turn) {
      const got: unknown[] = [];
      for (const [at, value] of values.entries()) got.push(await turn.step(`${at}`, () => value as null));
      stored.push(got);
      yield turn.working();
      over.open();
      if (turn.attempt === 1) await new Promise(() => {});
    });
    const id = await begin(on);
    await over.opened;
    await on.crash();
    await on.restart();
    expect(await result(on, id)).toBe("TASK_STATE_COMPLETED");
    expect(stored[0]).toEqual(values);
    expect(stored[1]).toEqual(values);
  });

  it("returns a copy, so changes to it are not remembered", async () => {
    const own = { list: [1] };
    const on = harness(async function* (turn) {
      const got = await turn.step("x", () => own, { scope: "task" });
      got.list.push(2);
      yield turn.inputRequired(JSON.stringify(got));
    });
    const { id } = await on.send("Go");
    const again = await on.send("Go", { message: { taskId: id } });
    expect(again.status.message?.parts[0]?.text).toBe('{"list":[1,2]}');
    expect(own).toEqual({ list: [1] });
  });

  it("remembers hundreds of steps of a turn in few rows, and rejects more than a turn may have", async () => {
    const quotes = '"'.repeat(100_000);
    const got: unknown[] = [];
    const over = gate();
    let called = 0;
    const on = await resumable(async function* (turn) {
      for (let step = 0; step < 300; step += 1) {
        got.push(await turn.step(`step ${step}`, () => (called += 1)));
      }
      got.push(await turn.step("quotes", () => quotes));
      got.push(await turn.step("large 1", () => "ä".repeat(100_000)));
      got.push(await turn.step("large 2", () => "x".repeat(255_000)));
      got.push(await turn.step("large 3", () => "y".repeat(255_000)));
      const error = await turn.step("large 4", () => "z".repeat(255_000)).catch((thrown: unknown) => String(thrown));
      yield turn.working(error);
      over.open();
      if (turn.attempt === 1) await new Promise(() => {});
      yield turn.completed(error);
    });
    const id = await begin(on);
    await over.opened;
    const rows = await on.store.features({ agent: "/" }, id, "step");
    expect(rows.length).toBeLessThan(128);
    await on.crash();
    await on.restart();
    expect(await result(on, id)).toContain("all results of a turn take at most 1048576");
    expect(called).toBe(300);
    expect(got.slice(304)).toEqual(got.slice(0, 304));
  });

  it("works in generators of turn.all(), and in Promise.all()", async () => {
    let calls = 0;
    const on = harness(async function* (turn) {
      async function* part(name: string) {
        // The order of these steps does not matter.
        const got = await turn.step(`book ${name}`, () => ((calls += 1), name));
        yield turn.artifact({ parts: [text(got)] });
        return got;
      }
      const [a, b] = yield* turn.all([part("a"), part("b")]);
      const [c, d] = await Promise.all([turn.step("c", () => "c"), turn.step("d", () => "d")]);
      yield turn.completed([a, b, c, d].join(" "));
    });
    expect((await on.send("Go")).status.message?.parts[0]?.text).toBe("a b c d");
    expect(calls).toBe(2);
  });

  it("that nothing awaits does not end the process when its task is canceled", async () => {
    const begun = gate();
    const aborted = gate();
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    try {
      const on = harness(async function* (turn) {
        yield turn.working();
        void turn.step("late", async ({ signal }) => {
          begun.open();
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          aborted.open();
        });
        await aborted.opened;
      });
      const { id } = await on.send("Go", { configuration: { returnImmediately: true } });
      await begun.opened;
      await on.cancel(id);
      await aborted.opened;
      await on.engine.close();
      // Node reports unhandled rejections after the microtasks.
      await new Promise((resolve) => setImmediate(resolve));
      expect(unhandled).toEqual([]);
    } finally {
      process.off("unhandledRejection", note);
    }
  });

  it("is abandoned when its task is canceled: its result is not stored, and the function is told", async () => {
    const inside = gate();
    const ended: unknown[] = [];
    const on = harness(async function* (turn) {
      try {
        await turn.step("book", async ({ signal }) => {
          inside.open();
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          return "booked";
        });
        yield turn.completed();
      } catch (error) {
        ended.push((error as { kind?: string }).kind);
        throw error;
      }
    });
    const { id } = await on.send("Go", { configuration: { returnImmediately: true } });
    await inside.opened;
    await on.cancel(id);
    await eventually(() => ended.length === 1);
    expect(ended).toEqual(["canceled"]);
    const rows = await on.store.features({ agent: "agent" }, id, "step");
    expect(rows.map(({ key }) => key)).toEqual(["1.begun"]);
  });

  it("does not begin, and stores no result, in a process that has lost its lease", async () => {
    const store = memoryStore();
    const goOn = gate();
    const called: string[] = [];
    const errors: string[] = [];
    const run = (name: string): OnMessage =>
      async function* (turn) {
        try {
          const got = await turn.step("one", async () => {
            called.push(`${name} one`);
            if (name === "first") await goOn.opened;
            return name;
          });
          await turn.step("two", () => void called.push(`${name} two`));
          yield turn.completed(got);
        } catch (error) {
          errors.push(`${name} ${(error as { kind?: string }).kind}`);
          throw error;
        }
      };
    const behaviour = { resumable: true };
    const first = harness(run("first"), { store, behaviour, lease: { holder: "first" } });
    const { id } = await first.send("Go", { configuration: { returnImmediately: true } });
    await eventually(() => called.length === 1);
    // The other process considers the first process dead.
    const lease = { holder: "second", isGone: (other: string) => other === "first" };
    const second = harness(run("second"), { store, behaviour, lease });
    await eventually(async () => (await second.get(id)).status.state === "TASK_STATE_COMPLETED");
    goOn.open();
    await eventually(() => errors.length === 1);
    expect((await second.get(id)).status.message?.parts[0]?.text).toBe("second");
    expect(called).toEqual(["first one", "second one", "second two"]);
    expect(errors).toEqual(["first leaseLost"]);
  });

  it("counts as progress: a process may die after each step, and attempts are counted anew", async () => {
    const steps = 12;
    let called = 0;
    const on = await resumable(async function* (turn) {
      for (let step = 0; step < steps; step += 1) {
        const before = called;
        await turn.step(`${step}`, () => (called += 1));
        if (called > before) await new Promise(() => {});
      }
      yield turn.completed("done");
    });
    const id = await begin(on);
    for (let life = 1; life <= steps; life += 1) {
      await eventually(() => called === life);
      await on.clock.settle();
      await on.crash();
      await on.restart();
    }
    expect(await result(on, id)).toBe("done");
    expect(called).toBe(steps);
  });

  it("that ends the process on each call suspends its task, after the configured attempts", async () => {
    let called = 0;
    const on = await resumable(async function* (turn) {
      await turn.step("fine", () => 1);
      yield turn.working();
      await turn.step("fatal", async () => {
        called += 1;
        await new Promise(() => {});
      });
    });
    const id = await begin(on);
    for (let life = 0; life < 4; life += 1) {
      if (life < 3) await eventually(() => called > life);
      await on.crash();
      await on.restart();
    }
    await on.clock.settle();
    expect((await on.client.getTask(id)).status.state).toBe("TASK_STATE_WORKING");
    expect(called).toBe(3);
  });
});
