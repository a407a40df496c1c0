import { describe, expect, test } from "vitest";
import { A2AError, type StreamResponse, type Task, type TaskState } from "../../src/model/index.ts";
import { anonymous, Payload, type CallContext, type StreamReply } from "../../src/protocol/index.ts";
import { codecV03 } from "../../src/wire/v03/index.ts";
import { ScriptedService, status } from "../transport/support.ts";

/** Tests a client of A2A 0.3 servers whose subscriptions do not start with the task. */

const context: CallContext = { principal: anonymous, version: "0.3", extensions: [] };

const chunk = (text: string, append = true) => ({
  payload: new Payload<StreamResponse>({
    artifactUpdate: { taskId: "t1", contextId: "c1", artifact: { artifactId: "a", parts: [{ text }] }, append },
  }),
});

const taskWith = (state: TaskState, ...texts: string[]): Task => ({
  id: "t1",
  contextId: "c1",
  status: { state },
  artifacts: [{ artifactId: "a", parts: texts.map((text) => ({ text })) }],
});

/** Creates a service that returns the next of these tasks for each request. */
function given(...tasks: (Task | Error)[]) {
  const inner = new ScriptedService();
  let asked = 0;
  inner.script = ({ operation }) => {
    if (operation !== "GetTask") return undefined;
    const next = tasks[asked++];
    if (next === undefined || next instanceof Error) throw next ?? new Error("asked once too often");
    return { payload: new Payload(next) };
  };
  const service = codecV03.adaptClient?.(inner);
  if (service === undefined) throw new Error("0.3 adapts nothing");
  return { inner, subscribe: () => service.stream("SubscribeToTask", { id: "t1" }, context), service };
}

async function seen(reply: StreamReply): Promise<string[]> {
  const glances: string[] = [];
  for await (const batch of reply.batches) {
    for (const {
      payload: { value: event },
    } of batch) {
      const texts = event.task?.artifacts?.flatMap(({ parts }) => parts.map(({ text }) => text)).join("");
      if (event.task !== undefined) glances.push(`${event.task.status.state.slice(11)} ${texts}`);
      if (event.statusUpdate !== undefined) glances.push(event.statusUpdate.status.state.slice(11));
      if (event.artifactUpdate !== undefined) glances.push(event.artifactUpdate.artifact.parts[0]?.text ?? "");
    }
  }
  return glances;
}

describe("a subscription that does not begin with the task", () => {
  test("begins with the task, and ends with the task in place of the last event", async () => {
    const { inner, subscribe } = given(
      taskWith("TASK_STATE_WORKING", "a"),
      taskWith("TASK_STATE_COMPLETED", "a", "b", "c"),
    );
    inner.feed.push(chunk("b"));
    inner.feed.push(chunk("c"), status("TASK_STATE_COMPLETED", 9));
    expect(await seen(await subscribe())).toEqual(["WORKING a", "b", "c", "COMPLETED abc"]);
    expect(inner.feed.returned).toBe(1);
  });

  test("leaves out artifacts that the task already has", async () => {
    const { inner, subscribe } = given(
      taskWith("TASK_STATE_WORKING", "a", "b"),
      taskWith("TASK_STATE_COMPLETED", "a", "b", "c"),
    );
    inner.feed.push(chunk("b"), chunk("c"));
    inner.feed.push(status("TASK_STATE_COMPLETED", 9));
    expect(await seen(await subscribe())).toEqual(["WORKING ab", "c", "COMPLETED abc"]);
  });

  test("ends with a task that has ended in the meantime", async () => {
    const { inner, subscribe } = given(taskWith("TASK_STATE_FAILED", "a"));
    inner.feed.push(status("TASK_STATE_WORKING", 1));
    expect(await seen(await subscribe())).toEqual(["FAILED a"]);
    expect(inner.feed.returned).toBe(1);
  });

  test("keeps its last event if the task has an older state or cannot be read", async () => {
    const behind = given(taskWith("TASK_STATE_WORKING", "a"), taskWith("TASK_STATE_WORKING", "a"));
    behind.inner.feed.push(status("TASK_STATE_WORKING", 1));
    behind.inner.feed.push(status("TASK_STATE_CANCELED", 2));
    behind.inner.feed.end();
    expect(await seen(await behind.subscribe())).toEqual(["WORKING a", "WORKING", "CANCELED"]);
    const gone = given(new A2AError("TaskNotFound"), new A2AError("TaskNotFound"));
    gone.inner.feed.push(chunk("x"));
    gone.inner.feed.push(status("TASK_STATE_CANCELED", 2));
    gone.inner.feed.end();
    expect(await seen(await gone.subscribe())).toEqual(["x", "CANCELED"]);
  });

  test("throws Aborted if its caller aborts", async () => {
    const { inner, subscribe } = given(new A2AError("Aborted"));
    inner.feed.push(chunk("x"));
    await expect(subscribe().then(seen)).rejects.toMatchObject({ code: "Aborted" });
  });

  test("is unchanged if it continues after an event", async () => {
    const { inner, service } = given();
    inner.feed.push(chunk("x"));
    inner.feed.push(status("TASK_STATE_COMPLETED", 2));
    inner.feed.end();
    const reply = await service.stream("SubscribeToTask", { id: "t1" }, { ...context, after: 4 });
    expect(await seen(reply)).toEqual(["x", "COMPLETED"]);
  });

  test("closes its source while a read waits", async () => {
    const { inner, subscribe } = given();
    const reader = (await subscribe()).batches[Symbol.asyncIterator]();
    const waiting = reader.next();
    await reader.return?.();
    expect(inner.feed.returned).toBe(1);
    expect((await waiting).done).toBe(true);
  });
});

test("a subscription that begins with the task, and the stream of a send, are unchanged", async () => {
  const { inner, service, subscribe } = given();
  inner.feed.push({ payload: new Payload({ task: taskWith("TASK_STATE_WORKING", "a") }) });
  inner.feed.push(status("TASK_STATE_COMPLETED", 2));
  inner.feed.end();
  expect(await seen(await subscribe())).toEqual(["WORKING a", "COMPLETED"]);
  inner.feed.push(status("TASK_STATE_COMPLETED", 3));
  inner.feed.end();
  expect(await seen(await service.stream("SendStreamingMessage", {} as never, context))).toEqual(["COMPLETED"]);
});
