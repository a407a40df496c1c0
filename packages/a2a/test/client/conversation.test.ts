import { describe, expect, test } from "vitest";
import { connect, TaskView } from "../../src/client/index.ts";
import type { Message, TaskState } from "../../src/model/index.ts";
import { cardOf, chunkEvent, glances, jsonRpcAt, rpcServer, statusEvent, taskEvent, taskOf } from "./support.ts";

const ids = { parts: expect.anything(), messageId: expect.anything(), role: "ROLE_USER" };

/** Serves an agent whose task passes through these states. The result includes the agent's requests. */
async function agent(...states: (TaskState | Message)[]) {
  const server = await rpcServer((call) => {
    const state = states[server.calls.length - 1] as TaskState | Message;
    if (typeof state !== "string") call.answer({ message: state });
    else if (call.method === "SendMessage") call.answer({ task: taskOf(state, { id: `t${server.calls.length}` }) });
    else {
      call.events.send(taskEvent());
      call.events.send(statusEvent(state));
    }
  });
  const client = await connect(cardOf([jsonRpcAt(server.url)]));
  return { client, sent: () => server.calls.map(({ params }) => params["message"]) };
}

describe("a conversation (A2A 1.0 §3.4)", () => {
  test("begins without ids, continues a task that asks, and later refers to the finished task", async () => {
    const { client, sent } = await agent("TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED", "TASK_STATE_COMPLETED");
    const conversation = client.conversation();
    await conversation.send("one");
    expect(conversation).toMatchObject({ contextId: "c1", taskId: "t1" });
    await conversation.send("two");
    expect(conversation.taskId).toBeUndefined();
    await conversation.send("three");
    expect(sent()).toEqual([
      ids,
      { ...ids, contextId: "c1", taskId: "t1" },
      { ...ids, contextId: "c1", referenceTaskIds: ["t2"] },
    ]);
  });

  test("keeps a task that is active or needs authorization", async () => {
    const { client, sent } = await agent("TASK_STATE_WORKING", "TASK_STATE_AUTH_REQUIRED", "TASK_STATE_FAILED");
    const conversation = client.conversation();
    for (const text of ["one", "two", "three"]) await conversation.send(text);
    expect(sent()).toMatchObject([{}, { taskId: "t1" }, { taskId: "t2" }]);
  });

  test("follows the events of a stream", async () => {
    const { client, sent } = await agent("TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED", "TASK_STATE_COMPLETED");
    const conversation = client.conversation();
    for (const text of ["one", "two", "three"]) await glances(conversation.stream(text));
    expect(sent()).toEqual([
      ids,
      { ...ids, contextId: "c1", taskId: "t1" },
      { ...ids, contextId: "c1", referenceTaskIds: ["t1"] },
    ]);
  });

  test("keeps the context of a direct message, and the task that it belongs to", async () => {
    const answer: Message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "hm" }], contextId: "c1" };
    const { client, sent } = await agent(
      answer,
      "TASK_STATE_INPUT_REQUIRED",
      { ...answer, taskId: "t2" },
      answer,
      answer,
    );
    const conversation = client.conversation();
    for (const text of ["one", "two", "three", "four", "five"]) await conversation.send(text);
    expect(sent()).toEqual([
      ids,
      { ...ids, contextId: "c1" },
      { ...ids, contextId: "c1", taskId: "t2" },
      { ...ids, contextId: "c1", taskId: "t2" },
      { ...ids, contextId: "c1" },
    ]);
  });

  test("continues an earlier conversation, and keeps ids that a message already has", async () => {
    const { client, sent } = await agent("TASK_STATE_WORKING", "TASK_STATE_WORKING", "TASK_STATE_WORKING");
    await client.conversation({ contextId: "c9", taskId: "t9" }).send("more");
    await client.conversation({ contextId: "c9", taskId: "t9" }).send({ parts: [{ text: "x" }], taskId: "t8" });
    await client.conversation({ contextId: "c9", taskId: "t9" }).send({ parts: [{ text: "x" }], contextId: "c8" });
    expect(sent()).toEqual([
      { ...ids, contextId: "c9", taskId: "t9" },
      { ...ids, contextId: "c9", taskId: "t8" },
      { ...ids, contextId: "c8" },
    ]);
  });

  test("does not change when a send fails", async () => {
    const server = await rpcServer((call) =>
      call.number === 1 ? call.answer({ task: taskOf("TASK_STATE_INPUT_REQUIRED") }) : call.fail(-32603, "oh"),
    );
    const conversation = (await connect(cardOf([jsonRpcAt(server.url)]))).conversation();
    await conversation.send("one");
    await expect(conversation.send("two")).rejects.toMatchObject({ code: "InternalError" });
    expect(conversation).toMatchObject({ contextId: "c1", taskId: "t1" });
  });
});

describe("the task that a stream describes", () => {
  test("grows with each chunk, and is replaced by a snapshot", () => {
    const view = new TaskView();
    expect(view.task).toBeUndefined();
    for (const event of [taskEvent(), chunkEvent("a", false), chunkEvent("b")]) view.apply(event);
    expect(view.task?.artifacts?.[0]?.parts).toEqual([{ text: "ab" }]);
    view.apply(taskEvent("TASK_STATE_WORKING", { artifacts: [{ artifactId: "a1", parts: [{ text: "ab" }] }] }));
    view.apply(chunkEvent("c"));
    view.apply(statusEvent("TASK_STATE_COMPLETED"));
    expect(view.task).toMatchObject({
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [{ parts: [{ text: "abc" }] }],
    });
  });

  test("is complete if a server leaves out the first event of the task or of an artifact", () => {
    const view = new TaskView();
    view.apply(chunkEvent("a"));
    view.apply(chunkEvent("b"));
    expect(view.task).toMatchObject({
      id: "t1",
      contextId: "c1",
      artifacts: [{ parts: [{ text: "ab" }] }],
    });
  });
});
