import { describe, expect, test } from "vitest";
import { once } from "../../src/base/index.ts";
import { jsonRpcBinding as serverBinding } from "@parley/server/internal/handler";
import { type Client, connect, type ConnectOptions } from "../../src/client/index.ts";
import type { AgentCapabilities, AgentCard } from "../../src/model/index.ts";
import type { AgentService, Interceptor } from "../../src/protocol/index.ts";
import {
  bodyOf,
  cardOf,
  deadUrl,
  errorOf,
  HandClock,
  jsonRpcAt,
  listen,
  type Listener,
  resendExtensions,
  restAt,
  type RpcCall,
  rpcServer,
  soon,
  taskEvent,
  taskOf,
  until,
} from "./support.ts";

async function agent(
  script: (call: RpcCall) => void | Promise<void>,
  options: ConnectOptions = {},
  capabilities: AgentCapabilities = {},
) {
  const server = await rpcServer(script);
  const card = cardOf([jsonRpcAt(server.url)], { capabilities: { streaming: true, ...capabilities } });
  return { server, client: await connect(card, { ...soon, ...options }) };
}

/** Returns clients of both bindings for the same server. */
async function bothClients(listener: Listener, options: ConnectOptions = {}): Promise<Client[]> {
  const url = await listen(listener);
  const once = { retry: false as const, ...options };
  return [await connect(cardOf([jsonRpcAt(url)]), once), await connect(cardOf([restAt(url)]), once)];
}

describe("the forms of a message to send", () => {
  const message = { messageId: expect.stringMatching(/^[0-9a-f-]{36}$/), role: "ROLE_USER", parts: [{ text: "hi" }] };

  test.each([
    ["text", "hi", { message }],
    ["a part", { text: "hi" }, { message }],
    ["parts", [{ text: "hi" }], { message }],
    [
      "a message without id and role",
      { parts: [{ text: "hi" }], contextId: "c" },
      { message: { ...message, contextId: "c" } },
    ],
    [
      "a request around any of them",
      { message: "hi", configuration: { historyLength: 0 }, metadata: { a: 1 } },
      { message, configuration: { historyLength: 0 }, metadata: { a: 1 } },
    ],
    [
      "a whole request",
      { message: { messageId: "mine", role: "ROLE_USER", parts: [{ data: null }] } },
      { message: { messageId: "mine", role: "ROLE_USER", parts: [{ data: null }] } },
    ],
  ] as const)("%s", async (_, input, request) => {
    const { client, server } = await agent((call) => call.answer({ task: taskOf("TASK_STATE_COMPLETED") }));
    await client.sendMessage(input);
    expect(server.calls[0]?.params).toEqual(request);
  });

  test("gives each message an id from the given source", async () => {
    let last = 0;
    const { client, server } = await agent((call) => call.answer({ task: taskOf("TASK_STATE_COMPLETED") }), {
      ids: { next: () => `m${++last}` },
    });
    await client.sendMessage("a");
    await client.sendMessage("b");
    expect(server.calls.map(({ params }) => params["message"])).toMatchObject([
      { messageId: "m1" },
      { messageId: "m2" },
    ]);
  });
});

describe("service parameters (A2A 1.0 §3.2.6)", () => {
  test("always have the version, each extension once, and the headers of the caller", async () => {
    const { client, server } = await agent((call) => call.answer(taskOf("TASK_STATE_WORKING")), {
      extensions: ["urn:a"],
      headers: { "X-Team": "blue", "A2A-Version": "0.3" },
    });
    await client.getTask("t1", {
      extensions: ["urn:b", "urn:a"],
      headers: { "x-request": "7" },
      trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    });
    expect(server.calls[0]?.headers).toMatchObject({
      "a2a-version": "1.0",
      "a2a-extensions": "urn:a,urn:b",
      "x-team": "blue",
      "x-request": "7",
      traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
      "content-type": "application/json",
    });
  });

  test("call the function for headers before each request, so tokens can be renewed", async () => {
    let token = 0;
    const asked: string[] = [];
    const { client, server } = await agent(
      (call) => (call.number === 1 ? call.drop() : call.answer(taskOf("TASK_STATE_WORKING"))),
      {
        headers: async ({ operation, url }) => {
          asked.push(`${operation} ${new URL(url).pathname}`);
          await Promise.resolve();
          return { authorization: `Bearer ${++token}` };
        },
      },
    );
    await client.getTask("t1");
    expect(server.calls.map(({ headers }) => headers.authorization)).toEqual(["Bearer 1", "Bearer 2"]);
    expect(asked).toEqual(["GetTask /", "GetTask /"]);
  });

  test("fail with the error of the function for headers", async () => {
    const { client } = await agent(() => undefined, { headers: () => Promise.reject(new RangeError("no token")) });
    expect(await errorOf(client.getTask("t1"))).toBeInstanceOf(RangeError);
  });
});

describe("answers that do not follow the protocol", () => {
  test.each([
    [200, "text/html", "<html><style>p{}</style><p>Hello  there</p></html>", /HTTP 200, text\/html: Hello there$/],
    [200, "application/json", "{not json", /HTTP 200, application\/json: \{not json$/],
    [500, "text/html", "<h1>Bad</h1><script>x</script>", /HTTP 500, text\/html: Bad$/],
    [502, "text/plain", "y".repeat(5_000), /^[^]{50,600}…$/],
  ])("%i %s is InvalidResponse, short enough to read", async (status, type, body, message) => {
    const clients = await bothClients(
      (_, response) => void response.writeHead(status, { "content-type": type }).end(body),
    );
    for (const client of clients) {
      const call = await errorOf(client.sendMessage("hi"));
      expect(call).toMatchObject({
        name: "A2AError",
        code: "InvalidResponse",
        metadata: { httpStatus: String(status) },
      });
      expect((call as Error).message).toMatch(message);
      const stream = client.sendStreamingMessage("hi")[Symbol.asyncIterator]();
      expect(await errorOf(stream.next())).toMatchObject({ code: "InvalidResponse" });
    }
  });

  test("a redirect is not followed, because that would send the message to another address", async () => {
    let arrived = 0;
    const elsewhere = await listen((_, response) => {
      arrived++;
      response.end();
    });
    for (const client of await bothClients(
      (_, response) => void response.writeHead(307, { location: elsewhere }).end(),
    )) {
      expect(await errorOf(client.sendMessage("hi"))).toMatchObject({
        code: "InvalidResponse",
        message: expect.stringContaining(`redirect to ${elsewhere}`),
      });
    }
    expect(arrived).toBe(0);
  });

  test("a task without a status, a list without tasks, a message with invalid parts", async () => {
    const { client } = await agent((call) => {
      if (call.method === "GetTask") call.answer({ id: "t1" });
      else if (call.method === "ListTasks") call.answer({ tasks: "none" });
      else call.answer({ message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: 1 }] } });
    });
    for (const work of [client.getTask("t1"), client.listTasks(), client.sendMessage("hi")]) {
      expect(await errorOf(work)).toMatchObject({ code: "InvalidResponse" });
    }
  });

  test("an answer to another request", async () => {
    const { client } = await agent(({ page }) =>
      page(200, { "content-type": "application/json" }, '{"jsonrpc":"2.0","id":"other","result":{}}'),
    );
    expect(await errorOf(client.getTask("t1"))).toMatchObject({
      code: "InvalidResponse",
      message: expect.stringContaining('"other"'),
    });
  });

  test("an answer over the limit, whose rest is not read", async () => {
    for (const client of await bothClients(
      (_, response) => {
        response.writeHead(200, { "content-type": "application/json" });
        response.write("x".repeat(4_096));
      },
      { maxResponseBytes: 1_024 },
    )) {
      expect(await errorOf(client.getTask("t1"))).toMatchObject({
        code: "InvalidResponse",
        message: expect.stringContaining("1024 bytes"),
      });
    }
  });

  test("a page that names itself as the next", async () => {
    const { client } = await agent((call) =>
      call.answer({ tasks: [], nextPageToken: "again", pageSize: 1, totalSize: 9 }),
    );
    expect(await errorOf(client.tasks().next())).toMatchObject({ code: "InvalidResponse" });
  });
});

describe("HTTP errors", () => {
  test.each([
    [
      401,
      "Unauthenticated",
      { "www-authenticate": 'Bearer error="invalid_token"' },
      { challenge: 'Bearer error="invalid_token"' },
    ],
    [403, "PermissionDenied", {}, {}],
    [405, "MethodNotAllowed", {}, {}],
    [413, "RequestTooLarge", {}, {}],
    [415, "UnsupportedMediaType", {}, {}],
    [429, "TooManyRequests", { "retry-after": "120" }, { retryAfter: 120 }],
    [503, "Unavailable", { "retry-after": "3" }, { retryAfter: 3 }],
  ] as const)("%i is %s on both bindings, with the details of its headers", async (status, code, headers, rest) => {
    for (const body of ["", "<h1>no</h1>"]) {
      for (const client of await bothClients((_, response) => void response.writeHead(status, headers).end(body))) {
        expect(await errorOf(client.sendMessage("hi"))).toMatchObject({ code, ...rest });
      }
    }
  });

  test("keep the message of a JSON-RPC or REST error in the body", async () => {
    const error = { code: -32603, message: "Token has expired", data: [] };
    const { client } = await agent((call) =>
      call.page(
        401,
        { "content-type": "application/json", "www-authenticate": "Bearer" },
        JSON.stringify({ jsonrpc: "2.0", id: 1, error }),
      ),
    );
    expect(await errorOf(client.getTask("t1"))).toMatchObject({
      code: "Unauthenticated",
      message: "Token has expired",
      challenge: "Bearer",
    });
  });

  test("a date in Retry-After is relative to the current time", async () => {
    const clock = new HandClock();
    const { client } = await agent(
      (call) => call.page(429, { "retry-after": new Date(clock.now() + 90_000).toUTCString() }, ""),
      { clock, retry: false },
    );
    expect(await errorOf(client.getTask("t1"))).toMatchObject({ code: "TooManyRequests", retryAfter: 90 });
  });

  test("a protocol error keeps its code and details under any status", async () => {
    const data = [
      {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        reason: "TASK_NOT_FOUND",
        domain: "a2a-protocol.org",
        metadata: { taskId: "t1" },
      },
      {
        "@type": "type.googleapis.com/google.rpc.BadRequest",
        fieldViolations: [{ field: "id", description: "unknown" }],
      },
    ];
    const rpc = await rpcServer((call) =>
      call.page(
        500,
        { "content-type": "application/json" },
        JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32001, message: "Gone", data } }),
      ),
    );
    const rest = await listen((_, response) => {
      response.writeHead(404, { "content-type": "application/a2a+json" });
      response.end(JSON.stringify({ error: { code: 404, status: "NOT_FOUND", message: "Gone", details: data } }));
    });
    for (const target of [jsonRpcAt(rpc.url), restAt(rest)]) {
      const client = await connect(cardOf([target]));
      expect(await errorOf(client.getTask("t1"))).toMatchObject({
        code: "TaskNotFound",
        message: "Gone",
        metadata: { taskId: "t1" },
        fields: [{ field: "id", description: "unknown" }],
      });
    }
  });
});

describe("a capability that the card does not declare (A2A 1.0 §3.3.4)", () => {
  test("is rejected with the error of an agent, before a request is sent", async () => {
    const { client, server } = await agent(() => undefined, {}, { streaming: false });
    const streams = [client.sendStreamingMessage("hi"), client.subscribeToTask("t1")];
    for (const stream of streams) {
      expect(await errorOf(stream[Symbol.asyncIterator]().next())).toMatchObject({ code: "UnsupportedOperation" });
    }
    const config = { taskId: "t1", id: "c1" };
    for (const work of [
      client.createTaskPushNotificationConfig({ ...config, url: "https://example.com" }),
      client.getTaskPushNotificationConfig(config),
      client.listTaskPushNotificationConfigs(config),
      client.deleteTaskPushNotificationConfig(config),
    ]) {
      expect(await errorOf(work)).toMatchObject({ code: "PushNotificationNotSupported" });
    }
    expect(await errorOf(client.getExtendedAgentCard())).toMatchObject({ code: "UnsupportedOperation" });
    expect(server.calls).toHaveLength(0);
  });
});

describe("retries", () => {
  const failures: readonly [string, (call: RpcCall) => void][] = [
    ["a dropped connection", (call) => call.drop()],
    [
      "an answer that breaks off",
      (call) => {
        call.response.writeHead(200, { "content-type": "application/json", "content-length": "999" });
        call.response.write('{"jsonrpc":"2.0",');
        call.events.drop();
      },
    ],
    ["503", (call) => call.page(503, {}, "")],
    ["502 of a gateway", (call) => call.page(502, { "content-type": "text/html" }, "Bad gateway")],
    ["429", (call) => call.page(429, { "retry-after": "0" }, "")],
  ];

  test.each(failures)("a safe call is repeated after %s", async (_, fail) => {
    const { client, server } = await agent((call) =>
      call.number < 3 ? fail(call) : call.answer(taskOf("TASK_STATE_WORKING")),
    );
    expect((await client.getTask("t1")).id).toBe("t1");
    expect(server.calls).toHaveLength(3);
  });

  test.each(failures.slice(0, 4))("a send is not repeated after %s, because it may have arrived", async (_, fail) => {
    const { client, server } = await agent(fail);
    const error = await errorOf(client.sendMessage("hi"));
    expect(error).toMatchObject({ name: "A2AError" });
    expect(server.calls).toHaveLength(1);
    expect(await errorOf(client.cancelTask("t1"))).toMatchObject({ name: "A2AError" });
    expect(server.calls).toHaveLength(2);
  });

  test.each(failures)("a send is repeated after %s if the card promises to deduplicate it", async (_, fail) => {
    const { client, server } = await agent(
      (call) => (call.number < 3 ? fail(call) : call.answer({ task: taskOf("TASK_STATE_COMPLETED") })),
      {},
      resendExtensions,
    );
    await client.sendMessage("hi");
    expect(server.calls).toHaveLength(3);
    expect(server.calls.map(({ params }) => params["message"])).toEqual(
      Array(3).fill(server.calls[0]?.params["message"]),
    );
  });

  test("a send is repeated after 429 and after a refused connection, because it was not processed", async () => {
    const { client, server } = await agent((call) =>
      call.number === 1 ? call.page(429, {}, "") : call.answer({ task: taskOf("TASK_STATE_COMPLETED") }),
    );
    await client.sendMessage("hi");
    expect(server.calls).toHaveLength(2);
    let tries = 0;
    const dead = await connect(cardOf([jsonRpcAt(await deadUrl())]), {
      ...soon,
      fetch(url, init) {
        tries++;
        return fetch(url, init);
      },
    });
    expect(await errorOf(dead.sendMessage("hi"))).toMatchObject({ code: "ConnectionFailed" });
    expect(tries).toBeGreaterThan(3);
  });

  test("a send that waits for its task is repeated whenever its connection breaks after a long time", async () => {
    const clock = new HandClock();
    const { client, server } = await agent(
      (call) => {
        clock.advance(300_000);
        if (call.number < 6) call.drop();
        else call.answer({ task: taskOf("TASK_STATE_COMPLETED") });
      },
      { clock },
      resendExtensions,
    );
    const sending = client.sendMessage("a long story");
    for (let tries = 1; tries < 6; tries++) {
      await until(() => server.calls.length === tries && clock.waiting === 1);
      clock.advance(10);
    }
    expect(await sending).toHaveProperty("task");
  });

  test("a call uses the connections of earlier calls", async () => {
    const sockets = new Set<unknown>();
    const { client } = await agent((call) => {
      sockets.add(call.response.socket);
      call.answer(taskOf("TASK_STATE_WORKING"));
    });
    for (let count = 0; count < 20; count++) await client.getTask("t1");
    // Node's fetch may open a second connection before the first connection is free.
    expect(sockets.size).toBeLessThanOrEqual(2);
  });

  test("protocol errors are not repeated", async () => {
    const { client, server } = await agent((call) => call.fail(-32603, "Internal error"));
    await errorOf(client.getTask("t1"));
    expect(server.calls).toHaveLength(1);
  });

  test("a retry waits as long as Retry-After says, up to the limit of the caller", async () => {
    const clock = new HandClock();
    const { client, server } = await agent(
      (call) =>
        call.number === 1 ? call.page(503, { "retry-after": "20" }, "") : call.answer(taskOf("TASK_STATE_WORKING")),
      { clock, retry: {} },
    );
    const work = client.getTask("t1");
    await clock.armed(20_000);
    clock.advance(19_999);
    expect(server.calls).toHaveLength(1);
    clock.advance(1);
    expect((await work).id).toBe("t1");
    const patient = await agent((call) => call.page(503, { "retry-after": "31" }, ""));
    expect(await errorOf(patient.client.getTask("t1"))).toMatchObject({ code: "Unavailable", retryAfter: 31 });
    expect(patient.server.calls).toHaveLength(1);
  });

  test.each([-32602, -32001])(
    "a message to a finished task is UnsupportedOperation if the peer answers %i",
    async (code) => {
      const { client } = await agent((call) => {
        if (call.method === "GetTask") call.answer(taskOf("TASK_STATE_COMPLETED"));
        else call.fail(code, "Task is in terminal state");
      });
      const message = { parts: [{ text: "more" }], taskId: "t1" };
      expect(await errorOf(client.sendMessage(message))).toMatchObject({
        code: "UnsupportedOperation",
        message: "Task is in terminal state",
      });
      const stream = client.sendStreamingMessage(message)[Symbol.asyncIterator]();
      expect(await errorOf(stream.next())).toMatchObject({ code: "UnsupportedOperation" });
    },
  );
});

describe("limits of a call", () => {
  test("the wait for headers is limited, except for a send that waits for its task", async () => {
    const clock = new HandClock();
    const { client, server } = await agent(() => undefined, { clock, connectTimeout: 5_000, retry: false });
    const work = errorOf(client.getTask("t1"));
    await clock.armed(5_000);
    clock.advance(5_000);
    expect(await work).toMatchObject({ code: "Timeout" });
    const sending = client.sendMessage("hi");
    await until(() => server.methods().includes("SendMessage"));
    expect(clock.waiting).toBe(0);
    server.calls.at(-1)?.answer({ task: taskOf("TASK_STATE_COMPLETED") });
    expect(await sending).toHaveProperty("task");
    const immediate = errorOf(client.sendMessage({ message: "hi", configuration: { returnImmediately: true } }));
    await clock.armed(5_000);
    clock.advance(5_000);
    expect(await immediate).toMatchObject({ code: "Timeout" });
  });

  test("a pause within a body is limited", async () => {
    const clock = new HandClock();
    const { client } = await agent(
      ({ response }) => {
        response.writeHead(200, { "content-type": "application/json" });
        response.write("{");
      },
      { clock, idleTimeout: 9_000 },
    );
    const work = errorOf(client.getTask("t1"));
    await clock.armed(9_000);
    clock.advance(9_000);
    expect(await work).toMatchObject({ code: "Timeout" });
  });

  test("the whole call with its retries is limited, and a call can have its own limit", async () => {
    const clock = new HandClock();
    const unavailable = (call: RpcCall): void => call.page(503, { "retry-after": "20" }, "");
    const { client } = await agent(unavailable, { clock, timeout: 15_000, retry: {} });
    const work = errorOf(client.getTask("t1"));
    await clock.armed(20_000);
    clock.advance(15_000);
    expect(await work).toMatchObject({ code: "Timeout" });
    const own = errorOf(client.getTask("t1", { timeout: 3_000 }));
    await clock.armed(20_000);
    clock.advance(3_000);
    expect(await own).toMatchObject({ code: "Timeout" });
    expect(clock.waiting).toBe(0);
  });

  test.each(["before", "waiting", "reading", "pausing"] as const)(
    "an abort (%s) throws Aborted and leaves no timer",
    async (when) => {
      const clock = new HandClock();
      const controller = new AbortController();
      const { client, server } = await agent(
        ({ response, page }) => {
          if (when === "pausing") return page(503, { "retry-after": "20" }, "");
          if (when === "reading") response.writeHead(200, { "content-type": "application/json" }).write("{");
        },
        { clock, idleTimeout: 9_000, retry: {} },
      );
      if (when === "before") controller.abort(new Error("never mind"));
      const work = errorOf(client.getTask("t1", { signal: controller.signal, timeout: 600_000 }));
      if (when === "waiting") await until(() => server.calls.length === 1);
      if (when === "reading") await clock.armed(9_000);
      if (when === "pausing") await clock.armed(20_000);
      controller.abort(new Error("never mind"));
      expect(await work).toMatchObject({ code: "Aborted" });
      expect(clock.waiting).toBe(0);
      expect(server.calls).toHaveLength(when === "before" ? 0 : 1);
    },
  );

  test("apply to a fetch that ignores its signal", async () => {
    const controller = new AbortController();
    const client = await connect(cardOf([jsonRpcAt("http://127.0.0.1:1")]), {
      fetch: () => new Promise<Response>(() => undefined),
    });
    const work = errorOf(client.getTask("t1", { signal: controller.signal }));
    controller.abort();
    expect(await work).toMatchObject({ code: "Aborted" });
    const body = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => undefined) });
    const slow = await connect(cardOf([jsonRpcAt("http://127.0.0.1:1")]), {
      fetch: () => Promise.resolve(new Response(body, { headers: { "content-type": "application/json" } })),
    });
    expect(await errorOf(slow.getTask("t1", { signal: AbortSignal.timeout(10) }))).toMatchObject({ code: "Timeout" });
  });
});

describe("REST", () => {
  test("writes paths, queries and bodies as in §11", async () => {
    const seen: string[] = [];
    const url = await listen((request, response) => {
      void bodyOf(request).then((body) => {
        seen.push(`${request.method} ${request.url} ${body}`);
        response.writeHead(200, { "content-type": "application/a2a+json" });
        const list = { tasks: [], nextPageToken: "", pageSize: 50, totalSize: 0 };
        response.end(JSON.stringify(request.url?.startsWith("/base/tasks?") ? list : taskOf("TASK_STATE_WORKING")));
      });
    });
    const client = await connect(cardOf([restAt(`${url}/base/`)]));
    await client.getTask({ id: "a/b c:cancel", historyLength: 0 });
    await client.listTasks({ contextId: "c&1", status: "TASK_STATE_WORKING", includeArtifacts: false });
    await client.cancelTask({ id: "t1", metadata: { why: "because" } });
    expect(seen).toEqual([
      "GET /base/tasks/a%2Fb%20c%3Acancel?historyLength=0 ",
      "GET /base/tasks?contextId=c%261&status=TASK_STATE_WORKING&includeArtifacts=false ",
      'POST /base/tasks/t1:cancel {"metadata":{"why":"because"}}',
    ]);
  });

  test.each([405, 404])("after %i, subscribes with the other HTTP method, now and later", async (status) => {
    const methods: string[] = [];
    const url = await listen((request, response) => {
      methods.push(request.method as string);
      if (request.method === "POST")
        return void response.writeHead(status, { "content-type": "text/html" }).end("Cannot POST");
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`data: ${JSON.stringify(taskEvent("TASK_STATE_COMPLETED"))}\n\n`);
    });
    const client = await connect(cardOf([restAt(url)]));
    for (let round = 0; round < 2; round++) {
      for await (const event of client.subscribeToTask("t1"))
        expect(event.task?.status.state).toBe("TASK_STATE_COMPLETED");
    }
    expect(methods).toEqual(["POST", "GET", "GET"]);
  });

  test("recognizes stream errors by their body, with `event: error` and without", async () => {
    const error = {
      error: {
        code: 500,
        status: "INTERNAL",
        message: "It fell over",
        details: [
          {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            reason: "INVALID_AGENT_RESPONSE",
            domain: "a2a-protocol.org",
          },
        ],
      },
    };
    for (const line of ["event: error\n", ""]) {
      const url = await listen((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(`data: ${JSON.stringify(taskEvent())}\n\n${line}data: ${JSON.stringify(error)}\n\n`);
      });
      const events = (await connect(cardOf([restAt(url)]))).sendStreamingMessage("hi")[Symbol.asyncIterator]();
      expect((await events.next()).value).toEqual(taskEvent());
      expect(await errorOf(events.next())).toMatchObject({ code: "InvalidAgentResponse", message: "It fell over" });
    }
  });

  test("reads an empty answer as an empty response", async () => {
    const url = await listen((_, response) => void response.writeHead(204).end());
    const card: AgentCard = cardOf([restAt(url)], { capabilities: { pushNotifications: true } });
    const client = await connect(card);
    expect(await client.deleteTaskPushNotificationConfig({ taskId: "t1", id: "c1" })).toBeUndefined();
  });
});

describe("interceptors", () => {
  test("wrap every request that is sent; the first is the outermost", async () => {
    const seen: string[] = [];
    const note =
      (name: string): Interceptor =>
      (next) => ({
        call(operation, request, context) {
          seen.push(`${name} ${operation}`);
          return next.call(operation, request, context);
        },
        stream(operation, request, context) {
          seen.push(`${name} ${operation}`);
          return next.stream(operation, request, context);
        },
      });
    const { client } = await agent(
      ({ method, number, events, drop, answer }) => {
        if (method === "GetTask") return number === 1 ? drop() : answer(taskOf("TASK_STATE_WORKING"));
        events.send(taskEvent(method === "SubscribeToTask" ? "TASK_STATE_COMPLETED" : "TASK_STATE_WORKING"));
        if (method === "SendStreamingMessage") events.drop();
      },
      { interceptors: [note("outer"), note("inner")] },
    );
    await client.getTask("t1");
    for await (const event of client.sendStreamingMessage("hi")) expect(event.task?.id).toBe("t1");
    expect(seen).toEqual([
      "outer GetTask",
      "inner GetTask",
      "outer GetTask",
      "inner GetTask",
      "outer SendStreamingMessage",
      "inner SendStreamingMessage",
      "outer SubscribeToTask",
      "inner SubscribeToTask",
    ]);
  });

  /** Creates an interceptor that answers calls and streams with the results of these functions. */
  function answering(call: () => unknown, stream: () => unknown): Interceptor {
    return function broken() {
      return { call: async () => call(), stream: async () => stream() } as unknown as AgentService;
    };
  }

  test.each([
    ["nothing", undefined, "returned undefined in place of a reply"],
    ["a text", "fine", "returned string in place of a reply"],
    ["a reply without a payload", {}, "returned a reply without a Payload"],
  ])("that answer a call with %s are named by the error", async (_, answer, problem) => {
    const { client, server } = await agent(() => {}, {
      interceptors: [
        answering(
          () => answer,
          () => answer,
        ),
      ],
    });
    const error = await errorOf(client.getTask("t1"));
    expect(error).toMatchObject({ code: "InternalError", message: `interceptors[0] (broken) ${problem}, for GetTask` });
    expect(server.calls).toHaveLength(0);
  });

  test.each([
    ["nothing", undefined, "returned undefined in place of a stream"],
    ["a stream without batches", {}, "returned a stream whose batches are not an async iterable"],
    [
      "an event in place of a batch",
      { batches: once({ task: taskOf("TASK_STATE_WORKING") }) },
      "gave object in place of a batch of items",
    ],
    ["items without a payload", { batches: once([{}]) }, "gave an item without a Payload"],
  ])("that answer a stream with %s are named by the error", async (_, answer, problem) => {
    const { client } = await agent(() => {}, {
      interceptors: [
        answering(
          () => answer,
          () => answer,
        ),
      ],
    });
    const error = await errorOf(client.sendStreamingMessage("hi").next());
    expect(error).toMatchObject({
      code: "InternalError",
      message: `interceptors[0] (broken) ${problem}, for SendStreamingMessage`,
    });
  });

  test.each([
    ["are not functions", "log"],
    ["return no service", () => undefined],
  ])("that %s are rejected by connect()", async (_, interceptor) => {
    const interceptors = [interceptor as unknown as Interceptor];
    const error = await errorOf(connect(cardOf([jsonRpcAt(await deadUrl())]), { interceptors }));
    expect(error).toMatchObject({ code: "InvalidParams", fields: [{ field: "interceptors[0]" }] });
  });

  test("can wrap the whole client too, through its service", async () => {
    const { client } = await agent((call) => {
      call.response.setHeader("a2a-extensions", "urn:a, urn:b");
      call.answer(taskOf("TASK_STATE_WORKING"));
    });
    const context = { principal: { subject: "me" }, version: "1.0", extensions: [] };
    const reply = await client.service.call("GetTask", { id: "t1" }, context);
    expect(reply.extensions).toEqual(["urn:a", "urn:b"]);
    expect(reply.payload.value).toMatchObject({ id: "t1" });
  });
});

test.each([
  ["of a server", serverBinding(), /this JSONRPC is not one/],
  ["null", null, /bindings must be bindings of a client/],
])("connect() rejects a binding that is %s", async (_, binding, words) => {
  const options = { bindings: [binding] } as unknown as ConnectOptions;
  await expect(connect("http://127.0.0.1:1", options)).rejects.toThrow(words);
});
