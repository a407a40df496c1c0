import { describe, expect, test } from "vitest";
import { A2AError } from "../../src/model/index.ts";
import {
  ask,
  card,
  LinesLogger,
  message,
  open,
  request,
  ScriptedService,
  serveAlone,
  serveMounts,
  task,
} from "./support.ts";

const withService = (options: Parameters<typeof serveAlone>[1] = {}) => {
  const service = new ScriptedService();
  return { service, handler: serveAlone(service, options) };
};

const send = JSON.stringify({ message });

describe("REST routes (A2A 1.0 §11.3)", () => {
  test.each([
    ["POST", "/message:send", { message }, "SendMessage", { message }],
    ["GET", "/tasks/t1", undefined, "GetTask", { id: "t1" }],
    ["GET", "/tasks", undefined, "ListTasks", {}],
    ["POST", "/tasks/t1:cancel", { metadata: { why: "late" } }, "CancelTask", { id: "t1", metadata: { why: "late" } }],
    ["POST", "/tasks/t1:cancel", undefined, "CancelTask", { id: "t1" }],
    [
      "POST",
      "/tasks/t1/pushNotificationConfigs",
      { url: "https://x.example" },
      "CreateTaskPushNotificationConfig",
      { taskId: "t1", url: "https://x.example" },
    ],
    [
      "GET",
      "/tasks/t1/pushNotificationConfigs/c1",
      undefined,
      "GetTaskPushNotificationConfig",
      { taskId: "t1", id: "c1" },
    ],
    [
      "GET",
      "/tasks/t1/pushNotificationConfigs?pageSize=3",
      undefined,
      "ListTaskPushNotificationConfigs",
      { taskId: "t1", pageSize: 3 },
    ],
    [
      "DELETE",
      "/tasks/t1/pushNotificationConfigs/c1",
      undefined,
      "DeleteTaskPushNotificationConfig",
      { taskId: "t1", id: "c1" },
    ],
    ["GET", "/extendedAgentCard", undefined, "GetExtendedAgentCard", {}],
  ])("%s %s", async (method, path, body, operation, expected) => {
    for (const tenant of [undefined, "acme"]) {
      const service = new ScriptedService();
      const handler = serveMounts([{ path: "/base", ...(tenant && { tenant }), service, card: card() }]);
      const url = `/base${tenant === undefined ? "" : `/${tenant}`}${path}`;
      const answer = await ask(handler, request(method, url, body === undefined ? {} : { body: JSON.stringify(body) }));
      expect(answer).toMatchObject({ status: 200, json: task, headers: { "content-type": "application/a2a+json" } });
      expect(service.last).toMatchObject({
        operation,
        request: tenant === undefined ? expected : { ...expected, tenant },
      });
    }
  });

  test.each([
    ["POST", "/message:stream", send, "SendStreamingMessage"],
    ["GET", "/tasks/t1:subscribe", "", "SubscribeToTask"],
    ["POST", "/tasks/t1:subscribe", "", "SubscribeToTask"],
    ["POST", "/tasks/t1:subscribe", "{}", "SubscribeToTask"],
    ["POST", "/tasks/t1:subscribe", "null", "SubscribeToTask"],
    ["POST", "/acme/tasks/t1:subscribe", "", "SubscribeToTask"],
  ])("%s %s with %j streams", async (method, path, body, operation) => {
    const service = new ScriptedService();
    const handler = serveMounts([
      { path: "", service, card: card() },
      { path: "", tenant: "acme", service, card: card() },
    ]);
    service.feed.end();
    const { head, done } = await open(handler, request(method, path, { body }));
    await done;
    expect(head).toMatchObject({ status: 200, headers: { "content-type": "text/event-stream" } });
    expect(service.last.operation).toBe(operation);
  });

  test.each([
    ["a b/c?d%", "/tasks/a%20b%2Fc%3Fd%25"],
    ["urn:task:1", "/tasks/urn:task:1"],
    ["x:cancel", "/tasks/x%3Acancel"],
    ["%2F", "/tasks/%252F"],
    ["tasks", "/tasks/tasks"],
    ["größe ✓", `/tasks/${encodeURIComponent("größe ✓")}`],
    ["..", "/tasks/%2E%2E"],
  ])("decodes the id %j once", async (id, path) => {
    const { handler, service } = withService();
    expect(await ask(handler, request("GET", path))).toMatchObject({ status: 200 });
    expect(service.last).toMatchObject({ operation: "GetTask", request: { id } });
  });

  test("binds :cancel and :subscribe to the end of the last segment", async () => {
    const { handler, service } = withService();
    await ask(handler, request("POST", "/tasks/a:subscribe%3Ab:cancel"));
    expect(service.last).toMatchObject({ operation: "CancelTask", request: { id: "a:subscribe:b" } });
    expect(await ask(handler, request("GET", "/tasks/a:cancel"))).toMatchObject({
      status: 405,
      headers: { allow: "POST" },
    });
  });

  test("names the field if the id is empty or cannot be decoded", async () => {
    const { handler, service } = withService();
    for (const [method, path] of [
      ["GET", "/tasks/"],
      ["GET", "/tasks/%zz"],
      ["GET", "/tasks/%ff"],
      ["POST", "/tasks/:cancel"],
    ] as const) {
      const answer = await ask(handler, request(method, path));
      expect(answer).toMatchObject({
        status: 400,
        json: { error: { details: [{ fieldViolations: [{ field: "id" }] }, { reason: "INVALID_PARAMS" }] } },
      });
    }
    expect(service.calls).toEqual([]);
  });

  test.each([
    "/nope",
    "/message",
    "/message:nope",
    "/tasks/a/b/c/d",
    "/v1/message/send",
    "//tasks",
    "/tasks/t1/pushNotificationConfigs/c1/x",
  ])("answers %s with 404", async (path) => {
    const { handler } = withService();
    const answer = await ask(handler, request("GET", path));
    expect(answer).toMatchObject({ status: 404, json: { error: { code: 404 } } });
    expect(answer.headers["content-type"]).toBe("application/json");
  });

  test.each([
    ["GET", "/message:send", "POST"],
    ["PUT", "/tasks/t1", "GET"],
    ["POST", "/tasks", "GET"],
    ["DELETE", "/tasks/t1:subscribe", "POST, GET"],
    ["PATCH", "/tasks/t1/pushNotificationConfigs", "POST, GET"],
    ["POST", "/tasks/t1/pushNotificationConfigs/c1", "GET, DELETE"],
  ])("answers %s %s with 405 and Allow: %s", async (method, path, allow) => {
    const { handler } = withService();
    expect(await ask(handler, request(method, path))).toMatchObject({
      status: 405,
      headers: { allow },
      json: { error: { code: 405 } },
    });
  });

  test("rejects a body whose id differs from the path", async () => {
    const { handler, service } = withService();
    const answer = await ask(handler, request("POST", "/tasks/t1:cancel", { body: '{"id":"t2"}' }));
    expect(answer).toMatchObject({
      status: 400,
      json: { error: { details: [{ fieldViolations: [{ field: "id" }] }, { reason: "INVALID_PARAMS" }] } },
    });
    const push = await ask(
      handler,
      request("POST", "/tasks/t1/pushNotificationConfigs", { body: '{"taskId":"t2","url":"https://x.example"}' }),
    );
    expect(push).toMatchObject({
      status: 400,
      json: { error: { details: [{ fieldViolations: [{ field: "taskId" }] }, { reason: "INVALID_PARAMS" }] } },
    });
    expect(service.calls).toEqual([]);
    for (const body of ['{"id":"t1"}', '{"id":null}', '{"id":""}']) {
      expect(await ask(handler, request("POST", "/tasks/t1:cancel", { body }))).toMatchObject({ status: 200 });
    }
  });
});

describe("query parameters (A2A 1.0 §11.5)", () => {
  test("have the types of their fields", async () => {
    const { handler, service } = withService();
    const query =
      "contextId=c%201&status=TASK_STATE_WORKING&pageSize=5&pageToken=x%2By&historyLength=0" +
      "&statusTimestampAfter=2025-11-09T10%3A30%3A00Z&includeArtifacts=true&nope=1&nope=2&__proto__=3";
    expect(await ask(handler, request("GET", `/tasks?${query}`))).toMatchObject({ status: 200 });
    expect(service.last.request).toMatchObject({
      contextId: "c 1",
      status: "TASK_STATE_WORKING",
      pageSize: 5,
      pageToken: "x+y",
      historyLength: 0,
      includeArtifacts: true,
    });
    expect(service.last.request).not.toHaveProperty("nope");
    await ask(handler, request("GET", "/tasks/t1?historyLength=7"));
    expect(service.last.request).toEqual({ id: "t1", historyLength: 7 });
  });

  test.each([
    ["pageSize=many", "pageSize"],
    ["pageSize=1.5", "pageSize"],
    ["pageSize=1e1", "pageSize"],
    ["pageSize=99999999999999999999", "pageSize"],
    ["historyLength=-1", "historyLength"],
    ["historyLength=", "historyLength"],
    ["includeArtifacts=yes", "includeArtifacts"],
    ["includeArtifacts=True", "includeArtifacts"],
    ["status=working", "status"],
    ["statusTimestampAfter=yesterday", "statusTimestampAfter"],
    ["pageSize=1&pageSize=2", "pageSize"],
    ["contextId=a&contextId=b", "contextId"],
  ])("that are invalid (%s) are InvalidParams and name the field", async (query, field) => {
    const { handler, service } = withService();
    const answer = await ask(handler, request("GET", `/tasks?${query}`));
    expect(answer).toMatchObject({ status: 400, json: { error: { status: "INVALID_ARGUMENT" } } });
    expect(answer.json.error.details[0].fieldViolations[0].field).toBe(field);
    expect(service.calls).toEqual([]);
  });
});

describe("REST bodies", () => {
  test.each(["application/json", "application/a2a+json", "APPLICATION/A2A+JSON; charset=utf-8"])(
    "are read as %s",
    async (type) => {
      const { handler } = withService();
      const asked = request("POST", "/message:send", { body: send, headers: { "content-type": type } });
      expect(await ask(handler, asked)).toMatchObject({ status: 200 });
    },
  );

  test("of another media type, or without one, get 415; an empty body needs none", async () => {
    const { handler, service } = withService();
    for (const type of ["text/plain", "application/x-www-form-urlencoded", ""]) {
      const asked = request("POST", "/message:send", { body: send, headers: { "content-type": type } });
      expect(await ask(handler, asked)).toMatchObject({ status: 415, json: { error: { code: 415 } } });
    }
    expect(service.calls).toEqual([]);
    expect(await ask(handler, request("POST", "/tasks/t1:cancel"))).toMatchObject({ status: 200 });
  });

  test.each([
    ["no JSON", "{", "Invalid JSON payload"],
    ["an array", "[]", "Invalid parameters"],
    ["a string", '"x"', "Invalid parameters"],
    ["nothing", "", "Invalid parameters"],
  ])("that are %s get 400", async (_, body, text) => {
    const { handler, service } = withService();
    const answer = await ask(handler, request("POST", "/message:send", { body }));
    expect(answer).toMatchObject({ status: 400, json: { error: { code: 400, status: "INVALID_ARGUMENT" } } });
    expect(answer.json.error.message).toContain(text);
    expect(service.calls).toEqual([]);
  });

  test("over the limit get 413, nested too deeply 400", async () => {
    const { handler } = withService();
    const long = await ask(handler, request("POST", "/message:send", { body: `{"x":"${"x".repeat(2000)}"}` }));
    expect(long).toMatchObject({ status: 413, json: { error: { code: 413 } } });
    const nested = (depth: number) =>
      `{"message":${JSON.stringify(message)},"metadata":{"deep":${"[".repeat(depth)}${"]".repeat(depth)}}}`;
    expect(await ask(handler, request("POST", "/message:send", { body: nested(62) }))).toMatchObject({ status: 200 });
    expect(await ask(handler, request("POST", "/message:send", { body: nested(63) }))).toMatchObject({ status: 400 });
  });
});

describe("REST errors (A2A 1.0 §5.4, §11.6)", () => {
  test.each([
    ["TaskNotFound", 404, "NOT_FOUND", "TASK_NOT_FOUND"],
    ["TaskNotCancelable", 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"],
    ["PushNotificationNotSupported", 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"],
    ["UnsupportedOperation", 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"],
    ["ContentTypeNotSupported", 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"],
    ["InvalidAgentResponse", 500, "INTERNAL", "INVALID_AGENT_RESPONSE"],
    ["ExtendedAgentCardNotConfigured", 400, "FAILED_PRECONDITION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED"],
    ["ExtensionSupportRequired", 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED"],
  ] as const)("%s is %i", async (code, http, status, reason) => {
    const { handler, service } = withService();
    service.script = () => {
      throw new A2AError(code, undefined, { metadata: { taskId: "t1" } });
    };
    const answer = await ask(handler, request("GET", "/tasks/t1"));
    expect(answer).toMatchObject({ status: http, headers: { "content-type": "application/json" } });
    expect(answer.json.error).toMatchObject({ code: http, status });
    expect(answer.json.error.details).toEqual([
      {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        reason,
        domain: "a2a-protocol.org",
        metadata: { taskId: "t1" },
      },
    ]);
  });

  test.each([
    ["Unauthenticated", 401, { challenge: "Bearer" }, { "www-authenticate": "Bearer" }],
    ["TooManyRequests", 429, { retryAfter: 3 }, { "retry-after": "3" }],
    ["Unavailable", 503, { retryAfter: 5 }, { "retry-after": "5" }],
  ] as const)("%s is %i with its header", async (code, status, options, headers) => {
    const { handler, service } = withService();
    service.script = () => {
      throw new A2AError(code, undefined, options);
    };
    expect(await ask(handler, request("GET", "/tasks/t1"))).toMatchObject({ status, headers });
  });

  test("an unexpected error is 500 with a safe message, and its cause is logged", async () => {
    const logger = new LinesLogger();
    const { handler, service } = withService({ logger });
    const cause = new TypeError("secret is not a function at /srv/app/agent.ts");
    service.script = () => {
      throw cause;
    };
    const answer = await ask(handler, request("GET", "/tasks/t1"));
    expect(answer).toMatchObject({
      status: 500,
      json: { error: { code: 500, status: "INTERNAL", message: "Internal error" } },
    });
    expect(answer.text).not.toContain("secret");
    expect(logger.lines).toMatchObject([{ level: "error", fields: { operation: "GetTask", cause } }]);
  });

  test("the caller is authenticated before the path and the body are read", async () => {
    const { handler } = withService({
      authenticate: () => Promise.reject(new A2AError("Unauthenticated", undefined, { challenge: "Bearer" })),
    });
    const asked = { ...request("POST", "/message:send"), text: () => Promise.reject(new Error("The body was read")) };
    expect(await ask(handler, asked)).toMatchObject({
      status: 401,
      headers: { "www-authenticate": "Bearer" },
      json: { error: { code: 401 } },
    });
    expect(await ask(handler, request("GET", "/nope"))).toMatchObject({ status: 401 });
  });
});

describe("tenants on REST", () => {
  test("are in the path, percent-encoded, or in the query or body", async () => {
    const service = new ScriptedService();
    const handler = serveMounts([{ path: "", tenant: "a cme", service, card: card() }]);
    expect(await ask(handler, request("GET", "/a%20cme/tasks/t1"))).toMatchObject({ status: 200 });
    expect(await ask(handler, request("GET", "/tasks/t1?tenant=a+cme"))).toMatchObject({ status: 200 });
    expect(
      await ask(handler, request("POST", "/message:send", { body: JSON.stringify({ tenant: "a cme", message }) })),
    ).toMatchObject({ status: 200 });
    expect(service.calls.map(({ request }) => (request as { tenant: string }).tenant)).toEqual([
      "a cme",
      "a cme",
      "a cme",
    ]);
  });

  test("that are unknown, missing or contradictory are InvalidParams, as in JSON-RPC", async () => {
    const handler = serveMounts([{ path: "", tenant: "acme", service: new ScriptedService(), card: card() }]);
    const bad = [
      request("GET", "/nobody/tasks/t1"),
      request("GET", "/tasks/t1"),
      request("POST", "/acme/message:send", { body: JSON.stringify({ tenant: "other", message }) }),
    ];
    for (const each of bad) {
      expect(await ask(handler, each)).toMatchObject({
        status: 400,
        json: { error: { details: [{ fieldViolations: [{ field: "tenant" }] }, { reason: "INVALID_PARAMS" }] } },
      });
    }
  });
});
