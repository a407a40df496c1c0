import { describe, expect, test } from "vitest";
import type { Message, StreamResponse, Task } from "../../src/model/index.ts";
import { grpcShapes, restShapes } from "../../src/wire/v03/proto.ts";
import { Payload } from "../../src/protocol/index.ts";

const message: Message = {
  messageId: "m",
  contextId: "c",
  taskId: "t",
  role: "ROLE_USER",
  parts: [
    { text: "hi", metadata: { a: 1 } },
    { raw: "AAAA", filename: "a.png", mediaType: "image/png" },
    { url: "https://x.example/y", mediaType: "text/plain" },
    { data: { b: [2] } },
  ],
  metadata: { m: true },
  extensions: ["urn:x"],
};

const protoMessage = {
  messageId: "m",
  contextId: "c",
  taskId: "t",
  role: "ROLE_USER",
  content: [
    { text: "hi", metadata: { a: 1 } },
    { file: { fileWithBytes: "AAAA", name: "a.png", mimeType: "image/png" } },
    { file: { fileWithUri: "https://x.example/y", mimeType: "text/plain" } },
    { data: { data: { b: [2] } } },
  ],
  metadata: { m: true },
  extensions: ["urn:x"],
};

const task: Task = {
  id: "t",
  contextId: "c",
  status: { state: "TASK_STATE_CANCELED", message, timestamp: "2026-01-31T12:00:00.000Z" },
  artifacts: [{ artifactId: "a", name: "n", parts: [{ text: "made" }] }],
  history: [message],
  metadata: { k: null },
};

const protoTask = {
  id: "t",
  contextId: "c",
  status: { state: "TASK_STATE_CANCELLED", message: protoMessage, timestamp: "2026-01-31T12:00:00.000Z" },
  artifacts: [{ artifactId: "a", name: "n", parts: [{ text: "made" }] }],
  history: [protoMessage],
  metadata: { k: null },
};

/** Renames members like an encoder that keeps the proto names. */
function snake(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snake);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      snake(member),
    ]),
  );
}

const clone = <T>(value: T): T => structuredClone(value);

describe.each([
  ["REST", restShapes],
  ["gRPC", grpcShapes],
])("ProtoJSON of 0.3 on %s", (_binding, shapes) => {
  test("a task has the member content in messages, parts in artifacts, and the spelling CANCELLED", () => {
    expect(shapes.responseOf("GetTask", { payload: new Payload(task) })).toEqual(protoTask);
    expect(JSON.parse(shapes.encodeResponse("GetTask", { payload: new Payload(task) }))).toEqual(protoTask);
    expect(shapes.decodeResponse("GetTask", clone(protoTask))).toEqual(task);
    expect(shapes.decodeResponse("CancelTask", snake(protoTask))).toEqual(task);
  });

  test("the answer to a send is {task} or {message}; msg, its name in the proto, is read too", () => {
    expect(shapes.responseOf("SendMessage", { payload: new Payload({ task }) })).toEqual({ task: protoTask });
    expect(shapes.responseOf("SendMessage", { payload: new Payload({ message }) })).toEqual({ message: protoMessage });
    expect(shapes.decodeResponse("SendMessage", { msg: clone(protoMessage) })).toEqual({ message });
    expect(shapes.decodeResponse("SendMessage", { task: clone(protoTask) })).toEqual({ task });
  });

  test.each<[string, StreamResponse, object]>([
    [
      "a status update, with final at a terminal state",
      { statusUpdate: { taskId: "t", contextId: "c", status: { state: "TASK_STATE_COMPLETED" } } },
      { statusUpdate: { taskId: "t", contextId: "c", status: { state: "TASK_STATE_COMPLETED" }, final: true } },
    ],
    [
      "a status update, with final at input-required",
      { statusUpdate: { taskId: "t", contextId: "c", status: { state: "TASK_STATE_INPUT_REQUIRED" } } },
      { statusUpdate: { taskId: "t", contextId: "c", status: { state: "TASK_STATE_INPUT_REQUIRED" }, final: true } },
    ],
    [
      "a status update, without final while the task works",
      { statusUpdate: { taskId: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } } },
      { statusUpdate: { taskId: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" }, final: false } },
    ],
    [
      "an artifact update",
      {
        artifactUpdate: {
          taskId: "t",
          contextId: "c",
          artifact: { artifactId: "a", parts: [{ text: "x" }] },
          append: true,
          lastChunk: true,
        },
      },
      {
        artifactUpdate: {
          taskId: "t",
          contextId: "c",
          artifact: { artifactId: "a", parts: [{ text: "x" }] },
          append: true,
          lastChunk: true,
        },
      },
    ],
    ["a task", { task }, { task: protoTask }],
    ["a message", { message }, { message: protoMessage }],
  ])("event: %s", (_what, event, proto) => {
    expect(shapes.eventOf({ payload: new Payload(event) })).toEqual(proto);
    expect(JSON.parse(shapes.encodeEvent({ payload: new Payload(event) }))).toEqual(proto);
    expect(shapes.decodeEvent(clone(proto))).toEqual(event);
    expect(shapes.decodeEvent(snake(proto))).toEqual(event);
  });

  test("the message of a status is read from update, its name in the proto", () => {
    const status = { state: "TASK_STATE_WORKING", update: clone(protoMessage) };
    expect(shapes.decodeEvent({ status_update: { task_id: "t", context_id: "c", status } })).toEqual({
      statusUpdate: { taskId: "t", contextId: "c", status: { state: "TASK_STATE_WORKING", message } },
    });
  });

  test("without blocking a send does not wait, and historyLength 0 is the whole history, because proto3 cannot tell a default from an absent value", () => {
    const sent = (configuration: object) =>
      shapes.decodeRequest("SendMessage", { message: clone(protoMessage), configuration }).configuration;
    expect(shapes.decodeRequest("SendMessage", { request: clone(protoMessage) })).toMatchObject({
      message,
      configuration: { returnImmediately: true },
    });
    expect(sent({ blocking: true, historyLength: 0 })).toEqual({});
    expect(sent({ blocking: false, history_length: 3 })).toEqual({ returnImmediately: true, historyLength: 3 });
    expect(sent({ blocking: true, pushNotification: { id: "p", url: "https://x" } })).toEqual({
      taskPushNotificationConfig: { id: "p", url: "https://x" },
    });
    expect(shapes.decodeRequest("GetTask", { id: "t", historyLength: 0 })).toEqual({ id: "t" });
  });

  test("a send without a configuration is sent with blocking true", () => {
    expect(shapes.encodeRequest("SendMessage", { message })).toMatchObject({ configuration: { blocking: true } });
  });

  test("a send is encoded with an explicit blocking, and decoded to the same request", () => {
    const request = { message, configuration: { historyLength: 2, returnImmediately: true } };
    const wire = shapes.encodeRequest("SendMessage", request);
    expect(wire).toMatchObject({ message: protoMessage, configuration: { blocking: false, historyLength: 2 } });
    expect(shapes.decodeRequest("SendMessage", clone(wire))).toMatchObject(request);
  });

  test.each([
    ["no content", { ...protoMessage, content: [] }, "message.content"],
    ["an empty part", { ...protoMessage, content: [{}] }, "message.content[0]"],
    [
      "data that is not an object",
      { ...protoMessage, content: [{ data: { data: [1] } }] },
      "message.content[0].data.data",
    ],
    ["no role", { ...protoMessage, role: "ROLE_UNSPECIFIED" }, "message.role"],
    ["no id", { ...protoMessage, messageId: "" }, "message.messageId"],
  ])("a message with %s is rejected, and the error names the field", (_what, wrong, field) => {
    expect(() => shapes.decodeRequest("SendMessage", { message: clone(wrong) })).toThrow(
      expect.objectContaining({ code: "InvalidParams", fields: [expect.objectContaining({ field })] }),
    );
  });

  test("a negative historyLength is rejected", () => {
    expect(() => shapes.decodeRequest("GetTask", { id: "t", historyLength: -1 })).toThrow("historyLength");
  });

  test("tasks and configs can be named by resource names", () => {
    expect(shapes.decodeRequest("GetTask", { name: "tasks/t" })).toEqual({ id: "t" });
    expect(shapes.decodeRequest("CancelTask", { name: "tasks/t" })).toEqual({ id: "t" });
    expect(shapes.decodeRequest("SubscribeToTask", { name: "tasks/t" })).toEqual({ id: "t" });
    const named = { name: "tasks/t/pushNotificationConfigs/p" };
    expect(shapes.decodeRequest("GetTaskPushNotificationConfig", named)).toEqual({ taskId: "t", id: "p" });
    expect(shapes.decodeRequest("DeleteTaskPushNotificationConfig", named)).toEqual({ taskId: "t", id: "p" });
    expect(shapes.decodeRequest("ListTaskPushNotificationConfigs", { parent: "tasks/t" })).toEqual({ taskId: "t" });
    expect(() => shapes.decodeRequest("GetTask", { name: "t" })).toThrow("must be a resource name");
    expect(() => shapes.decodeRequest("CancelTask", {})).toThrow("id");
  });

  test("a push notification config is read with and without its wrapper, and written with its resource name", () => {
    const config = { taskId: "t", id: "p", url: "https://x", authentication: { scheme: "Bearer", credentials: "s" } };
    const proto = {
      name: "tasks/t/pushNotificationConfigs/p",
      pushNotificationConfig: {
        id: "p",
        url: "https://x",
        authentication: { schemes: ["Bearer"], credentials: "s" },
      },
    };
    expect(shapes.responseOf("CreateTaskPushNotificationConfig", { payload: new Payload(config) })).toEqual(proto);
    expect(shapes.decodeRequest("CreateTaskPushNotificationConfig", { taskId: "t", ...clone(proto) })).toEqual(config);
    expect(
      shapes.decodeRequest("CreateTaskPushNotificationConfig", {
        parent: "tasks/t",
        config_id: "p",
        config: { pushNotificationConfig: { url: "https://x" } },
      }),
    ).toEqual({ taskId: "t", id: "p", url: "https://x" });
    expect(shapes.decodeResponse("CreateTaskPushNotificationConfig", { config: clone(proto) })).toEqual(config);
    expect(shapes.decodeResponse("GetTaskPushNotificationConfig", clone(proto))).toEqual(config);
    for (const list of [{ configs: [proto] }, [proto]]) {
      expect(shapes.decodeResponse("ListTaskPushNotificationConfigs", clone(list))).toEqual({ configs: [config] });
    }
    expect(shapes.responseOf("DeleteTaskPushNotificationConfig", { payload: new Payload({}) })).toEqual({});
  });
});

test("a list of tasks over REST can be filtered by the state CANCELLED", () => {
  expect(restShapes.decodeRequest("ListTasks", { status: "TASK_STATE_CANCELLED" })).toEqual({
    includeArtifacts: true,
    status: "TASK_STATE_CANCELED",
  });
  const page = { nextPageToken: "", pageSize: 50, totalSize: 1 };
  const wire = restShapes.responseOf("ListTasks", { payload: new Payload({ tasks: [task], ...page }) });
  expect(wire).toEqual([protoTask]);
  const whole = { ...page, pageSize: 1 };
  expect(restShapes.decodeResponse("ListTasks", clone(wire))).toEqual({ tasks: [task], ...whole });
  // Servers with both versions send such responses.
  expect(restShapes.decodeResponse("ListTasks", clone({ tasks: [protoTask], ...page }))).toEqual({
    tasks: [task],
    ...page,
  });
});

test("a task is named in the request over gRPC, and in the path over REST", () => {
  expect(grpcShapes.encodeRequest("GetTask", { id: "t", historyLength: 2 })).toEqual({
    name: "tasks/t",
    historyLength: 2,
  });
  expect(restShapes.encodeRequest("GetTask", { id: "t", historyLength: 2 })).toEqual({ id: "t", historyLength: 2 });
  expect(grpcShapes.encodeRequest("CancelTask", { id: "t" })).toEqual({ name: "tasks/t" });
  const config = { taskId: "t", id: "p", url: "https://x" };
  expect(grpcShapes.encodeRequest("CreateTaskPushNotificationConfig", config)).toEqual({
    parent: "tasks/t",
    configId: "p",
    config: { name: "tasks/t/pushNotificationConfigs/p", pushNotificationConfig: { id: "p", url: "https://x" } },
  });
  expect(grpcShapes.encodeRequest("ListTaskPushNotificationConfigs", { taskId: "t" })).toEqual({ parent: "tasks/t" });
});
