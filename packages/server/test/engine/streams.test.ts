import { describe, expect, it } from "vitest";
import { gate, gist, harness } from "./support.ts";

describe("streams", () => {
  it("begin with the Task, then show every event in order, each with its seq (A2A 1.0 §3.1.2, §3.1.6)", async () => {
    const { stream } = harness(async function* (turn) {
      yield turn.working("a");
      yield turn.artifact({ parts: [{ text: "b" }] });
    });
    const items = await (await stream("Go")).all();
    expect(items.map(({ payload }) => gist(payload.value))).toEqual([
      "task submitted",
      "working",
      "artifact b",
      "completed",
    ]);
    expect(items.map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
    for (const { payload } of items) expect(JSON.parse(payload.json)).toEqual(payload.value);
  });

  it("hold exactly one Message when the agent answers directly", async () => {
    const { stream } = harness((turn) => turn.reply("Hello"));
    expect((await (await stream("Hi")).all()).map(({ payload }) => gist(payload.value))).toEqual(["message Hello"]);
  });

  it("are accepted before the agent has yielded anything", async () => {
    const { opened, open } = gate();
    const { stream } = harness(async (turn) => {
      await opened;
      return turn.reply("at last");
    });
    const reading = await stream("Go");
    open();
    expect((await reading.all()).map(({ payload }) => gist(payload.value))).toEqual(["message at last"]);
  });

  it("continue after any seq without a snapshot, while the task runs and after its end", async () => {
    const { opened, open } = gate();
    const { stream, subscribe } = harness(async function* (turn) {
      yield turn.working("0");
      yield { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "1" }] } };
      for (let n = 2; n < 8; n += 1) yield turn.append("a", [{ text: String(n) }]);
      await opened;
      yield turn.append("a", [{ text: "8" }]);
    });
    const reading = await stream("Go");
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    const live = await subscribe(id, { after: 4 });
    expect(gist((await live.next())?.payload.value ?? never())).toBe("artifact 3");
    open();
    const all = await reading.all();
    expect((await live.all()).map(({ seq }) => seq)).toEqual([6, 7, 8, 9, 10, 11]);
    for (let after = 1; after < 11; after += 1) {
      const rest = await (await subscribe(id, { after })).all();
      expect(rest.map(({ payload }) => payload.json)).toEqual(
        all.filter(({ seq = 0 }) => seq > after).map(({ payload }) => payload.json),
      );
    }
    expect(await (await subscribe(id, { after: 11 })).all()).toEqual([]);
  });

  it("begin with the Task for a cursor above the head, and are rejected for a finished task without a cursor (§3.1.6)", async () => {
    const { opened, open } = gate();
    const { stream, subscribe } = harness(async function* (turn) {
      yield turn.working();
      await opened;
    });
    const reading = await stream("Go");
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    await reading.next();
    const lost = await subscribe(id, { after: 999 });
    expect(gist((await lost.next())?.payload.value ?? never())).toBe("task working");
    open();
    await reading.all();
    await expect(subscribe(id)).rejects.toMatchObject({ code: "UnsupportedOperation" });
    expect((await (await subscribe(id, { after: 999 })).all()).map(({ payload }) => gist(payload.value))).toEqual([
      "task completed",
    ]);
    await expect(subscribe("nobody")).rejects.toMatchObject({ code: "TaskNotFound" });
  });

  it("show the same events in the same order to each of many readers, fast and slow (§3.5.2)", async () => {
    const { opened, open } = gate();
    const { stream, subscribe } = harness(
      async function* (turn) {
        yield { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "0" }] } };
        await opened;
        for (let n = 1; n < 600; n += 1) yield turn.append("a", [{ text: String(n) }]);
      },
      { limits: { liveRecords: 16 } },
    );
    const first = await stream("Go");
    const id = (await first.next())?.payload.value.task?.id ?? "";
    const readers = await Promise.all(Array.from({ length: 20 }, () => subscribe(id)));
    for (const reader of readers) await reader.next();
    const gone = readers.pop();
    await gone?.leave();
    open();
    const expected = (await first.all())
      .filter(({ payload }) => gist(payload.value) !== "artifact 0")
      .map(({ payload }) => payload.json);
    expect(expected).toHaveLength(600);
    // Reads the streams in sequence, so that the last streams are far behind the records in memory and must read the store.
    for (const reader of readers) {
      const got = (await reader.all()).filter(({ payload }) => gist(payload.value) !== "artifact 0");
      expect(got.map(({ payload }) => payload.json)).toEqual(expected);
    }
  });

  it("close at input-required for the sender, and stay open for a subscriber (§11.7)", async () => {
    const { opened, open } = gate();
    const { stream, subscribe, send } = harness(async function* (turn) {
      if (turn.number === 1) {
        yield turn.working();
        await opened;
        yield turn.inputRequired("Which?");
      } else yield turn.artifact({ parts: [{ text: turn.text }] });
    });
    const sender = await stream("Go");
    const id = (await sender.next())?.payload.value.task?.id ?? "";
    const subscriber = await subscribe(id);
    await subscriber.next();
    open();
    expect((await sender.all()).map(({ payload }) => gist(payload.value)).at(-1)).toBe("input_required");
    await send("This", { message: { taskId: id } });
    expect((await subscriber.all()).map(({ payload }) => gist(payload.value)).slice(-4)).toEqual([
      "input_required",
      "working",
      "artifact This",
      "completed",
    ]);
  });

  it("stay open at auth-required, because the agent may continue on its own (§7.6.1)", async () => {
    const { opened, open } = gate();
    const { stream, send } = harness(async function* (turn) {
      yield turn.authRequired("Log in there");
      await opened;
      yield turn.artifact({ parts: [{ text: "thanks" }] });
    });
    const reading = await stream("Go");
    await reading.until((event) => event.statusUpdate?.status.state === "TASK_STATE_AUTH_REQUIRED");
    // A waiting send returns here, because its caller must act.
    expect((await send("Go too")).status.state).toBe("TASK_STATE_AUTH_REQUIRED");
    open();
    expect((await reading.all()).map(({ payload }) => gist(payload.value))).toEqual([
      "working",
      "artifact thanks",
      "completed",
    ]);
  });

  it("release everything when their reader leaves, even while nothing happens", async () => {
    const { opened, open } = gate();
    const { stream, subscribe } = harness(async function* (turn) {
      yield turn.working();
      await opened;
    });
    const reading = await stream("Go");
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    const idle = await subscribe(id);
    await idle.next();
    const waiting = idle.next();
    await idle.leave();
    expect(await waiting).toBeUndefined();
    open();
    expect((await reading.all()).map(({ payload }) => gist(payload.value)).at(-1)).toBe("completed");
  });

  it("limit the history of their Task as requested (§3.2.4)", async () => {
    const { stream } = harness(async function* (turn) {
      yield turn.working();
    });
    const [none] = await (await stream("Go", { configuration: { historyLength: 0 } })).all();
    expect(none?.payload.value.task).not.toHaveProperty("history");
  });

  it("put the events that arrive while their reader is busy into one batch", async () => {
    const { stream } = harness(async function* (turn) {
      yield { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "0" }] } };
      for (let n = 1; n < 100; n += 1) yield turn.append("a", [{ text: String(n) }]);
    });
    const reading = await stream("Go");
    const items = await reading.all();
    expect(items).toHaveLength(102);
  });
});

function never(): never {
  throw new Error("The stream ended early");
}
