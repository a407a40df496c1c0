import { beforeEach, describe, expect, test, vi } from "vitest";
import { type Client, collect, connect } from "@parley/a2a/client";
import { codecV1 } from "@parley/a2a/wires";
import { grpcBinding } from "@parley/grpc";
import type { Task } from "@parley/a2a";
import { glance, glances } from "../../../packages/a2a/test/client/support.ts";
import { sdkAgent, type SdkAgent } from "./obedient-1.ts";

const bindings = [grpcBinding([codecV1])];

describe.each(["JSONRPC", "HTTP+JSON", "GRPC"])("the server of the official SDK 1.x over %s", (binding) => {
  let agent: SdkAgent;
  let client: Client;

  beforeEach(async () => {
    // It tells the console of every error that it answers with.
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    agent = await sdkAgent();
    client = await connect(agent.url, { binding, bindings });
  });

  /** A task that works until it is released. */
  async function working(): Promise<Task> {
    const { task } = await client.sendMessage({ message: "wait", configuration: { returnImmediately: true } });
    return task as Task;
  }

  test("SendMessage: a task at its end, and a plain message", async () => {
    const { task } = await client.sendMessage("go");
    expect(task).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" }, history: [{ parts: [{ text: "go" }] }] });
    expect(task?.artifacts?.[0]?.parts.map(({ text }) => text)).toEqual(["al", "pha"]);
    const { message } = await client.sendMessage([{ text: "reply" }]);
    expect(message?.role).toBe("ROLE_AGENT");
  });

  test("SendStreamingMessage: the task, its chunks, its end", async () => {
    const events = await glances(client.sendStreamingMessage("go"));
    expect(events).toEqual(["task SUBMITTED", "WORKING", "al", "pha", "COMPLETED"]);
    const { task } = await collect(client.sendStreamingMessage("go"));
    expect(task).toMatchObject({
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [{ artifactId: "a1", name: "out", parts: [{ text: "al" }, { text: "pha" }] }],
    });
    expect(await glances(client.sendStreamingMessage("reply"))).toEqual(["message"]);
  });

  test("GetTask, with as much history as asked for", async () => {
    const { task } = await client.sendMessage("go");
    const id = task?.id as string;
    expect((await client.getTask(id)).history).toHaveLength(1);
    expect(await client.getTask({ id, historyLength: 0 })).not.toHaveProperty("history");
  });

  test("ListTasks: a page, and all of them through their pages", async () => {
    for (let count = 0; count < 5; count++) await client.sendMessage("go");
    const page = await client.listTasks({ pageSize: 2, status: "TASK_STATE_COMPLETED" });
    expect(page).toMatchObject({ pageSize: 2, totalSize: 5 });
    expect(page.tasks).toHaveLength(2);
    const all: string[] = [];
    for await (const task of client.tasks({ pageSize: 2 })) all.push(task.id);
    expect(new Set(all).size).toBe(5);
    expect((await client.listTasks({ contextId: "none" })).tasks).toEqual([]);
  });

  test("CancelTask, and its refusal", async () => {
    const task = await working();
    expect((await client.cancelTask(task.id)).status.state).toBe("TASK_STATE_CANCELED");
    const { task: finished } = await client.sendMessage("go");
    await expect(client.cancelTask(finished?.id as string)).rejects.toMatchObject({ code: "TaskNotCancelable" });
  });

  test("SubscribeToTask: the task first, then its end", async () => {
    const task = await working();
    const seen: string[] = [];
    for await (const event of client.subscribeToTask(task.id)) {
      seen.push(glance(event));
      if (seen.length === 1) void agent.release(task.id);
    }
    expect(seen[0]).toMatch(/^task /);
    expect(seen.at(-1)).toBe("COMPLETED");
    expect(await glances(client.subscribeToTask(task.id))).toEqual(["task COMPLETED"]);
  });

  test("push configurations: made, read, listed, deleted", async () => {
    const { id: taskId } = await working();
    const made = await client.createTaskPushNotificationConfig({ taskId, id: "hook", url: "http://127.0.0.1:9/hook" });
    expect(made).toMatchObject({ id: "hook", url: "http://127.0.0.1:9/hook" });
    expect(await client.getTaskPushNotificationConfig({ taskId, id: "hook" })).toMatchObject({ id: "hook" });
    expect((await client.listTaskPushNotificationConfigs({ taskId })).configs).toHaveLength(1);
    await client.deleteTaskPushNotificationConfig({ taskId, id: "hook" });
    expect((await client.listTaskPushNotificationConfigs({ taskId })).configs ?? []).toHaveLength(0);
    await agent.release(taskId);
  });

  test("GetExtendedAgentCard", async () => {
    expect((await client.getExtendedAgentCard()).name).toBe("Obedient, extended");
  });

  test("errors are the same whatever the binding", async () => {
    await expect(client.getTask("none")).rejects.toMatchObject({ name: "A2AError", code: "TaskNotFound" });
    await expect(client.getTask("a/b?c:cancel")).rejects.toMatchObject({ code: "TaskNotFound" });
    await expect(client.listTasks({ pageSize: 1_000 })).rejects.toMatchObject({ code: "InvalidParams" });
    await expect(client.sendMessage({ parts: [{ text: "x" }], taskId: "none" })).rejects.toMatchObject({
      code: "TaskNotFound",
    });
    const { task } = await client.sendMessage("go");
    const more = { parts: [{ text: "more" }], taskId: task?.id as string };
    await expect(client.sendMessage(more)).rejects.toMatchObject({ code: "UnsupportedOperation" });
    await expect(glances(client.sendStreamingMessage(more))).rejects.toMatchObject({ code: "UnsupportedOperation" });
    await expect(glances(client.subscribeToTask("none"))).rejects.toMatchObject({ code: "TaskNotFound" });
  });

  test("waitFor gives the task at its end, and at a question", async () => {
    const task = await working();
    const waiting = client.waitFor(task);
    void agent.release(task.id);
    expect(await waiting).toMatchObject({ id: task.id, status: { state: "TASK_STATE_COMPLETED" } });
    expect((await client.waitFor(task.id)).artifacts).toHaveLength(1);
    const { task: asking } = await client.sendMessage("ask");
    expect((await client.waitFor(asking as Task)).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  });

  test("a conversation answers a question in its task, and begins another one in its context", async () => {
    const conversation = client.conversation();
    const { task: asked } = await conversation.send("ask");
    expect(conversation).toMatchObject({ taskId: asked?.id, contextId: asked?.contextId });
    const { task: answered } = await conversation.send("this one");
    expect(answered).toMatchObject({ id: asked?.id, status: { state: "TASK_STATE_COMPLETED" } });
    expect(conversation.taskId).toBeUndefined();
    expect(await glances(conversation.stream("ask"))).toEqual(["task SUBMITTED", "INPUT_REQUIRED"]);
    const { task: second } = await conversation.send("that one");
    expect(second?.id).not.toBe(asked?.id);
    expect(second?.contextId).toBe(asked?.contextId);
    expect(second?.status.state).toBe("TASK_STATE_COMPLETED");
  });

  test("carries the tenant of the card", async () => {
    const tenanted = await sdkAgent("acme");
    const { message } = await (await connect(tenanted.url, { binding, bindings })).sendMessage("reply");
    expect(message?.parts[0]?.text).toBe("tenant acme");
  });
});
