import { describe, expect, test } from "vitest";
import type { AgentYield, Turn } from "@parley/a2a/internal/protocol/index";
import { memoryStore, type Store, type TaskAppend, type TaskKey } from "../../src/store/index.ts";
import { callContext } from "@parley/testing";
import { harness, type Harness, type OnMessage } from "../engine/support.ts";
import { opened, rowsOf, settingsOf, storedOf } from "./config-support.ts";

/* Tests webhooks in a message (A2A 1.0 §3.2.2): `configuration.taskPushNotificationConfig`. */

const url = "https://hooks.example.org/parley";
const ada = callContext({ subject: "ada" });
const key = (taskId: string, owner = '[null,"ada"]'): TaskKey => ({ agent: "agent", owner, taskId });
const webhook = (more: object = {}) => ({ taskPushNotificationConfig: { url, ...more } });

async function* asks(turn: Turn): AsyncGenerator<AgentYield> {
  yield turn.inputRequired("Which city?");
}

interface Spied extends Harness {
  /** The items that changed a row of the feature `push`. */
  readonly items: readonly TaskAppend[];
}

function setup(onMessage: OnMessage = asks, options: Parameters<typeof harness>[1] = {}): Spied {
  const items: TaskAppend[] = [];
  const store = memoryStore();
  const append: Store["append"] = (batch) => {
    for (const item of batch) {
      if (!("task" in item)) continue;
      if (item.effects?.some((effect) => effect.effect === "feature" && effect.feature === "push")) items.push(item);
    }
    return store.append(batch);
  };
  const spied: Store = new Proxy(store, {
    get(target, name) {
      if (name === "append") return append;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  return { ...harness(onMessage, { push: settingsOf(), store: spied, ...options }), items };
}

describe("a webhook with the first message of a task", () => {
  test("is stored in the append that creates the task, before all of its events", async () => {
    const { send, items, store } = setup();
    const { id } = await send("hi", { subject: "ada", configuration: webhook({ id: "w" }) });
    expect(items).toHaveLength(1);
    expect(items[0]?.create).toBeDefined();
    expect(items[0]?.records[0]?.kind).toBe("task");
    expect(await storedOf(store, key(id))).toMatchObject([{ url, version: "1.0", cursor: 0, sequence: 0 }]);
    expect((await storedOf(store, key(id)))[0]?.state).toBeUndefined();
  });

  test("is due at once, so the events in its own append are delivered", async () => {
    const { send, store } = setup();
    await send("hi", { subject: "ada", configuration: webhook() });
    expect(await store.dueFeatures({ feature: "push", now: Infinity, limit: 9 })).toHaveLength(1);
  });

  test("seals its secrets for the new task", async () => {
    const { send, store } = setup();
    const { id } = await send("hi", { subject: "ada", configuration: webhook({ id: "w", token: "the-token" }) });
    const [stored] = await storedOf(store, key(id));
    expect(await opened(stored?.sealed ?? "", key(id), "w", settingsOf())).toEqual({ token: "the-token" });
    expect(JSON.stringify(await rowsOf(store, key(id)))).not.toContain("the-token");
  });

  test("is not in the task, its history or its log, nor are its secrets", async () => {
    const { send, get, store } = setup();
    const { id } = await send("hi", { subject: "ada", configuration: webhook({ token: "the-token" }) });
    const page = await store.read(key(id), id, { after: 0, limit: 99 });
    const all = JSON.stringify([await get(id, { subject: "ada" }), page]);
    expect(all).not.toMatch(/the-token|hooks\.example/);
  });

  test("belongs only to the owner of the task", async () => {
    const { send, service } = setup();
    const { id: taskId } = await send("hi", { subject: "ada", configuration: webhook({ id: "w" }) });
    const eve = callContext({ subject: "eve" });
    await expect(service.call("GetTaskPushNotificationConfig", { taskId, id: "w" }, eve)).rejects.toMatchObject({
      code: "TaskNotFound",
    });
  });

  test("is stored by SendStreamingMessage too, and an invalid one rejects the call before its stream", async () => {
    const { stream, store, service } = setup();
    const reading = await stream("hi", { subject: "ada", configuration: webhook() });
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    expect(await rowsOf(store, key(id))).toHaveLength(1);
    const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "x" }] } as const;
    const call = service.stream("SendStreamingMessage", { message, configuration: webhook({ token: "\n" }) }, ada);
    await expect(call).rejects.toMatchObject({
      fields: [{ field: "configuration.taskPushNotificationConfig.token" }],
    });
  });

  test("is stored if the agent fails at once, and gets that event", async () => {
    const { send, store } = setup(() => {
      throw new Error("broken");
    });
    const { id, status } = await send("hi", { subject: "ada", configuration: webhook() });
    expect(status.state).toBe("TASK_STATE_FAILED");
    expect(await storedOf(store, key(id))).toMatchObject([{ cursor: 0 }]);
  });

  test("is not stored at all if the agent answers directly", async () => {
    const { ask, items } = setup((turn) => turn.reply("Hello"));
    const { message } = await ask("hi", { subject: "ada", configuration: webhook() });
    expect(message?.parts).toEqual([{ text: "Hello" }]);
    expect(items).toEqual([]);
  });

  test("that names a task is rejected, because the message creates a new one", async () => {
    const { send, items } = setup();
    const call = send("hi", { subject: "ada", configuration: webhook({ taskId: "other" }) });
    await expect(call).rejects.toMatchObject({
      fields: [{ field: "configuration.taskPushNotificationConfig.taskId" }],
    });
    expect(items).toEqual([]);
  });
});

describe("a webhook with a repeated message (§3.3.1)", () => {
  const repeated = { messageId: "the same" };

  test("is stored once, whether or not the first message is answered yet", async () => {
    const { send, store, items } = setup();
    const init = { subject: "ada", message: repeated, configuration: webhook({ token: "t" }) };
    const together = await Promise.all([send("hi", init), send("hi", init)]);
    const [{ id }] = [await send("hi", init)];
    expect(together.map((task) => task.id)).toEqual([id, id]);
    expect(await rowsOf(store, key(id))).toHaveLength(1);
    expect(items).toHaveLength(1);
  });

  test("is stored once with a message for a task", async () => {
    const { send, store } = setup();
    const { id } = await send("hi", { subject: "ada" });
    const init = { subject: "ada", message: { ...repeated, taskId: id }, configuration: webhook() };
    await Promise.all([send("Oslo", init), send("Oslo", init)]);
    await send("Oslo", init);
    expect(await rowsOf(store, key(id))).toHaveLength(1);
  });

  test("changes nothing if the caller has deleted it meanwhile", async () => {
    const { send, store, service } = setup();
    const init = { subject: "ada", message: repeated, configuration: webhook({ id: "w" }) };
    const { id: taskId } = await send("hi", init);
    await service.call("DeleteTaskPushNotificationConfig", { taskId, id: "w" }, ada);
    await send("hi", init);
    expect(await rowsOf(store, key(taskId))).toEqual([]);
  });
});

describe("a webhook with a message for a task (§3.4.3)", () => {
  test("is stored in the append of the message, and begins after the events before it", async () => {
    const { send, items, store } = setup();
    const { id } = await send("hi", { subject: "ada" });
    const head = await store.head(key(id), id);
    await send("Oslo", { subject: "ada", message: { taskId: id }, configuration: webhook() });
    expect(items).toHaveLength(1);
    expect(items[0]?.records.map(({ kind }) => kind)).toEqual(["statusUpdate", "message"]);
    expect(await storedOf(store, key(id))).toMatchObject([
      { cursor: head?.seq, generation: head?.generation, state: "TASK_STATE_INPUT_REQUIRED" },
    ]);
  });

  test("is stored with a message that waits for the running turn", async () => {
    let finish = (): void => {};
    const held = new Promise<void>((resolve) => (finish = resolve));
    const { send, stream, items, store } = setup(async function* (turn) {
      yield turn.working();
      await held;
      yield turn.completed("Done");
    });
    const reading = await stream("hi", { subject: "ada" });
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    const configuration = { ...webhook(), returnImmediately: true };
    await send("more", { subject: "ada", message: { taskId: id }, configuration });
    expect(items.map(({ records }) => records.map(({ kind }) => kind))).toEqual([["message"]]);
    expect(await rowsOf(store, key(id))).toHaveLength(1);
    finish();
  });

  test("replaces the one with its id", async () => {
    const { send, store } = setup();
    const { id } = await send("hi", { subject: "ada", configuration: webhook({ id: "w", token: "t" }) });
    const other = webhook({ id: "w", url: "https://hooks.example.org/other" });
    await send("Oslo", { subject: "ada", message: { taskId: id }, configuration: other });
    const stored = await storedOf(store, key(id));
    expect(stored).toMatchObject([{ url: "https://hooks.example.org/other" }]);
    expect(stored[0]?.sealed).toBeUndefined();
  });

  test("beyond the limit rejects the message", async () => {
    const { send, get } = setup(asks, { push: settingsOf({ configsPerTask: 1 }) });
    const { id } = await send("hi", { subject: "ada", configuration: webhook() });
    const call = send("Oslo", { subject: "ada", message: { taskId: id }, configuration: webhook() });
    await expect(call).rejects.toMatchObject({
      code: "InvalidParams",
      fields: [{ field: "configuration.taskPushNotificationConfig" }],
    });
    expect((await get(id, { subject: "ada" })).history).toHaveLength(2);
  });

  test("that does not fit beside the rows of extensions rejects the message", async () => {
    const { send, get, store, service } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    const row = { effect: "feature", op: "set", feature: "urn:other", value: "1" } as const;
    const effects = Array.from({ length: 256 }, (_, at) => ({ ...row, key: String(at) }));
    expect(await store.append([{ task: key(taskId), records: [], effects }])).toMatchObject([{ ok: true }]);
    const call = send("Oslo", { subject: "ada", message: { taskId }, configuration: webhook() });
    const code = { code: "InvalidParams" };
    await expect(call).rejects.toMatchObject({
      ...code,
      fields: [{ field: "configuration.taskPushNotificationConfig" }],
    });
    const created = service.call("CreateTaskPushNotificationConfig", { taskId, url }, ada);
    await expect(created).rejects.toMatchObject({ ...code, fields: [{ field: "taskId" }] });
    expect((await get(taskId, { subject: "ada" })).history).toHaveLength(2);
  });

  test("holds the limit for many concurrent messages", async () => {
    const { send, store } = setup(asks, { push: settingsOf({ configsPerTask: 3 }) });
    const { id } = await send("hi", { subject: "ada" });
    const message = { taskId: id };
    await Promise.allSettled(
      Array.from({ length: 20 }, () => send("x", { subject: "ada", message, configuration: webhook() })),
    );
    const { length } = await rowsOf(store, key(id));
    expect(length).toBeGreaterThan(0);
    expect(length).toBeLessThanOrEqual(3);
  });

  test("for another owner's task, or a terminal one, is rejected like a message without a webhook", async () => {
    const { send, cancel, items } = setup();
    const { id } = await send("hi", { subject: "ada" });
    const configuration = webhook();
    const eves = send("x", { subject: "eve", message: { taskId: id }, configuration });
    await expect(eves).rejects.toMatchObject({ code: "TaskNotFound", metadata: { taskId: id } });
    await cancel(id, { subject: "ada" });
    const late = send("x", { subject: "ada", message: { taskId: id }, configuration });
    await expect(late).rejects.toMatchObject({ code: "UnsupportedOperation" });
    expect(items).toEqual([]);
  });
});

describe("without push", () => {
  test("each operation and each message with a webhook is rejected (§3.3.4), even if the card says otherwise", async () => {
    const capabilities = { streaming: true, pushNotifications: true };
    for (const card of [{}, { capabilities }]) {
      const { service, send } = harness(asks, { card });
      const { id: taskId } = await send("hi", { subject: "ada" });
      const code = { code: "PushNotificationNotSupported" };
      await expect(service.call("CreateTaskPushNotificationConfig", { taskId, url }, ada)).rejects.toMatchObject(code);
      await expect(service.call("GetTaskPushNotificationConfig", { taskId, id: "w" }, ada)).rejects.toMatchObject(code);
      await expect(service.call("ListTaskPushNotificationConfigs", { taskId }, ada)).rejects.toMatchObject(code);
      await expect(service.call("DeleteTaskPushNotificationConfig", { taskId, id: "w" }, ada)).rejects.toMatchObject(
        code,
      );
      await expect(send("x", { subject: "ada", configuration: webhook() })).rejects.toMatchObject(code);
      await expect(send("x", { subject: "ada", message: { taskId }, configuration: webhook() })).rejects.toMatchObject(
        code,
      );
    }
  });
});
