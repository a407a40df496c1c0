import { describe, expect, it } from "vitest";
import { A2AError } from "@parley/a2a/internal/model/index";
import type { Turn } from "@parley/a2a/internal/protocol/index";
import { memoryStore, type Store } from "../../src/store/index.ts";
import { fakeClock } from "@parley/testing";
import { bound, eventually, gate, harness } from "./support.ts";
import { immediately, keysOf, macrotasks, minute, over, waits } from "./waiting.ts";

/** Tests steps and waits during stops, crashes and failures of the store (docs/decisions/waiting.md). */

/** Returns the texts of the history. */
async function said(on: Pick<ReturnType<typeof harness>, "get">, id: string): Promise<readonly unknown[]> {
  return (await on.get(id)).history?.map(({ parts }) => parts[0]?.text) ?? [];
}

/** Runs consecutive processes, each of which knows that the previous ones have ended. */
function lives(onMessage: Parameters<typeof harness>[0], behaviour: { resumable?: boolean } = {}) {
  const clock = fakeClock();
  const store = memoryStore();
  const gone = new Set<string>();
  const start = (holder: string) => {
    const cut: Store = {
      ...bound(store),
      append: (items) => (gone.has(holder) ? Promise.reject(new A2AError("Unavailable")) : store.append(items)),
    };
    return harness(onMessage, {
      clock,
      store: cut,
      behaviour,
      lease: { holder, isGone: (other: string) => gone.has(other) },
    });
  };
  return { clock, start, gone };
}

describe("a step in progress", () => {
  it("is awaited if the turn begins to wait, and its result is stored", async () => {
    const clock = fakeClock();
    const slow = gate();
    const begun = gate();
    const calls: boolean[] = [];
    const on = harness(
      async function* (turn) {
        const mail = turn.step("mail", async ({ uncertain }) => {
          calls.push(uncertain);
          begun.open();
          await slow.opened;
          return "sent";
        });
        await begun.opened;
        yield* turn.sleep(minute);
        yield turn.completed(await mail);
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    await eventually(
      async () => (await on.store.head({ agent: "agent" }, id))?.checkpoint?.includes("waiting") === true,
    );
    // The sleep ends earlier than the step.
    clock.advance(2 * minute);
    await on.engine.round();
    expect(calls).toEqual([false]);
    slow.open();
    expect(await over(on, id)).toBe("COMPLETED sent");
    expect(calls).toEqual([false]);
  });

  it("does not keep a task from failing by its idleTimeout", async () => {
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        const begun = gate();
        void turn.step("never", () => (begun.open(), new Promise<void>(() => {})));
        await begun.opened;
        yield* turn.sleep(minute);
        yield turn.completed();
      },
      { clock, behaviour: { idleTimeout: 5 * minute } },
    );
    const { id } = await on.send("Go", immediately);
    await eventually(
      async () => (await on.store.head({ agent: "agent" }, id))?.checkpoint?.includes("waiting") === true,
    );
    for (let at = 0; at < 6; at += 1) {
      clock.advance(minute);
      await on.engine.round();
    }
    expect(await over(on, id)).toContain("FAILED");
  });

  it("does not begin in a finally while the turn waits: it throws TurnAborted, and the task does not fail", async () => {
    const clock = fakeClock();
    const released: string[] = [];
    const on = harness(
      async function* (turn) {
        try {
          yield turn.working();
          yield* turn.sleep(minute);
        } finally {
          await turn.step("release", () => void released.push(`attempt ${turn.attempt}`));
        }
        yield turn.completed("Released");
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    expect(released).toEqual([]);
    clock.advance(minute);
    expect(await over(on, id)).toBe("COMPLETED Released");
    expect(released).toEqual(["attempt 2"]);
  });
});

describe("an event that a later attempt does not repeat", () => {
  it("is not stored again with each wait", async () => {
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        yield turn.working(turn.attempt === 1 ? "x" : "y", { keep: true });
        for (let at = 0; at < 4; at += 1) yield* turn.sleep(minute);
        yield turn.completed();
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    for (let at = 1; at <= 4; at += 1) {
      await eventually(async () => (await keysOf(on, id))[0] === `1.s#${at}`);
      await waits(on, id);
      clock.advance(minute);
    }
    await over(on, id);
    expect(await said(on, id)).toEqual(["Go", "x", "y"]);
  });

  it("is not stored again if generators race and the order of chunks changes", async () => {
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        yield turn.artifact({ artifactId: "log", parts: [{ text: "0" }], open: true });
        const names = turn.attempt === 1 ? ["b", "a"] : ["a", "b"];
        for (const name of names) yield turn.append("log", [{ text: name }]);
        for (let at = 0; at < 3; at += 1) yield* turn.sleep(minute);
        yield turn.append("log", [{ text: "." }], { last: true });
        yield turn.completed();
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    for (let at = 1; at <= 3; at += 1) {
      await eventually(async () => (await keysOf(on, id))[0] === `1.s#${at}`);
      await waits(on, id);
      clock.advance(minute);
    }
    await over(on, id);
    const { artifacts } = await on.get(id);
    expect(artifacts?.map(({ parts }) => parts.map(({ text }) => text).join(""))).toEqual(["0ab."]);
    const log = await on.store.read({ agent: "agent" }, id, { after: 0, limit: 100, kinds: ["artifactUpdate"] });
    expect(log?.records).toHaveLength(6);
  });

  it("is recognized before and after a checkpoint", async () => {
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        if (turn.checkpoint === undefined) {
          yield turn.working("first", { keep: true });
          yield turn.working(turn.attempt === 1 ? "x" : "y", { keep: true });
          yield* turn.sleep(minute);
          yield turn.saveCheckpoint("half");
        }
        yield turn.working(turn.attempt === 2 ? "u" : "v", { keep: true });
        for (let at = 0; at < 3; at += 1) yield* turn.sleep(minute);
        yield turn.completed();
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    for (let at = 1; at <= 4; at += 1) {
      await eventually(async () => (await keysOf(on, id))[0] === `1.s#${at}`);
      await waits(on, id);
      clock.advance(minute);
    }
    await over(on, id);
    expect(await said(on, id)).toEqual(["Go", "first", "x", "y", "u", "v"]);
  });
});

describe("a store that cannot be read for a moment", () => {
  it.each(["step", "wait", "repeated event", "history", "history, and throws an error of its own"])(
    "does not fail a task whose woken function reaches a %s",
    async (kind) => {
      const clock = fakeClock();
      const shared = memoryStore();
      let failures = 0;
      let isAwake = false;
      const unlessAway = <T>(isAsked: boolean, read: () => Promise<T>): Promise<T> => {
        if (!isAwake || failures > 0 || !isAsked) return read();
        failures += 1;
        return Promise.reject(new A2AError("Unavailable", "The database is away"));
      };
      const store: Store = {
        ...bound(shared),
        features: (scope, id, feature) =>
          unlessAway((kind === "step" || kind === "wait") && feature === "step", () =>
            shared.features(scope, id, feature),
          ),
        conversation: (context, wanted) =>
          unlessAway(kind.startsWith("history"), () => shared.conversation(context, wanted)),
        read: (scope, id, options) => unlessAway(kind === "repeated event", () => shared.read(scope, id, options)),
      };
      const on = harness(
        async function* (turn) {
          isAwake = turn.attempt > 1;
          yield turn.working();
          if (kind === "step") await turn.step("one", () => 1);
          if (kind === "history") await turn.context.history();
          else if (kind.startsWith("history"))
            await turn.context.history().catch((cause: unknown) => {
              throw new Error("No history", { cause });
            });
          // The retry must not get the old error.
          yield* turn.sleep(minute);
          yield turn.completed(`attempt ${turn.attempt}`);
        },
        { clock, store },
      );
      const { id } = await on.send("Go", immediately);
      await waits(on, id);
      clock.advance(minute);
      await eventually(() => failures === 1);
      await eventually(async () => {
        clock.advance(10_000);
        await on.engine.round();
        return (await on.get(id)).status.state !== "TASK_STATE_WORKING";
      });
      expect(await over(on, id)).toBe("COMPLETED attempt 3");
    },
  );
});

describe("a store that cannot be read at the end of a turn", () => {
  it("does not fail a task whose next message waits: its turn comes later", async () => {
    const clock = fakeClock();
    const shared = memoryStore();
    const [first, begun] = [gate(), gate()];
    let failures = 0;
    const store: Store = {
      ...bound(shared),
      read: (scope, id, options) => {
        if (failures > 0 || options.kinds?.join() !== "message") return shared.read(scope, id, options);
        failures += 1;
        return Promise.reject(new A2AError("Unavailable", "The database is away"));
      },
    };
    const on = harness(
      async function* (turn) {
        yield turn.working();
        begun.open();
        if (turn.number === 1) await first.opened;
        else yield turn.completed(`turn ${turn.number}`);
      },
      { clock, store, behaviour: { resumable: true } },
    );
    const { id } = await on.send("Go", immediately);
    await begun.opened;
    await on.send("More", { ...immediately, message: { taskId: id } });
    first.open();
    await eventually(() => failures === 1);
    await eventually(async () => {
      clock.advance(10_000);
      await on.engine.round();
      return (await on.get(id)).status.state !== "TASK_STATE_WORKING";
    });
    expect(await over(on, id)).toBe("COMPLETED turn 2");
  });
});

describe("a stop of the server", () => {
  it("hands over a task that was woken and has not reached its wait, although its agent is not resumable", async () => {
    const hangs = gate();
    const { clock, start, gone } = lives(async function* (turn) {
      if (turn.attempt === 2) {
        hangs.open();
        await new Promise(() => {});
      }
      yield* turn.sleep(minute);
      yield turn.completed(`attempt ${turn.attempt}`);
    });
    const first = start("first");
    const { id } = await first.send("Go", immediately);
    await waits(first, id);
    clock.advance(minute);
    await hangs.opened;
    await first.engine.close();
    gone.add("first");
    expect(await over(start("second"), id)).toBe("COMPLETED attempt 3");
  });
});

describe("a crash", () => {
  it("fails a task of an agent that is not resumable, even if an earlier turn left a wait", async () => {
    let calls = 0;
    const working = gate();
    const { clock, start, gone } = lives(async function* (turn) {
      calls += 1;
      if (turn.number === 1) {
        // This wait never ends, because the turn asks a question instead.
        const wait = turn.waitFor("never");
        await wait.next();
        return yield turn.inputRequired("Which city?");
      }
      yield turn.working();
      working.open();
      await new Promise(() => {});
    });
    const first = start("first");
    const { id } = await first.send("Go");
    await first.send("Basel", { ...immediately, message: { taskId: id } });
    await working.opened;
    expect(await keysOf(first, id)).toHaveLength(1);
    gone.add("first");
    clock.advance(minute);
    expect(await over(start("second"), id)).toContain("FAILED The server was interrupted");
    expect(calls).toBe(2);
  });
});

describe("a task on trial, which may have caused a crash", () => {
  it("runs alone: no other task is woken meanwhile, whose crash would count against it", async () => {
    const attempts = { suspect: 0, sleeper: 0 };
    const { clock, start, gone } = lives(
      async function* (turn) {
        if (turn.text === "sleeper") {
          attempts.sleeper = turn.attempt;
          yield* turn.sleep(minute);
          yield turn.completed("Awake");
        }
        yield turn.working();
        attempts.suspect = turn.attempt;
        await new Promise(() => {});
      },
      { resumable: true },
    );
    const first = start("process 1");
    await first.send("suspect", immediately);
    const { id } = await first.send("sleeper", immediately);
    await waits(first, id);
    for (const life of [1, 2]) {
      await eventually(() => attempts.suspect === life);
      gone.add(`process ${life}`);
      if (life === 2) clock.advance(minute);
      start(`process ${life + 1}`);
    }
    await eventually(() => attempts.suspect === 3);
    await macrotasks();
    expect(attempts.sleeper).toBe(1);
    const last = start("process 3 again");
    // The trial ends after five seconds.
    await eventually(async () => {
      clock.advance(1000);
      await macrotasks(5);
      return (await last.get(id)).status.state === "TASK_STATE_COMPLETED";
    });
  });
});

describe("a long loop of waits with checkpoints", () => {
  it("does not keep a result that it no longer reaches", async () => {
    const events = 200;
    let most = 0;
    const on = harness(async function* (turn) {
      for (let at = (turn.checkpoint as number | undefined) ?? 0; at < events; at += 1) {
        const data = yield* turn.waitFor("reading");
        expect(data).toHaveLength(8 << 10);
        yield turn.saveCheckpoint(at + 1);
      }
      yield turn.completed("All read");
    });
    const { id } = await on.send("Go", immediately);
    for (let at = 0; at < events; at += 1) {
      await on.engine.signal(id, "reading", "x".repeat(8 << 10));
      await eventually(async () => (await keysOf(on, id)).every((key) => !key.startsWith("event.")));
      most = Math.max(most, (await keysOf(on, id, "step")).length);
    }
    expect(await over(on, id)).toBe("COMPLETED All read");
    expect(most).toBeLessThan(4);
  });

  it("uses memory for its results only while it runs", async () => {
    const held: number[] = [];
    const on = harness(
      async function* (turn: Turn) {
        await turn.step("large", () => "x".repeat(200 << 10));
        yield turn.working("large");
        held.push(turn.attempt);
        await turn.flush();
        yield* turn.waitFor("go");
        yield turn.completed();
      },
      { limits: { totalBytes: 300 << 10, taskBytes: 100 << 10, eventBytes: 50 << 10 } },
    );
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    // The waiting task holds no memory of the message budget.
    const large = await on.send("x".repeat(40 << 10), immediately);
    await waits(on, large.id);
    await on.engine.signal(id, "go");
    expect(await over(on, id)).toBe("COMPLETED");
  });
});

describe("the result of a step", () => {
  it("is rejected if it has holes, which would come back as null", async () => {
    const on = harness(async function* (turn) {
      yield turn.working();
      // oxlint-disable-next-line no-sparse-arrays
      await turn.step("holes", () => [, 1] as unknown as number[]);
    });
    expect((await on.send("Go")).status.state).toBe("TASK_STATE_FAILED");
    expect(JSON.stringify(on.log.map(({ cause }) => String(cause)))).toContain("is not JSON");
  });
});
