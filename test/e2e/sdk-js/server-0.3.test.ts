import { beforeEach, describe, expect, test, vi } from "vitest";
import { collect, connect, type Client, type Task } from "@parley/a2a";
import { codecV03 } from "@parley/a2a/internal/wires";
import { grpcBinding } from "@parley/grpc/client";
import { sdkAgent03, type SdkAgent03 } from "./obedient-0.3.ts";
import { glance, glances } from "../../../packages/a2a/test/client/support.ts";

const bindings = [grpcBinding([codecV03])];

describe.each(["JSONRPC", "HTTP+JSON", "GRPC"])("the server of the official SDK 0.3 over %s", (binding) => {
  let agent: SdkAgent03;
  let client: Client;

  beforeEach(async () => {
    // The SDK logs every error response to the console.
    for (const method of ["error", "warn", "log"] as const)
      vi.spyOn(console, method).mockImplementation(() => undefined);
    agent = await sdkAgent03();
    client = await connect(agent.url, { binding, bindings });
  });

  /** A task that works until it is released. */
  async function working(): Promise<Task> {
    const { task } = await client.sendMessage({ message: "wait", configuration: { returnImmediately: true } });
    return task as Task;
  }

  test("reports what was chosen", () => {
    const offered = agent.card.additionalInterfaces?.find(({ transport }) => transport === binding);
    expect(client.chosen).toEqual({ url: offered?.url, protocolBinding: binding, protocolVersion: "0.3" });
  });

  test("SendMessage: a task at its end, and a plain message", async () => {
    const { task } = await client.sendMessage("go");
    expect(task).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" } });
    expect(task?.artifacts?.[0]?.parts.map(({ text }) => text)).toEqual(["al", "pha"]);
    const { message } = await client.sendMessage("reply");
    expect(message).toMatchObject({ role: "ROLE_AGENT", parts: [{ text: "directly" }] });
  });

  test("SendStreamingMessage: the task, its chunks, its end", async () => {
    const events = await glances(client.sendStreamingMessage("go"));
    expect(events).toEqual(["task SUBMITTED", "WORKING", "al", "pha", "COMPLETED"]);
    const { task } = await collect(client.sendStreamingMessage("go"));
    expect(task).toMatchObject({
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [{ artifactId: "a1", name: "out", parts: [{ text: "alpha" }] }],
    });
    expect(await glances(client.sendStreamingMessage("reply"))).toEqual(["message"]);
    expect(await glances(client.sendStreamingMessage("fail"))).toEqual(["task SUBMITTED", "FAILED"]);
  });

  test("parts of every kind arrive and return unchanged", async () => {
    const parts = [
      { text: "more", metadata: { a: 1 } },
      { raw: "aGk=", mediaType: "text/plain", filename: "a.txt" },
      { url: "https://files.example/f", mediaType: "text/plain" },
      // Over gRPC the SDK reads null as 0.
      { data: { a: [1, binding === "GRPC" ? "" : null] } },
      { data: [1, "two"] },
    ];
    const { task } = await client.sendMessage([{ text: "parts" }, ...parts]);
    const [artifact] = task?.artifacts ?? [];
    // The 0.3 proto has neither the names of files nor the metadata of parts.
    const lost = (part: object): object => ({ ...part, filename: undefined, metadata: undefined });
    const kept = (part: object): object => (binding === "JSONRPC" ? part : JSON.parse(JSON.stringify(lost(part))));
    expect(artifact?.parts.slice(0, 4)).toEqual(parts.slice(0, 4).map(kept));
    expect(artifact?.parts[4]).toEqual(binding === "JSONRPC" ? parts[4] : expect.anything());
  });

  test("GetTask", async () => {
    const { task } = await client.sendMessage("go");
    expect(await client.getTask(task?.id as string)).toMatchObject({
      id: task?.id,
      contextId: task?.contextId,
      status: { state: "TASK_STATE_COMPLETED" },
    });
  });

  test("CancelTask, and its rejection", async () => {
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

  test("push configurations: created, read, listed, deleted", async () => {
    const { id: taskId } = await working();
    const made = await client.createTaskPushNotificationConfig({
      taskId,
      id: "hook",
      url: "http://127.0.0.1:9/hook",
      token: "t",
      authentication: { scheme: "Bearer", credentials: "c" },
    });
    expect(made).toMatchObject({ taskId, id: "hook", url: "http://127.0.0.1:9/hook" });
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
    await expect(client.sendMessage({ parts: [{ text: "x" }], taskId: "none" })).rejects.toMatchObject({
      code: "TaskNotFound",
    });
    // Over REST the SDK loses the cause of a stream's failure, and answers 500.
    const streams = (code: string): object => ({ code: binding === "HTTP+JSON" ? "InternalError" : code });
    await expect(glances(client.subscribeToTask("none"))).rejects.toMatchObject(streams("TaskNotFound"));
    const { task } = await client.sendMessage("go");
    const more = { parts: [{ text: "more" }], taskId: task?.id as string };
    await expect(client.sendMessage(more)).rejects.toMatchObject({ code: "UnsupportedOperation" });
    await expect(glances(client.sendStreamingMessage(more))).rejects.toMatchObject(streams("UnsupportedOperation"));
  });

  test("waitFor gives the task at its end, and at a question", async () => {
    const task = await working();
    const waiting = client.waitFor(task);
    void agent.release(task.id);
    expect(await waiting).toMatchObject({ id: task.id, status: { state: "TASK_STATE_COMPLETED" } });
    const { task: asking } = await client.sendMessage("ask");
    expect((await client.waitFor(asking as Task)).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  });

  test("a conversation answers a question in its task", async () => {
    const conversation = client.conversation();
    const { task: asked } = await conversation.send("ask");
    const { task: answered } = await conversation.send("this one");
    expect(answered).toMatchObject({ id: asked?.id, status: { state: "TASK_STATE_COMPLETED" } });
    expect(await glances(conversation.stream("ask"))).toEqual(["task SUBMITTED", "INPUT_REQUIRED"]);
  });
});

test.each(["JSONRPC", "HTTP+JSON"])("headers over %s are those of 0.3", async (binding) => {
  const agent = await sdkAgent03();
  const client = await connect(agent.url, { binding });
  await client.sendMessage("reply", { extensions: ["urn:a", "urn:b"] });
  const sent = agent.headers.at(-1);
  expect(sent).toMatchObject({ "x-a2a-extensions": "urn:a,urn:b", "a2a-version": "0.3" });
  expect(sent).not.toHaveProperty("a2a-extensions");
});

test("listing tasks is not part of JSON-RPC 0.3, and the client says so without a request", async () => {
  const agent = await sdkAgent03();
  const client = await connect(agent.url, { binding: "JSONRPC" });
  const asked = agent.headers.length;
  await expect(client.listTasks()).rejects.toMatchObject({ code: "UnsupportedOperation" });
  expect(agent.headers).toHaveLength(asked);
});

describe("finding it", () => {
  test("where 0.2 has the card", async () => {
    const agent = await sdkAgent03("/.well-known/agent.json");
    const client = await connect(agent.url);
    expect((await client.sendMessage("reply")).message).toBeDefined();
  });

  test("with a given card", async () => {
    const agent = await sdkAgent03();
    const client = await connect(agent.card);
    expect((await client.sendMessage("reply")).message).toBeDefined();
    expect(client.chosen.protocolVersion).toBe("0.3");
  });

  test("with a card of 0.2.5, which names no version and no transport", async () => {
    const agent = await sdkAgent03();
    const { protocolVersion: _, preferredTransport: __, additionalInterfaces: ___, ...card } = agent.card;
    const client = await connect(card, { version: "0.2" });
    expect((await client.sendMessage("reply")).message).toBeDefined();
    expect(client.chosen).toEqual({ url: card.url, protocolBinding: "JSONRPC", protocolVersion: "0.2" });
  });
});
