import { A2AError, type Message } from "@parley/server";
import { bearer } from "@parley/a2a/auth";
import { Payload, type AgentService, type CallContext, type StreamItem } from "@parley/a2a/protocol";
import { describe, expect, test, vi } from "vitest";
import { message, obedient } from "./support/agents.ts";
import { GrpcJs, statusOf } from "./support/grpc-js.ts";
import { bindingOf, host, serve } from "./support/host.ts";

const service = "/lf.a2a.v1.A2AService";

/** The error of a call that fails. */
async function failure(call: Promise<unknown>): Promise<ReturnType<typeof statusOf>> {
  const [result] = await Promise.allSettled([call]);
  if (result.status === "fulfilled") throw new Error(`it went well: ${JSON.stringify(result.value)}`);
  return statusOf(result.reason);
}

function item(text: string, seq?: number): StreamItem {
  const answer: Message = { messageId: text, role: "ROLE_AGENT", parts: [{ text }] };
  return { payload: new Payload({ message: answer }), ...(seq !== undefined && { seq }) };
}

async function* batches(
  ...items: readonly (readonly StreamItem[])[]
): AsyncGenerator<readonly StreamItem[], void, void> {
  yield* items;
}

interface TaskAnswer {
  readonly task: { readonly id: string; readonly contextId: string; readonly status: { readonly state: string } };
}

describe("the operations of A2A 1.0 (§10.3)", () => {
  test("a message is answered by a message, or by a terminal task", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    const reply = await client.unary(`${service}/SendMessage`, { message: message("reply") });
    expect(reply.value).toMatchObject({ message: { role: "ROLE_AGENT", parts: [{ text: "Hello" }] } });
    const sent = await client.unary(`${service}/SendMessage`, { message: message("go") });
    expect(sent.value).toMatchObject({
      task: {
        status: { state: "TASK_STATE_COMPLETED", timestamp: expect.stringMatching(/^\d{4}-.*Z$/) },
        artifacts: [
          { artifactId: "a", parts: [{ text: "al" }, { data: { n: null, list: [1.5] } }] },
          { artifactId: "b", parts: [{ raw: "AAEC", filename: "f.bin", mediaType: "application/x" }] },
        ],
        history: [{ parts: [{ text: "go" }] }],
      },
    });
  });

  test("tasks are read, listed and canceled", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    const configuration = { returnImmediately: true };
    const sent = await client.unary(`${service}/SendMessage`, { message: message("wait"), configuration });
    const { id, contextId } = (sent.value as TaskAnswer).task;
    const got = await client.unary(`${service}/GetTask`, { id, historyLength: 0 });
    expect(got.value).toMatchObject({ id, contextId });
    expect(got.value).not.toHaveProperty("history");
    const listed = await client.unary(`${service}/ListTasks`, { contextId, pageSize: 5 });
    expect(listed.value).toMatchObject({ tasks: [{ id }], pageSize: 5, totalSize: 1 });
    const canceled = await client.unary(`${service}/CancelTask`, { id });
    expect(canceled.value).toMatchObject({ id, status: { state: "TASK_STATE_CANCELED" } });
  });

  test("a list without a page size has the default size, even if the Go SDK sends 0 (§3.1.4)", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    await client.unary(`${service}/SendMessage`, { message: message("go") });
    for (const size of [{}, { pageSize: 0 }]) {
      const listed = await client.unary(`${service}/ListTasks`, { ...size, pageToken: "", contextId: "", tenant: "" });
      expect(listed.value).toMatchObject({ pageSize: 50, totalSize: 1 });
    }
    expect(await failure(client.unary(`${service}/ListTasks`, { pageSize: -1 }))).toMatchObject({ code: 3 });
    expect(await failure(client.unary(`${service}/ListTasks`, { pageSize: 101 }))).toMatchObject({ code: 3 });
  });

  test("a stream has the task, then its events, and ends with it", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    const events = await client.all(`${service}/SendStreamingMessage`, { message: message("go") });
    expect(events).toMatchObject([
      { task: { status: { state: "TASK_STATE_SUBMITTED" } } },
      { statusUpdate: { status: { state: "TASK_STATE_WORKING" } } },
      { artifactUpdate: { artifact: { artifactId: "a" }, lastChunk: true } },
      { artifactUpdate: { artifact: { artifactId: "b" }, lastChunk: true } },
      { statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } },
    ]);
  });

  test("a subscription begins with the task, and continues after Last-Event-ID", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    const asked = await client.unary(`${service}/SendMessage`, { message: message("ask") });
    const { id, contextId } = (asked.value as TaskAnswer).task;
    const stream = client.stream(`${service}/SubscribeToTask`, { id });
    const events = stream[Symbol.asyncIterator]();
    expect((await events.next()).value).toMatchObject({ task: { id, status: { state: "TASK_STATE_INPUT_REQUIRED" } } });
    await client.unary(`${service}/SendMessage`, { message: message("go", { taskId: id, contextId }) });
    const rest: unknown[] = [];
    for (let next = await events.next(); next.done !== true; next = await events.next()) rest.push(next.value);
    expect(rest.at(-1)).toMatchObject({ statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } });
    const replayed = await client.all(`${service}/SubscribeToTask`, { id }, { "last-event-id": "1" });
    expect(replayed.at(-1)).toEqual(rest.at(-1));
    expect(replayed[0]).not.toHaveProperty("task");
  });

  test("the extended card needs credentials (§3.1.11)", async () => {
    const authenticator = bearer({ good: { subject: "ann" } });
    await using server = await serve(
      { agent: obedient(), extendedCard: (card, { subject }) => ({ ...card, description: `for ${subject}` }) },
      { authenticator },
    );
    using client = new GrpcJs(server.address);
    const card = await client.unary(`${service}/GetExtendedAgentCard`, {}, { authorization: "Bearer good" });
    expect(card.value).toMatchObject({ name: "Obedient", description: "for ann", capabilities: { streaming: true } });
    const refused = await failure(client.unary(`${service}/GetExtendedAgentCard`, {}));
    expect(refused.code).toBe(16);
    expect(refused.trailers).toMatchObject({ "www-authenticate": expect.stringMatching(/^Bearer/) });
  });

  test("the methods for webhooks report that push notifications are not supported", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    const config = { taskId: "t", url: "https://x.example/" };
    const calls: [string, object][] = [
      ["CreateTaskPushNotificationConfig", config],
      ["GetTaskPushNotificationConfig", { taskId: "t", id: "c" }],
      ["ListTaskPushNotificationConfigs", { taskId: "t" }],
      ["DeleteTaskPushNotificationConfig", { taskId: "t", id: "c" }],
    ];
    for (const [name, value] of calls) {
      const { code, rpc } = await failure(client.unary(`${service}/${name}`, value));
      expect(code, name).toBe(9);
      expect(rpc).toMatchObject({ details: [{ reason: "PUSH_NOTIFICATION_NOT_SUPPORTED" }] });
    }
  });

  test("a tenant names the agent, by its path or by its label (§8.3.2)", async () => {
    const named = (name: string) => obedient({ name, onMessage: (turn) => turn.reply(name) });
    await using server = await serve([
      { agent: named("root") },
      { agent: named("weather"), path: "/weather" },
      { agent: named("berlin"), path: "/weather", tenant: "berlin" },
    ]);
    using client = new GrpcJs(server.address);
    for (const [tenant, name] of [
      ["", "root"],
      ["weather", "weather"],
      ["weather/berlin", "berlin"],
    ]) {
      const { value } = await client.unary(`${service}/SendMessage`, { tenant, message: message("?") });
      expect(value).toMatchObject({ message: { parts: [{ text: name }] } });
    }
    const lost = await failure(client.unary(`${service}/SendMessage`, { tenant: "moon", message: message("?") }));
    expect(lost).toMatchObject({ code: 3, rpc: { details: [{ fieldViolations: [{ field: "tenant" }] }, {}] } });
  });
});

describe("errors (§10.6)", () => {
  test("have a status with details", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    expect(await failure(client.unary(`${service}/GetTask`, { id: "none" }))).toMatchObject({
      code: 5,
      details: "Task not found",
      rpc: {
        code: 5,
        details: [{ reason: "TASK_NOT_FOUND", domain: "a2a-protocol.org", metadata: { taskId: "none" } }],
      },
    });
    const empty = await failure(
      client.unary(`${service}/SendMessage`, { message: { messageId: "m", role: "ROLE_USER" } }),
    );
    expect(empty).toMatchObject({ code: 3, rpc: { details: [{ fieldViolations: [{ field: "message.parts" }] }, {}] } });
  });

  test("end a stream without events if it cannot begin; later errors come after the events", async () => {
    const stream: AgentService["stream"] = (_operation, _request, context) =>
      context.headers?.("x-fail") === undefined
        ? Promise.resolve({
            batches: (async function* () {
              yield [item("one")];
              throw new A2AError("Unavailable", "The server is stopping");
            })(),
          })
        : Promise.reject(new A2AError("TaskNotFound"));
    await using server = await host(bindingOf({ stream }));
    using client = new GrpcJs(server.address);
    expect(await failure(client.all(`${service}/SubscribeToTask`, { id: "t" }, { "x-fail": "1" }))).toMatchObject({
      code: 5,
    });
    const events: unknown[] = [];
    const broken = (async () => {
      for await (const event of client.stream(`${service}/SubscribeToTask`, { id: "t" })) events.push(event);
    })();
    expect(await failure(broken)).toMatchObject({ code: 14, details: "The server is stopping" });
    expect(events).toHaveLength(1);
  });

  test("of an agent never show internals", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    const { value } = await client.unary(`${service}/SendMessage`, { message: message("fail") });
    expect(JSON.stringify(value)).toContain("TASK_STATE_FAILED");
    expect(JSON.stringify(value)).not.toContain("secret");
    const error = vi.fn<(text: string, fields?: object) => void>();
    const call = () => Promise.reject(new Error("secret"));
    const logger = { debug() {}, info() {}, warn() {}, error };
    await using broken = await host(bindingOf({ call }, { logger }));
    using other = new GrpcJs(broken.address);
    const refused = await failure(other.unary(`${service}/GetTask`, { id: "t" }));
    expect(refused).toMatchObject({ code: 13, details: "Internal error" });
    expect(error).toHaveBeenCalledWith("A request failed", expect.objectContaining({ binding: "GRPC" }));
  });

  test("keep their text in any script", async () => {
    const call = () => Promise.reject(new A2AError("InvalidRequest", "100 % — 漢字\nline"));
    await using server = await host(bindingOf({ call }));
    using client = new GrpcJs(server.address);
    expect((await failure(client.unary(`${service}/GetTask`, { id: "t" }))).details).toBe("100 % — 漢字\nline");
  });

  test("of an unknown method or service are UNIMPLEMENTED", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    const unknown = (path: string) =>
      new Promise((resolve, reject) => {
        const bytes = (value: Buffer) => value;
        client.client.makeUnaryRequest(path, bytes, bytes, Buffer.alloc(0), (error, value) => {
          if (error === null) resolve(value);
          else reject(error);
        });
      });
    expect(await failure(unknown(`${service}/Sing`))).toMatchObject({ code: 12 });
    expect(await failure(unknown("/x.Y/Z"))).toMatchObject({ code: 12 });
  });
});

describe("service parameters (§10.2)", () => {
  test("the version is 1.0 if none is named, and its patch number is ignored", async () => {
    const contexts: CallContext[] = [];
    const call: AgentService["call"] = (_operation, _request, context) => {
      contexts.push(context);
      return Promise.resolve({ payload: new Payload({ id: "t", status: { state: "TASK_STATE_WORKING" } } as never) });
    };
    await using server = await host(bindingOf({ call }));
    using client = new GrpcJs(server.address);
    for (const version of ["1.0", "1.0.3", "1.1"]) {
      await client.unary(`${service}/GetTask`, { id: "t" }, { "a2a-version": version });
    }
    await client.unary(`${service}/GetTask`, { id: "t" });
    expect(contexts.map(({ version }) => version)).toEqual(["1.0", "1.0", "1.1", "1.0"]);
  });

  test("a version of another service is rejected by name", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    for (const version of ["99.0", "0.3", "?"]) {
      const refused = await failure(client.unary(`${service}/GetTask`, { id: "t" }, { "a2a-version": version }));
      expect(refused).toMatchObject({ code: 9, rpc: { details: [{ reason: "VERSION_NOT_SUPPORTED" }] } });
    }
    await using strict = await serve(obedient(), { strictVersion: true });
    using other = new GrpcJs(strict.address);
    expect(await failure(other.unary(`${service}/GetTask`, { id: "t" }))).toMatchObject({ code: 9 });
    expect(await failure(other.unary(`${service}/GetTask`, { id: "t" }, { "a2a-version": "1.0" }))).toMatchObject({
      code: 5,
    });
  });

  test("the fields of an error have the names of the .proto file", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    const fieldsOf = async (method: string, request: object): Promise<unknown> => {
      const { rpc } = await failure(client.unary(`${service}/${method}`, request));
      const { details } = rpc as { details: { fieldViolations?: { field: string }[] }[] };
      return details.flatMap(({ fieldViolations = [] }) => fieldViolations.map(({ field }) => field));
    };
    const wrong = { message: { role: "ROLE_USER", parts: [{ text: "go" }] } };
    expect(await fieldsOf("SendMessage", wrong)).toEqual(["message.message_id"]);
    expect(await fieldsOf("GetTask", { id: "t", historyLength: -1 })).toEqual(["history_length"]);
    expect(await fieldsOf("ListTasks", { pageSize: 101 })).toEqual(["page_size"]);
  });

  test("extensions, trace and headers reach the service; headers and trailers name the activated extensions", async () => {
    const contexts: CallContext[] = [];
    const extensions = ["https://x.example/a", "https://x.example/b"];
    const call: AgentService["call"] = (_operation, _request, context) => {
      contexts.push(context);
      return Promise.resolve({
        payload: new Payload({ id: "t", status: { state: "TASK_STATE_WORKING" } } as never),
        extensions,
      });
    };
    const stream: AgentService["stream"] = () => Promise.resolve({ batches: batches([item("one")]), extensions });
    await using server = await host(bindingOf({ call, stream }));
    using client = new GrpcJs(server.address);
    const asked = { "a2a-extensions": extensions.join(","), traceparent: "00-1-2-01", "x-own": "1" };
    const answer = await client.unary(`${service}/GetTask`, { id: "t" }, asked);
    expect(contexts[0]).toMatchObject({ extensions, trace: "00-1-2-01" });
    expect(contexts[0]?.headers?.("x-own")).toBe("1");
    expect(answer.headers).toMatchObject({ "a2a-extensions": extensions.join(", ") });
    expect(answer.trailers).toMatchObject({ "a2a-extensions": extensions.join(", ") });
    const former = await client.unary(`${service}/GetTask`, { id: "t" }, { "x-a2a-extensions": extensions.join(",") });
    expect(former.headers).toMatchObject({ "x-a2a-extensions": extensions.join(", ") });
    const reading = client.stream(`${service}/SubscribeToTask`, { id: "t" }, asked);
    const head = new Promise((resolve) => reading.on("metadata", (metadata) => resolve(metadata.getMap())));
    const tail = new Promise((resolve) => reading.on("status", ({ metadata }) => resolve(metadata.getMap())));
    reading.resume();
    expect(await head).toMatchObject({ "a2a-extensions": extensions.join(", ") });
    expect(await tail).toMatchObject({ "a2a-extensions": extensions.join(", ") });
  });

  test("the draft of 1.1 has generations, and 1.0 has none", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    const { value } = await client.unary(
      `${service}/SendMessage`,
      { message: message("go") },
      { "a2a-version": "1.1" },
    );
    // The messages of 1.0 have no such field, so a reader of 1.0 skips it.
    expect((value as TaskAnswer).task).not.toHaveProperty("generation");
    expect((value as TaskAnswer).task.status.state).toBe("TASK_STATE_COMPLETED");
  });
});

describe("deadlines and cancellation", () => {
  test("a call ends at its deadline, and the service is told", async () => {
    let aborted = false;
    const call: AgentService["call"] = (_operation, _request, { signal }) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener("abort", () => {
          aborted = true;
          reject(new Error("aborted"));
        });
      });
    await using server = await host(bindingOf({ call }));
    using client = new GrpcJs(server.address);
    const late = client.unary(`${service}/GetTask`, { id: "t" }, { "grpc-timeout": "500m" });
    expect(await failure(late)).toMatchObject({ code: 4 });
    await vi.waitFor(() => expect(aborted).toBe(true));
    const own = client.unary(`${service}/GetTask`, { id: "t" }, {}, { deadline: Date.now() + 100 });
    expect(await failure(own)).toMatchObject({ code: 4 });
    const none = client.unary(`${service}/GetTask`, { id: "t" }, { "grpc-timeout": "soon" });
    expect(await failure(none)).toMatchObject({ code: 3 });
  });

  test("a deadline ends the wait for a task, and not the task", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    const late = client.unary(`${service}/SendMessage`, { message: message("wait") }, { "grpc-timeout": "1S" });
    expect(await failure(late)).toMatchObject({ code: 4 });
    const { value } = await client.unary(`${service}/ListTasks`, {});
    expect(value).toMatchObject({ tasks: [{ status: { state: "TASK_STATE_WORKING" } }] });
  });

  test("a canceled call ends the stream of the service at once", async () => {
    let returned = false;
    const stream: AgentService["stream"] = () =>
      Promise.resolve({
        batches: {
          [Symbol.asyncIterator]: () => {
            let first = true;
            return {
              next: () => {
                if (!first) return new Promise(() => {});
                first = false;
                return Promise.resolve({ done: false as const, value: [item("one")] });
              },
              return: () => {
                returned = true;
                return Promise.resolve({ done: true as const, value: undefined });
              },
            };
          },
        },
      });
    await using server = await host(bindingOf({ stream }));
    using client = new GrpcJs(server.address);
    const call = client.stream(`${service}/SubscribeToTask`, { id: "t" });
    call.on("error", () => {});
    await new Promise((resolve) => call.once("data", resolve));
    call.cancel();
    await vi.waitFor(() => expect(returned).toBe(true));
  });

  test("the headers of a stream precede its first event", async () => {
    const stream: AgentService["stream"] = () =>
      Promise.resolve({ batches: { [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) } });
    await using server = await host(bindingOf({ stream }));
    using client = new GrpcJs(server.address);
    const call = client.stream(`${service}/SubscribeToTask`, { id: "t" });
    call.on("error", () => {});
    await new Promise((resolve) => call.once("metadata", resolve));
    call.cancel();
  });
});
