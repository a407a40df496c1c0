import { describe, expect, it } from "vitest";
import { memoryStore } from "../../src/store/index.ts";
import { callContext } from "@parley/testing";
import { eventually, gate, gist, harness, type OnMessage, type Reading } from "./support.ts";

const kib = 1 << 10;
const full = "The task has become larger than a task may be.";

describe("limits.taskBytes", () => {
  const limits = { taskBytes: 64 * kib };
  const long = "x".repeat(20 * kib);

  it("accepts follow-ups that fit, and rejects the others with the name of the field (A2A 1.0 §3.3.2)", async () => {
    const { opened, open } = gate();
    const { stream, send, get, store } = harness(
      async function* (turn) {
        yield turn.working();
        await opened;
        yield turn.artifact({ parts: [{ text: turn.text.slice(0, 5) }] });
      },
      { limits },
    );
    const reading = await stream("Go");
    const taskId = (await reading.next())?.payload.value.task?.id ?? "";
    const configuration = { returnImmediately: true };
    const outcomes = await Promise.allSettled(
      Array.from({ length: 60 }, () => send(long, { message: { taskId }, configuration })),
    );
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
    for (const outcome of outcomes) {
      if (outcome.status === "rejected")
        expect(outcome.reason).toMatchObject({ code: "InvalidParams", fields: [{ field: "message.parts" }] });
    }
    open();
    // The artifacts are short, so all four turns end.
    await eventually(async () => (await get(taskId)).status.state === "TASK_STATE_COMPLETED");
    expect((await get(taskId)).artifacts).toHaveLength(4);
    const head = await store.head({ agent: "agent" }, taskId);
    expect(head?.bytes).toBeLessThan(limits.taskBytes);
  });

  it("rejects a message to a task that waits for its user, and the task keeps waiting", async () => {
    const { send, get } = harness(
      async function* (turn) {
        yield turn.inputRequired("And?");
      },
      { limits },
    );
    const { id } = await send("Go");
    const refused = send("x".repeat(70 * kib), { message: { taskId: id } });
    await expect(refused).rejects.toMatchObject({ code: "InvalidParams", fields: [{ field: "message.parts" }] });
    expect((await get(id)).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect((await send("short", { message: { taskId: id } })).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  });

  it("rejects a message that is too large to create a task, and stores nothing", async () => {
    const { send, store } = harness((turn) => Promise.resolve(turn.completed("ok")), { limits });
    await expect(send("x".repeat(80 * kib))).rejects.toMatchObject({ fields: [{ field: "message.parts" }] });
    await expect(send("é".repeat(44 * kib))).rejects.toMatchObject({ fields: [{ field: "message.parts" }] });
    expect((await store.list({ agent: "agent" }, { limit: 10, artifacts: false })).total).toBe(0);
  });

  it.each<[string, OnMessage]>([
    [
      "one by one",
      async function* (turn) {
        for (let n = 1; n <= 60; n += 1) {
          yield turn.artifact({ artifactId: `a-${n}`, parts: [{ text: long }] });
          await turn.flush().catch(() => {});
        }
      },
    ],
    [
      "in one array",
      async function* (turn) {
        yield Array.from({ length: 60 }, (_, n) =>
          turn.artifact({ artifactId: `a-${n + 1}`, parts: [{ text: long }] }),
        );
      },
    ],
    [
      "and a last word",
      async function* (turn) {
        for (let n = 1; n <= 3; n += 1) yield turn.artifact({ artifactId: `a-${n}`, parts: [{ text: long }] });
        yield turn.artifact({ artifactId: "a-4", parts: [{ text: long }] });
        yield turn.completed("done");
      },
    ],
  ])("fails an agent that yields too much, %s, with a reason; earlier events stay", async (_how, onMessage) => {
    const { stream, get, log, store } = harness(onMessage, { limits });
    const reading = await stream("Go");
    const events = (await reading.all()).map(({ payload }) => payload.value);
    const id = events[0]?.task?.id ?? "";
    const task = await get(id);
    expect(task.status).toMatchObject({ state: "TASK_STATE_FAILED", message: { parts: [{ text: full }] } });
    expect(task.artifacts?.map(({ artifactId }) => artifactId)).toEqual(["a-1", "a-2", "a-3"]);
    expect(gist(events.at(-1) ?? events[0]!)).toBe("failed");
    const line = log.find(({ message }) => message === "A task failed");
    expect(line).toMatchObject({ level: "error", taskId: id });
    expect(String(line?.["cause"])).toMatch(/artifact "a-4".*limits\.taskBytes is 65536/s);
    expect((await store.head({ agent: "agent" }, id))?.bytes).toBeLessThan(limits.taskBytes);
  });

  it("replaces a final status that does not fit by a reason, and reserves space for the end of a full task", async () => {
    const { send, log } = harness(
      async function* (turn) {
        yield turn.artifact({ artifactId: "a", parts: [{ text: "x".repeat(63 * kib) }] });
        if (turn.text === "much") yield turn.failed("y".repeat(80 * kib));
      },
      { limits },
    );
    expect((await send("little")).status.state).toBe("TASK_STATE_COMPLETED");
    const { status } = await send("much");
    expect(status.message?.parts).toEqual([{ text: full }]);
    expect(log.map(({ cause }) => String(cause)).join()).toMatch(/A status "TASK_STATE_FAILED" of \d+ bytes/);
  });
});

describe("the limits of stored agent state", () => {
  it("fail the task for a checkpoint that is too large, with the name of the method in the log", async () => {
    const { send, log } = harness(
      async function* (turn) {
        yield turn.saveCheckpoint("x".repeat(5 * kib));
      },
      { limits: { stateBytes: 4 * kib } },
    );
    expect((await send("Go")).status.state).toBe("TASK_STATE_FAILED");
    expect(log.map(({ cause }) => String(cause)).join()).toMatch(
      /turn\.saveCheckpoint\(\): the value takes \d+ bytes, and limits\.stateBytes is 4096/,
    );
  });

  it("make context.setState() throw for a state that is too large", async () => {
    const { send, ask, log } = harness(
      (turn) => {
        try {
          turn.context.setState("x".repeat(5 * kib));
        } catch (error) {
          if (turn.text === "caught") return Promise.resolve(turn.reply("never mind"));
          throw error;
        }
        return Promise.resolve(turn.reply("kept"));
      },
      { limits: { stateBytes: 4 * kib } },
    );
    expect((await ask("caught")).message?.parts[0]?.text).toBe("never mind");
    expect((await send("Go")).status.state).toBe("TASK_STATE_FAILED");
    expect(log.map(({ cause }) => String(cause)).join()).toMatch(
      /context\.setState\(\): .* limits\.stateBytes is 4096/,
    );
  });

  it("apply to remembered replies: the oldest are forgotten first", async () => {
    let runs = 0;
    const { ask } = harness((turn) => Promise.resolve(turn.reply(`${(runs += 1)}${turn.text}`)), {
      dedupe: { replyBytes: 100 * kib },
      conversations: "memory",
    });
    const again = (messageId: string, text: string) => ask(text, { message: { messageId } });
    const { message: first } = await again("first", "small");
    expect((await again("first", "small")).message).toEqual(first);
    for (let n = 0; n < 10; n += 1) await again(`m-${n}`, "x".repeat(20 * kib));
    expect(runs).toBe(11);
    // Ten replies of twenty kilobytes exceed the memory limit. The server evicts the oldest replies, and their messages count as new.
    await again("m-0", "x".repeat(20 * kib));
    await again("first", "small");
    expect(runs).toBe(13);
    // If a reply exceeds half of the memory limit, the server does not keep it, and evicts no other reply.
    await again("huge", "x".repeat(80 * kib));
    await again("huge", "x".repeat(80 * kib));
    await again("first", "small");
    expect(runs).toBe(15);
  });

  it("allow many checkpoints at once, and store only the last one", async () => {
    const inner = memoryStore();
    let most = 0;
    const append = inner.append.bind(inner);
    inner.append = (items) => {
      for (const { effects = [] } of items)
        most = Math.max(
          most,
          (effects as readonly { effect: string }[]).filter((each) => each.effect === "checkpoint").length,
        );
      return append(items);
    };
    const { send } = harness(
      async function* (turn) {
        yield { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "0" }] } };
        for (let n = 1; n <= 100; n += 1) yield [turn.append("a", [{ text: "." }]), turn.saveCheckpoint(n)];
        yield turn.inputRequired("?");
      },
      { store: inner },
    );
    await send("Go");
    // The two effects are the agent's checkpoint, and its removal at the end.
    expect(most).toBeLessThanOrEqual(2);
  });
});

async function sizes(reading: Reading): Promise<number[][]> {
  return (await reading.batches()).map((batch) => batch.map(({ payload }) => payload.json.length));
}

describe("large answers", () => {
  it("end a list page early, with a token, and skip no task (§3.1.4)", async () => {
    const { send, service } = harness(
      async function* (turn) {
        yield turn.artifact({ parts: [{ text: "x".repeat(10 * kib) }] });
      },
      { limits: { pageBytes: 32 * kib } },
    );
    const made: string[] = [];
    for (let n = 0; n < 10; n += 1) made.push((await send("Go")).id);
    const seen: string[] = [];
    let pageToken: string | undefined;
    do {
      const request = { pageSize: 100, includeArtifacts: true, ...(pageToken !== undefined && { pageToken }) };
      const reply = await service.call("ListTasks", request, callContext());
      expect((reply.payload.json ?? "").length).toBeLessThan(33 * kib);
      expect(reply.payload.value.totalSize).toBe(10);
      seen.push(...reply.payload.value.tasks.map(({ id }) => id));
      pageToken = reply.payload.value.nextPageToken === "" ? undefined : reply.payload.value.nextPageToken;
    } while (pageToken !== undefined);
    expect(seen).toEqual(made.toReversed());
  });

  it("are read in pieces of limited size by a stream, from the store and live", async () => {
    const text = "x".repeat(100 * kib);
    const { opened, open } = gate();
    const { stream, subscribe } = harness(async function* (turn) {
      yield turn.working();
      await opened;
      for (let n = 0; n < 8; n += 1) yield turn.artifact({ artifactId: `a-${n}`, parts: [{ text }] });
    });
    const reading = await stream("Go");
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    const live = sizes(await subscribe(id, { after: 1 }));
    open();
    await reading.all();
    const late = sizes(await subscribe(id, { after: 1 }));
    for (const batches of [await live, await late]) {
      expect(batches.flat()).toHaveLength(10);
      for (const batch of batches) expect(batch.reduce((sum, size) => sum + size, 0)).toBeLessThan(260 * kib);
    }
  });

  it("do not prevent an answer to two waiting messages that do not fit into one page", async () => {
    const { opened, open } = gate();
    const { stream, send, get } = harness(async function* (turn) {
      yield turn.artifact({ artifactId: `turn-${turn.number}`, parts: [{ text: turn.text.slice(0, 1) }] });
      if (turn.number === 1) await opened;
    });
    const reading = await stream("1");
    const taskId = (await reading.next())?.payload.value.task?.id ?? "";
    const configuration = { returnImmediately: true, historyLength: 0 };
    for (const digit of ["2", "3"]) await send(digit.repeat(5 << 20), { message: { taskId }, configuration });
    open();
    await eventually(async () => (await get(taskId, { historyLength: 0 })).status.state === "TASK_STATE_COMPLETED");
    const { artifacts } = await get(taskId, { historyLength: 0 });
    expect(artifacts?.map(({ parts }) => parts[0]?.text)).toEqual(["1", "2", "3"]);
  });
});
