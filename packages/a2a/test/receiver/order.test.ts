import { describe, expect, test, vi } from "vitest";
import { deferred } from "../../src/base/index.ts";
import { A2AError, type StreamResponse, type Task } from "../../src/model/index.ts";
import { webhookMemory } from "../../src/receiver/order.ts";
import type { WebhookMemory } from "../../src/receiver/port.ts";
import { referenceKey } from "../../src/webhooks/index.ts";
import { receive, status, textLogger } from "./support.ts";

/* Tests that `onEvent` gets every event of a task once and in order. */

const working = status("TASK_STATE_WORKING");
const completed = status("TASK_STATE_COMPLETED");
const task: Task = { id: "t1", contextId: "c1", status: { state: "TASK_STATE_COMPLETED" } };

/** Creates a client that counts its reads. */
function client(answer: () => Promise<Task> = () => Promise.resolve(task)) {
  const reader = {
    reads: [] as string[],
    getTask(id: string): Promise<Task> {
      reader.reads.push(id);
      return answer();
    },
  };
  return reader;
}

describe("order", () => {
  test("the next event of a task waits until the code handled the previous one; other tasks do not wait", async () => {
    const gate = deferred<void>();
    const seen: string[] = [];
    const { send } = receive({
      async onEvent({ statusUpdate }, { taskId }) {
        seen.push(`${taskId} ${statusUpdate?.status.state}`);
        if (taskId === "t1") await gate.promise;
      },
    });
    const first = send(working, { sequence: 1 });
    await vi.waitFor(() => expect(seen).toHaveLength(1));
    const second = send(completed, { sequence: 2 });
    expect((await send(status("TASK_STATE_WORKING", "t2"), { stream: "other", sequence: 1 })).status).toBe(204);
    expect(seen.toSorted()).toEqual(["t1 TASK_STATE_WORKING", "t2 TASK_STATE_WORKING"]);
    gate.resolve();
    expect([(await first).status, (await second).status]).toEqual([204, 204]);
    expect(seen.at(-1)).toBe("t1 TASK_STATE_COMPLETED");
  });

  test("an event that the code rejects is answered with 500, and handled in order when it comes again", async () => {
    let failures = 2;
    const { logger, text } = textLogger();
    const seen: string[] = [];
    const { send } = receive({
      logger,
      onEvent(_event, { id = "", missed = 0 }) {
        // Even if the code throws a protocol error, the sender is not at fault.
        if (failures-- > 0) throw new A2AError("InvalidParams", "The database is away");
        seen.push(`${id} ${missed}`);
      },
    });
    for (const expected of [500, 500, 204]) {
      const response = await send(working, { sequence: 1 });
      expect(response.status).toBe(expected);
      expect(await response.text()).not.toContain("database");
    }
    expect((await send(completed, { sequence: 2 })).status).toBe(204);
    expect(seen).toEqual(["config_1_1 0", "config_2_2 0"]);
    expect(text()).toContain("The database is away");
  });

  test("a failed event does not hold up the next one of its task", async () => {
    const { send, events } = receive({
      onEvent(event) {
        if (event.statusUpdate?.status.state === "TASK_STATE_WORKING") throw new Error("no");
        events.push(event);
      },
    });
    // The receiver verifies these deliveries in parallel, so either may come first.
    const answers = await Promise.all([send(working), send(completed)]);
    expect(answers.map((response) => response.status)).toEqual([500, 204]);
    expect(events).toEqual([completed]);
  });
});

describe("repetitions", () => {
  test("a handled delivery is answered with 204 and not passed on again", async () => {
    const { send, events } = receive();
    expect((await send(working, { sequence: 1 })).status).toBe(204);
    expect((await send(working, { sequence: 1 })).status).toBe(204);
    expect(events).toHaveLength(1);
  });

  test("a repetition during handling gets the same answer", async () => {
    const both = deferred<void>();
    let arrived = 0;
    const { send, events } = receive({
      expects() {
        arrived += 1;
        if (arrived === 2) both.resolve();
        return true;
      },
      async onEvent(event) {
        events.push(event);
        await both.promise;
        // After one turn of the event loop, the second delivery waits for the first delivery.
        await new Promise((resolve) => setImmediate(resolve));
        throw new Error("no");
      },
    });
    const answers = [send(working, { sequence: 1 }), send(working, { sequence: 1 })];
    expect((await Promise.all(answers)).map((response) => response.status)).toEqual([500, 500]);
    expect(events).toHaveLength(1);
  });

  test("two receivers that share a memory do not confuse their deliveries", async () => {
    const memory = webhookMemory();
    const one = receive({ memory });
    const other = receive({ memory, url: "https://app.example.com/other" });
    await one.send(working, { id: "same" });
    expect((await other.send(working, { id: "same", path: "/other" })).status).toBe(204);
    expect(other.events).toHaveLength(1);
  });

  test("if the memory fails, the sender retries", async () => {
    const memory: WebhookMemory = {
      recall: () => Promise.resolve({ seen: false }),
      remember: () => Promise.reject(new Error("The disk is full")),
    };
    const { send, events } = receive({ memory });
    expect((await send(working, { sequence: 1 })).status).toBe(500);
    expect(events).toHaveLength(1);
  });

  test("the memory stays within its byte limit, and forgets the oldest first", async () => {
    const memory = webhookMemory({ bytes: 64 << 10 });
    const id = (at: number): string => `${"x".repeat(100)}-${at}`;
    for (let at = 0; at < 2000; at += 1) await memory.remember({ receiver: "r", sender: "s", id: id(at), at });
    const seen = await Promise.all(
      Array.from(
        { length: 2000 },
        async (_, at) => (await memory.recall({ receiver: "r", sender: "s", id: id(at) })).seen,
      ),
    );
    const kept = seen.filter(Boolean).length;
    // Each entry takes more than 200 bytes.
    expect(kept).toBeLessThan((64 << 10) / 200);
    expect(kept).toBeGreaterThan(20);
    expect(seen.slice(-kept)).toEqual(Array.from({ length: kept }, () => true));
  });
});

describe("missed events", () => {
  test("are replaced by the task, read with the client", async () => {
    const reader = client();
    const { send, events, deliveries } = receive({ client: reader });
    await send(working, { sequence: 1 });
    await send(completed, { sequence: 4 });
    expect(events).toEqual([working, { task }]);
    expect(deliveries.at(-1)).toMatchObject({ sequence: 4, missed: 2, fetched: "missed" });
    expect(reader.reads).toEqual(["t1"]);
  });

  test("are counted, if there is no client", async () => {
    const { send, events, deliveries } = receive();
    await send(working, { sequence: 1 });
    await send(completed, { sequence: 3 });
    expect(events).toEqual([working, completed]);
    expect(deliveries.map(({ missed }) => missed)).toEqual([undefined, 1]);
  });

  test("that come late are not passed on after the task that contains them", async () => {
    const { send, events } = receive({ client: client() });
    await send(working, { sequence: 1 });
    await send(completed, { sequence: 3 });
    expect((await send(working, { sequence: 2 })).status).toBe(204);
    expect(events).toEqual([working, { task }]);
  });

  test("with the last number and another id are passed on if they report more than the first one", async () => {
    const reader = client();
    const { send, events } = receive({ client: reader });
    await send(working, { sequence: 1, seq: 2 });
    // The sender died before it stored the response, and now sends all later events.
    await send(completed, { sequence: 1, seq: 3 });
    await send(completed, { sequence: 1, seq: 3 });
    expect(events).toEqual([working, completed]);
    expect(reader.reads).toEqual([]);
  });

  test("are not lost if the task cannot be read now: the sender retries", async () => {
    let down = true;
    const reader = client(() => (down ? Promise.reject(new A2AError("ConnectionFailed")) : Promise.resolve(task)));
    const { send, events } = receive({ client: reader });
    expect((await send(completed, { sequence: 3 })).status).toBe(503);
    down = false;
    expect((await send(completed, { sequence: 3 })).status).toBe(204);
    expect(events).toEqual([{ task }]);
  });

  test("are passed on as such if the task is gone", async () => {
    const { send, events, deliveries } = receive({
      client: client(() => Promise.reject(new A2AError("TaskNotFound"))),
    });
    await send(completed, { sequence: 3 });
    expect(events).toEqual([completed]);
    expect(deliveries[0]).toMatchObject({ missed: 2 });
    expect(deliveries[0]).not.toHaveProperty("fetched");
  });

  test("of a config that is registered again are counted from 1", async () => {
    const { send, deliveries } = receive();
    await send(working, { stream: "first", sequence: 1 });
    await send(working, { stream: "second", sequence: 1 });
    expect(deliveries.map(({ missed }) => missed)).toEqual([undefined, undefined]);
  });

  test("are not counted by a number in a header that the signature does not cover", async () => {
    const { send, deliveries } = receive();
    await send(working, { id: "msg", headers: { "parley-sequence": "900" } });
    expect(deliveries[0]).not.toHaveProperty("missed");
  });
});

describe("references", () => {
  const reference: StreamResponse = {
    statusUpdate: {
      taskId: "t1",
      contextId: "c1",
      status: { state: "TASK_STATE_COMPLETED" },
      metadata: { [referenceKey]: 300_000 },
    },
  };

  test("are replaced by the task, read with the client", async () => {
    const { send, events, deliveries } = receive({ client: client() });
    await send(reference, { sequence: 1 });
    expect(events).toEqual([{ task }]);
    expect(deliveries[0]).toMatchObject({ fetched: "reference" });
  });

  test("are passed on unchanged if there is no client", async () => {
    const { send, events } = receive();
    await send(reference, { sequence: 1 });
    expect(events).toEqual([reference]);
  });
});

describe("bounds", () => {
  test("waiting bodies are bounded in bytes: further ones get 503 and are sent again", async () => {
    const gate = deferred<void>();
    const large = (taskId: string): StreamResponse => ({
      statusUpdate: {
        taskId,
        contextId: "c1",
        status: {
          state: "TASK_STATE_WORKING",
          message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "x".repeat(40_000) }] },
        },
      },
    });
    let begun = 0;
    const { send } = receive({
      bodyBytes: 50_000,
      pendingBytes: 60_000,
      onEvent() {
        begun += 1;
        return gate.promise;
      },
    });
    const waiting = send(large("t1"), { sequence: 1 });
    await expect.poll(() => begun).toBe(1);
    const refused = await send(large("t2"), { stream: "other", sequence: 1 });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    gate.resolve();
    expect((await waiting).status).toBe(204);
    expect((await send(large("t2"), { stream: "other", sequence: 1 })).status).toBe(204);
    expect(begun).toBe(2);
  });

  test("a body over the limit is rejected with 413", async () => {
    const { send } = receive({ bodyBytes: 1000 });
    expect((await send("x".repeat(1001))).status).toBe(413);
  });

  test("after close(), deliveries get 503, and close() waits for those in progress", async () => {
    const gate = deferred<void>();
    const order: string[] = [];
    const { receiver, send } = receive({
      async onEvent() {
        order.push("begun");
        await gate.promise;
        order.push("handled");
      },
    });
    const running = send(working, { sequence: 1 });
    // The receiver verifies the signature before it calls the code.
    await expect.poll(() => order).toEqual(["begun"]);
    const closed = receiver.close().then(() => order.push("closed"));
    expect((await send(completed, { sequence: 2 })).status).toBe(503);
    gate.resolve();
    await Promise.all([running, closed]);
    expect(order).toEqual(["begun", "handled", "closed"]);
  });
});
