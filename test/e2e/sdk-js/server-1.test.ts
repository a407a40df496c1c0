import { beforeEach, describe, expect, test, vi } from "vitest";
import { collect, connect, type Client, type Task } from "@parley/a2a";
import { grpcBinding } from "@parley/grpc/client";
import { glance, glances } from "../../../packages/a2a/test/client/support.ts";
import { sdkAgent, type SdkAgent } from "./obedient-1.ts";

const bindings = [grpcBinding()];

const all = ["1.0", "0.3"].flatMap((version) =>
  ["JSONRPC", "HTTP+JSON", "GRPC"].map((binding) => ({ binding, version })),
);

/** The setup of each test: an agent, our client, and helpers. */
function meeting({ binding, version }: { readonly binding: string; readonly version: string }) {
  const met = {} as { agent: SdkAgent; client: Client };

  beforeEach(async () => {
    // The SDK logs every error response to the console.
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    met.agent = await sdkAgent();
    met.client = await connect(met.agent.url, { binding, version, bindings });
  });

  /** A task that works until it is released. */
  async function working(): Promise<Task> {
    const { task } = await met.client.sendMessage({ message: "wait", configuration: { returnImmediately: true } });
    return task as Task;
  }
  return { met, working };
}

describe.each(all)("the server of the official SDK 1.x over $binding $version", (chosen) => {
  const { met, working } = meeting(chosen);

  test("SendMessage: a finished task, and a direct message", async () => {
    const { task } = await met.client.sendMessage("go");
    expect(task).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" }, history: [{ parts: [{ text: "go" }] }] });
    expect(task?.artifacts?.[0]?.parts.map(({ text }) => text)).toEqual(["al", "pha"]);
    const { message } = await met.client.sendMessage([{ text: "reply" }]);
    expect(message?.role).toBe("ROLE_AGENT");
  });

  test("SendStreamingMessage: the task, its chunks, its end", async () => {
    const events = await glances(met.client.sendStreamingMessage("go"));
    expect(events).toEqual(["task SUBMITTED", "WORKING", "al", "pha", "COMPLETED"]);
    const { task } = await collect(met.client.sendStreamingMessage("go"));
    expect(task).toMatchObject({
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [{ artifactId: "a1", name: "out", parts: [{ text: "alpha" }] }],
    });
    expect(await glances(met.client.sendStreamingMessage("reply"))).toEqual(["message"]);
  });

  test("CancelTask: a success, and a rejection", async () => {
    const task = await working();
    expect((await met.client.cancelTask(task.id)).status.state).toBe("TASK_STATE_CANCELED");
    const { task: finished } = await met.client.sendMessage("go");
    await expect(met.client.cancelTask(finished?.id as string)).rejects.toMatchObject({ code: "TaskNotCancelable" });
  });

  test("SubscribeToTask: the task first, then its end", async () => {
    const task = await working();
    const seen: string[] = [];
    for await (const event of met.client.subscribeToTask(task.id)) {
      seen.push(glance(event));
      if (seen.length === 1) void met.agent.release(task.id);
    }
    expect(seen[0]).toMatch(/^task /);
    expect(seen.at(-1)).toBe("COMPLETED");
    expect(await glances(met.client.subscribeToTask(task.id))).toEqual(["task COMPLETED"]);
  });

  test("GetExtendedAgentCard", async () => {
    expect((await met.client.getExtendedAgentCard()).name).toBe("Obedient, extended");
  });

  test("errors are the same for every binding", async () => {
    await expect(met.client.getTask("none")).rejects.toMatchObject({ name: "A2AError", code: "TaskNotFound" });
    await expect(met.client.getTask("a/b?c:cancel")).rejects.toMatchObject({ code: "TaskNotFound" });
    await expect(met.client.sendMessage({ parts: [{ text: "x" }], taskId: "none" })).rejects.toMatchObject({
      code: "TaskNotFound",
    });
    const { task } = await met.client.sendMessage("go");
    const more = { parts: [{ text: "more" }], taskId: task?.id as string };
    await expect(met.client.sendMessage(more)).rejects.toMatchObject({ code: "UnsupportedOperation" });
    await expect(glances(met.client.sendStreamingMessage(more))).rejects.toMatchObject({
      code: "UnsupportedOperation",
    });
    await expect(glances(met.client.subscribeToTask("none"))).rejects.toMatchObject({ code: "TaskNotFound" });
  });

  test("waitFor returns a task when it ends or asks a question", async () => {
    const task = await working();
    const waiting = met.client.waitFor(task);
    void met.agent.release(task.id);
    expect(await waiting).toMatchObject({ id: task.id, status: { state: "TASK_STATE_COMPLETED" } });
    expect((await met.client.waitFor(task.id)).artifacts).toHaveLength(1);
    const { task: asking } = await met.client.sendMessage("ask");
    expect((await met.client.waitFor(asking as Task)).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  });

  test("a conversation answers a question in its task, and begins another one in its context", async () => {
    const conversation = met.client.conversation();
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
});

describe.each(all.filter(({ version }) => version === "1.0"))(
  "the server of the official SDK 1.x over $binding, features of 1.0 only",
  (chosen) => {
    const { met } = meeting(chosen);

    test("GetTask, with as much history as requested", async () => {
      const { task } = await met.client.sendMessage("go");
      const id = task?.id as string;
      expect((await met.client.getTask(id)).history).toHaveLength(1);
      expect(await met.client.getTask({ id, historyLength: 0 })).not.toHaveProperty("history");
    });

    test("ListTasks: a page, and all of them through their pages", async () => {
      for (let count = 0; count < 5; count++) await met.client.sendMessage("go");
      const page = await met.client.listTasks({ pageSize: 2, status: "TASK_STATE_COMPLETED" });
      expect(page).toMatchObject({ pageSize: 2, totalSize: 5 });
      expect(page.tasks).toHaveLength(2);
      const all: string[] = [];
      for await (const task of met.client.tasks({ pageSize: 2 })) all.push(task.id);
      expect(new Set(all).size).toBe(5);
      expect((await met.client.listTasks({ contextId: "none" })).tasks).toEqual([]);
      await expect(met.client.listTasks({ pageSize: 1_000 })).rejects.toMatchObject({ code: "InvalidParams" });
    });

    test("carries the tenant of the card", async () => {
      const tenanted = await sdkAgent("acme");
      const { message } = await (await connect(tenanted.url, { ...chosen, bindings })).sendMessage("reply");
      expect(message?.parts[0]?.text).toBe("tenant acme");
    });
  },
);

// Over 0.3 REST that server follows a proto annotation that no other server follows.
describe.each(all.filter(({ binding, version }) => version === "1.0" || binding !== "HTTP+JSON"))(
  "the server of the official SDK 1.x over $binding $version",
  (chosen) => {
    const { met, working } = meeting(chosen);

    test("push configurations: created, read, listed, deleted", async () => {
      const { id: taskId } = await working();
      const made = await met.client.createTaskPushNotificationConfig({
        taskId,
        id: "hook",
        url: "http://127.0.0.1:9/hook",
      });
      expect(made).toMatchObject({ id: "hook", url: "http://127.0.0.1:9/hook" });
      expect(await met.client.getTaskPushNotificationConfig({ taskId, id: "hook" })).toMatchObject({ id: "hook" });
      expect((await met.client.listTaskPushNotificationConfigs({ taskId })).configs).toHaveLength(1);
      await met.client.deleteTaskPushNotificationConfig({ taskId, id: "hook" });
      expect((await met.client.listTaskPushNotificationConfigs({ taskId })).configs ?? []).toHaveLength(0);
      await met.agent.release(taskId);
    });
  },
);
