import { Role, TaskState, type SendMessageRequest, type StreamResponse, type Task } from "@a2a-js/sdk";
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  type Client,
} from "@a2a-js/sdk/client";
import { GrpcTransportFactory } from "@a2a-js/sdk/client/grpc";
import {
  ContentTypeNotSupportedError,
  InvalidAgentResponseError,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";
import { beforeAll, describe, expect, it } from "vitest";
import { asAda, counting, fetchAsAda } from "./counter.ts";

/** Every operation of A2A 1.0 §3.1, called by the official client over real connections, without our own client. */

const servers = counting();
const olderServers = counting(["0.3"]);

const none = { metadata: {}, filename: "", mediaType: "" };

function request(words: string, more: { taskId?: string; contextId?: string; mediaType?: string } = {}) {
  const { mediaType = "", ...ids } = more;
  return {
    tenant: "",
    message: {
      messageId: crypto.randomUUID(),
      contextId: "",
      taskId: "",
      ...ids,
      role: Role.ROLE_USER,
      parts: [{ ...none, mediaType, content: { $case: "text", value: words } }],
      metadata: {},
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: undefined,
    metadata: {},
  } satisfies SendMessageRequest;
}

const everything = {
  tenant: "",
  contextId: "",
  status: TaskState.TASK_STATE_UNSPECIFIED,
  pageSize: undefined,
  pageToken: "",
  historyLength: undefined,
  statusTimestampAfter: undefined,
  includeArtifacts: undefined,
};

async function all(stream: AsyncIterable<StreamResponse>): Promise<StreamResponse[]> {
  const events: StreamResponse[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

function stateOf({ payload }: StreamResponse): TaskState | undefined {
  return payload?.$case === "statusUpdate" || payload?.$case === "task" ? payload.value.status?.state : undefined;
}

function wordsOf({ artifacts }: Task): string[] {
  return artifacts.flatMap(({ parts }) => parts.map(({ content }) => (content?.$case === "text" ? content.value : "")));
}

/** The error of a stream. Over JSON-RPC the official client wraps it. */
async function failure(stream: AsyncIterable<StreamResponse>): Promise<unknown> {
  const error = await all(stream).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof Error && error.constructor === Error ? error.cause : error;
}

const legacyCompat = { enabled: true };
const bindings = {
  JSONRPC: () => new JsonRpcTransportFactory({ fetchImpl: fetchAsAda, legacyCompat }),
  "HTTP+JSON": () => new RestTransportFactory({ fetchImpl: fetchAsAda, legacyCompat }),
  GRPC: () => new GrpcTransportFactory({ grpcCallOptions: { interceptors: [asAda] }, legacyCompat }),
};

describe.each(["JSONRPC", "HTTP+JSON", "GRPC"] as const)("the official client of 1.x over %s", (binding) => {
  const factory = new ClientFactory({ transports: [bindings[binding]()] });
  let client: Client;
  beforeAll(async () => {
    client = await factory.createFromUrl(servers().url);
  });
  const send = async (words: string, more?: Parameters<typeof request>[1]): Promise<Task> => {
    const sent = await client.sendMessage(request(words, more));
    if (!("status" in sent)) throw new Error("A task was expected");
    return sent;
  };

  it("SendMessage: a message, and a task at its end", async () => {
    expect(await client.sendMessage(request("hello"))).toMatchObject({
      role: Role.ROLE_AGENT,
      parts: [{ content: { $case: "text", value: "Hello" } }],
    });
    const task = await send("4");
    expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(wordsOf(task)).toEqual(["0123"]);
  });

  it("GetTask, with as much history as requested", async () => {
    const { id } = await send("2");
    const whole = await client.getTask({ tenant: "", id, historyLength: undefined });
    expect(whole.history).toHaveLength(1);
    expect(wordsOf(whole)).toEqual(["01"]);
    expect((await client.getTask({ tenant: "", id, historyLength: 0 })).history).toEqual([]);
  });

  it("ListTasks: pages, filters and totals", async () => {
    const contextId = crypto.randomUUID();
    const ids = [];
    for (let n = 0; n < 3; n += 1) ids.unshift((await send("1", { contextId })).id);
    const first = await client.listTasks({ ...everything, contextId, pageSize: 2 });
    expect(first).toMatchObject({ pageSize: 2, totalSize: 3 });
    const rest = await client.listTasks({ ...everything, contextId, pageSize: 2, pageToken: first.nextPageToken });
    expect([...first.tasks, ...rest.tasks].map(({ id }) => id)).toEqual(ids);
    expect(rest.nextPageToken).toBe("");
    const failed = { ...everything, contextId, status: TaskState.TASK_STATE_FAILED };
    expect(await client.listTasks(failed)).toMatchObject({ tasks: [], totalSize: 0 });
  });

  it("SendStreamingMessage and SubscribeToTask: two readers see the same, until CancelTask ends both", async () => {
    const stream = client.sendMessageStream(request("wait"));
    const events: StreamResponse[] = [];
    while (events.at(-1)?.payload?.$case !== "artifactUpdate") {
      const { value, done } = await stream.next();
      if (done === true) throw new Error("It ended too soon");
      events.push(value);
    }
    const task = events[0]?.payload;
    if (task?.$case !== "task") throw new Error("It did not begin with the task");
    const { id } = task.value;
    const second = client.resubscribeTask({ tenant: "", id });
    const { value } = await second.next();
    expect(value?.payload).toMatchObject({ $case: "task", value: { id, artifacts: [{ artifactId: "numbers" }] } });
    const canceled = await client.cancelTask({ tenant: "", id, metadata: {} });
    expect(canceled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    const ends = await Promise.all([all(stream), all(second)]);
    for (const end of ends) expect(end.map(stateOf)).toEqual([TaskState.TASK_STATE_CANCELED]);
  });

  it("a question ends the stream, and its answer continues with the same task (§3.4.3)", async () => {
    const asked = await all(client.sendMessageStream(request("ask")));
    const last = asked.at(-1);
    expect(last && stateOf(last)).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    const made = asked[0]?.payload;
    if (made?.$case !== "task") throw new Error("It did not begin with the task");
    const { id, contextId } = made.value;
    const answered = await all(client.sendMessageStream(request("3", { taskId: id, contextId })));
    expect(answered.map(stateOf).at(-1)).toBe(TaskState.TASK_STATE_COMPLETED);
    const task = await client.getTask({ tenant: "", id, historyLength: undefined });
    expect(wordsOf(task)).toEqual(["012"]);
    expect(task.history.map(({ role }) => role)).toEqual([Role.ROLE_USER, Role.ROLE_AGENT, Role.ROLE_USER]);
  });

  it("GetExtendedAgentCard, for an authenticated caller", async () => {
    const extended = await factory.createFromUrl(servers().extendedUrl);
    expect((await extended.getAgentCard()).description).toBe("For ada alone");
    await expect(client.transport.getExtendedAgentCard({ tenant: "" })).rejects.toThrow(UnsupportedOperationError);
  });

  it("errors are of its own classes", async () => {
    const { id } = await send("1");
    const nobody = { tenant: "", id: "nobody" };
    await expect(client.getTask({ ...nobody, historyLength: undefined })).rejects.toThrow(TaskNotFoundError);
    await expect(client.cancelTask({ ...nobody, metadata: {} })).rejects.toThrow(TaskNotFoundError);
    expect(await failure(client.resubscribeTask(nobody))).toBeInstanceOf(TaskNotFoundError);
    expect(await failure(client.sendMessageStream(request("2", { taskId: "nobody" })))).toBeInstanceOf(
      TaskNotFoundError,
    );
    await expect(send("2", { taskId: "nobody" })).rejects.toThrow(TaskNotFoundError);
    await expect(client.cancelTask({ tenant: "", id, metadata: {} })).rejects.toThrow(TaskNotCancelableError);
    await expect(send("2", { taskId: id })).rejects.toThrow(UnsupportedOperationError);
    expect(await failure(client.resubscribeTask({ tenant: "", id }))).toBeInstanceOf(UnsupportedOperationError);
    await expect(send("2", { mediaType: "video/mp4" })).rejects.toThrow(ContentTypeNotSupportedError);
    await expect(client.listTasks({ ...everything, pageSize: 1000 })).rejects.toThrow(RequestMalformedError);
    await expect(client.listTasks({ ...everything, pageToken: "made-up" })).rejects.toThrow(/pageToken/);
  });

  it("an error of a stream has its code and its message in the text of what is thrown", async () => {
    const told =
      binding === "JSONRPC" ? /^SSE event contained an error: .*\(Code: -32001\)/ : /nobody|no task|not found/i;
    await expect(all(client.resubscribeTask({ tenant: "", id: "nobody" }))).rejects.toThrow(told);
  });

  it("an error in mid-stream is reported too", async () => {
    const stream = client.sendMessageStream(request("break"));
    expect((await stream.next()).value?.payload?.$case).toBe("task");
    expect(await failure(stream)).toBeInstanceOf(InvalidAgentResponseError);
  });

  it("push operations are PushNotificationNotSupported, all four", async () => {
    const config = { tenant: "", taskId: "t", id: "c" };
    const push = { ...config, url: "https://example.com", token: "", authentication: undefined };
    const { transport } = client;
    await expect(transport.createTaskPushNotificationConfig(push)).rejects.toThrow(PushNotificationNotSupportedError);
    await expect(transport.getTaskPushNotificationConfig(config)).rejects.toThrow(PushNotificationNotSupportedError);
    await expect(
      transport.listTaskPushNotificationConfig({ tenant: "", taskId: "t", pageSize: 0, pageToken: "" }),
    ).rejects.toThrow(PushNotificationNotSupportedError);
    await expect(transport.deleteTaskPushNotificationConfig(config)).rejects.toThrow(PushNotificationNotSupportedError);
  });
});

describe.each(["JSONRPC", "HTTP+JSON", "GRPC"] as const)("its layer for 0.3 over %s", (binding) => {
  const cardResolver = new DefaultAgentCardResolver({ fetchImpl: fetchAsAda, legacyCompat });
  const connect = async (url: string): Promise<Client> =>
    new ClientFactory({ transports: [bindings[binding]()], cardResolver }).createFromUrl(`${url}/`);
  let client: Client;
  beforeAll(async () => {
    client = await connect(olderServers().url);
  });

  it("reads a card of 0.3, sends, and gets the task", async () => {
    expect(await client.sendMessage(request("hello"))).toMatchObject({ role: Role.ROLE_AGENT });
    const task = (await client.sendMessage(request("3"))) as Task;
    expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    const got = await client.getTask({ tenant: "", id: task.id, historyLength: undefined });
    expect(wordsOf(got)).toEqual(["012"]);
  });

  it("streams until a task is canceled, also to subscribers", async () => {
    const stream = client.sendMessageStream(request("wait"));
    const events: StreamResponse[] = [];
    while (events.at(-1)?.payload?.$case !== "artifactUpdate") {
      const { value, done } = await stream.next();
      if (done === true) throw new Error("It ended too soon");
      events.push(value);
    }
    const task = events[0]?.payload;
    const id = task?.$case === "task" ? task.value.id : "";
    const second = client.resubscribeTask({ tenant: "", id });
    expect((await second.next()).value?.payload).toMatchObject({ $case: "task", value: { id } });
    const canceled = await client.cancelTask({ tenant: "", id, metadata: {} });
    expect(canceled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    for (const end of await Promise.all([all(stream), all(second)])) {
      expect(end.map(stateOf)).toEqual([TaskState.TASK_STATE_CANCELED]);
    }
  });

  it("continues with a task that asked", async () => {
    const asked = (await client.sendMessage(request("ask"))) as Task;
    expect(asked.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    const ids = { taskId: asked.id, contextId: asked.contextId };
    const answered = await all(client.sendMessageStream(request("2", ids)));
    expect(answered.map(stateOf).at(-1)).toBe(TaskState.TASK_STATE_COMPLETED);
  });

  it("reads the card of its caller", async () => {
    expect((await (await connect(olderServers().extendedUrl)).getAgentCard()).description).toBe("For ada alone");
  });

  it("types errors", async () => {
    const task = (await client.sendMessage(request("1"))) as Task;
    const nobody = { tenant: "", id: "nobody" };
    await expect(client.getTask({ ...nobody, historyLength: undefined })).rejects.toThrow(TaskNotFoundError);
    expect(await failure(client.resubscribeTask(nobody))).toBeInstanceOf(TaskNotFoundError);
    await expect(client.cancelTask({ ...nobody, id: task.id, metadata: {} })).rejects.toThrow(TaskNotCancelableError);
    await expect(client.sendMessage(request("2", { taskId: task.id }))).rejects.toThrow(UnsupportedOperationError);
    const stream = client.sendMessageStream(request("break"));
    await stream.next();
    expect(await failure(stream)).toBeInstanceOf(InvalidAgentResponseError);
    const hook = {
      tenant: "",
      taskId: task.id,
      id: "c",
      url: "https://example.com",
      token: "",
      authentication: undefined,
    };
    await expect(client.transport.createTaskPushNotificationConfig(hook)).rejects.toThrow(
      PushNotificationNotSupportedError,
    );
  });
});
