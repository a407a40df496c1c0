import { describe, expect, it } from "vitest";
import type { AgentYield, Turn } from "@parley/a2a/internal/protocol/index";
import { fakeClock } from "@parley/testing";
import { eventually, gate, harness } from "./support.ts";
import { immediately, keysOf, macrotasks, minute, over, waits } from "./waiting.ts";

/** Tests how the engine recognizes waits in each attempt of a turn (docs/decisions/waiting.md). */

const week = 7 * 24 * 60 * minute;

describe("waits in turn.all() in another order after a restart", () => {
  /** Runs two generators. The step of one generator takes longer in the first attempt, and later attempts remember all steps. */
  function racing(other: (turn: Turn) => AsyncGenerator<AgentYield, void, void>) {
    const slow = gate();
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        async function* remind() {
          await turn.step("mail", () => slow.opened);
          yield* turn.sleep(minute);
          yield turn.working("Reminder", { keep: true });
        }
        async function* expire() {
          await turn.step("crm", () => {});
          yield* other(turn);
          yield turn.rejected("Too late");
        }
        yield* turn.all([remind(), expire()]);
      },
      { clock },
    );
    return { on, clock, slow };
  }

  it("are not confused: a week is not over after a minute", async () => {
    const { on, clock, slow } = racing((turn) => turn.sleep(week));
    const { id } = await on.send("Go", immediately);
    await eventually(async () => (await keysOf(on, id)).length === 1);
    slow.open();
    await waits(on, id);
    clock.advance(minute);
    await eventually(
      async () => (await on.get(id)).history?.some(({ parts }) => parts[0]?.text === "Reminder") === true,
    );
    await waits(on, id);
    expect((await on.get(id)).status.state).toBe("TASK_STATE_WORKING");
    clock.advance(week - minute);
    expect(await over(on, id)).toBe("REJECTED Too late");
    expect((await on.get(id)).history?.map(({ parts }) => parts[0]?.text)).toEqual(["Go", "Reminder", "Too late"]);
  });

  it("have one row each after each call of the function", async () => {
    const { on, clock, slow } = racing(async function* (turn) {
      yield* turn.waitFor("approved");
    });
    const { id } = await on.send("Go", immediately);
    await eventually(async () => (await keysOf(on, id)).length === 1);
    slow.open();
    await waits(on, id);
    expect(await keysOf(on, id)).toHaveLength(2);
    await on.engine.signal(id, "approved");
    expect(await over(on, id)).toBe("REJECTED Too late");
    clock.advance(minute);
  });

  it("need a key to be recognized if their times are computed", async () => {
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        async function* first() {
          if (turn.attempt === 1) await Promise.resolve().then(() => Promise.resolve());
          yield* turn.sleep(minute + turn.attempt, { key: "first" });
          yield turn.working("first", { keep: true });
        }
        async function* second() {
          yield* turn.sleep(2 * minute + turn.attempt, { key: "second" });
          yield turn.working("second", { keep: true });
        }
        yield* turn.all([second(), first()]);
        yield turn.completed(`attempt ${turn.attempt}`);
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    clock.advance(minute + 1);
    await eventually(async () => (await keysOf(on, id)).length === 1);
    await waits(on, id);
    clock.advance(minute);
    expect(await over(on, id)).toBe("COMPLETED attempt 3");
    expect((await on.get(id)).history?.map(({ parts }) => parts[0]?.text)).toEqual([
      "Go",
      "first",
      "second",
      "attempt 3",
    ]);
  });

  it("start over if their times are computed without a key, and the log says so", async () => {
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        async function* sleeps() {
          yield* turn.sleep(minute * turn.attempt);
          yield turn.working("slept");
        }
        yield* turn.all([sleeps()]);
        yield turn.completed(`attempt ${turn.attempt}`);
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    clock.advance(minute);
    await eventually(() => on.log.some(({ level }) => level === "warn"));
    expect(on.log.find(({ level }) => level === "warn")?.message).toContain("give each wait a key");
    await waits(on, id);
    expect(await keysOf(on, id)).toHaveLength(1);
  });
});

describe("waits are matched", () => {
  it("by their order outside of turn.all(), so a computed time is not counted again", async () => {
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        yield* turn.sleep(minute + turn.attempt);
        if (turn.attempt > 1) yield turn.artifact({ parts: [{ text: "another id" }] });
        yield* turn.waitFor("word", { timeout: minute * turn.attempt });
        yield turn.completed(`attempt ${turn.attempt}`);
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    clock.advance(minute + 1);
    await eventually(async () => (await keysOf(on, id)).some((key) => key.includes("word")));
    await waits(on, id);
    clock.advance(2 * minute);
    expect(await over(on, id)).toBe("COMPLETED attempt 3");
  });

  it("from the place where the function begins to wait, so an earlier checkpoint changes nothing", async () => {
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        const later = turn.sleep(minute);
        yield turn.saveCheckpoint(turn.attempt);
        yield* later;
        yield turn.completed(`attempt ${turn.attempt}`);
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    clock.advance(minute);
    expect(await over(on, id)).toBe("COMPLETED attempt 2");
  });

  it("after a checkpoint that was saved in turn.all()", async () => {
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        const from = (turn.checkpoint as number | undefined) ?? 1;
        async function* loop() {
          for (let at = from; at <= 3; at += 1) {
            yield* turn.sleep(minute);
            yield turn.working(`${at}`, { keep: true });
            yield turn.saveCheckpoint(at + 1);
          }
        }
        yield* turn.all([loop(), turn.waitFor("stop", { timeout: week })]);
        yield turn.completed(`attempt ${turn.attempt}`);
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    for (let at = 1; at <= 3; at += 1) {
      await waits(on, id);
      expect(await keysOf(on, id)).toHaveLength(2);
      clock.advance(minute);
      await eventually(async () => (await on.get(id)).history?.length === at + 1);
    }
    await waits(on, id);
    await on.engine.signal(id, "stop");
    expect(await over(on, id)).toBe("COMPLETED attempt 5");
  });

  it("by a key, which may be neither repeated nor too long", async () => {
    for (const [keys, said] of [
      [["a", "a"], "a wait with the key"],
      [["x".repeat(257)], "1 to 256 bytes"],
    ] as const) {
      const on = harness(async function* (turn) {
        for (const key of keys) yield* turn.waitFor("word", { key, timeout: 0 });
        yield turn.completed();
      });
      expect((await on.send("Go")).status.state).toBe("TASK_STATE_FAILED");
      expect(JSON.stringify(on.log.map(({ cause }) => String(cause)))).toContain(said);
    }
  });
});

describe("a wait that the function no longer reaches", () => {
  it("is forgotten, wakes nothing, and takes no space", async () => {
    const clock = fakeClock();
    let calls = 0;
    const on = harness(
      async function* (turn) {
        calls += 1;
        if (turn.attempt === 1) yield* turn.sleep(minute);
        yield turn.completed(JSON.stringify(yield* turn.waitFor("approved")));
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    clock.advance(minute);
    await eventually(() => calls === 2);
    await waits(on, id);
    await macrotasks();
    expect(calls).toBe(2);
    expect(await keysOf(on, id)).toEqual([expect.stringContaining("approved")]);
    await on.engine.signal(id, "approved", "yes");
    expect(await over(on, id)).toBe('COMPLETED "yes"');
  });

  it("does not use up the 64 waits of a turn", async () => {
    const clock = fakeClock();
    const on = harness(
      async function* (turn) {
        // The function is nondeterministic, because each attempt waits for a different event.
        if (turn.attempt < 70) yield* turn.waitFor(`word ${turn.attempt}`, { timeout: minute });
        yield turn.completed(`attempt ${turn.attempt}`);
      },
      { clock },
    );
    const { id } = await on.send("Go", immediately);
    for (let attempt = 1; attempt < 70; attempt += 1) {
      await eventually(async () => (await keysOf(on, id)).some((key) => key.includes(`word ${attempt}#`)));
      await waits(on, id);
      clock.advance(minute);
    }
    expect(await over(on, id)).toBe("COMPLETED attempt 70");
  });
});

describe("a wait after a question", () => {
  it.each([
    [
      "of the same function",
      async function* (turn: Turn) {
        yield turn.inputRequired("Which city?");
        yield* turn.sleep(week);
        yield turn.rejected("Too late.");
      },
    ],
    [
      "of another generator of turn.all()",
      async function* (turn: Turn) {
        async function* asks() {
          yield turn.inputRequired("Which city?");
        }
        yield* turn.all([asks(), turn.waitFor("never")]);
        yield turn.rejected("Too late.");
      },
    ],
  ])("%s is rejected with an error in the log, and the answer starts the next turn", async (_, asks) => {
    const on = harness(async function* (turn) {
      if (turn.number === 1) yield* asks(turn);
      else yield turn.completed(`turn ${turn.number}: ${turn.text}`);
    });
    const { id, status } = await on.send("Go");
    expect(status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    await on.send("Basel", { message: { taskId: id } });
    expect(await over(on, id)).toBe("COMPLETED turn 2: Basel");
    expect(await keysOf(on, id)).toEqual([]);
    const errors = on.log.filter(({ level }) => level === "error");
    expect(errors).toHaveLength(1);
    expect(errors[0]?.message).toContain("A wait after turn.inputRequired()");
  });
});
