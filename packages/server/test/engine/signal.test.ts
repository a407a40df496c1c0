import { describe, expect, it } from "vitest";
import { TurnAborted, type Turn, type TurnAbortKind } from "@parley/a2a/internal/protocol/index";
import { memoryStore } from "../../src/store/index.ts";
import { fakeClock } from "@parley/testing";
import { bound, eventually, harness, type OnMessage } from "./support.ts";

/** Creates an agent that works until its signal is aborted, and records the reason of the abort. */
function worker() {
  const told: unknown[] = [];
  const onMessage: OnMessage = async function* (turn) {
    yield turn.working();
    if (turn.attempt > 1) return;
    await new Promise<void>((resolve) => turn.signal.addEventListener("abort", () => resolve()));
    told.push(turn.signal.reason);
  };
  return { told, onMessage };
}

function isOf(kind: TurnAbortKind) {
  return expect.objectContaining({ code: "Aborted", kind }) as unknown;
}

describe("turn.signal fires with the reason", () => {
  it("`canceled`: the task was canceled (A2A 1.0 §3.1.5)", async () => {
    const { told, onMessage } = worker();
    const { stream, cancel } = harness(onMessage);
    const id = (await (await stream("Go")).next())?.payload.value.task?.id ?? "";
    await cancel(id);
    await eventually(() => told.length === 1);
    expect(told).toEqual([isOf("canceled")]);
    expect(told[0]).toBeInstanceOf(TurnAborted);
  });

  it("`canceled`, if another process canceled the task: at the next event, or when the lease is renewed", async () => {
    for (const speaks of [true, false]) {
      const clock = fakeClock();
      const told: unknown[] = [];
      const { stream, store } = harness(
        async function* (turn) {
          turn.signal.addEventListener("abort", () => told.push(turn.signal.reason));
          yield turn.working();
          while (!turn.signal.aborted) {
            if (speaks) yield turn.working("Still at it");
            await new Promise<void>((resolve) => clock.after(100, resolve));
          }
        },
        { clock },
      );
      const id = (await (await stream("Go")).next())?.payload.value.task?.id ?? "";
      const other = harness(() => undefined, { clock, store });
      await other.cancel(id);
      await eventually(() => {
        clock.advance(1_000);
        return told.length > 0;
      });
      expect(told).toEqual([isOf("canceled")]);
    }
  });

  it("`idleTimeout` and `turnTimeout`: the agent took too long, and the task has failed", async () => {
    for (const kind of ["idleTimeout", "turnTimeout"] as const) {
      const clock = fakeClock();
      const { told, onMessage } = worker();
      const behaviour = { idleTimeout: false, turnTimeout: false, [kind]: 10_000 } as const;
      const { stream } = harness(onMessage, { clock, behaviour });
      const reading = await stream("Go");
      await reading.next();
      await reading.next();
      await eventually(() => {
        clock.advance(1_000);
        return told.length > 0;
      });
      expect(told).toEqual([isOf(kind)]);
    }
  });

  it("`leaseLost`: another process has taken the task over", async () => {
    const clock = fakeClock();
    const { told, onMessage } = worker();
    const store = memoryStore();
    let cut = false;
    // If a process cannot reach its store, it cannot renew its lease.
    const flaky = {
      ...bound(store),
      append: (items: Parameters<typeof store.append>[0]) =>
        cut ? Promise.reject(new Error("no connection")) : store.append(items),
    };
    const behaviour = { resumable: true, idleTimeout: false, turnTimeout: false } as const;
    const first = harness(onMessage, { clock, store: flaky, behaviour });
    const id = (await (await first.stream("Go")).next())?.payload.value.task?.id ?? "";
    cut = true;
    const second = harness(onMessage, { clock, store, behaviour });
    await eventually(async () => {
      clock.advance(5_000);
      return (await second.get(id)).status.state === "TASK_STATE_COMPLETED";
    });
    expect(told).toEqual([]);
    cut = false;
    await eventually(() => {
      clock.advance(5_000);
      return told.length > 0;
    });
    expect(told).toEqual([isOf("leaseLost")]);
  });

  it("`shutdown`: the server stops, for a resumable agent and for another one", async () => {
    for (const resumable of [true, false]) {
      const { told, onMessage } = worker();
      const { stream, engine } = harness(onMessage, { behaviour: { resumable } });
      await (await stream("Go")).next();
      await engine.close();
      await eventually(() => told.length === 1);
      expect(told).toEqual([isOf("shutdown")]);
    }
  });

  it("`storeFailed`: the events yielded last are not stored", async () => {
    const told: unknown[] = [];
    const store = memoryStore();
    let broken = false;
    const failing = {
      ...bound(store),
      append: (items: Parameters<typeof store.append>[0]) =>
        broken ? Promise.reject(new Error("disk full")) : store.append(items),
    };
    const { stream } = harness(
      async function* (turn) {
        turn.signal.addEventListener("abort", () => told.push(turn.signal.reason));
        yield turn.working();
        await turn.flush();
        broken = true;
        yield turn.working("lost");
        await turn.flush().catch(() => {});
      },
      { store: failing },
    );
    await (await stream("Go")).next();
    await eventually(() => told.length === 1);
    expect(told).toEqual([isOf("storeFailed")]);
  });

  it("`failed`: the agent threw, while work that it had started continued", async () => {
    const told: unknown[] = [];
    const { send } = harness(async function* (turn) {
      turn.signal.addEventListener("abort", () => told.push(turn.signal.reason));
      yield turn.working();
      throw new Error("a bug");
    });
    expect((await send("Go")).status.state).toBe("TASK_STATE_FAILED");
    expect(told).toEqual([isOf("failed")]);
    expect((told[0] as TurnAborted).cause).toEqual(new Error("a bug"));
  });

  it("`over`, for an agent that first reads it after the end of the turn", async () => {
    const turns: Turn[] = [];
    const { ask, stream, cancel } = harness(async function* (turn) {
      turns.push(turn);
      if (turn.text === "reply") return turn.reply("Done");
      yield turn.working();
      if (turn.text === "wait") await new Promise<void>(() => {});
      return undefined;
    });
    await ask("reply");
    await ask("Go");
    const id = (await (await stream("wait")).next())?.payload.value.task?.id ?? "";
    await cancel(id);
    await eventually(() => turns[2]?.signal.aborted === true);
    expect(turns.map(({ signal }) => signal.reason)).toEqual([isOf("over"), isOf("over"), isOf("canceled")]);
    expect(() => turns[2]?.signal.throwIfAborted()).toThrow(TurnAborted);
  });
});
