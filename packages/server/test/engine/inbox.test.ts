import { describe, expect, it } from "vitest";
import { gate, gist, harness } from "./support.ts";

describe("messages to a task with a run", () => {
  it("get their own turns after the current one, in order, in one run, with one COMPLETED", async () => {
    const { opened, open } = gate();
    const running: string[] = [];
    let together = 0;
    const { stream, send, get } = harness(async function* (turn) {
      together += 1;
      expect(together).toBe(1);
      running.push(turn.text);
      yield turn.artifact({ artifactId: `of-${turn.number}`, parts: [{ text: turn.text }] });
      if (turn.number === 1) await opened;
      yield turn.append(`of-${turn.number}`, [{ text: "!" }]).kind === "artifact"
        ? turn.working(`end of ${turn.number}`)
        : turn.working();
      together -= 1;
    });
    const reading = await stream("one");
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    await reading.until((event) => event.artifactUpdate !== undefined);
    const returned = await send("two", { message: { taskId: id }, configuration: { returnImmediately: true } });
    expect(returned.status.state).toBe("TASK_STATE_WORKING");
    const third = send("three", { message: { taskId: id } });
    open();
    const done = await third;
    expect(done.status.state).toBe("TASK_STATE_COMPLETED");
    expect(running).toEqual(["one", "two", "three"]);
    expect(done.artifacts?.map(({ artifactId }) => artifactId)).toEqual(["of-1", "of-2", "of-3"]);
    expect(done.history?.map(({ parts }) => parts[0]?.text)).toEqual(["one", "two", "three"]);
    const events = (await reading.all()).map(({ payload }) => gist(payload.value));
    expect(events.filter((event) => event === "completed")).toHaveLength(1);
    expect(await get(id)).toEqual(done);
  });

  it("go to the open streams", async () => {
    const { opened, open } = gate();
    const { stream, subscribe, send } = harness(async function* (turn) {
      yield turn.working(turn.text);
      if (turn.number === 1) await opened;
    });
    const first = await stream("one");
    const id = (await first.next())?.payload.value.task?.id ?? "";
    const second = await subscribe(id);
    await second.next();
    await first.next();
    const later = send("two", { message: { taskId: id } });
    open();
    await later;
    const tail = (await first.all()).map(({ payload }) => gist(payload.value));
    expect(tail).toEqual(["working", "completed"]);
    expect((await second.all()).map(({ payload }) => gist(payload.value)).slice(-2)).toEqual(tail);
  });

  it("get their own turns after a turn that yields more after its question", async () => {
    const { opened, open } = gate();
    const { stream, send } = harness(async function* (turn) {
      if (turn.number === 1) {
        yield turn.working();
        await opened;
        yield turn.inputRequired("Which one?");
        yield turn.working("not stored: the question stands");
      } else {
        // Untyped JavaScript can yield this value, which is not an event, and does not end the turn.
        yield undefined as never;
        yield turn.artifact({ parts: [{ text: `answer to ${turn.text}` }] });
      }
    });
    const reading = await stream("one");
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    await reading.next();
    await send("two", { message: { taskId: id }, configuration: { returnImmediately: true } });
    const waiting = send("three", { message: { taskId: id } });
    open();
    const task = await waiting;
    expect(task.artifacts?.map(({ parts }) => parts[0]?.text)).toEqual(["answer to two", "answer to three"]);
  });

  it("get their own turns after a question, which is not the answer to their senders", async () => {
    const { opened, open } = gate();
    const { stream, send } = harness(async function* (turn) {
      if (turn.number === 1) {
        yield turn.working();
        await opened;
        yield turn.inputRequired("Which one?");
      } else {
        yield turn.artifact({ parts: [{ text: `answer to ${turn.text}` }] });
      }
    });
    const reading = await stream("one");
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    await reading.next();
    const waiting = send("two", { message: { taskId: id } });
    const queued = send("three", { message: { taskId: id }, configuration: { returnImmediately: true } });
    await queued;
    open();
    const task = await waiting;
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task.artifacts?.map(({ parts }) => parts[0]?.text)).toEqual(["answer to two", "answer to three"]);
    // The stream of the first sender ends at the question, because the question answers its message (§11.7).
    expect((await reading.all()).map(({ payload }) => gist(payload.value))).toEqual(["input_required"]);
  });

  it("end the interrupted state when they are accepted, so no waiting send returns because of it", async () => {
    const { opened, open } = gate();
    const { send } = harness(async function* (turn) {
      if (turn.number === 1) return yield turn.inputRequired("Which one?");
      await opened;
      yield turn.artifact({ parts: [{ text: "found" }] });
      return undefined;
    });
    const { id } = await send("one");
    const immediate = await send("two", { message: { taskId: id }, configuration: { returnImmediately: true } });
    expect(immediate.status.state).toBe("TASK_STATE_WORKING");
    const waiting = send("three", { message: { taskId: id } });
    open();
    expect((await waiting).status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("get a turn each if several arrive at once for a waiting task", async () => {
    const turns: string[] = [];
    const { send, get } = harness(async function* (turn) {
      turns.push(turn.text);
      yield turn.inputRequired(`heard ${turn.text}`);
    });
    const { id } = await send("start");
    await Promise.all(["a", "b", "c", "d"].map((text) => send(text, { message: { taskId: id } })));
    expect(turns.slice(1).sort()).toEqual(["a", "b", "c", "d"]);
    const task = await get(id);
    expect(task.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(task.history?.filter(({ role }) => role === "ROLE_USER")).toHaveLength(5);
  });

  it("do not wait for agents if returnImmediately is set: 200 at once are answered (§3.2.2)", async () => {
    const { opened, open } = gate();
    const { send, get } = harness(async function* (turn) {
      yield turn.working();
      await opened;
    });
    const tasks = await Promise.all(
      Array.from({ length: 200 }, (_, n) => send(`n${n}`, { configuration: { returnImmediately: true } })),
    );
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(200);
    open();
    for (const { id } of tasks)
      await expect.poll(async () => (await get(id)).status.state).toBe("TASK_STATE_COMPLETED");
  });
});
