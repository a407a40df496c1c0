import { describe, expect, test } from "vitest";
import type { A2AError, TaskPushNotificationConfig } from "@parley/a2a/model";
import type { AgentYield, Turn } from "@parley/a2a/internal/protocol/index";
import type { PushOptions } from "../../src/push/index.ts";
import { memoryStore, type Store, type TaskKey } from "../../src/store/index.ts";
import { callContext, fakeClock } from "@parley/testing";
import { harness, type Harness } from "../engine/support.ts";
import { opened, park, rowsOf, settingsOf, storedOf } from "./config-support.ts";

const url = "https://hooks.example.org/parley";
const ada = callContext({ subject: "ada" });
const eve = callContext({ subject: "eve" });

interface Setup extends Harness {
  readonly settings: ReturnType<typeof settingsOf>;
  create(config: Partial<TaskPushNotificationConfig>, context?: typeof ada): Promise<TaskPushNotificationConfig>;
  list(taskId: string): Promise<readonly string[]>;
  key(taskId: string): TaskKey;
}

/** Asks a question, so that the task stays open. */
async function* asks(turn: Turn): AsyncGenerator<AgentYield> {
  yield turn.inputRequired("Which city?");
}

function setup(options: PushOptions = {}, store: Store = memoryStore(), clock = fakeClock()): Setup {
  const settings = settingsOf(options);
  const made = harness(asks, { push: settings, store, clock });
  return {
    ...made,
    settings,
    create: async (config, context = ada) =>
      (await made.service.call("CreateTaskPushNotificationConfig", { url, ...config }, context)).payload.value,
    async list(taskId) {
      const { payload } = await made.service.call("ListTaskPushNotificationConfigs", { taskId }, ada);
      return (payload.value.configs ?? []).map(({ id = "" }) => id);
    },
    key: (taskId) => ({ agent: "agent", owner: '[null,"ada"]', taskId }),
  };
}

const secrets = { token: "the-token", authentication: { scheme: "Bearer", credentials: "the-credentials" } };

describe("CreateTaskPushNotificationConfig (A2A 1.0 §3.1.7)", () => {
  test("answers with the id that the server generated, and without secrets", async () => {
    const { send, create } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    const made = await create({ taskId, ...secrets });
    expect(made).toEqual({
      id: expect.stringMatching(/^[\da-f-]{36}$/),
      taskId,
      url,
      authentication: { scheme: "Bearer" },
    });
  });

  test("stores secrets sealed: no row and no answer contains them in clear", async () => {
    const { send, create, store, service, settings, key } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    const { id = "" } = await create({ taskId, ...secrets });
    const rows = await rowsOf(store, key(taskId));
    expect(rows).toHaveLength(1);
    expect(rows[0]?.value).not.toMatch(/the-token|the-credentials/);
    const [stored] = await storedOf(store, key(taskId));
    expect(await opened(stored?.sealed ?? "", key(taskId), id, settings)).toEqual({
      token: "the-token",
      credentials: "the-credentials",
    });
    const got = await service.call("GetTaskPushNotificationConfig", { taskId, id }, ada);
    const listed = await service.call("ListTaskPushNotificationConfigs", { taskId }, ada);
    expect(JSON.stringify([got.payload.value, listed.payload.value])).not.toMatch(/the-token|the-credentials/);
  });

  test("begins after the existing events of the task, and is due, so none in between is lost", async () => {
    const { send, create, store, key } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    const head = await store.head(key(taskId), taskId);
    await create({ taskId });
    const [stored] = await storedOf(store, key(taskId));
    expect(stored).toMatchObject({ cursor: head?.seq, state: "TASK_STATE_INPUT_REQUIRED", sequence: 0, delivered: 0 });
    const due = await store.dueFeatures({ feature: "push", agents: ["agent"], now: Infinity, limit: 10 });
    expect(due).toHaveLength(1);
  });

  test("accepts several for a task, and keeps their order", async () => {
    const { send, create, list } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    for (const id of ["c", "a", "b"]) await create({ taskId, id });
    expect(await list(taskId)).toEqual(["c", "a", "b"]);
  });

  test("replaces the config with the same id by one for another address, and keeps only its place", async () => {
    const { send, create, list, store, key } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    await create({ taskId, id: "a", ...secrets });
    await create({ taskId, id: "b" });
    const [before] = await storedOf(store, key(taskId));
    await create({ taskId, id: "a", url: "https://hooks.example.org/other" });
    expect(await list(taskId)).toEqual(["a", "b"]);
    const [after] = await storedOf(store, key(taskId));
    expect(after).toEqual({
      url: "https://hooks.example.org/other",
      version: "1.0",
      cursor: before?.cursor,
      generation: 2,
      state: "TASK_STATE_INPUT_REQUIRED",
      created: before?.created,
      nonce: expect.not.stringMatching(before?.nonce ?? ""),
      sequence: 0,
      delivered: 0,
    });
  });

  test("continues at the last event of the config with the same id, so no waiting event is lost", async () => {
    const { send, create, store, key } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    await create({ taskId, id: "a", ...secrets });
    const [before] = await storedOf(store, key(taskId));
    // The next message adds waiting events. Before that, the config's receiver got two events, and rejected one event.
    await send("Oslo", { subject: "ada", message: { taskId } });
    const refused = [{ seq: 2, sequence: 2, at: 1, reason: "No", status: 400 }];
    const waiting = { ...before, sequence: 2, delivered: 1, refused, attempts: 3, problem: { at: 1, reason: "Down" } };
    const set = { effect: "feature", op: "set", feature: "push", key: "a", due: 1 } as const;
    await store.append([
      { task: key(taskId), records: [], effects: [{ ...set, value: JSON.stringify({ ...waiting, claim: "c" }) }] },
    ]);
    await create({ taskId, id: "a" });
    const { sealed: _, scheme: _s, attempts: _a, problem: _p, ...expected } = waiting;
    expect(await storedOf(store, key(taskId))).toEqual([expected]);
    // A new address has not received any event yet, so it gets its own deliveries.
    await create({ taskId, id: "a", url: "https://hooks.example.org/other" });
    const [other] = await storedOf(store, key(taskId));
    expect(other).toMatchObject({ cursor: before?.cursor, sequence: 0, delivered: 0 });
    expect(other?.nonce).not.toBe(before?.nonce);
    expect(other).not.toHaveProperty("refused");
  });

  test("accepts as many concurrent configs as the limit allows", async () => {
    const { send, create, list } = setup({ configsPerTask: 5 });
    const { id: taskId } = await send("hi", { subject: "ada" });
    await Promise.all(["a", "b", "c", "d", "e"].map((id) => create({ taskId, id })));
    expect(await list(taskId)).toHaveLength(5);
  });

  test("restarts a parked config that is created again", async () => {
    const { send, create, list, store, key } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    await create({ taskId, id: "a" });
    await create({ taskId, id: "b" });
    await park(store, key(taskId), "a");
    expect(await list(taskId)).toEqual(["a", "b"]);
    await create({ taskId, id: "a" });
    expect(await rowsOf(store, key(taskId), "push.parked")).toEqual([]);
    expect(await list(taskId)).toEqual(["a", "b"]);
  });

  test("keeps the order of creation after a backward clock jump", async () => {
    const clock = fakeClock();
    const { send, create, list } = setup({}, memoryStore(), clock);
    const { id: taskId } = await send("hi", { subject: "ada" });
    await create({ taskId, id: "b" });
    clock.jump(-60_000);
    await create({ taskId, id: "a" });
    expect(await list(taskId)).toEqual(["b", "a"]);
  });

  test("accepts a terminal task", async () => {
    const { create, send, cancel, list } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    await cancel(taskId, { subject: "ada" });
    await create({ taskId, id: "a" });
    expect(await list(taskId)).toEqual(["a"]);
  });

  test("rejects more than the limit, names the field, and still replaces", async () => {
    const { send, create, list } = setup({ configsPerTask: 2 });
    const { id: taskId } = await send("hi", { subject: "ada" });
    await create({ taskId, id: "a" });
    await create({ taskId, id: "b" });
    await expect(create({ taskId, id: "c" })).rejects.toMatchObject({
      code: "InvalidParams",
      fields: [{ field: "taskId", description: expect.stringContaining("2 are the most") }],
    });
    await create({ taskId, id: "b" });
    expect(await list(taskId)).toEqual(["a", "b"]);
  });

  test("holds the limit for many concurrent calls", async () => {
    const { send, create, list } = setup({ configsPerTask: 3 });
    const { id: taskId } = await send("hi", { subject: "ada" });
    const calls = await Promise.allSettled(Array.from({ length: 40 }, () => create({ taskId })));
    const stored = calls.filter(({ status }) => status === "fulfilled").length;
    expect(stored).toBeGreaterThan(0);
    expect(await list(taskId)).toHaveLength(stored);
    expect(stored).toBeLessThanOrEqual(3);
  });
});

describe("GetTaskPushNotificationConfig (§3.1.8)", () => {
  test("rejects with TaskNotFound if the task has no such config", async () => {
    const { send, service } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    for (const id of ["none", "x".repeat(1024)]) {
      const call = service.call("GetTaskPushNotificationConfig", { taskId, id }, ada);
      await expect(call).rejects.toMatchObject({ code: "TaskNotFound", metadata: { taskId } });
    }
  });
});

describe("ListTaskPushNotificationConfigs (§3.1.9)", () => {
  test("returns pages that neither repeat nor skip a config, even if a page's last config is deleted", async () => {
    const { send, create, service } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    for (const id of ["a", "b", "c", "d", "e.1 / ?"]) await create({ taskId, id });
    const seen: string[] = [];
    let pageToken = "";
    do {
      const { payload } = await service.call(
        "ListTaskPushNotificationConfigs",
        { taskId, pageSize: 2, pageToken },
        ada,
      );
      const { configs = [], nextPageToken = "" } = payload.value;
      expect(configs.length).toBeLessThanOrEqual(2);
      seen.push(...configs.map(({ id = "" }) => id));
      if (pageToken === "") await service.call("DeleteTaskPushNotificationConfig", { taskId, id: "b" }, ada);
      pageToken = nextPageToken;
    } while (pageToken !== "");
    expect(seen).toEqual(["a", "b", "c", "d", "e.1 / ?"]);
  });

  test("has no token on the last page", async () => {
    const { send, create, service } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    await create({ taskId, id: "a" });
    const { payload } = await service.call("ListTaskPushNotificationConfigs", { taskId, pageSize: 1 }, ada);
    expect(payload.value.nextPageToken).toBe("");
  });

  test("is empty for a task without configs", async () => {
    const { send, list } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    expect(await list(taskId)).toEqual([]);
  });

  test.each(["nonsense", "0000000000000000.1.a", `${"f".repeat(16)}.${"9".repeat(16)}.`, "1".repeat(100_000)])(
    "rejects a token that the list did not issue (%#)",
    async (pageToken) => {
      const { send, create, service } = setup();
      const { id: taskId } = await send("hi", { subject: "ada" });
      await create({ taskId });
      const call = service.call("ListTaskPushNotificationConfigs", { taskId, pageToken }, ada);
      await expect(call).rejects.toMatchObject({ code: "InvalidParams", fields: [{ field: "pageToken" }] });
    },
  );

  test("rejects another task's token", async () => {
    const { send, create, service } = setup();
    const [one, other] = [await send("1", { subject: "ada" }), await send("2", { subject: "ada" })];
    for (const { id: taskId } of [one, other]) for (const id of ["a", "b"]) await create({ taskId, id });
    const page = { taskId: one.id, pageSize: 1 };
    const { payload } = await service.call("ListTaskPushNotificationConfigs", page, ada);
    const { nextPageToken: pageToken = "" } = payload.value;
    const call = service.call("ListTaskPushNotificationConfigs", { taskId: other.id, pageToken }, ada);
    await expect(call).rejects.toMatchObject({ fields: [{ field: "pageToken" }] });
  });
});

describe("DeleteTaskPushNotificationConfig (§3.1.10)", () => {
  test("deletes once, and does nothing after that", async () => {
    const { send, create, list, service, store, key } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    await create({ taskId, id: "a" });
    await create({ taskId, id: "b" });
    for (const id of ["a", "a", "a"]) await service.call("DeleteTaskPushNotificationConfig", { taskId, id }, ada);
    expect(await list(taskId)).toEqual(["b"]);
    expect(await rowsOf(store, key(taskId))).toHaveLength(1);
  });

  test("deletes a parked config", async () => {
    const { send, create, list, service, store, key } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    await create({ taskId, id: "a" });
    await park(store, key(taskId), "a");
    await service.call("DeleteTaskPushNotificationConfig", { taskId, id: "a" }, ada);
    expect(await list(taskId)).toEqual([]);
    expect(await rowsOf(store, key(taskId), "push.parked")).toEqual([]);
  });

  test("accepts an id that no config can have", async () => {
    const { send, service } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    const { payload } = await service.call("DeleteTaskPushNotificationConfig", { taskId, id: "x".repeat(1024) }, ada);
    expect(payload.value).toEqual({});
  });
});

describe("the configs of another caller's task (§13.1)", () => {
  test.each([
    ["CreateTaskPushNotificationConfig", { url }],
    ["CreateTaskPushNotificationConfig", { url: "http://127.0.0.1/" }],
    ["GetTaskPushNotificationConfig", { id: "a" }],
    ["ListTaskPushNotificationConfigs", {}],
    ["ListTaskPushNotificationConfigs", { pageToken: "wrong" }],
    ["DeleteTaskPushNotificationConfig", { id: "a" }],
  ] as const)("%s %j answers as for a missing task, and changes nothing", async (operation, request) => {
    const { send, create, service, store, key } = setup();
    const { id: taskId } = await send("hi", { subject: "ada" });
    await create({ taskId, id: "a" });
    const before = await rowsOf(store, key(taskId));
    const messages: string[] = [];
    for (const id of [taskId, "no-such-task"]) {
      const error = await service
        .call(operation, { id: "", url, ...request, taskId: id }, eve)
        .catch((thrown) => thrown as A2AError);
      expect(error).toMatchObject({ code: "TaskNotFound", metadata: { taskId: id } });
      messages.push((error as A2AError).message);
    }
    expect(messages[0]).toBe(messages[1]);
    expect(await rowsOf(store, key(taskId))).toEqual(before);
  });
});
