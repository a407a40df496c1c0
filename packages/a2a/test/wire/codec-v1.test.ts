import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { A2AError, type A2AErrorCode } from "../../src/model/index.ts";
import { operations, Payload, TextPayload, type CoreName } from "../../src/protocol/index.ts";
import { codecV1 } from "../../src/wire/v1/index.ts";
import { messageOf } from "../model/arbitraries.ts";
import { fieldsOf, type MessageName } from "../model/proto.ts";

const rest = codecV1.bindings["HTTP+JSON"];

/** The request and response messages of each operation in the proto (A2A 1.0 §5.3). */
const shapes: Readonly<Record<CoreName, readonly [request: MessageName, response: MessageName | "Empty"]>> = {
  SendMessage: ["SendMessageRequest", "SendMessageResponse"],
  SendStreamingMessage: ["SendMessageRequest", "StreamResponse"],
  GetTask: ["GetTaskRequest", "Task"],
  ListTasks: ["ListTasksRequest", "ListTasksResponse"],
  CancelTask: ["CancelTaskRequest", "Task"],
  SubscribeToTask: ["SubscribeToTaskRequest", "StreamResponse"],
  CreateTaskPushNotificationConfig: ["TaskPushNotificationConfig", "TaskPushNotificationConfig"],
  GetTaskPushNotificationConfig: ["GetTaskPushNotificationConfigRequest", "TaskPushNotificationConfig"],
  ListTaskPushNotificationConfigs: [
    "ListTaskPushNotificationConfigsRequest",
    "ListTaskPushNotificationConfigsResponse",
  ],
  DeleteTaskPushNotificationConfig: ["DeleteTaskPushNotificationConfigRequest", "Empty"],
  GetExtendedAgentCard: ["GetExtendedAgentCardRequest", "AgentCard"],
};
const names = Object.keys(operations) as CoreName[];

/** Returns the error code of a call, and the fields of the error. */
function refusal(run: () => unknown): readonly [A2AErrorCode, readonly string[]] {
  try {
    run();
  } catch (error) {
    if (error instanceof A2AError) return [error.code, error.fields.map(({ field }) => field)];
    throw error;
  }
  throw new Error("nothing was refused");
}

describe.each(names)("%s", (name) => {
  const [request, response] = shapes[name];

  test("has its name as its JSON-RPC method (A2A 1.0 §9.4)", () => {
    expect(codecV1.bindings.JSONRPC.method(name)).toBe(name);
    expect(codecV1.bindings.JSONRPC.operation(name)).toBe(name);
  });

  test("requests are not changed by encoding and decoding", () => {
    fc.assert(
      fc.property(messageOf(request), (message) => {
        const sent: unknown = JSON.parse(JSON.stringify(rest.encodeRequest(name, message as never)));
        expect(sent).toEqual(message);
        expect(rest.decodeRequest(name, sent)).toEqual(message);
        expect(rest.decodeRequest(name, sent)).toBe(sent);
      }),
    );
  });

  test("answers are not changed by encoding and decoding", () => {
    fc.assert(
      fc.property(response === "Empty" ? fc.constant({}) : messageOf(response), (message) => {
        const text = rest.encodeResponse(name, { payload: new Payload(message) });
        expect(rest.decodeResponse(name, JSON.parse(text))).toEqual(message);
      }),
    );
  });

  test("an answer that is already JSON text is not serialized again", () => {
    expect(rest.encodeResponse(name, { payload: new TextPayload('{"at":"hand"}') })).toBe('{"at":"hand"}');
  });

  test("a request that is not an object, or lacks a required field, is InvalidParams", () => {
    const required = fieldsOf(request).flatMap(([field, kind]) => (kind.required ? [field] : []));
    for (const wrong of ["text", 1, true, [], [{}]]) {
      expect(refusal(() => rest.decodeRequest(name, wrong))).toEqual(["InvalidParams", [""]]);
    }
    const read = (value: unknown): unknown => {
      try {
        return rest.decodeRequest(name, value);
      } catch (error) {
        return (error as A2AError).fields.map(({ field }) => field);
      }
    };
    const expected = required.length === 0 ? {} : required;
    for (const empty of [undefined, null, {}]) expect(read(empty)).toEqual(expected);
  });

  test("a route transports every field of the request (A2A 1.0 §11.3, §11.5)", () => {
    const routes = rest.routes.filter((route) => route.operation === name);
    expect(routes).toHaveLength(1);
    const [route] = routes;
    if (route === undefined) return;
    const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, field]) => field);
    const inQuery = Object.keys(route.query ?? {});
    const fields = fieldsOf(request)
      .map(([field]) => field)
      .filter((field) => field !== "tenant");
    expect(new Set(route.body ? fields : [...inPath, ...inQuery])).toEqual(new Set(fields));
    for (const field of inPath) expect(fields).toContain(field);
    const types: Readonly<Record<string, string>> = { bool: "boolean", count: "integer", page: "integer" };
    const typed = fieldsOf(request).map(([field, kind]) => [field, types[kind.base] ?? "string"] as const);
    expect(route.query ?? {}).toEqual(Object.fromEntries(typed.filter(([field]) => inQuery.includes(field))));
  });
});

test("routes are those of the specification (A2A 1.0 §11.3)", () => {
  expect(rest.routes.map(({ methods, path }) => `${methods.join(",")} ${path}`)).toEqual([
    "POST /message:send",
    "POST /message:stream",
    "GET /tasks/{id}",
    "GET /tasks",
    "POST /tasks/{id}:cancel",
    "POST,GET /tasks/{id}:subscribe",
    "POST /tasks/{taskId}/pushNotificationConfigs",
    "GET /tasks/{taskId}/pushNotificationConfigs/{id}",
    "GET /tasks/{taskId}/pushNotificationConfigs",
    "DELETE /tasks/{taskId}/pushNotificationConfigs/{id}",
    "GET /extendedAgentCard",
  ]);
  expect(rest.mediaType).toBe("application/a2a+json");
  expect(codecV1.version).toBe("1.0");
});

test.each(["message/send", "sendMessage", "SENDMESSAGE", "constructor", "__proto__", ""])(
  "%j is not a method",
  (method) => {
    expect(codecV1.bindings.JSONRPC.operation(method)).toBeUndefined();
  },
);

/** Returns a send request with these members of the message, these parts or this configuration. */
function send(change: {
  readonly message?: object;
  readonly parts?: unknown;
  readonly configuration?: unknown;
}): unknown {
  const { parts = [{ text: "hi" }], configuration } = change;
  const message = { messageId: "m", role: "ROLE_USER", parts, ...change.message };
  return { message, ...(configuration !== undefined && { configuration }) };
}

describe("an invalid request is rejected:", () => {
  test.each<[string, unknown, string]>([
    ["no role", send({ message: { role: undefined } }), "message.role"],
    ["an unknown role", send({ message: { role: "user" } }), "message.role"],
    ["no parts", send({ message: { parts: undefined } }), "message.parts"],
    ["null as parts", send({ message: { parts: null } }), "message.parts"],
    ["an empty array of parts", send({ parts: [] }), "message.parts"],
    ["a string as parts", send({ parts: "hello" }), "message.parts"],
    ["a part without content", send({ parts: [{}] }), "message.parts[0]"],
    ["a number as a part", send({ parts: [1] }), "message.parts[0]"],
    ["null as a part", send({ parts: [null] }), "message.parts[0]"],
    ["two contents in one part", send({ parts: [{ text: "a" }, { text: "a", url: "b" }] }), "message.parts[1]"],
    ["bad base64", send({ parts: [{ raw: "not base64!" }] }), "message.parts[0].raw"],
    ["an object as text", send({ parts: [{ text: {} }] }), "message.parts[0].text"],
    ["no id", send({ message: { messageId: "" } }), "message.messageId"],
    ["a string as a flag", send({ configuration: { returnImmediately: "false" } }), "configuration.returnImmediately"],
    ["a negative history length", send({ configuration: { historyLength: -1 } }), "configuration.historyLength"],
    [
      "a webhook with an empty URL",
      send({ configuration: { taskPushNotificationConfig: { url: "" } } }),
      "configuration.taskPushNotificationConfig.url",
    ],
  ])("%s", (_what, request, field) => {
    expect(refusal(() => rest.decodeRequest("SendMessage", request))).toEqual(["InvalidParams", [field]]);
    expect(refusal(() => rest.encodeRequest("SendMessage", request as never))).toEqual(["InvalidParams", [field]]);
  });

  test("the message of the error names the problem", () => {
    expect(() => rest.decodeRequest("SendMessage", send({ parts: [] }))).toThrow(
      "Invalid parameters: message.parts must hold at least one part",
    );
    expect(() => rest.decodeRequest("GetTask", [])).toThrow("Invalid parameters: it must be an object");
    expect(() => rest.decodeRequest("GetTaskPushNotificationConfig", {})).toThrow(
      "Invalid parameters: taskId is required (and 1 more)",
    );
  });
});

test("unknown members of a request are not sent, because some servers reject them", () => {
  const request = { id: "t", historyLength: 2, generation: "4" };
  expect(rest.encodeRequest("GetTask", request)).toEqual({ id: "t", historyLength: 2 });
  expect(request).toEqual({ id: "t", historyLength: 2, generation: "4" });
});

describe("answers of a peer", () => {
  test("are InvalidResponse with the path of the field if they are invalid", () => {
    expect(refusal(() => rest.decodeResponse("GetTask", { id: "t", status: {} }))).toEqual([
      "InvalidResponse",
      ["status.state"],
    ]);
    expect(refusal(() => rest.decodeResponse("SendMessage", {}))).toEqual(["InvalidResponse", [""]]);
    expect(refusal(() => rest.decodeResponse("SendMessage", "<html>"))).toEqual(["InvalidResponse", [""]]);
    expect(refusal(() => rest.decodeEvent({ task: 1 }))).toEqual(["InvalidResponse", ["task"]]);
    expect(refusal(() => codecV1.decodeCard({ name: "a" }))).toEqual(["InvalidResponse", ["supportedInterfaces"]]);
  });

  test("may be empty for a deletion", () => {
    for (const nothing of [undefined, null, {}]) {
      expect(rest.decodeResponse("DeleteTaskPushNotificationConfig", nothing)).toEqual({});
    }
  });

  test("may have unknown members", () => {
    const event = {
      statusUpdate: { taskId: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" }, final: false },
    };
    expect(rest.decodeEvent(structuredClone(event))).toEqual(event);
  });
});

test("events are sent as the stored text, or serialized if there is none", () => {
  const event = { message: { messageId: "m", role: "ROLE_AGENT" as const, parts: [{ text: "hi" }] } };
  expect(rest.encodeEvent({ payload: new TextPayload('{"stored":1}') })).toBe('{"stored":1}');
  expect(rest.decodeEvent(JSON.parse(rest.encodeEvent({ payload: new Payload(event) })))).toEqual(event);
});

test("a card is encoded as JSON of 1.0, and the members of 0.3 in a card are kept", () => {
  fc.assert(
    fc.property(messageOf("AgentCard"), (card) => {
      expect(codecV1.encodeCard(card)).toEqual(card);
      const both = { ...card, url: "https://a", preferredTransport: "JSONRPC", protocolVersion: "0.3.0" };
      expect(codecV1.decodeCard(structuredClone(both))).toEqual(both);
    }),
    { numRuns: 30 },
  );
});
