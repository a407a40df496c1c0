import { describe, expect, test } from "vitest";
import { A2AError, invalidParams } from "../../src/model/index.ts";
import { Payload, TextPayload, type UniversalHandler } from "../../src/protocol/index.ts";
import {
  ask,
  LinesLogger,
  message,
  post,
  request,
  rpc,
  ScriptedService,
  serveAlone,
  serveMounts,
  card,
  task,
} from "./support.ts";

const withService = (options: Parameters<typeof serveAlone>[1] = {}) => {
  const service = new ScriptedService();
  return { service, handler: serveAlone(service, options) };
};

describe("the JSON-RPC envelope (A2A 1.0 §9.3)", () => {
  test.each([
    ["a string", "x-1"],
    ["an empty string", ""],
    ["zero", 0],
    ["a negative integer", -7],
    ["null", null],
  ])("echoes %s as id", async (_, id) => {
    const { handler } = withService();
    const answer = await post(handler, rpc("GetTask", { id: "t1" }, id));
    expect(answer).toMatchObject({ status: 200, json: { jsonrpc: "2.0", id, result: task } });
    expect(answer.headers["content-type"]).toBe("application/json");
  });

  test.each([
    ["fractional", 1.5],
    ["an object", {}],
    ["an array", []],
    ["a boolean", true],
    ["beyond exact integers", 2 ** 60],
  ])("rejects an id that is %s", async (_, id) => {
    const { handler, service } = withService();
    const answer = await post(handler, rpc("GetTask", { id: "t1" }, id));
    expect(answer).toMatchObject({ status: 200, json: { id: null, error: { code: -32600 } } });
    expect(answer.json.error.data[0].fieldViolations[0].field).toBe("id");
    expect(service.calls).toEqual([]);
  });

  test("answers with the id of a request that is otherwise invalid", async () => {
    const { handler } = withService();
    const answer = await post(handler, JSON.stringify({ jsonrpc: "1.0", id: 5, method: "GetTask" }));
    expect(answer.json).toMatchObject({ id: 5, error: { code: -32600 } });
  });

  test.each([
    ["a batch", "[" + rpc("GetTask", { id: "t1" }) + "]"],
    ["an empty batch", "[]"],
    ["a string", '"hi"'],
    ["null", "null"],
    ["a wrong jsonrpc", '{"jsonrpc":"1.0","id":1,"method":"GetTask"}'],
    ["no jsonrpc", '{"id":1,"method":"GetTask"}'],
    ["no method", '{"jsonrpc":"2.0","id":1}'],
    ["an empty method", '{"jsonrpc":"2.0","id":1,"method":""}'],
    ["a method that is not a string", '{"jsonrpc":"2.0","id":1,"method":7}'],
    ["no id and no method", '{"jsonrpc":"2.0"}'],
  ])("answers -32600 to %s", async (_, body) => {
    const { handler, service } = withService();
    expect(await post(handler, body)).toMatchObject({ status: 200, json: { error: { code: -32600 } } });
    expect(service.calls).toEqual([]);
  });

  test.each([
    ["text", "hello"],
    ["half an object", '{"jsonrpc":"2.0",'],
    ["nothing", ""],
    ["blanks", "  "],
  ])("answers -32700 to %s", async (_, body) => {
    const { handler } = withService();
    const answer = await post(handler, body, body === "" ? {} : { "content-type": "application/json" });
    expect(answer).toMatchObject({ status: 200, json: { id: null, error: { code: -32700 } } });
  });

  test("answers -32601 to an unknown method, also to names of Object.prototype and methods of 0.3", async () => {
    const { handler } = withService();
    for (const method of ["Nope", "constructor", "__proto__", "toString", "message/send"]) {
      expect(await post(handler, rpc(method))).toMatchObject({ status: 200, json: { id: 1, error: { code: -32601 } } });
    }
  });

  test("answers -32602 to invalid params, naming every field (§9.5)", async () => {
    const { handler, service } = withService();
    const { status, json } = await post(handler, rpc("SendMessage", { message: { role: "ROLE_CAT", parts: [] } }));
    expect(status).toBe(200);
    expect(json.error.code).toBe(-32602);
    const bad = json.error.data.find((detail: { "@type": string }) =>
      detail["@type"].endsWith("google.rpc.BadRequest"),
    );
    const fields = bad.fieldViolations.map((violation: { field: string }) => violation.field);
    expect(fields).toEqual(expect.arrayContaining(["message.messageId", "message.role", "message.parts"]));
    expect(service.calls).toEqual([]);
  });

  test.each([
    ["an array", [1]],
    ["a string", "x"],
    ["a number", 3],
  ])("answers -32602 to params that are %s", async (_, params) => {
    const { handler } = withService();
    expect(await post(handler, rpc("GetTask", params))).toMatchObject({ json: { error: { code: -32602 } } });
  });

  test("accepts absent and null params if all fields are optional", async () => {
    const { handler, service } = withService();
    const value = { tasks: [], nextPageToken: "", pageSize: 50, totalSize: 0 };
    service.script = () => ({ payload: new Payload(value) });
    expect((await post(handler, rpc("ListTasks"))).json.result).toEqual(value);
    expect((await post(handler, rpc("ListTasks", null))).json.result).toEqual(value);
    expect((await post(handler, rpc("GetTask"))).json.error.code).toBe(-32602);
  });

  test("executes a notification without an answer, but answers an invalid one with an error", async () => {
    const { handler, service } = withService();
    const notification = JSON.stringify({ jsonrpc: "2.0", method: "SendMessage", params: { message } });
    expect(await post(handler, notification)).toMatchObject({ status: 204, text: "" });
    expect(service.last.operation).toBe("SendMessage");
    service.script = () => {
      throw new A2AError("TaskNotFound");
    };
    expect(await post(handler, notification)).toMatchObject({
      status: 200,
      json: { id: null, error: { code: -32001 } },
    });
    const unknown = await post(handler, '{"jsonrpc":"2.0","method":"Nope"}');
    expect(unknown).toMatchObject({ status: 200, json: { id: null, error: { code: -32601 } } });
  });

  test("closes the stream of a notification", async () => {
    const { handler, service } = withService();
    const notification = JSON.stringify({ jsonrpc: "2.0", method: "SendStreamingMessage", params: { message } });
    expect(await post(handler, notification)).toMatchObject({ status: 204, text: "" });
    expect(service.feed.returned).toBe(1);
  });
});

describe("JSON-RPC over HTTP", () => {
  test("answers at the base with and without a slash at its end", async () => {
    const service = new ScriptedService();
    const handler = serveMounts([{ path: "/weather", service, card: card() }]);
    for (const url of ["/weather", "/weather/", "/weather?x=1"]) {
      const answer = await ask(handler, request("POST", url, { body: rpc("GetTask", { id: "t1" }) }));
      expect(answer.json.result).toEqual(task);
    }
  });

  test("answers other methods with 405 and Allow", async () => {
    const { handler } = withService();
    for (const method of ["GET", "PUT", "DELETE", "OPTIONS"]) {
      const answer = await ask(handler, request(method, "/"));
      expect(answer).toMatchObject({ status: 405, headers: { allow: "POST" } });
    }
  });

  test.each([
    "application/json",
    "application/a2a+json",
    "Application/JSON; charset=utf-8",
    "application/a2a+json;v=1",
  ])("reads %s", async (type) => {
    const { handler } = withService();
    expect(await post(handler, rpc("GetTask", { id: "t1" }), { "content-type": type })).toMatchObject({
      status: 200,
      json: { result: task },
    });
  });

  test.each(["text/plain", "application/xml", "multipart/form-data; boundary=x", "application/jsonp", ""])(
    "answers %j with 415, before the body is read",
    async (type) => {
      const { handler } = withService();
      const asked = request("POST", "/", { body: rpc("GetTask", { id: "t1" }), headers: { "content-type": type } });
      let read = false;
      const spied = { ...asked, text: (limit: number) => ((read = true), asked.text(limit)) };
      expect(await ask(handler, spied)).toMatchObject({ status: 415, json: { jsonrpc: "2.0", id: null } });
      // Without a media type, an empty body is valid, so the server reads the body.
      expect(read).toBe(type === "");
    },
  );

  test("answers a body over the limit with 413 (default 10 MiB)", async () => {
    const { handler, service } = withService();
    const answer = await post(handler, rpc("GetTask", { id: "x".repeat(2000) }));
    expect(answer).toMatchObject({ status: 413, json: { error: { code: -32600 } } });
    expect(service.calls).toEqual([]);
  });

  test("answers nesting over the limit with -32600, and 20,000 levels too", async () => {
    const { handler, service } = withService({ limits: { bodyBytes: 1 << 20, depth: 64 } });
    const nested = (depth: number) =>
      rpc("SendMessage", { message, metadata: { deep: JSON.parse("[".repeat(depth) + "]".repeat(depth)) } });
    expect(await post(handler, nested(62))).toMatchObject({ json: { result: task } });
    expect(await post(handler, nested(63))).toMatchObject({ status: 200, json: { error: { code: -32600 } } });
    const calls = service.calls.length;
    const bomb = `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":${"[".repeat(20_000)}${"]".repeat(20_000)}}`;
    expect(await post(handler, bomb)).toMatchObject({ status: 200, json: { error: { code: -32600 } } });
    expect(service.calls.length).toBe(calls);
  });

  test("does not count brackets in strings as nesting", async () => {
    const { handler } = withService({ limits: { bodyBytes: 1 << 20, depth: 64 } });
    const text = `${"[{".repeat(100)}\\"\\\\`;
    const body = rpc("SendMessage", { message: { ...message, parts: [{ text }] } });
    expect(await post(handler, body)).toMatchObject({ json: { result: task } });
  });

  test.each([
    ["Unauthenticated", 401, { challenge: "Bearer" }, { "www-authenticate": "Bearer" }],
    ["PermissionDenied", 403, {}, {}],
    ["TooManyRequests", 429, { retryAfter: 1.2 }, { "retry-after": "2" }],
    ["Unavailable", 503, { retryAfter: 5 }, { "retry-after": "5" }],
  ] as const)("reports %s as an HTTP error too: JSON-RPC has no code", async (code, status, options, headers) => {
    const { handler, service } = withService();
    service.script = () => {
      throw new A2AError(code, undefined, options);
    };
    expect(await post(handler, rpc("GetTask", { id: "t1" }))).toMatchObject({
      status,
      headers,
      json: { id: 1, error: {} },
    });
  });

  test("answers every other error with 200", async () => {
    const { handler, service } = withService();
    for (const [code, number] of [
      ["TaskNotFound", -32001],
      ["TaskNotCancelable", -32002],
      ["PushNotificationNotSupported", -32003],
      ["UnsupportedOperation", -32004],
      ["ContentTypeNotSupported", -32005],
      ["InvalidAgentResponse", -32006],
      ["ExtendedAgentCardNotConfigured", -32007],
      ["ExtensionSupportRequired", -32008],
      ["InternalError", -32603],
    ] as const) {
      service.script = () => {
        throw new A2AError(code);
      };
      expect(await post(handler, rpc("GetTask", { id: "t1" }))).toMatchObject({
        status: 200,
        json: { id: 1, error: { code: number } },
      });
    }
  });

  test("logs the cause of an internal error, and does not send it to the client", async () => {
    const logger = new LinesLogger();
    const { handler, service } = withService({ logger });
    const cause = new Error("connect postgres://admin:hunter2@db.internal failed");
    service.script = () => {
      throw cause;
    };
    const answer = await post(handler, rpc("GetTask", { id: "t1" }));
    expect(answer.json.error).toEqual({ code: -32603, message: "Internal error" });
    expect(logger.lines).toMatchObject([{ level: "error", fields: { method: "GetTask", cause } }]);
  });

  test("answers with an internal error if a proxy loses its connection", async () => {
    const { handler, service } = withService();
    service.script = () => {
      throw new A2AError("ConnectionLost", "10.0.0.7:4000 went away");
    };
    const answer = await post(handler, rpc("GetTask", { id: "t1" }));
    expect(answer.json.error).toEqual({ code: -32603, message: "Internal error" });
  });

  test("writes stored JSON unchanged, without parsing it", async () => {
    const { handler, service } = withService();
    const json = '{"id":"t1",  "status":{"state":"TASK_STATE_WORKING"}}';
    service.script = () => ({ payload: new TextPayload(json) });
    const answer = await post(handler, rpc("GetTask", { id: "t1" }, 'a"b'));
    // If the server had parsed and serialized this text again, the text would have no spaces.
    expect(answer.text).toBe(`{"jsonrpc":"2.0","id":"a\\"b","result":${json}}`);
  });
});

describe("an error of a streaming call (§9.4.2, §9.5)", () => {
  const events = { accept: "text/event-stream" };
  const send = rpc("SendStreamingMessage", { message }, "s-1");
  const subscribe = rpc("SubscribeToTask", { id: "t1" }, "s-1");
  const refusing = (error: A2AError) => {
    const { handler, service } = withService();
    service.script = () => {
      throw error;
    };
    return handler;
  };
  const askFor = async (handler: UniversalHandler, body: string, headers: Readonly<Record<string, string>>) => {
    const { body: text, ...head } = await handler(request("POST", "/", { body, headers }));
    if (typeof text !== "string") throw new Error("A text was expected");
    return { ...head, text };
  };
  /** Returns the only event of a response. */
  const onlyEvent = ({ status, headers, text }: Awaited<ReturnType<typeof askFor>>): unknown => {
    expect({ status, type: headers["content-type"] }).toEqual({ status: 200, type: "text/event-stream" });
    const [, data = ""] = /^data: ([^\n]*)\n\n$/.exec(text) ?? [];
    return JSON.parse(data);
  };

  test.each([
    ["SendStreamingMessage", send],
    ["SubscribeToTask", subscribe],
  ])("is the only event of %s for a client that accepts only events, with code, details and id", async (_, body) => {
    const handler = refusing(new A2AError("TaskNotFound", "There is no task t1", { metadata: { taskId: "t1" } }));
    const plain = await post(handler, body);
    for (const accept of ["text/event-stream", "*/*, text/event-stream", "text/event-stream;q=0.9"]) {
      const event = onlyEvent(await askFor(handler, body, { accept }));
      expect(event).toEqual(plain.json);
      expect(event).toMatchObject({ jsonrpc: "2.0", id: "s-1", error: { code: -32001, data: [{ metadata: {} }] } });
    }
  });

  test("is the only event, even if the request is invalid or its method unknown", async () => {
    const { handler, service } = withService();
    for (const [body, id, code] of [
      [rpc("SendStreamingMessage", { message: {} }, 7), 7, -32602],
      [rpc("message/stream", { message }, 7), 7, -32601],
      ['{"jsonrpc":"1.0","id":7,"method":"SubscribeToTask"}', 7, -32600],
      ['{"jsonrpc":"2.0",', null, -32700],
    ] as const) {
      expect(onlyEvent(await askFor(handler, body, events))).toMatchObject({ id, error: { code } });
    }
    const version = { ...events, "a2a-version": "9.0" };
    expect(onlyEvent(await askFor(handler, send, version))).toMatchObject({ id: "s-1", error: { code: -32009 } });
    expect(service.calls).toEqual([]);
  });

  test("is JSON for a client that accepts JSON, or has no Accept header", async () => {
    const handler = refusing(new A2AError("TaskNotFound"));
    for (const accept of [undefined, "*/*", "application/json", "text/event-stream, application/json"]) {
      const answer = await post(handler, subscribe, accept === undefined ? {} : { accept });
      expect(answer).toMatchObject({ status: 200, json: { id: "s-1", error: { code: -32001 } } });
      expect(answer.headers["content-type"]).toBe("application/json");
    }
  });

  test("is JSON if the call has no stream, whatever it accepts", async () => {
    const answer = await post(refusing(new A2AError("TaskNotFound")), rpc("GetTask", { id: "t1" }), events);
    expect(answer).toMatchObject({ status: 200, headers: { "content-type": "application/json" } });
  });

  test.each([
    ["Unauthenticated", 401, { challenge: "Bearer" }, { "www-authenticate": "Bearer" }],
    ["PermissionDenied", 403, {}, {}],
    ["TooManyRequests", 429, { retryAfter: 1.2 }, { "retry-after": "2" }],
    ["Unavailable", 503, { retryAfter: 5 }, { "retry-after": "5" }],
  ] as const)("of HTTP stays an HTTP error: %s", async (code, status, options, headers) => {
    const answer = await post(refusing(new A2AError(code, undefined, options)), send, events);
    expect(answer).toMatchObject({ status, headers: { "content-type": "application/json", ...headers } });
    expect(answer.json).toMatchObject({ id: "s-1", error: {} });
  });

  test("keeps when to retry (RFC 9110 §10.2.3)", async () => {
    const again = new A2AError("UnsupportedOperation", undefined, { retryAfter: 3 });
    const answer = await askFor(refusing(again), send, events);
    expect(onlyEvent(answer)).toMatchObject({ error: { code: -32004 } });
    expect(answer.headers["retry-after"]).toBe("3");
  });
});

describe("authentication", () => {
  test("is checked before the body is read", async () => {
    const seen: string[] = [];
    const { handler, service } = withService({
      authenticate: () => {
        seen.push("authenticated");
        return Promise.reject(new A2AError("Unauthenticated", undefined, { challenge: 'Bearer realm="x"' }));
      },
    });
    const asked = request("POST", "/", { body: rpc("GetTask", { id: "t1" }) });
    const spied = { ...asked, text: (limit: number) => (seen.push(`read up to ${limit}`), asked.text(limit)) };
    const answer = await ask(handler, spied);
    expect(answer).toMatchObject({ status: 401, headers: { "www-authenticate": 'Bearer realm="x"' } });
    expect(answer.json).toMatchObject({ jsonrpc: "2.0", id: 1, error: { message: "Authentication required" } });
    // The server reads the body only for its id, up to this server's limit of 1000 bytes.
    expect(seen).toEqual(["authenticated", "read up to 1000"]);
    expect(service.calls).toEqual([]);
  });

  test("passes the principal to the service", async () => {
    const { handler, service } = withService({ authenticate: () => ({ subject: "alice" }) });
    await post(handler, rpc("GetTask", { id: "t1" }));
    expect(service.last.context.principal).toEqual({ subject: "alice" });
  });
});

describe("tenants", () => {
  const two = () => {
    const acme = new ScriptedService();
    const plain = new ScriptedService();
    const handler = serveMounts([
      { path: "", service: plain, card: card() },
      { path: "", tenant: "acme", service: acme, card: card() },
    ]);
    return { acme, plain, handler };
  };

  test("are distinguished by params.tenant; an empty one counts as absent", async () => {
    const { acme, plain, handler } = two();
    await post(handler, rpc("GetTask", { id: "t1", tenant: "acme" }));
    await post(handler, rpc("GetTask", { id: "t1", tenant: "" }));
    await post(handler, rpc("GetTask", { id: "t1" }));
    expect([acme.calls.length, plain.calls.length]).toEqual([1, 2]);
  });

  test("that do not exist are InvalidParams", async () => {
    const { handler } = two();
    const answer = await post(handler, rpc("GetTask", { id: "t1", tenant: "nobody" }));
    expect(answer.json.error).toMatchObject({ code: -32602, data: [{ fieldViolations: [{ field: "tenant" }] }] });
  });

  test("must be named if there is no agent without one", async () => {
    const handler = serveMounts([{ path: "", tenant: "acme", service: new ScriptedService(), card: card() }]);
    const answer = await post(handler, rpc("GetTask", { id: "t1" }));
    expect(answer.json.error).toMatchObject({ code: -32602, data: [{ fieldViolations: [{ field: "tenant" }] }] });
  });
});

test("fields that an interceptor rejects are named like all others", async () => {
  const { handler, service } = withService();
  service.script = () => {
    throw invalidParams([{ field: "message.parts[0].url", description: "is not allowed" }]);
  };
  const answer = await post(handler, rpc("SendMessage", { message }));
  expect(answer.json.error.data[0].fieldViolations).toEqual([
    { field: "message.parts[0].url", description: "is not allowed" },
  ]);
});
