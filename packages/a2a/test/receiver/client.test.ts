import { describe, expect, test } from "vitest";
import * as z from "zod";
import { connect, type Client } from "../../src/client/index.ts";
import { defineExtension } from "../../src/extensions/index.ts";
import type { StreamResponse, TaskPushNotificationConfig, TaskState } from "../../src/model/index.ts";
import type { AnyExtension } from "../../src/protocol/index.ts";
import { cardOf, jsonRpcAt, rpcServer, taskOf, type RpcServer } from "../client/support.ts";
import { fakeClock } from "@parley/testing";
import { receive, status, type Received } from "./support.ts";

/* Tests `client.waitFor(task, { webhook })` and `conversation.onUpdate()`, with an agent that answers calls, and reports by webhook. */

const stateOf = ({ statusUpdate, task }: StreamResponse): TaskState | undefined => (statusUpdate ?? task)?.status.state;

const stampUri = "https://example.com/extensions/stamp/v1";
const stampedAt = `${stampUri}/at`;

const stampOf = (kind: "data" | "profile" = "profile") =>
  defineExtension({ uri: stampUri, kind, metadata: { task: { at: z.string() } } });

/** Serves an agent whose task has the current `state`. The result includes the registered webhooks. */
async function agent<E extends string | AnyExtension = never>(
  extensions: readonly E[] = [],
  activated: readonly string[] = [],
) {
  const own = { state: "TASK_STATE_WORKING" as TaskState, configs: [] as TaskPushNotificationConfig[], sends: 0 };
  const server: RpcServer = await rpcServer((call) => {
    if (activated.length > 0) call.response.setHeader("a2a-extensions", activated.join(", "));
    const { configuration } = call.params as { readonly configuration?: Record<string, TaskPushNotificationConfig> };
    switch (call.method) {
      case "SendMessage": {
        const config = configuration?.["taskPushNotificationConfig"];
        if (config !== undefined) own.configs.push(config);
        own.sends += 1;
        return call.answer({ task: taskOf(own.state, { id: `t${own.sends}` }) });
      }
      case "CreateTaskPushNotificationConfig":
        own.configs.push(call.params as unknown as TaskPushNotificationConfig);
        return call.answer({ ...call.params, id: "hook" });
      case "DeleteTaskPushNotificationConfig":
        return call.answer({});
      default:
        return call.answer(taskOf(own.state, { metadata: { [stampedAt]: "read" } }));
    }
  });
  const capabilities = { pushNotifications: true, extensions: [{ uri: stampUri }] };
  const client: Client<Extract<E, AnyExtension>> = await connect(cardOf([jsonRpcAt(server.url)], { capabilities }), {
    extensions,
  });
  return { own, client, methods: server.methods };
}

/** Reports a state with a config's token. */
async function report(
  { send }: Received,
  config: TaskPushNotificationConfig | undefined,
  event: StreamResponse,
  headers: Readonly<Record<string, string>> = {},
) {
  return (await send(event, { headers: { "x-a2a-notification-token": config?.token ?? "", ...headers } })).status;
}

describe("waiting by webhook", () => {
  test("registers a webhook, returns the task of the event that ends it, and removes the webhook", async () => {
    const { own, client, methods } = await agent();
    const received = receive();
    const waiting = client.waitFor("t1", { webhook: received.receiver });
    await expect.poll(methods).toContain("GetTask");
    expect(await report(received, own.configs[0], status("TASK_STATE_WORKING"))).toBe(204);
    own.state = "TASK_STATE_COMPLETED";
    expect(await report(received, own.configs[0], status("TASK_STATE_COMPLETED"))).toBe(204);
    expect((await waiting).status.state).toBe("TASK_STATE_COMPLETED");
    await expect.poll(methods).toContain("DeleteTaskPushNotificationConfig");
    expect(methods()).not.toContain("SubscribeToTask");
    // The config was only for this wait, so the receiver no longer accepts it.
    await expect.poll(() => report(received, own.configs[0], status("TASK_STATE_COMPLETED"))).toBe(410);
    expect(received.events).toEqual([]);
  });

  test("returns a task that was finished before, without an event", async () => {
    const { own, client } = await agent();
    own.state = "TASK_STATE_FAILED";
    expect((await client.waitFor("t1", { webhook: receive().receiver })).status.state).toBe("TASK_STATE_FAILED");
  });

  test("throws if the task ends before `until` is true", async () => {
    const { own, client } = await agent();
    own.state = "TASK_STATE_CANCELED";
    const waiting = client.waitFor("t1", { webhook: receive().receiver, until: () => false });
    await expect(waiting).rejects.toMatchObject({ code: "UnsupportedOperation" });
  });

  test("ends with its signal, and removes the webhook", async () => {
    const { client, methods } = await agent();
    const leaving = new AbortController();
    const waiting = client.waitFor("t1", { webhook: receive().receiver, signal: leaving.signal });
    await expect.poll(methods).toContain("GetTask");
    leaving.abort();
    await expect(waiting).rejects.toMatchObject({ code: "Aborted" });
    await expect.poll(methods).toContain("DeleteTaskPushNotificationConfig");
  });

  test("ends with its timeout", async () => {
    const { client } = await agent();
    const waiting = client.waitFor("t1", { webhook: receive().receiver, timeout: 50 });
    await expect(waiting).rejects.toMatchObject({ code: "Timeout" });
  });

  test("polls with growing delays while no webhook comes, and resets the delay after each webhook", async () => {
    const { own, client, methods } = await agent();
    const polls = (): number => methods().filter((method) => method === "GetTask").length;
    const clock = fakeClock();
    const received = receive({ clock });
    const waiting = client.waitFor("t1", { webhook: received.receiver });
    await expect.poll(polls).toBe(1);
    for (const [silence, count] of [
      [10_000, 2],
      [20_000, 3],
      [40_000, 4],
      [60_000, 5],
      [60_000, 6],
    ] as const) {
      await expect.poll(() => clock.next()).toBe(clock.elapsed() + silence);
      clock.advance(silence - 1);
      expect(polls()).toBe(count - 1);
      clock.advance(1);
      await expect.poll(polls).toBe(count);
    }
    const timestamp = clock.now() / 1000;
    const token = { "x-a2a-notification-token": own.configs[0]?.token ?? "" };
    await received.send(status("TASK_STATE_WORKING"), { timestamp, headers: token });
    await expect.poll(polls).toBe(7);
    own.state = "TASK_STATE_COMPLETED";
    clock.advance(10_000);
    expect((await waiting).status.state).toBe("TASK_STATE_COMPLETED");
    await expect.poll(() => clock.next()).toBeUndefined();
  });

  test("requires an agent with push notifications on its card", async () => {
    const server = await rpcServer((call) => call.answer(taskOf("TASK_STATE_WORKING")));
    const client = await connect(cardOf([jsonRpcAt(server.url)]));
    const waiting = client.waitFor("t1", { webhook: receive().receiver });
    await expect(waiting).rejects.toMatchObject({ code: "PushNotificationNotSupported" });
  });
});

describe("extensions of a client that waits by webhook (A2A 1.0 §4.6)", () => {
  const brought: StreamResponse = { task: taskOf("TASK_STATE_COMPLETED", { metadata: { [stampedAt]: "noon" } }) };

  test.each([
    ["as active, if the delivery says so", undefined, { "a2a-extensions": stampUri }, "noon"],
    ["as active, if an older sender says so", undefined, { "x-a2a-extensions": stampUri }, "noon"],
    ["not if another extension is active", undefined, { "a2a-extensions": "urn:other" }, undefined],
    ["not if the delivery says nothing", undefined, {}, undefined],
    ["if it only adds data, and the delivery says nothing", "data", {}, "noon"],
  ] as const)("the task of a delivery has `ext`: %s", async (_how, kind, headers, at) => {
    const stamp = stampOf(kind);
    const { own, client, methods } = await agent([stamp]);
    const received = receive();
    const waiting = client.waitFor("t1", { webhook: received.receiver });
    await expect.poll(methods).toContain("GetTask");
    expect(await report(received, own.configs[0], brought, headers)).toBe(204);
    const task = await waiting;
    expect(task.ext(stamp)?.task.at).toBe(at);
    expect(JSON.parse(JSON.stringify(task))).toEqual(brought.task);
    // The result is the delivered task, because the client has not read the task again.
    expect(methods().filter((method) => method === "GetTask")).toHaveLength(1);
  });

  test("a task that is read after a delivery has `ext` as its answer says", async () => {
    const stamp = stampOf();
    const { own, client, methods } = await agent([stamp], [stampUri]);
    const received = receive();
    const waiting = client.waitFor("t1", { webhook: received.receiver });
    await expect.poll(methods).toContain("GetTask");
    own.state = "TASK_STATE_COMPLETED";
    expect(await report(received, own.configs[0], status("TASK_STATE_COMPLETED"))).toBe(204);
    expect((await waiting).ext(stamp)?.task.at).toBe("read");
  });

  test("a hook that throws ends the wait like a call, and the sender does not repeat the delivery", async () => {
    const stamp = defineExtension({
      uri: stampUri,
      onEvent: () => {
        throw new Error("cannot read this");
      },
    });
    const { own, client, methods } = await agent([stamp]);
    const received = receive();
    const waiting = client.waitFor("t1", { webhook: received.receiver });
    const message: unknown = expect.stringContaining("onEvent of the extension");
    const failed = waiting.catch((thrown: unknown) => thrown);
    await expect.poll(methods).toContain("GetTask");
    expect(await report(received, own.configs[0], brought, { "a2a-extensions": stampUri })).toBe(204);
    expect(await failed).toMatchObject({ code: "InternalError", message });
  });
});

describe("a conversation that is reported by webhook", () => {
  test("registers a webhook once for each new task, and passes on its events", async () => {
    const { own, client } = await agent();
    const received = receive();
    const conversation = client.conversation();
    const seen: (TaskState | undefined)[] = [];
    conversation.onUpdate(received.receiver, (event) => void seen.push(stateOf(event)));
    await conversation.send("one");
    expect(conversation.taskId).toBe("t1");
    expect(own.configs).toHaveLength(1);

    expect(await report(received, own.configs[0], status("TASK_STATE_INPUT_REQUIRED", "t1"))).toBe(204);
    expect(await report(received, own.configs[0], status("TASK_STATE_COMPLETED", "t1"))).toBe(204);
    expect(seen).toEqual(["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"]);
    // The webhook has told the conversation that the task has ended.
    await expect.poll(() => conversation.taskId).toBeUndefined();
    await conversation.send("two");
    expect(own.configs).toHaveLength(2);
    expect(received.events).toEqual([]);
  });

  test("does not add a second webhook to a continued task, nor to a message that has its own", async () => {
    const { own, client } = await agent();
    own.state = "TASK_STATE_INPUT_REQUIRED";
    const received = receive();
    const conversation = client.conversation();
    conversation.onUpdate(received.receiver, () => undefined);
    await conversation.send("one");
    own.sends = 0;
    await conversation.send("two");
    expect(own.configs).toHaveLength(1);
    const taskPushNotificationConfig = { url: "https://example.com/mine" };
    const other = client.conversation();
    other.onUpdate(received.receiver, () => undefined);
    await other.send({ message: "three", configuration: { taskPushNotificationConfig } });
    expect(own.configs[1]).toEqual(taskPushNotificationConfig);
  });

  test("a late event of an earlier task does not end the current one", async () => {
    const { own, client } = await agent();
    const received = receive();
    const conversation = client.conversation();
    conversation.onUpdate(received.receiver, () => undefined);
    await conversation.send("one");
    await report(received, own.configs[0], status("TASK_STATE_COMPLETED", "t1"));
    await expect.poll(() => conversation.taskId).toBeUndefined();
    await conversation.send("two");
    expect(conversation.taskId).toBe("t2");
    await report(received, own.configs[0], status("TASK_STATE_COMPLETED", "t1"));
    expect(conversation.taskId).toBe("t2");
  });

  test("ends with close(): later messages have no webhook, and later events get 410", async () => {
    const { own, client } = await agent();
    const received = receive();
    const conversation = client.conversation();
    const updates = conversation.onUpdate(received.receiver, () => undefined);
    await conversation.send("one");
    updates.close();
    await conversation.send("two");
    expect(own.configs).toHaveLength(1);
    await expect.poll(() => report(received, own.configs[0], status("TASK_STATE_WORKING", "t1"))).toBe(410);
  });

  test("an error of the listener makes the agent send the event again", async () => {
    const { own, client } = await agent();
    const received = receive();
    const conversation = client.conversation();
    conversation.onUpdate(received.receiver, () => Promise.reject(new Error("no")));
    await conversation.send("one");
    expect(await report(received, own.configs[0], status("TASK_STATE_COMPLETED", "t1"))).toBe(500);
  });
});
