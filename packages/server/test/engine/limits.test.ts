import { describe, expect, it } from "vitest";
import { A2AError } from "@parley/a2a/internal/model/index";
import { callContext, fakeClock } from "@parley/testing";
import { memoryStore, type Store } from "../../src/store/index.ts";
import { eventually, gate, gist, harness, messageOf } from "./support.ts";

describe("the timeouts of a turn", () => {
  it("end an agent that yields nothing, and fire its signal", async () => {
    const clock = fakeClock();
    const { opened, open } = gate();
    let aborted = false;
    const { stream, log } = harness(
      async function* (turn) {
        turn.signal.addEventListener("abort", () => (aborted = true));
        yield turn.working();
        await opened;
        yield turn.working("far too late");
      },
      { clock, behaviour: { idleTimeout: 10_000 } },
    );
    const reading = await stream("Go");
    await reading.next();
    await reading.next();
    clock.advance(9_000);
    clock.advance(3_000);
    const [last] = await reading.all();
    expect(last?.payload.value.statusUpdate?.status).toMatchObject({
      state: "TASK_STATE_FAILED",
      message: { parts: [{ text: "The agent gave no sign of life for too long." }] },
    });
    expect(aborted).toBe(true);
    expect(log.some(({ message }) => message === "A task failed")).toBe(true);
    open();
  });

  it("end an agent that never stops yielding", async () => {
    const clock = fakeClock();
    const { stream } = harness(
      async function* (turn) {
        for (;;) {
          yield turn.working();
          await new Promise<void>((resolve) => clock.after(1_000, resolve));
        }
      },
      { clock, behaviour: { turnTimeout: 60_000 } },
    );
    const reading = await stream("Go");
    const all = reading.all();
    let over = false;
    void all.then(() => (over = true));
    await eventually(() => {
      clock.advance(1_000);
      return over;
    });
    const last = (await all).at(-1);
    expect(last?.payload.value.statusUpdate?.status).toMatchObject({
      state: "TASK_STATE_FAILED",
      message: { parts: [{ text: "The agent did not finish in time." }] },
    });
  });

  it("do not end an agent while its task waits for someone else (§7.6.1)", async () => {
    const clock = fakeClock();
    const { opened, open } = gate();
    const { stream } = harness(
      async function* (turn) {
        yield turn.authRequired("Log in there");
        await opened;
        yield turn.working("thanks");
      },
      { clock, behaviour: { idleTimeout: 10_000, turnTimeout: false } },
    );
    const reading = await stream("Go");
    await reading.next();
    await reading.next();
    clock.advance(3_600_000);
    open();
    expect((await reading.all()).map(({ payload }) => gist(payload.value))).toEqual(["working", "completed"]);
  });
});

describe("a slow store", () => {
  it("makes a fast agent wait when too much is pending, and flush waits for the commit", async () => {
    const { opened, open } = gate();
    const inner = memoryStore();
    let held = false;
    let largest = 0;
    const store: Store = new Proxy(inner, {
      get(target, name: keyof Store) {
        if (name === "watch") return undefined;
        if (typeof target[name] !== "function") return target[name];
        if (name !== "append") return (target[name] as (...args: never[]) => unknown).bind(target);
        return async (items: Parameters<Store["append"]>[0]) => {
          for (const item of items) if ("records" in item) largest = Math.max(largest, item.records.length);
          if (held) await opened;
          return inner.append(items);
        };
      },
    });
    let yielded = 0;
    let flushed = false;
    const { stream } = harness(
      async function* (turn) {
        yield { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "0" }] } };
        await turn.flush();
        held = true;
        for (yielded = 1; yielded < 1_000; yielded += 1) yield turn.append("a", [{ text: "x" }]);
        await turn.flush();
        flushed = true;
      },
      { store, limits: { pendingEvents: 50 } },
    );
    const reading = await stream("Go");
    await reading.next();
    await eventually(() => yielded >= 50);
    expect(yielded).toBeLessThanOrEqual(51);
    expect(flushed).toBe(false);
    open();
    expect(await reading.all()).toHaveLength(1_001);
    expect(flushed).toBe(true);
    expect(largest).toBeLessThanOrEqual(51);
  });
});

describe("a store that fails", () => {
  function failing() {
    const inner = memoryStore();
    const state = { broken: false };
    const store: Store = new Proxy(inner, {
      get(target, name: keyof Store) {
        if (name === "watch") return undefined;
        if (typeof target[name] !== "function") return target[name];
        const method = (target[name] as (...args: never[]) => Promise<unknown>).bind(target);
        const full = new A2AError("Unavailable", undefined, { cause: new Error("disk full at /var/db") });
        return (...args: never[]) => (state.broken && name !== "close" ? Promise.reject(full) : method(...args));
      },
    });
    return { store, state };
  }

  it("answers each caller with an error that says so, and works again once the store does", async () => {
    const { store, state } = failing();
    const clock = fakeClock();
    const { send, get, service, stream } = harness(
      async function* (turn) {
        yield turn.artifact({ parts: [{ text: "kept" }] });
      },
      { store, clock },
    );
    const before = await send("Go");
    state.broken = true;
    for (const attempt of [send("Go"), get(before.id), stream("Go"), service.call("ListTasks", {}, callContext())]) {
      await expect(attempt).rejects.toMatchObject({ code: "Unavailable" });
    }
    state.broken = false;
    expect((await send("Go")).status.state).toBe("TASK_STATE_COMPLETED");
    expect((await service.call("ListTasks", {}, callContext())).payload.value.totalSize).toBe(2);
  });

  it("fails the next yield of the agent and all waiting calls at once, and the task ends in the right state later", async () => {
    const { store, state } = failing();
    const clock = fakeClock();
    const { opened, open } = gate();
    let thrown: unknown;
    const { stream, get, service } = harness(
      async function* (turn) {
        yield turn.working();
        await opened;
        try {
          for (;;) {
            yield turn.working("more");
            await turn.flush().catch(() => {});
          }
        } catch (error) {
          thrown = error;
          throw error;
        }
      },
      { store, clock },
    );
    const reading = await stream("Go");
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    const rest = reading.all();
    state.broken = true;
    open();
    await expect(rest).rejects.toMatchObject({ code: "Unavailable" });
    await eventually(() => thrown !== undefined);
    expect(thrown).toMatchObject({ code: "Unavailable" });
    state.broken = false;
    await eventually(async () => {
      clock.advance(5_000);
      return (await get(id)).status.state === "TASK_STATE_FAILED";
    });
    const {
      payload: { value },
    } = await service.call(
      "SendMessage",
      { message: messageOf("again"), configuration: { returnImmediately: true } },
      callContext(),
    );
    expect(value.task?.id).toEqual(expect.any(String));
  });
});

describe("retention", () => {
  it("compacts the logs of terminal tasks, deletes them when they expire, and leaves other tasks unchanged", async () => {
    const clock = fakeClock();
    const { send, get, subscribe } = harness(
      async function* (turn) {
        if (turn.text === "wait") yield turn.inputRequired("?");
        else {
          yield { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "0" }] } };
          yield turn.append("a", [{ text: "1" }], { last: true });
        }
      },
      { clock, retention: { terminal: 100_000, replay: 10_000, interval: 1_000 } },
    );
    const done = await send("Go");
    const waiting = await send("wait");
    expect(await (await subscribe(done.id, { after: 1 })).all()).toHaveLength(3);
    await eventually(async () => {
      clock.advance(1_000);
      const [first] = await (await subscribe(done.id, { after: 1 })).all();
      return first?.payload.value.task !== undefined;
    });
    expect(await get(done.id)).toEqual(done);
    await eventually(async () => {
      clock.advance(10_000);
      return (await get(done.id).catch((error: A2AError) => error.code)) === "TaskNotFound";
    });
    expect((await get(waiting.id)).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  });
});

describe("limits.tasksPerCaller", () => {
  const limits = { tasksPerCaller: 2 };

  it("rejects a message that would create another task, until one of them ends", async () => {
    const { opened, open } = gate();
    const { stream, ask, send } = harness(
      async function* (turn) {
        yield turn.working();
        if (turn.text === "wait") await opened;
      },
      { limits },
    );
    const [first, second] = [await stream("wait", { subject: "ada" }), await stream("wait", { subject: "ada" })];
    await expect(ask("third", { subject: "ada" })).rejects.toMatchObject({ code: "TooManyRequests", retryAfter: 5 });
    expect((await send("other", { subject: "bob" })).status.state).toBe("TASK_STATE_COMPLETED");
    open();
    await Promise.all([first.all(), second.all()]);
    for (let at = 0; at < 5; at++) expect((await send(`next ${at}`, { subject: "ada" })).id).toBeDefined();
  });

  it("counts direct replies while the agent works on them, and does not reject a retry of a known message", async () => {
    const { opened, open } = gate();
    const { ask } = harness(
      async (turn) => {
        await opened;
        return turn.reply(turn.text);
      },
      { limits },
    );
    const message = { messageId: "the-same" };
    const asked = [ask("one", { message }), ask("one", { message }), ask("one", { message }), ask("two")];
    await expect(ask("three")).rejects.toMatchObject({ code: "TooManyRequests" });
    open();
    expect(await Promise.all(asked)).toHaveLength(4);
    expect((await ask("four")).message?.parts).toEqual([{ text: "four" }]);
  });

  it("does not count a task that waits for its caller; a follow-up starts a turn like a first message", async () => {
    const { opened, open } = gate();
    const { ask, send, stream } = harness(
      async function* (turn) {
        if (turn.number === 1) yield turn.inputRequired("Which one?");
        else {
          yield turn.working();
          await opened;
        }
      },
      { limits },
    );
    const tasks = [await send("a"), await send("b"), await send("c")];
    const answer = (at: number) => ({ message: { taskId: tasks[at]?.id ?? "" } });
    const working = [await stream("continue", answer(0)), await stream("continue", answer(1))];
    await expect(ask("continue", answer(2))).rejects.toMatchObject({ code: "TooManyRequests" });
    open();
    for (const reading of working) await reading.all();
    expect((await send("continue", answer(2))).status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("holds for concurrent messages", async () => {
    const { opened, open } = gate();
    const { ask } = harness(
      async (turn) => {
        await opened;
        return turn.reply(turn.text);
      },
      { limits },
    );
    const all = Array.from({ length: 50 }, (_, at) =>
      ask(String(at)).then(
        () => "answered",
        (error: unknown) => error,
      ),
    );
    open();
    expect((await Promise.all(all)).filter((each) => each === "answered")).toHaveLength(2);
  });
});

describe("the size of a message", () => {
  it("is limited in parts: 10,000, or limits.messageParts", async () => {
    const parts = (count: number) => ({ message: { parts: Array.from({ length: count }, () => ({ text: "x" })) } });
    const { ask } = harness((turn) => turn.reply(String(turn.message.parts.length)));
    expect((await ask("", parts(10_000))).message?.parts).toEqual([{ text: "10000" }]);
    await expect(ask("", parts(10_001))).rejects.toMatchObject({
      code: "InvalidParams",
      fields: [{ field: "message.parts", description: "has 10001 parts: a message may have 10000" }],
    });
    const { ask: few } = harness((turn) => turn.reply("ok"), { limits: { messageParts: 2 } });
    await expect(few("", parts(3))).rejects.toMatchObject({ fields: [{ field: "message.parts" }] });
  });

  it("has limited metadata, in the request, the message and its parts together", async () => {
    const { service, ask } = harness((turn) => turn.reply("ok"), { limits: { metadataBytes: 1_000 } });
    const metadata = { a: "x".repeat(400) };
    expect((await ask("", { message: { metadata, parts: [{ text: "a", metadata }] } })).message).toBeDefined();
    const three = {
      metadata,
      parts: [
        { text: "a", metadata },
        { text: "b", metadata },
      ],
    };
    await expect(ask("", { message: three })).rejects.toMatchObject({ fields: [{ field: "message.metadata" }] });
    const request = { message: messageOf("", { metadata }), metadata: { a: metadata, b: metadata } };
    await expect(service.call("SendMessage", request, callContext())).rejects.toMatchObject({
      code: "InvalidParams",
      fields: [{ field: "metadata", description: expect.stringContaining("1000 bytes") as string }],
    });
    // A value with many small members also counts as large.
    const many = { list: Array.from({ length: 100 }, () => 1) };
    await expect(ask("", { message: { metadata: many } })).rejects.toMatchObject({ code: "InvalidParams" });
  });
});
