import { afterEach, describe, expect, test } from "vitest";
import {
  createHandler,
  jsonRpcBinding,
  restBinding,
  type AgentMount,
  type Handler,
  type HandlerOptions,
} from "@parley/server/internal/handler";
import { defineAgent, type AgentDefinition } from "@parley/server/internal/agent/index";
import { memoryStore } from "@parley/server/internal/store/index";
import type { AgentCard } from "../../src/model/index.ts";
import { bearer } from "../../src/auth/index.ts";
import { connect } from "../../src/client/index.ts";

/** Tests a handler for clients of A2A 0.3 and 0.2.5. */

const open: Handler[] = [];
afterEach(async () => {
  for (const handler of open.splice(0)) await handler.close();
});

const base = "https://agents.example";
const text = (words: string) => [{ kind: "text", text: words }];
const user = (words: string, more: object = {}) => ({
  message: { kind: "message", role: "user", messageId: crypto.randomUUID(), parts: text(words), ...more },
});

function agent(more: Partial<AgentDefinition> = {}) {
  return defineAgent({
    name: "Echo",
    description: "Says it again",
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      if (turn.text === "direct") return yield turn.reply("directly");
      if (turn.text === "ask") return yield turn.inputRequired("What?");
      if (turn.text === "data") yield turn.artifact({ name: "list", parts: [{ data: [1, 2] }] });
      yield turn.working("on it");
      yield turn.artifact({ name: "echo", parts: [{ text: turn.text }] });
    },
    ...more,
  });
}

function serve(agents: Parameters<typeof createHandler>[0] = agent(), options: Partial<HandlerOptions> = {}): Handler {
  const handler = createHandler(agents, { store: memoryStore(), publicUrl: base, ...options });
  open.push(handler);
  return handler;
}

interface RpcAnswer {
  readonly id: unknown;
  readonly result: Record<string, never>;
  readonly error: { readonly code: number; readonly data?: unknown };
}

async function post(
  handler: Handler,
  method: string,
  params: unknown,
  { headers = {}, path = "/", id = 1 }: { headers?: Record<string, string>; path?: string; id?: number } = {},
): Promise<Response> {
  return handler.fetch(
    new Request(base + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id, method, params }),
    }),
  );
}

const rpc = async (...asked: Parameters<typeof post>): Promise<RpcAnswer> =>
  (await post(...asked)).json() as Promise<RpcAnswer>;

/** Returns the JSON of each event. */
async function events(response: Response): Promise<Record<string, never>[]> {
  const body = await response.text();
  return [...body.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data as string) as Record<string, never>);
}

describe("JSON-RPC of 0.3", () => {
  test("message/send waits and answers with the task; tasks/get returns the same", async () => {
    const handler = serve();
    const { result } = await rpc(handler, "message/send", user("hello"));
    expect(result).toMatchObject({
      kind: "task",
      status: { state: "completed" },
      artifacts: [{ name: "echo", parts: text("hello") }],
      history: [{ kind: "message", role: "user", parts: text("hello") }],
    });
    const got = await rpc(handler, "tasks/get", { id: result["id"], historyLength: 0 });
    expect(got.result).toMatchObject({ kind: "task", id: result["id"] });
    expect(got.result).not.toHaveProperty("history");
  });

  test("message/send answers with a direct message", async () => {
    const { result } = await rpc(serve(), "message/send", user("direct"));
    expect(result).toMatchObject({ kind: "message", role: "agent", parts: text("directly") });
  });

  test("blocking: false answers before the agent has finished", async () => {
    const never = agent({
      mayReplyDirectly: false,
      async *onMessage(turn) {
        await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
        yield turn.failed("stopped");
      },
    });
    const handler = serve(never);
    const params = { ...user("hello"), configuration: { blocking: false, acceptedOutputModes: [] } };
    const { result } = await rpc(handler, "message/send", params);
    expect(["submitted", "working"]).toContain((result["status"] as unknown as { state: string }).state);
    const canceled = await rpc(handler, "tasks/cancel", { id: result["id"] });
    expect(canceled.result).toMatchObject({ kind: "task", status: { state: "canceled" } });
    expect((await rpc(handler, "tasks/cancel", { id: result["id"] })).error.code).toBe(-32002);
  });

  test("message/stream: every event is a whole response, and the last one is final", async () => {
    const response = await post(serve(), "message/stream", user("data"), { id: 9 });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const seen = await events(response);
    expect(seen.every((event) => event["jsonrpc"] === "2.0" && event["id"] === 9)).toBe(true);
    const results = seen.map((event) => event["result"] as unknown as Record<string, unknown>);
    expect(results.map((result) => result["kind"])).toEqual([
      "task",
      "artifact-update",
      "status-update",
      "artifact-update",
      "status-update",
    ]);
    expect(results.map((result) => result["final"])).toEqual([undefined, undefined, false, undefined, true]);
    expect(results[1]).toMatchObject({
      artifact: { parts: [{ kind: "data", data: { value: [1, 2] }, metadata: { data_part_compat: true } }] },
    });
  });

  test("the stream of a send ends with a final event at input-required, and the task continues", async () => {
    const handler = serve();
    const first = await events(await post(handler, "message/stream", user("ask")));
    const last = first.at(-1)?.["result"] as unknown as { taskId: string; contextId: string; final: boolean };
    expect(last).toMatchObject({ kind: "status-update", status: { state: "input-required" }, final: true });
    const { result } = await rpc(handler, "message/send", user("that", { taskId: last.taskId }));
    expect(result).toMatchObject({ id: last.taskId, status: { state: "completed" } });
    expect((await rpc(handler, "message/send", user("more", { taskId: last.taskId }))).error.code).toBe(-32004);
  });

  test("tasks/resubscribe to a finished task sends the task and closes", async () => {
    const handler = serve();
    const { result } = await rpc(handler, "message/send", user("hello"));
    const seen = await events(await post(handler, "tasks/resubscribe", { id: result["id"] }));
    expect(seen.map((event) => event["result"])).toMatchObject([{ kind: "task", status: { state: "completed" } }]);
    expect((await rpc(handler, "tasks/resubscribe", { id: "nope" })).error.code).toBe(-32001);
  });

  test("an error is the only event of a stream, for clients that read only events", async () => {
    const handler = serve();
    const headers = { accept: "text/event-stream" };
    // The Python SDK sends the second `accept` value with message/stream.
    for (const each of [headers, { accept: "*/*, text/event-stream" }]) {
      const response = await post(handler, "tasks/resubscribe", { id: "nope" }, { headers: each });
      expect(response.headers.get("content-type")).toBe("text/event-stream");
      expect(await events(response)).toMatchObject([{ jsonrpc: "2.0", id: 1, error: { code: -32001 } }]);
    }
    const either = { accept: "text/event-stream, application/json" };
    for (const plain of [
      await post(handler, "tasks/get", { id: "nope" }, { headers }),
      await post(handler, "tasks/resubscribe", { id: "nope" }, { headers: either }),
    ]) {
      expect(plain.headers.get("content-type")).toBe("application/json");
    }
  });

  test.each([
    ["tasks/get", { id: "nope" }, -32001],
    ["tasks/cancel", { id: "nope" }, -32001],
    ["tasks/list", {}, -32601],
    ["message/ssend", {}, -32601],
    ["message/send", {}, -32602],
    ["message/send", "invalid", -32602],
    ["tasks/pushNotificationConfig/list", { id: "t" }, -32003],
    ["agent/getAuthenticatedExtendedCard", undefined, -32007],
  ])("%s %j is error %i, HTTP 200", async (method, params, code) => {
    const response = await post(serve(), method, params);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ id: 1, error: { code } });
  });

  test("proto names are understood, because Python clients send them", async () => {
    const params = {
      message: { message_id: "m1", role: "user", kind: "message", parts: text("hi"), context_id: "c1" },
    };
    expect((await rpc(serve(), "message/send", params)).result).toMatchObject({ contextId: "c1" });
  });
});

describe("the version of a request (A2A 1.0 §3.6)", () => {
  const user10 = { message: { messageId: "m1", role: "ROLE_USER", parts: [{ text: "direct" }] } };

  test.each([
    ["message/send", undefined],
    ["message/send", ""],
    ["message/send", "0.3"],
    ["message/send", "0.3.0"],
    ["message/send", "0.2.5"],
  ])("%s with version %j uses 0.3", async (method, version) => {
    const headers = version === undefined ? {} : { "a2a-version": version };
    const { result } = await rpc(serve(), method, user("direct"), { headers });
    expect(result).toMatchObject({ kind: "message" });
  });

  test.each([undefined, "", "1.0", "1.0.1"])("SendMessage with version %j uses 1.0", async (version) => {
    const headers = version === undefined ? {} : { "a2a-version": version };
    const { result } = await rpc(serve(), "SendMessage", user10, { headers });
    expect(result).toMatchObject({ message: { role: "ROLE_AGENT" } });
  });

  test("the query parameter counts like the header", async () => {
    const { result } = await rpc(serve(), "message/send", user("direct"), { path: "/?A2A-Version=0.3" });
    expect(result).toMatchObject({ kind: "message" });
  });

  test.each([
    ["message/send", "1.0", -32601],
    ["SendMessage", "0.3", -32601],
    ["message/send", "2.0", -32009],
  ])("%s under version %s is error %i", async (method, version, code) => {
    expect((await rpc(serve(), method, {}, { headers: { "a2a-version": version } })).error.code).toBe(code);
  });

  test.each([
    ["tasks/list", "No protocol version of this server (1.0, 0.3, 1.1) has a method of that name"],
    ["NoSuchMethod", "No protocol version of this server (1.0, 0.3, 1.1) has a method of that name"],
    ["message/send", "Protocol version 1.0 has no method of that name"],
  ])("an error about %s names the versions that were searched", async (method, message) => {
    const headers: Record<string, string> = method === "message/send" ? { "a2a-version": "1.0" } : {};
    expect((await rpc(serve(), method, {}, { headers })).error).toMatchObject({ code: -32601, message });
  });

  test("errors of REST also have code and message at their top level", async () => {
    const response = await serve().fetch(new Request(`${base}/v1/tasks/nope`));
    expect(await response.json()).toMatchObject({
      code: -32001,
      message: "Task not found",
      error: { code: 404, status: "NOT_FOUND", message: "Task not found" },
    });
  });

  test("strictVersion reads a request without a version as 0.3", async () => {
    const handler = serve(agent(), { strictVersion: true });
    expect((await rpc(handler, "message/send", user("direct"))).result).toMatchObject({ kind: "message" });
    expect((await rpc(handler, "SendMessage", user10)).error.code).toBe(-32601);
    const rest = await handler.fetch(new Request(`${base}/tasks/nope`));
    expect(await rest.json()).toMatchObject({ error: { status: "UNIMPLEMENTED" } });
  });

  test("a version that is not served is rejected, and named in the error", async () => {
    const only = serve(agent(), { versions: ["1.0"] });
    expect((await rpc(only, "message/send", user("direct"))).error.code).toBe(-32601);
    const asked = { headers: { "a2a-version": "0.3" } };
    expect((await rpc(only, "message/send", user("direct"), asked)).error.code).toBe(-32009);
    const old = serve(agent(), { versions: ["0.3"] });
    expect((await rpc(old, "SendMessage", user10)).error.code).toBe(-32601);
    expect((await rpc(old, "message/send", user("direct"))).result).toMatchObject({ kind: "message" });
  });

  test("/v1 is 0.3, unless a tenant has that name", async () => {
    const status = async (handler: Handler, path: string): Promise<unknown> =>
      ((await (await handler.fetch(new Request(base + path))).json()) as { error: { status: string } }).error.status;
    expect(await status(serve(), "/v1/tasks/nope")).toBe("NOT_FOUND");
    const tenants = serve([
      { agent: agent(), tenant: "v1" },
      { agent: agent({ name: "Other" }), tenant: "v2" },
    ]);
    for (const path of ["/v1/tasks/nope", "/v1/v1/tasks/nope", "/v2/tasks/nope", "/v2/v1/tasks/nope"]) {
      expect(await status(tenants, path)).toBe("NOT_FOUND");
    }
    expect(await status(tenants, "/v3/tasks/nope")).toBe("INVALID_ARGUMENT");
  });

  test("no agent can be mounted at /v1 of another one", () => {
    const both: readonly AgentMount[] = [{ agent: agent() }, { agent: agent(), path: "/v1" }];
    expect(() => serve(both)).toThrow("/v1 conflicts with an address of the agent");
    expect(() => serve(both, { versions: ["1.0"] })).not.toThrow();
  });
});

describe("REST of 0.3", () => {
  test.each([
    ["POST", undefined],
    ["POST", "{}"],
    ["POST", "null"],
    ["POST", '{"name":"tasks/other"}'],
    ["GET", undefined],
  ])("a subscription may be a %s with the body %j", async (method, body) => {
    const handler = serve();
    const { result } = await rpc(handler, "message/send", user("hello"));
    const id = String(result["id"]);
    const response = await handler.fetch(
      new Request(`${base}/v1/tasks/${id}:subscribe`, {
        method,
        ...(body !== undefined && { body: body.replace("other", id), headers: { "content-type": "application/json" } }),
      }),
    );
    expect(await events(response)).toMatchObject([{ task: { id, status: { state: "TASK_STATE_COMPLETED" } } }]);
  });

  test("streams events without a wrapper, the last one final, and waits with blocking: true", async () => {
    const handler = serve();
    const message = { messageId: "m1", role: "ROLE_USER", content: [{ text: "hello" }] };
    const send = (path: string, more: object = {}) =>
      handler.fetch(
        new Request(base + path, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ message, ...more }),
        }),
      );
    const seen = await events(await send("/v1/message:stream"));
    expect(seen.map((event) => Object.keys(event).join())).toEqual([
      "task",
      "statusUpdate",
      "artifactUpdate",
      "statusUpdate",
    ]);
    expect(seen.at(-1)).toMatchObject({ statusUpdate: { status: { state: "TASK_STATE_COMPLETED" }, final: true } });
    const waited = await send("/v1/message:send", {
      message: { ...message, messageId: "m2" },
      configuration: { blocking: true },
    });
    expect(await waited.json()).toMatchObject({ task: { status: { state: "TASK_STATE_COMPLETED" } } });
  });

  const sent = (handler: Handler, path: string, body: object): Promise<Response> =>
    handler.fetch(
      new Request(base + path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    );

  test("a message in the JSON of the specification is read, and answered in it (0.3 §6.4, §7.1)", async () => {
    const handler = serve(agent({ defaultInputModes: ["text/plain", "image/png", "application/json"] }));
    const parts = [
      { kind: "text", text: "hello" },
      { kind: "file", file: { bytes: "AAAA", mimeType: "image/png", name: "a.png" } },
      { kind: "data", data: { a: 1 } },
    ];
    // Only SDKs send `kind` with messages. Without `kind`, the server recognizes the message by its parts.
    const message = { role: "user", messageId: "m1", parts };
    const answer = await (await sent(handler, "/v1/message:send", { message })).json();
    expect(answer).toMatchObject({
      task: {
        kind: "task",
        status: { state: "completed" },
        artifacts: [{ parts: [{ kind: "text", text: "hello" }] }],
        history: [{ kind: "message", role: "user", parts }],
      },
    });
    const direct = await sent(handler, "/v1/message:send", user("direct"));
    expect(await direct.json()).toMatchObject({ message: { kind: "message", role: "agent", parts: text("directly") } });
  });

  test("a stream in the JSON of the specification (0.3 §7.2)", async () => {
    const seen = await events(await sent(serve(), "/v1/message:stream", user("hello")));
    expect(seen).toMatchObject([
      { task: { kind: "task", history: [{ role: "user", parts: text("hello") }] } },
      { statusUpdate: { kind: "status-update", status: { state: "working" }, final: false } },
      { artifactUpdate: { kind: "artifact-update", artifact: { parts: text("hello") } } },
      { statusUpdate: { kind: "status-update", status: { state: "completed" }, final: true } },
    ]);
  });

  test.each([
    [{ message: { role: "user", messageId: "m", parts: [{ kind: "sound" }] } }, "message.parts[0].kind"],
    [{ message: { role: "user", messageId: "m" } }, "message.parts"],
    [{ message: { role: "user", parts: text("x") } }, "message.messageId"],
    [{ message: { role: "ROLE_USER", messageId: "m" } }, "message.content"],
  ])("an error names the field in the sender's spelling: %j", async (body, field) => {
    const response = await sent(serve(), "/v1/message:send", body);
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { details: { fieldViolations?: { field: string }[] }[] } };
    expect(error.details[0]?.fieldViolations).toMatchObject([{ field }]);
  });

  test("a webhook in the JSON of the specification is answered in it, and one in ProtoJSON in ProtoJSON (0.3 §7.5)", async () => {
    const handler = serve(agent(), { push: { keys: ["A".repeat(43) + "="] } });
    const { result } = await rpc(handler, "message/send", user("ask"));
    const taskId = String(result["id"]);
    const path = `/v1/tasks/${taskId}/pushNotificationConfigs`;
    const hook = { id: "h", url: "https://hooks.example/h" };
    const asText = await sent(handler, path, { config: { taskId, pushNotificationConfig: hook } });
    expect(await asText.json()).toEqual({ taskId, pushNotificationConfig: hook });
    const name = `tasks/${taskId}/pushNotificationConfigs/h`;
    const asProto = await sent(handler, path, { config: { name, pushNotificationConfig: hook } });
    expect(await asProto.json()).toEqual({ name, pushNotificationConfig: hook });
  });

  test("a list of tasks is an array of whole tasks, with a link to the next page (0.3 §7.3, tasks/list)", async () => {
    const handler = serve();
    for (const words of ["one", "two", "three"]) await rpc(handler, "message/send", user(words));
    const get = async (path: string) => {
      const response = await handler.fetch(new Request(base + path));
      expect(response.headers.get("x-total-count")).toBe("3");
      return { link: response.headers.get("link"), tasks: (await response.json()) as object[] };
    };
    const whole = await get("/v1/tasks");
    expect(whole.link).toBeNull();
    expect(whole.tasks).toMatchObject(
      ["three", "two", "one"].map((words) => ({
        status: { state: "TASK_STATE_COMPLETED" },
        artifacts: [{ parts: [{ text: words }] }],
        history: [{ content: [{ text: words }] }],
      })),
    );
    const first = await get("/v1/tasks?pageSize=2&includeArtifacts=false");
    expect(first.tasks).toHaveLength(2);
    expect(first.tasks[0]).not.toHaveProperty("artifacts");
    const next = /^<(\?.*)>; rel="next"$/.exec(first.link ?? "")?.[1] ?? "";
    const last = await get(`/v1/tasks${next}`);
    expect(last).toMatchObject({ link: null, tasks: [{ history: [{ content: [{ text: "one" }] }] }] });
    expect(last.tasks[0]).not.toHaveProperty("artifacts");
  });

  test("our client follows the pages of a list", async () => {
    const handler = serve();
    for (const words of ["one", "two", "three"]) await rpc(handler, "message/send", user(words));
    const card = (await (await handler.fetch(new Request(`${base}/.well-known/agent-card.json`))).json()) as AgentCard;
    const client = await connect(
      { ...card, supportedInterfaces: [{ url: base, protocolBinding: "HTTP+JSON", protocolVersion: "0.3" }] },
      { fetch: (input, init) => handler.fetch(new Request(input, init)) },
    );
    const first = await client.listTasks({ pageSize: 2 });
    expect(first).toMatchObject({ tasks: [{}, {}], pageSize: 2, totalSize: 3 });
    const last = await client.listTasks({ pageSize: 2, pageToken: first.nextPageToken });
    expect(last).toMatchObject({ tasks: [{ history: [{ parts: [{ text: "one" }] }] }], nextPageToken: "" });
  });
});

describe("extensions", () => {
  const required = agent({ capabilities: { extensions: [{ uri: "urn:a" }, { uri: "urn:b" }] } });

  test.each([
    ["x-a2a-extensions", "message/send", user("direct")],
    ["a2a-extensions", "message/send", user("direct")],
  ])("asked for in %s are answered there", async (header, method, params) => {
    const response = await post(serve(required), method, params, { headers: { [header]: "urn:a, urn:b" } });
    expect(response.headers.get(header)).toBe("urn:a, urn:b");
    const other = header === "a2a-extensions" ? "x-a2a-extensions" : "a2a-extensions";
    expect(response.headers.has(other)).toBe(false);
  });

  test("under both header names are merged, and answered under the name of 1.0", async () => {
    const headers = { "a2a-extensions": "urn:a", "x-a2a-extensions": "urn:b" };
    const response = await post(serve(required), "message/stream", user("hello"), { headers });
    expect(response.headers.get("a2a-extensions")).toBe("urn:a, urn:b");
    expect(response.headers.has("x-a2a-extensions")).toBe(false);
    await response.text();
  });
});

describe("the card", () => {
  const path = "/.well-known/agent-card.json";
  const cardOf = async (handler: Handler, at: string = path, version?: string) => {
    const headers: Record<string, string> = version === undefined ? {} : { "a2a-version": version };
    const response = await handler.fetch(new Request(base + at, { headers }));
    return { response, card: (await response.json()) as Record<string, unknown> };
  };
  const secured = () =>
    serve(agent(), {
      authenticator: bearer({ "s3cret-token": { subject: "alice" } }),
      bindings: [jsonRpcBinding(), restBinding(), { name: "GRPC", interfaces: () => [{ url: "agents.example:443" }] }],
    });

  test("has both shapes for a request without a version", async () => {
    const handler = secured();
    const { response, card } = await cardOf(handler);
    expect(response.headers.get("vary")).toBe("A2A-Version");
    const pure = await cardOf(handler, path, "1.0");
    expect(pure.card).toEqual(handler.agents[0]?.card);
    const old = await cardOf(handler, path, "0.3");
    expect(card).toEqual({
      ...pure.card,
      ...old.card,
      securitySchemes: {
        bearer: { httpAuthSecurityScheme: { scheme: "Bearer" }, type: "http", scheme: "Bearer" },
      },
    });
    expect(new Set([response, pure.response, old.response].map(({ headers }) => headers.get("etag"))).size).toBe(3);
  });

  test("in the shape of 0.3 has its addresses, transports and security schemes", async () => {
    const { card } = await cardOf(secured(), path, "0.3");
    expect(card).toMatchObject({
      protocolVersion: "0.3.0",
      url: base,
      preferredTransport: "JSONRPC",
      additionalInterfaces: [
        { url: base, transport: "JSONRPC" },
        { url: base, transport: "HTTP+JSON" },
        { url: "agents.example:443", transport: "GRPC" },
      ],
      securitySchemes: { bearer: { type: "http", scheme: "Bearer" } },
      security: [{ bearer: [] }],
      capabilities: { streaming: true },
    });
    expect(card).not.toHaveProperty("supportedInterfaces");
    expect(card).not.toHaveProperty("securityRequirements");
  });

  test("is also served at the path of 0.2", async () => {
    const handler = serve([{ agent: agent(), path: "/echo" }]);
    const { card } = await cardOf(handler, "/echo/.well-known/agent.json");
    expect(card).toEqual((await cardOf(handler, `/echo${path}`)).card);
    expect(handler.answers("/echo/.well-known/agent.json")).toBe(true);
    const only = serve(agent(), { versions: ["1.0"] });
    expect((await only.fetch(new Request(`${base}/.well-known/agent.json`))).status).toBe(404);
  });

  test("has the format of the server's only version", async () => {
    expect((await cardOf(serve(agent(), { versions: ["1.0"] }))).card).not.toHaveProperty("url");
    const old = (await cardOf(serve(agent(), { versions: ["0.3"] }))).card;
    expect(old).toHaveProperty("url", base);
    expect(old).not.toHaveProperty("supportedInterfaces");
  });

  test("has a separate address for each tenant, because 0.3 has no field for tenants", async () => {
    const handler = serve([
      { agent: agent(), path: "/shop", tenant: "one & only" },
      { agent: agent(), path: "/shop", tenant: "other" },
    ]);
    const at = "/shop/one%20%26%20only";
    const { card } = await cardOf(handler, at + path, "0.3");
    expect(card).toMatchObject({ url: base + at, additionalInterfaces: [{ url: base + at }, { url: base + at }] });
    for (const slash of ["", "/"]) {
      const { result } = await rpc(handler, "message/send", user("direct"), { path: at + slash });
      expect(result).toMatchObject({ kind: "message" });
      expect(handler.answers(at + slash)).toBe(true);
    }
    expect((await rpc(handler, "message/send", user("direct"), { path: "/shop" })).error.code).toBe(-32602);
  });
});

describe("the extended card", () => {
  const authenticator = bearer({ "s3cret-token": { subject: "alice" } });
  const headers = { authorization: "Bearer s3cret-token" };
  const mount = (path: string): AgentMount => ({
    agent: agent(),
    path,
    extendedCard: (card) => ({ ...card, description: `of ${path}` }),
  });

  test("agent/getAuthenticatedExtendedCard returns the shape of 0.3", async () => {
    const handler = serve([mount("")], { authenticator });
    const { result } = await rpc(handler, "agent/getAuthenticatedExtendedCard", undefined, { headers });
    expect(result).toMatchObject({ description: "of ", url: base, supportsAuthenticatedExtendedCard: true });
  });

  test.each([
    ["", ["/agent/authenticatedExtendedCard"]],
    [
      "/a/b",
      [
        "/a/b/agent/authenticatedExtendedCard",
        "/a/agent/authenticatedExtendedCard",
        "/agent/authenticatedExtendedCard",
      ],
    ],
  ])("of an agent at %j is also at the paths of 0.2: %j", async (at, paths) => {
    const handler = serve([mount(at)], { authenticator });
    for (const path of paths) {
      expect(handler.answers(path)).toBe(true);
      expect((await handler.fetch(new Request(base + path))).status).toBe(401);
      const response = await handler.fetch(new Request(base + path, { headers }));
      expect(await response.json()).toMatchObject({ description: `of ${at}`, protocolVersion: "0.3.0" });
    }
  });

  test("GET /v1/card has security schemes in both forms, because clients read only one of them", async () => {
    const response = await serve([mount("")], { authenticator }).fetch(new Request(`${base}/v1/card`, { headers }));
    expect(await response.json()).toMatchObject({
      securitySchemes: { bearer: { type: "http", scheme: "Bearer", httpAuthSecurityScheme: { scheme: "Bearer" } } },
      security: [{ bearer: [] }],
    });
  });

  test("is not found if the path could mean two agents", async () => {
    const handler = serve([mount("/one"), mount("/two")], { authenticator });
    expect((await handler.fetch(new Request(`${base}/agent/authenticatedExtendedCard`, { headers }))).status).toBe(404);
    const own = await handler.fetch(new Request(`${base}/two/agent/authenticatedExtendedCard`, { headers }));
    expect(await own.json()).toMatchObject({ description: "of /two" });
  });
});
