import { describe, expect, it } from "vitest";
import { memoryStore } from "../../src/store/index.ts";
import { eventually, gate, gist, harness } from "./support.ts";

describe("CancelTask (A2A 1.0 §3.1.5)", () => {
  it("cancels the task at once if the agent ignores the signal, and accepts no later event", async () => {
    const { opened, open } = gate();
    let aborted = false;
    let ended = false;
    const { stream, cancel, get } = harness(async function* (turn) {
      try {
        turn.signal.addEventListener("abort", () => (aborted = true));
        yield turn.working();
        await opened;
        yield turn.artifact({ parts: [{ text: "after the cancel" }] });
        yield turn.completed("all done");
      } finally {
        ended = true;
      }
    });
    const reading = await stream("Go");
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    expect((await cancel(id)).status.state).toBe("TASK_STATE_CANCELED");
    expect(aborted).toBe(true);
    expect((await reading.all()).map(({ payload }) => gist(payload.value)).at(-1)).toBe("canceled");
    open();
    await eventually(() => ended);
    const task = await get(id);
    expect(task.status.state).toBe("TASK_STATE_CANCELED");
    expect(task.artifacts).toBeUndefined();
  });

  it("stops an agent that streams without a pause: readers saw each stored chunk once", async () => {
    let yielded = 0;
    let ended = false;
    const { stream, cancel, get } = harness(
      async function* (turn) {
        try {
          yield turn.working();
          yield { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "0" }] } };
          for (;;) yield turn.append("a", [{ text: String((yielded += 1)) }]);
        } finally {
          ended = true;
        }
      },
      { mergeTextParts: false },
    );
    const reading = await stream("Go");
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    const seen = [await reading.until((event) => event.artifactUpdate !== undefined)];
    const canceled = cancel(id);
    seen.push(...(await reading.all()));
    await canceled;
    const chunks = seen.flatMap(
      ({ payload }) => payload.value.artifactUpdate?.artifact.parts.map((part) => part.text) ?? [],
    );
    const stored = (await get(id)).artifacts?.[0]?.parts.map((part) => part.text);
    expect(stored).toEqual(chunks);
    expect(new Set(stored).size).toBe(stored?.length);
    await eventually(() => ended);
  });

  it("produces one CANCELED event for two concurrent calls, and rejects later calls (-32002)", async () => {
    const { opened, open } = gate();
    const { stream, cancel } = harness(async function* (turn) {
      yield turn.working();
      await opened;
    });
    const reading = await stream("Go");
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    const results = await Promise.allSettled([cancel(id), cancel(id), cancel(id)]);
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const result of results) {
      if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "TaskNotCancelable" });
    }
    const events = (await reading.all()).map(({ payload }) => gist(payload.value));
    expect(events.filter((event) => event === "canceled")).toHaveLength(1);
    await expect(cancel(id)).rejects.toMatchObject({ code: "TaskNotCancelable" });
    await expect(cancel("nobody")).rejects.toMatchObject({ code: "TaskNotFound" });
    open();
  });

  it("cancels a task that waits for its user, and rejects the next message", async () => {
    const { send, cancel } = harness(async function* (turn) {
      yield turn.inputRequired("Which?");
    });
    const { id } = await send("Go");
    expect((await cancel(id)).status.state).toBe("TASK_STATE_CANCELED");
    await expect(send("That one", { message: { taskId: id } })).rejects.toMatchObject({ code: "UnsupportedOperation" });
  });

  it("answers a send that waits", async () => {
    const { opened, open } = gate();
    const { send, cancel, service } = harness(async function* (turn) {
      yield turn.working();
      await opened;
    });
    const waiting = send("Go");
    const list = async () =>
      (await service.call("ListTasks", {}, (await import("../../../testing/src/index.ts")).callContext())).payload.value
        .tasks;
    await eventually(async () => (await list()).length === 1);
    await cancel((await list())[0]?.id ?? "");
    expect((await waiting).status.state).toBe("TASK_STATE_CANCELED");
    open();
  });

  it("ends a run on another node: its later events are rejected, and its readers get the event", async () => {
    const { opened, open } = gate();
    const store = memoryStore();
    let ended = false;
    const here = harness(
      async function* (turn) {
        try {
          yield { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "0" }] } };
          await opened;
          for (;;) yield turn.append("a", [{ text: "after the cancel" }]);
        } finally {
          ended = true;
        }
      },
      { store },
    );
    const there = harness(() => undefined, { store, pollInterval: 5 });
    const reading = await here.stream("Go");
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    await reading.until((event) => event.artifactUpdate !== undefined);
    const watching = await there.subscribe(id);
    await watching.next();
    expect((await there.cancel(id)).status.state).toBe("TASK_STATE_CANCELED");
    expect((await watching.all()).map(({ payload }) => gist(payload.value))).toEqual(["canceled"]);
    open();
    await eventually(() => ended);
    expect((await reading.all()).map(({ payload }) => gist(payload.value))).toEqual(["canceled"]);
    expect((await here.get(id)).artifacts?.[0]?.parts).toEqual([{ text: "0" }]);
  });
});
