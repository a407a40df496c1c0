import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import type { Clock } from "../../src/base/index.ts";
import type { AnyExtension, ExtensionKind, ExtensionTurn } from "../../src/protocol/index.ts";
import { fakeClock } from "@parley/testing";
import { eventually, harness, type OnMessage } from "../../../server/test/engine/support.ts";

/* Hooks that return promises have a time limit (`limits.hookTimeout`), so that a hanging extension cannot block calls or tasks. */

const uri = "urn:example:slow";
const active = { extensions: [uri] };
const limit = 5_000;

/** A promise that never settles. */
const never = new Promise<never>(() => {});

/** Serves an agent with an extension whose `hook` never settles. */
function hanging(kind: ExtensionKind, hook: Partial<AnyExtension> & object, limits = { hookTimeout: limit }) {
  const clock = fakeClock();
  let timers = 0;
  const counting: Clock = {
    ...clock,
    now: () => clock.now(),
    elapsed: () => clock.elapsed(),
    after(ms, run) {
      if (ms === limit) timers += 1;
      return clock.after(ms, run);
    },
  };
  const agent: OnMessage = async function* (turn) {
    const own = (turn as { ext(extension: AnyExtension): unknown }).ext({ uri });
    yield turn.artifact({ parts: [{ text: own === undefined ? "without" : "with" }] });
  };
  const made = harness(agent, { clock: counting, limits, extensions: [{ uri, kind, ...hook }] });
  return { ...made, clock, timers: () => timers };
}

/** Lets the hook's time limit pass, once the server has set the timer. */
async function pass({ clock, timers }: { readonly clock: { advance(ms: number): void }; timers(): number }) {
  await eventually(() => timers() === 1);
  clock.advance(limit);
}

describe("onAccept that never settles", () => {
  test("of a data extension is left out and logged", async () => {
    const made = hanging("data", { onAccept: () => never });
    const sent = made.send("go", active);
    await pass(made);
    const task = await sent;
    expect([task.status.state, task.history?.[0]?.parts[0]?.text]).toEqual(["TASK_STATE_COMPLETED", "go"]);
    expect(made.log).toMatchObject([{ level: "warn", extension: uri, hook: "onAccept" }]);
  });

  test("of another kind rejects the message, like one that throws", async () => {
    const made = hanging("profile", { onAccept: () => never });
    const sent = made.send("go", active).catch((error: unknown) => error);
    await pass(made);
    expect(await sent).toMatchObject({
      code: "InternalError",
      cause: { message: `onAccept of the extension ${uri} failed: Error: It has not settled within ${limit} ms` },
    });
  });

  test("does not set rows after its timeout", async () => {
    let late: unknown;
    let go = (): void => {};
    const made = hanging("data", {
      async onAccept(input, { rows }) {
        await new Promise<void>((resolve) => (go = resolve));
        try {
          rows.set("k", "1");
        } catch (thrown) {
          late = thrown;
        }
        return input;
      },
    });
    const sent = made.send("go", active);
    await pass(made);
    const { id } = await sent;
    go();
    await eventually(() => late !== undefined);
    expect(late).toBeInstanceOf(TypeError);
    expect(await made.store.features({ agent: "agent", owner: '[null,"anonymous"]' }, id, uri)).toEqual([]);
  });

  test("times out after 30 seconds by default, and never with Infinity", async () => {
    const byDefault = hanging("data", { onAccept: () => never }, {} as never);
    let done = false;
    const sent = byDefault.send("go", active).then(() => (done = true));
    await eventually(() => {
      byDefault.clock.advance(1_000);
      return done;
    });
    await sent;
    expect(byDefault.log).toMatchObject([{ cause: new Error("It has not settled within 30000 ms") }]);
    const unlimited = hanging("data", { onAccept: async (input) => input }, { hookTimeout: Infinity });
    expect(await unlimited.send("go", active)).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" } });
  });
});

describe("a promise of onTurnStart that never settles", () => {
  const onTurnStart = (turn: ExtensionTurn): object => {
    turn.waitFor(never);
    return {};
  };

  test("of a data extension: the agent is called without the extension, with a log line", async () => {
    const ended: string[] = [];
    const hook = { onTurnStart, onFinish: () => ({ finished: true }), onTurnEnd: () => void ended.push("end") };
    const made = hanging("data", hook);
    const sent = made.send("go", active);
    await pass(made);
    const task = await sent;
    expect([task.status.state, task.artifacts?.[0]?.parts[0]?.text]).toEqual(["TASK_STATE_COMPLETED", "without"]);
    expect(made.log).toMatchObject([{ level: "warn", extension: uri, hook: "onTurnStart" }]);
    // The server still calls `onTurnEnd`, so that the extension can clean up.
    expect(ended).toEqual(["end"]);
  });

  test("of another kind: the task fails, as if the hook had thrown", async () => {
    const made = hanging("profile", { onTurnStart });
    const sent = made.send("go", active);
    await pass(made);
    const task = await sent;
    expect([task.status.state, task.artifacts]).toEqual(["TASK_STATE_FAILED", undefined]);
    expect(made.log.map(({ cause }) => String((cause as Error | undefined)?.cause ?? cause)).join()).toContain(
      `It has not settled within ${limit} ms`,
    );
  });
});

test.each(["data", "profile"] as const)("onTurnEnd that never settles, of kind %s, is logged", async (kind) => {
  const made = hanging(kind, { onTurnEnd: () => never });
  expect(await made.send("go", active)).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" } });
  await pass(made);
  await eventually(() => made.log.length > 0);
  expect(made.log).toMatchObject([{ extension: uri, hook: "onTurnEnd" }]);
});

test("hooks that do not return a promise have no timer", async () => {
  const made = hanging("profile", {
    onActivate: () => true,
    onAccept: (input) => input,
    onTurnStart: () => ({}),
    onAppend: (event) => event,
    onDeliver: (event) => event,
    onFinish: () => ({ finished: true }),
    onTurnEnd: () => {},
  });
  expect(await made.send("go", active)).toMatchObject({ artifacts: [{ parts: [{ text: "with" }] }] });
  expect(made.timers()).toBe(0);
});

test("the timer of a hook ends with it", async () => {
  const made = hanging("profile", { onAccept: async (input) => input });
  const task = await made.send("go", active);
  made.clock.advance(10 * limit);
  expect([made.timers(), task.status.state, made.log]).toEqual([1, "TASK_STATE_COMPLETED", []]);
});

describe("promises of other libraries", () => {
  /** A promise of this constructor is not an instance of this realm's `Promise`. */
  const foreign = runInNewContext("Promise") as PromiseConstructor;

  test("onAccept: its later result is used", async () => {
    const made = hanging("profile", {
      onAccept: ({ message }) => foreign.resolve({ message: { ...message, metadata: { later: true } } }) as never,
    });
    expect((await made.send("go", active)).history?.[0]?.metadata).toEqual({ later: true });
  });

  test.each(["onAppend", "onDeliver"] as const)("%s: rejects promises, and logs it", async (hook) => {
    const made = hanging("data", { [hook]: (event: object) => foreign.resolve(event) });
    expect((await made.send("go", active)).status.state).toBe("TASK_STATE_COMPLETED");
    expect(String(made.log[0]?.["cause"])).toContain("It returned a promise in place of an event");
  });
});
