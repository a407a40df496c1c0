import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  A2AError,
  invalidParams,
  type A2AErrorCode,
  type Part,
  type StreamResponse,
  type TaskState,
  type WireErrorCode,
  wireErrors,
} from "../../src/model/index.ts";
import { Payload, type OperationName } from "../../src/protocol/index.ts";
import { codecV03 } from "../../src/wire/v03/index.ts";
import { messageOf } from "../model/arbitraries.ts";

/** Tests A2A 0.3 and 0.2.5 over JSON-RPC. */

const { JSONRPC: wire, "HTTP+JSON": rest } = codecV03.bindings;

const plain = (value: unknown): unknown => structuredClone(value);

/** Encodes and decodes a value. */
const throughEvent = (event: StreamResponse): StreamResponse =>
  wire.decodeEvent(JSON.parse(wire.encodeEvent({ payload: new Payload(event) })));

function refusal(run: () => unknown): readonly [A2AErrorCode, readonly string[]] {
  try {
    run();
  } catch (error) {
    if (error instanceof A2AError) return [error.code, error.fields.map(({ field }) => field)];
    throw error;
  }
  throw new Error("nothing was refused");
}

const message03 = { kind: "message", messageId: "m1", role: "user", parts: [{ kind: "text", text: "hi" }] };

function partFrom03(part: unknown): unknown {
  const params = { message: { ...message03, parts: [part] } };
  return wire.decodeRequest("SendMessage", plain(params)).message.parts[0];
}

function partTo03(part: Part): unknown {
  return (
    wire.eventOf({
      payload: new Payload({ message: { messageId: "m", role: "ROLE_AGENT", parts: [part] } }),
    }) as typeof message03
  ).parts[0];
}

test("the codec of 0.3 also reads 0.2", () => {
  expect([codecV03.version, codecV03.aliases]).toEqual(["0.3", ["0.2"]]);
});

describe("methods (0.3 §3.5.6)", () => {
  const methods: Readonly<Record<Exclude<OperationName, "ListTasks">, string>> = {
    SendMessage: "message/send",
    SendStreamingMessage: "message/stream",
    GetTask: "tasks/get",
    CancelTask: "tasks/cancel",
    SubscribeToTask: "tasks/resubscribe",
    CreateTaskPushNotificationConfig: "tasks/pushNotificationConfig/set",
    GetTaskPushNotificationConfig: "tasks/pushNotificationConfig/get",
    ListTaskPushNotificationConfigs: "tasks/pushNotificationConfig/list",
    DeleteTaskPushNotificationConfig: "tasks/pushNotificationConfig/delete",
    GetExtendedAgentCard: "agent/getAuthenticatedExtendedCard",
  };

  test.each(Object.entries(methods))("%s is %s", (operation, method) => {
    expect(wire.method(operation as OperationName)).toBe(method);
    expect(wire.operation(method)).toBe(operation);
  });

  test("tasks/list and the method names of 1.0 do not exist", () => {
    for (const method of ["tasks/list", "SendMessage", "toString", "constructor"]) {
      expect(wire.operation(method)).toBeUndefined();
    }
    expect(refusal(() => wire.encodeRequest("ListTasks", {}))).toEqual(["UnsupportedOperation", []]);
  });
});

describe("parts (0.3 §6.5)", () => {
  test.each<[string, unknown, Part]>([
    ["text", { kind: "text", text: "", metadata: { a: 1 } }, { text: "", metadata: { a: 1 } }],
    ["data", { kind: "data", data: { a: [null] } }, { data: { a: [null] } }],
    [
      "file bytes",
      { kind: "file", file: { bytes: "aGk=", name: "a.txt", mimeType: "text/plain" }, metadata: { a: 1 } },
      { raw: "aGk=", filename: "a.txt", mediaType: "text/plain", metadata: { a: 1 } },
    ],
    ["file uri", { kind: "file", file: { uri: "https://x.example/f" } }, { url: "https://x.example/f" }],
  ])("%s", (_, old, part) => {
    expect(partFrom03(old)).toEqual(part);
    expect(partTo03(part)).toEqual(old);
  });

  test("bytes are read without padding and in URL-safe base64, and are written with padding", () => {
    expect(partFrom03({ kind: "file", file: { bytes: "-_8" } })).toEqual({ raw: "+/8=" });
  });

  test("the members fileWithBytes and fileWithUri of older texts are read", () => {
    expect(partFrom03({ kind: "file", file: { fileWithBytes: "aGk=", mimeType: "a/b" } })).toEqual({
      raw: "aGk=",
      mediaType: "a/b",
    });
    expect(partFrom03({ kind: "file", file: { fileWithUri: "u:v" } })).toEqual({ url: "u:v" });
  });

  test.each([[null], [[1]], ["text"], [7], [false]])("data that is not an object is wrapped in one: %j", (data) => {
    const old = partTo03({ data, metadata: { a: 1 } });
    expect(old).toEqual({ kind: "data", data: { value: data }, metadata: { data_part_compat: true, a: 1 } });
    expect(partFrom03(old)).toEqual({ data, metadata: { a: 1 } });
    expect(partFrom03(partTo03({ data }))).toEqual({ data });
  });

  test("an object with a member value is not unwrapped without its mark", () => {
    expect(partFrom03({ kind: "data", data: { value: 1 } })).toEqual({ data: { value: 1 } });
  });

  test.each([
    ["no kind", { text: "hi" }, "kind"],
    ["an unknown kind", { kind: "fileRef", text: "hi" }, "kind"],
    ["content of another kind", { kind: "text", data: {} }, "text"],
    ["data that is an array", { kind: "data", data: [1] }, "data"],
    ["an empty file", { kind: "file", file: {} }, "file"],
    ["a file with two contents", { kind: "file", file: { bytes: "", uri: "u:v" } }, "file"],
    ["bytes that are not base64", { kind: "file", file: { bytes: "?" } }, "file.bytes"],
  ])("%s is rejected, and the error names the field", (_, part, field) => {
    expect(refusal(() => partFrom03(part))).toEqual(["InvalidParams", [`message.parts[0].${field}`]]);
  });

  test.each([[null], ["text"], [1], [[]]])("%j is not a part", (part) => {
    expect(refusal(() => partFrom03(part))[0]).toBe("InvalidParams");
  });

  test("the kind of a received part is derived from its content if it is missing", () => {
    const parts = [{ text: "a" }, { data: {} }, { file: { uri: "u:v" } }];
    expect(wire.decodeEvent({ messageId: "m", role: "agent", parts }).message?.parts).toEqual([
      { text: "a" },
      { data: {} },
      { url: "u:v" },
    ]);
    expect(refusal(() => wire.decodeEvent({ ...message03, parts: [{ kind: "video" }] }))[0]).toBe("InvalidResponse");
  });
});

describe("message/send and message/stream (0.3 §7.1)", () => {
  const read = (params: unknown) => wire.decodeRequest("SendMessage", plain(params));

  test("every member of the parameters is in the model", () => {
    const params = {
      message: {
        ...message03,
        contextId: "c1",
        taskId: "t1",
        metadata: { a: 1 },
        extensions: ["urn:x"],
        referenceTaskIds: ["t0"],
      },
      configuration: {
        acceptedOutputModes: ["text/plain"],
        historyLength: 3,
        pushNotificationConfig: {
          id: "p1",
          url: "https://hook.example",
          token: "tok",
          authentication: { schemes: ["Bearer", "Basic"], credentials: "s" },
        },
        blocking: false,
      },
      metadata: { b: 2 },
    };
    const request = {
      message: {
        messageId: "m1",
        contextId: "c1",
        taskId: "t1",
        role: "ROLE_USER",
        parts: [{ text: "hi" }],
        metadata: { a: 1 },
        extensions: ["urn:x"],
        referenceTaskIds: ["t0"],
      },
      configuration: {
        acceptedOutputModes: ["text/plain"],
        historyLength: 3,
        taskPushNotificationConfig: {
          id: "p1",
          url: "https://hook.example",
          token: "tok",
          authentication: { scheme: "Bearer", credentials: "s" },
        },
        returnImmediately: true,
      },
      metadata: { b: 2 },
    };
    expect(read(params)).toEqual(request);
    expect(wire.encodeRequest("SendMessage", { tenant: "x", ...request } as never)).toEqual({
      ...params,
      configuration: {
        ...params.configuration,
        pushNotificationConfig: {
          ...params.configuration.pushNotificationConfig,
          authentication: { schemes: ["Bearer"], credentials: "s" },
        },
      },
    });
  });

  test.each([
    [undefined, undefined],
    [{}, undefined],
    [{ blocking: true }, undefined],
    [{ blocking: false }, true],
  ])("configuration %j gives returnImmediately %j", (configuration, expected) => {
    expect(read({ message: message03, configuration }).configuration?.returnImmediately).toBe(expected);
  });

  test("a configuration is sent with blocking, and with the output modes that 0.2.5 requires", () => {
    const message = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "hi" }] } as const;
    const sent = (configuration?: object) =>
      (
        wire.encodeRequest("SendMessage", { message, ...(configuration && { configuration }) }) as {
          configuration: object;
        }
      ).configuration;
    expect(sent()).toBeUndefined();
    expect(sent({ historyLength: 1 })).toEqual({ acceptedOutputModes: [], historyLength: 1, blocking: true });
    expect(sent({ returnImmediately: true })).toEqual({ acceptedOutputModes: [], blocking: false });
  });

  test.each([
    ["nothing", undefined, ["message"]],
    ["an empty message", { message: {} }, ["message.messageId", "message.role", "message.parts"]],
    ["a message of another kind", { message: { ...message03, kind: "task" } }, ["message.kind"]],
    ["no parts", { message: { ...message03, parts: [] } }, ["message.parts"]],
    ["a string as parts", { message: { ...message03, parts: "invalid" } }, ["message.parts"]],
    ["a role of 1.0", { message: { ...message03, role: "ROLE_USER" } }, ["message.role"]],
    [
      "a negative history",
      { message: message03, configuration: { historyLength: -1 } },
      ["configuration.historyLength"],
    ],
    ["a string as blocking", { message: message03, configuration: { blocking: "false" } }, ["configuration.blocking"]],
    [
      "a webhook without a scheme",
      {
        message: message03,
        configuration: { pushNotificationConfig: { url: "u:v", authentication: { schemes: [] } } },
      },
      ["configuration.pushNotificationConfig.authentication.schemes"],
    ],
  ])("%s is InvalidParams, and the error names the fields", (_, params, fields) => {
    expect(refusal(() => read(params === undefined ? undefined : plain(params)))).toEqual(["InvalidParams", fields]);
  });

  test("an authentication without members counts as absent: ProtoJSON leaves empty lists out (0.3 §6.9)", () => {
    const config = (authentication: object) => ({
      pushNotificationConfig: { url: "https://x.example/", authentication },
    });
    expect(read({ message: message03, configuration: config({}) })).toMatchObject({
      configuration: { taskPushNotificationConfig: { url: "https://x.example/" } },
    });
    expect(refusal(() => read({ message: message03, configuration: config({ credentials: "x" }) }))).toEqual([
      "InvalidParams",
      ["configuration.pushNotificationConfig.authentication.schemes"],
    ]);
  });

  test("an id of null counts as absent, unknown members are ignored, and the kind of a message is optional", () => {
    const { kind: _, ...message } = message03;
    expect(read({ message: { ...message, taskId: null, contextId: "", strange: 1 }, other: 2 })).toEqual({
      message: { messageId: "m1", role: "ROLE_USER", parts: [{ text: "hi" }] },
    });
  });

  test("the result is the task or the message itself", () => {
    const task = { id: "t1", contextId: "c1", status: { state: "TASK_STATE_COMPLETED" } } as const;
    const old = { kind: "task", id: "t1", contextId: "c1", status: { state: "completed" } };
    expect(wire.responseOf("SendMessage", { payload: new Payload({ task }) })).toEqual(old);
    expect(wire.decodeResponse("SendMessage", plain(old))).toEqual({ task });
    expect(wire.decodeResponse("SendMessage", plain({ ...old, kind: undefined }))).toEqual({ task });
    const message = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "hi" }] } as const;
    expect(wire.responseOf("SendMessage", { payload: new Payload({ message }) })).toEqual(message03);
    expect(wire.decodeResponse("SendMessage", plain(message03))).toEqual({ message });
    const update = { kind: "status-update", taskId: "t", contextId: "c", status: { state: "working" }, final: false };
    expect(refusal(() => wire.decodeResponse("SendMessage", update))[0]).toBe("InvalidResponse");
  });

  test("stored text in the shape of 1.0 is converted before it is sent", () => {
    const value = { task: { id: "t1", contextId: "c1", status: { state: "TASK_STATE_WORKING" } } } as const;
    expect(JSON.parse(wire.encodeResponse("SendMessage", { payload: new Payload(value) }))).toEqual({
      kind: "task",
      id: "t1",
      contextId: "c1",
      status: { state: "working" },
    });
  });
});

describe("tasks (0.3 §6.1, §6.3)", () => {
  const states: Readonly<Record<string, TaskState>> = {
    submitted: "TASK_STATE_SUBMITTED",
    working: "TASK_STATE_WORKING",
    "input-required": "TASK_STATE_INPUT_REQUIRED",
    completed: "TASK_STATE_COMPLETED",
    canceled: "TASK_STATE_CANCELED",
    failed: "TASK_STATE_FAILED",
    rejected: "TASK_STATE_REJECTED",
    "auth-required": "TASK_STATE_AUTH_REQUIRED",
  };
  const readState = (state: string): TaskState =>
    wire.decodeResponse("GetTask", { kind: "task", id: "t", contextId: "c", status: { state } }).status.state;

  test.each(Object.entries(states))("%s is %s", (old, state) => {
    expect(readState(old)).toBe(state);
    expect(
      wire.responseOf("GetTask", { payload: new Payload({ id: "t", contextId: "c", status: { state } }) }),
    ).toEqual({
      kind: "task",
      id: "t",
      contextId: "c",
      status: { state: old },
    });
  });

  test("a task with an unknown state is still working", () => {
    expect(readState("unknown")).toBe("TASK_STATE_WORKING");
    expect(refusal(() => readState("TASK_STATE_WORKING"))[0]).toBe("InvalidResponse");
  });

  test("the spelling cancelled is accepted", () => {
    expect(readState("cancelled")).toBe("TASK_STATE_CANCELED");
  });

  test("a timestamp without a time zone is UTC", () => {
    const status = { state: "working", timestamp: "2025-03-04T05:06:07.123456" };
    expect(wire.decodeResponse("GetTask", { id: "t", status }).status.timestamp).toBe("2025-03-04T05:06:07.123Z");
  });

  test("contextId is required", () => {
    const value = { id: "t", status: { state: "TASK_STATE_WORKING" } } as const;
    expect(wire.responseOf("CancelTask", { payload: new Payload(value) })).toMatchObject({ contextId: "" });
    expect(throughEvent({ task: value })).toEqual({ task: value });
  });

  test("tasks/get, tasks/cancel and tasks/resubscribe take an id", () => {
    expect(wire.decodeRequest("GetTask", { id: "t", historyLength: 0, metadata: { a: 1 } })).toEqual({
      id: "t",
      historyLength: 0,
    });
    expect(wire.decodeRequest("CancelTask", { id: "t", metadata: { a: 1 } })).toEqual({ id: "t", metadata: { a: 1 } });
    expect(wire.decodeRequest("SubscribeToTask", { id: "t", metadata: {} })).toEqual({ id: "t" });
    expect(wire.encodeRequest("GetTask", { tenant: "x", id: "t", historyLength: 2 })).toEqual({
      id: "t",
      historyLength: 2,
    });
    for (const operation of ["GetTask", "CancelTask", "SubscribeToTask"] as const) {
      expect(refusal(() => wire.decodeRequest(operation, undefined))).toEqual(["InvalidParams", ["id"]]);
    }
    expect(refusal(() => wire.decodeRequest("GetTask", { id: "t", historyLength: -1 }))).toEqual([
      "InvalidParams",
      ["historyLength"],
    ]);
  });
});

describe("events (0.3 §7.2)", () => {
  test.each<[TaskState, boolean]>([
    ["TASK_STATE_SUBMITTED", false],
    ["TASK_STATE_WORKING", false],
    ["TASK_STATE_AUTH_REQUIRED", false],
    ["TASK_STATE_INPUT_REQUIRED", true],
    ["TASK_STATE_COMPLETED", true],
    ["TASK_STATE_FAILED", true],
    ["TASK_STATE_CANCELED", true],
    ["TASK_STATE_REJECTED", true],
  ])("an update to %s is final: %j", (state, final) => {
    const statusUpdate = { taskId: "t", contextId: "c", status: { state }, metadata: { a: 1 } };
    const old = wire.eventOf({ payload: new Payload({ statusUpdate }) });
    expect(old).toMatchObject({ kind: "status-update", taskId: "t", contextId: "c", final, metadata: { a: 1 } });
    expect(wire.decodeEvent(plain(old))).toEqual({ statusUpdate });
    expect(wire.endsStream?.(old)).toBe(final);
  });

  test("an artifact update", () => {
    const artifactUpdate = {
      taskId: "t",
      contextId: "c",
      artifact: { artifactId: "a", name: "n", parts: [{ text: "x" }] },
      append: true,
      lastChunk: false,
    };
    const old = {
      ...artifactUpdate,
      kind: "artifact-update",
      artifact: { ...artifactUpdate.artifact, parts: [{ kind: "text", text: "x" }] },
    };
    expect(wire.eventOf({ payload: new Payload({ artifactUpdate }) })).toEqual(old);
    expect(wire.decodeEvent(plain(old))).toEqual({ artifactUpdate });
  });

  test("the kind of an event is derived from its members if it is missing", () => {
    const status = { state: "working" };
    expect(wire.decodeEvent({ id: "t", status })).toHaveProperty("task");
    expect(wire.decodeEvent({ taskId: "t", contextId: "c", status })).toHaveProperty("statusUpdate");
    expect(wire.decodeEvent({ taskId: "t", artifact: { artifactId: "a", parts: [] } })).toHaveProperty(
      "artifactUpdate",
    );
    expect(refusal(() => wire.decodeEvent({}))).toEqual(["InvalidResponse", ["kind"]]);
    expect(refusal(() => wire.decodeEvent(null))[0]).toBe("InvalidResponse");
  });

  test("every event is the same after encoding and decoding, except for members that 0.3 does not have (§6.5)", () => {
    fc.assert(
      fc.property(messageOf("StreamResponse"), (event) => {
        const expected: unknown = JSON.parse(JSON.stringify(event), (_, value: unknown) => {
          if (typeof value !== "object" || value === null || !("text" in value || "data" in value)) return value;
          const { filename: _name, mediaType: _type, metadata = {}, ...part } = value as Record<string, unknown>;
          // Wrapped data has a mark in its metadata. If the metadata is empty without the mark, the part has no metadata.
          const wrapped = "data" in part && (typeof part["data"] !== "object" || Array.isArray(part["data"]));
          const empty = Object.keys(metadata as object).length === 0;
          return "metadata" in value && !(wrapped && empty) ? { ...part, metadata } : part;
        });
        expect(throughEvent(event)).toEqual(expected);
      }),
    );
  });
});

describe("webhook configs (0.3 §7.5 to §7.8)", () => {
  const old = { taskId: "t", pushNotificationConfig: { id: "p", url: "https://hook.example" } };
  const config = { taskId: "t", id: "p", url: "https://hook.example" };

  test("the method set has the task's id and the config in its request and its answer", () => {
    expect(wire.decodeRequest("CreateTaskPushNotificationConfig", plain(old))).toEqual(config);
    expect(wire.encodeRequest("CreateTaskPushNotificationConfig", { tenant: "x", ...config })).toEqual(old);
    expect(wire.responseOf("CreateTaskPushNotificationConfig", { payload: new Payload(config) })).toEqual(old);
    expect(wire.decodeResponse("CreateTaskPushNotificationConfig", plain(old))).toEqual(config);
  });

  test("get and delete have the ids of the task and of the config; the config's is optional for get", () => {
    const params = { id: "t", pushNotificationConfigId: "p" };
    for (const operation of ["GetTaskPushNotificationConfig", "DeleteTaskPushNotificationConfig"] as const) {
      expect(wire.decodeRequest(operation, plain(params))).toEqual({ taskId: "t", id: "p" });
      expect(wire.encodeRequest(operation, { taskId: "t", id: "p" })).toEqual(params);
    }
    expect(wire.decodeRequest("GetTaskPushNotificationConfig", { id: "t" })).toEqual({ taskId: "t", id: "" });
    expect(refusal(() => wire.decodeRequest("DeleteTaskPushNotificationConfig", { id: "t" }))).toEqual([
      "InvalidParams",
      ["pushNotificationConfigId"],
    ]);
  });

  test("the result of list is an array, and the result of delete is null", () => {
    expect(wire.decodeRequest("ListTaskPushNotificationConfigs", { id: "t" })).toEqual({ taskId: "t" });
    expect(wire.encodeRequest("ListTaskPushNotificationConfigs", { taskId: "t", pageSize: 3 })).toEqual({ id: "t" });
    expect(
      wire.encodeResponse("ListTaskPushNotificationConfigs", { payload: new Payload({ configs: [config] }) }),
    ).toBe(JSON.stringify([old]));
    expect(wire.encodeResponse("ListTaskPushNotificationConfigs", { payload: new Payload({}) })).toBe("[]");
    expect(wire.decodeResponse("ListTaskPushNotificationConfigs", [plain(old)])).toEqual({ configs: [config] });
    expect(wire.encodeResponse("DeleteTaskPushNotificationConfig", { payload: new Payload({}) })).toBe("null");
    expect(wire.decodeResponse("DeleteTaskPushNotificationConfig", null)).toEqual({});
  });
});

test("agent/getAuthenticatedExtendedCard takes no parameters, or an empty object (0.3 §7.10)", () => {
  expect(wire.encodeRequest("GetExtendedAgentCard", { tenant: "x" })).toBeUndefined();
  expect(wire.decodeRequest("GetExtendedAgentCard", undefined)).toEqual({});
  expect(wire.decodeRequest("GetExtendedAgentCard", {})).toEqual({});
});

describe("errors (0.3 §8)", () => {
  test.each<[A2AErrorCode, number]>([
    ["ParseError", -32700],
    ["InvalidRequest", -32600],
    ["MethodNotFound", -32601],
    ["InvalidParams", -32602],
    ["InternalError", -32603],
    ["TaskNotFound", -32001],
    ["TaskNotCancelable", -32002],
    ["PushNotificationNotSupported", -32003],
    ["UnsupportedOperation", -32004],
    ["ContentTypeNotSupported", -32005],
    ["InvalidAgentResponse", -32006],
    ["ExtendedAgentCardNotConfigured", -32007],
  ])("%s is %i, with a message and nothing else", (code, number) => {
    expect(wire.encodeError(new A2AError(code, "so"))).toEqual({ code: number, message: "so" });
    expect(wire.decodeError({ code: number, message: "so" })).toMatchObject({ code, message: "so" });
  });

  test("an error has no data, because version 0.3 of the SDK for Go expects an object and version 2 expects a list", () => {
    const fields = [{ field: "message.parts", description: "is required" }];
    const invalid = wire.encodeError(invalidParams(fields));
    expect(invalid).toEqual({ code: -32602, message: "Invalid parameters: message.parts is required" });
    const gone = new A2AError("TaskNotFound", undefined, { metadata: { taskId: "t" } });
    expect(wire.encodeError(gone)).toEqual({ code: -32001, message: "Task not found" });
  });

  test.each<[WireErrorCode, number, string | undefined]>([
    ["TaskNotFound", -32001, "TaskNotFoundError"],
    ["PushNotificationNotSupported", -32003, "PushNotificationNotSupportedError"],
    ["ParseError", -32700, "JSONParseError"],
    ["InternalError", -32603, "InternalError"],
    ["PermissionDenied", -32603, undefined],
  ])("%s over REST has the code %i and the error name of the SDK for Python 1.x", (code, number, type) => {
    const body = JSON.parse(rest.encodeError(new A2AError(code, "so"))) as Record<string, unknown>;
    expect(body).toMatchObject({ code: number, message: "so", error: { message: "so" } });
    expect(body["type"]).toBe(type);
    expect(rest.decodeError(wireErrors[code].http, body)).toMatchObject({ code, message: "so" });
  });

  test.each([
    ["text", "details of the peer"],
    ["an object", { exception: "x" }],
    ["a list", [{ field: "id", message: "no" }]],
    ["nothing", null],
  ])("an error with %s as data is read", (_, data) => {
    expect(wire.decodeError({ code: -32001, message: "gone", data })).toMatchObject({ code: "TaskNotFound" });
  });
});

describe("errors of REST", () => {
  test.each<[number, object, A2AErrorCode]>([
    [404, { message: "Task not found" }, "TaskNotFound"],
    [404, { message: "Authenticated Extended Card is not configured" }, "ExtendedAgentCardNotConfigured"],
    [404, { message: "Method not found" }, "MethodNotFound"],
    [409, { message: "Task cannot be canceled" }, "TaskNotCancelable"],
    [415, { message: "Incompatible content types" }, "ContentTypeNotSupported"],
    [422, { message: "Invalid parameters" }, "InvalidParams"],
    [501, { message: "Push Notification is not supported" }, "PushNotificationNotSupported"],
    [501, { message: "This operation is not supported" }, "UnsupportedOperation"],
    [502, { message: "Invalid agent response" }, "InvalidAgentResponse"],
    [500, { message: "unknown exception" }, "InternalError"],
    [404, { code: -32001, message: "Task not found: t" }, "TaskNotFound"],
    [409, { code: -32002, message: "no", data: {} }, "TaskNotCancelable"],
    [404, { error: { code: 404, status: "NOT_FOUND", message: "no", details: [] } }, "TaskNotFound"],
    [400, { error: { code: 400, status: "FAILED_PRECONDITION", message: "no", details: [] } }, "TaskNotCancelable"],
    [
      400,
      { error: { code: 400, status: "FAILED_PRECONDITION", message: "no card" } },
      "ExtendedAgentCardNotConfigured",
    ],
    [501, { error: { code: 501, status: "UNIMPLEMENTED", message: "Push off" } }, "PushNotificationNotSupported"],
    [501, { error: { code: 501, status: "UNIMPLEMENTED", message: "no" } }, "UnsupportedOperation"],
    [404, { detail: "Not Found" }, "MethodNotFound"],
  ])("status %i with the body %j is %s", (status, body, code) => {
    expect(rest.decodeError(status, body)).toMatchObject({ code });
  });
});

describe("arbitrary JSON", () => {
  /** Names from 0.3, so that the generated JSON passes the first check. */
  const names = [
    "kind",
    "id",
    "taskId",
    "contextId",
    "status",
    "state",
    "message",
    "parts",
    "text",
    "file",
    "data",
    "url",
  ];
  const leaves = [
    null,
    true,
    0,
    "",
    "text",
    "task",
    "message",
    "status-update",
    "working",
    "user",
    "https://x.example",
  ];
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom(...leaves),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...names), tie("value"), { maxKeys: 5, noNullPrototype: true }),
      fc.jsonValue({ maxDepth: 2 }),
    ),
  }));
  const operations = [
    "SendMessage",
    "GetTask",
    "CreateTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
  ] as const;

  const codeOf = (run: () => unknown): string => {
    try {
      run();
      return "understood";
    } catch (error) {
      return error instanceof A2AError ? error.code : String(error);
    }
  };

  test("is valid or rejected: InvalidParams for a request, InvalidResponse for an answer, an event or a card", () => {
    fc.assert(
      fc.property(value, fc.constantFrom(...operations), (sent, operation) => {
        const fresh = (): unknown => structuredClone(sent);
        for (const shapes of [wire, rest, codecV03.bindings.GRPC]) {
          expect(["understood", "InvalidParams"]).toContain(codeOf(() => shapes.decodeRequest(operation, fresh())));
          for (const read of [
            () => shapes.decodeResponse(operation, fresh()),
            () => shapes.decodeEvent(fresh()),
            () => codecV03.decodeCard(fresh()),
          ]) {
            expect(["understood", "InvalidResponse"]).toContain(codeOf(read));
          }
          expect(codeOf(() => shapes.endsStream?.(fresh()))).toBe("understood");
        }
        expect(wire.decodeError(fresh())).toBeInstanceOf(A2AError);
        expect(rest.decodeError(400, fresh())).toBeInstanceOf(A2AError);
      }),
      { numRuns: 400 },
    );
  });
});
