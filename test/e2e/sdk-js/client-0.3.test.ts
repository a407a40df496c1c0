import type { Message, MessageSendParams, Task } from "@a2a-js/sdk-0.3";
import {
  AuthenticatedExtendedCardNotConfiguredError,
  ClientFactory,
  ContentTypeNotSupportedError,
  DefaultAgentCardResolver,
  InvalidAgentResponseError,
  JsonRpcTransportFactory,
  PushNotificationNotSupportedError,
  RestTransportFactory,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
  type Client,
} from "@a2a-js/sdk-0.3/client";
import { GrpcTransportFactory } from "@a2a-js/sdk-0.3/client/grpc";
import { beforeAll, describe, expect, it } from "vitest";
import { asAda, counting, fetchAsAda } from "./counter.ts";

/** Every operation of A2A 0.3, called by the official client for that version over real connections. */

const servers = counting();

type Event = ReturnType<Client["sendMessageStream"]> extends AsyncGenerator<infer E> ? E : never;

function params(words: string, more: Partial<Message> = {}): MessageSendParams {
  return {
    message: {
      kind: "message",
      role: "user",
      messageId: crypto.randomUUID(),
      parts: [{ kind: "text", text: words }],
      ...more,
    },
  };
}

/** Reads a stream that fails. Over JSON-RPC the official client wraps the error. */
async function read(stream: AsyncIterable<Event>): Promise<void> {
  try {
    await all(stream);
  } catch (thrown) {
    throw thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
  }
}

async function all(stream: AsyncIterable<Event>): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

function glance(event: Event): string {
  if (event.kind === "status-update") return `${event.status.state}${event.final ? ", final" : ""}`;
  if (event.kind === "artifact-update") return wordsOf([event.artifact]).join("");
  return event.kind === "task" ? `task ${event.status.state}` : "message";
}

function wordsOf(artifacts: Task["artifacts"] = []): string[] {
  return artifacts.flatMap(({ parts }) => parts.map((part) => (part.kind === "text" ? part.text : "")));
}

const bindings = {
  JSONRPC: () => new JsonRpcTransportFactory({ fetchImpl: fetchAsAda }),
  "HTTP+JSON": () => new RestTransportFactory({ fetchImpl: fetchAsAda }),
  GRPC: () => new GrpcTransportFactory({ grpcCallOptions: { interceptors: [asAda] } }),
};

describe.each(["JSONRPC", "HTTP+JSON", "GRPC"] as const)("the official client of 0.3 over %s", (binding) => {
  /** On gRPC the official client has classes only for some errors; for the others it reports the status. */
  const told =
    binding === "GRPC"
      ? {
          over: /12.*takes no more messages/,
          mediaType: /3.*video\/mp4/,
          params: /3.*message\.content/,
          strange: /13.*Nonsense came/,
        }
      : {
          over: UnsupportedOperationError,
          mediaType: ContentTypeNotSupportedError,
          params: /(parts|content).*-32602/,
          strange: InvalidAgentResponseError,
        };
  const connect = async (url: string): Promise<Client> =>
    new ClientFactory({
      transports: [bindings[binding]()],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl: fetchAsAda }),
    }).createFromUrl(url);
  let client: Client;
  beforeAll(async () => {
    client = await connect(servers().url);
  });
  const send = async (words: string, more?: Partial<Message>): Promise<Task> => {
    const sent = await client.sendMessage(params(words, more));
    if (sent.kind !== "task") throw new Error("A task was expected");
    return sent;
  };

  it("message/send: a message, and a task at its end", async () => {
    expect(await client.sendMessage(params("hello"))).toMatchObject({
      kind: "message",
      role: "agent",
      parts: [{ kind: "text", text: "Hello" }],
    });
    const task = await send("4");
    expect(task).toMatchObject({ kind: "task", status: { state: "completed" } });
    expect(wordsOf(task.artifacts)).toEqual(["0123"]);
  });

  it("message/send with blocking false: the task before its end", async () => {
    const request = { ...params("wait"), configuration: { blocking: false } };
    const task = (await client.sendMessage(request)) as Task;
    expect(["submitted", "working"]).toContain(task.status.state);
    expect((await client.cancelTask({ id: task.id })).status.state).toBe("canceled");
  });

  it("tasks/get, with as much history as requested", async () => {
    const { id } = await send("2");
    const whole = await client.getTask({ id });
    expect(whole.history).toHaveLength(1);
    expect(wordsOf(whole.artifacts)).toEqual(["01"]);
    expect((await client.getTask({ id, historyLength: 1 })).history).toHaveLength(1);
  });

  it("message/stream: the task, its parts, and a final event", async () => {
    const seen = (await all(client.sendMessageStream(params("3")))).map(glance);
    expect(seen).toEqual(["task submitted", "working", "0", "1", "2", "completed, final"]);
    expect((await all(client.sendMessageStream(params("hello")))).map(glance)).toEqual(["message"]);
  });

  it("tasks/resubscribe: two readers see the same, until tasks/cancel ends both", async () => {
    const stream = client.sendMessageStream(params("wait"));
    const events: Event[] = [];
    while (events.at(-1)?.kind !== "artifact-update") {
      const { value, done } = await stream.next();
      if (done === true) throw new Error("It ended too soon");
      events.push(value);
    }
    const [task] = events;
    if (task?.kind !== "task") throw new Error("It did not begin with the task");
    const second = client.resubscribeTask({ id: task.id });
    const { value } = await second.next();
    expect(value).toMatchObject({ kind: "task", id: task.id, artifacts: [{ artifactId: "numbers" }] });
    expect((await client.cancelTask({ id: task.id })).status.state).toBe("canceled");
    for (const end of await Promise.all([all(stream), all(second)])) {
      expect(end.map(glance)).toEqual(["canceled, final"]);
    }
  });

  it("tasks/resubscribe to a finished task yields the task and ends", async () => {
    const { id } = await send("1");
    expect((await all(client.resubscribeTask({ id }))).map(glance)).toEqual(["task completed"]);
  });

  it("a question is final, and its answer continues with the same task", async () => {
    const asked = await all(client.sendMessageStream(params("ask")));
    expect(asked.map(glance).at(-1)).toBe("input-required, final");
    const [task] = asked;
    if (task?.kind !== "task") throw new Error("It did not begin with the task");
    const ids = { taskId: task.id, contextId: task.contextId };
    const answered = await all(client.sendMessageStream(params("3", ids)));
    expect(answered.map(glance).at(-1)).toBe("completed, final");
    const whole = await client.getTask({ id: task.id });
    expect(wordsOf(whole.artifacts)).toEqual(["012"]);
    expect(whole.history?.map(({ role }) => role)).toEqual(["user", "agent", "user"]);
  });

  it("parts of every kind arrive as they were sent", async () => {
    // 0.3 ProtoJSON has no field for a file's name.
    const name = binding === "JSONRPC" ? { name: "a.txt" } : {};
    const parts: Message["parts"] = [
      { kind: "text", text: "2" },
      { kind: "file", file: { bytes: "AAEC", mimeType: "text/plain", ...name } },
      { kind: "file", file: { uri: "https://example.com/a.txt", mimeType: "text/plain", ...name } },
    ];
    const { id } = await send("", { parts });
    const [message] = (await client.getTask({ id })).history ?? [];
    expect(message?.parts).toMatchObject(parts);
  });

  it("agent/getAuthenticatedExtendedCard, for an authenticated caller", async () => {
    const extended = await connect(servers().extendedUrl);
    expect(await extended.getAgentCard()).toMatchObject({
      description: "For ada alone",
      securitySchemes: { bearer: { type: "http", scheme: "Bearer" } },
    });
    await expect(client.transport.getExtendedAgentCard()).rejects.toThrow(AuthenticatedExtendedCardNotConfiguredError);
  });

  it("errors are of its own classes", async () => {
    const { id } = await send("1");
    await expect(client.getTask({ id: "nobody" })).rejects.toThrow(TaskNotFoundError);
    await expect(client.cancelTask({ id: "nobody" })).rejects.toThrow(TaskNotFoundError);
    await expect(read(client.resubscribeTask({ id: "nobody" }))).rejects.toThrow(TaskNotFoundError);
    await expect(send("2", { taskId: "nobody" })).rejects.toThrow(TaskNotFoundError);
    await expect(client.cancelTask({ id })).rejects.toThrow(TaskNotCancelableError);
    await expect(send("2", { taskId: id })).rejects.toThrow(told.over);
    await expect(read(client.sendMessageStream(params("2", { taskId: id })))).rejects.toThrow(told.over);
    const video: Message["parts"] = [{ kind: "file", file: { bytes: "AAEC", mimeType: "video/mp4" } }];
    await expect(send("", { parts: video })).rejects.toThrow(told.mediaType);
    await expect(send("", { parts: [] })).rejects.toThrow(told.params);
  });

  it("an error in mid-stream is reported too", async () => {
    const stream = client.sendMessageStream(params("break"));
    expect((await stream.next()).value).toMatchObject({ kind: "task" });
    await expect(read(stream)).rejects.toThrow(told.strange);
  });

  it("push operations are PushNotificationNotSupported, all four", async () => {
    const { transport } = client;
    const config = { taskId: "t", pushNotificationConfig: { id: "c", url: "https://example.com" } };
    const one = { id: "t", pushNotificationConfigId: "c" };
    await expect(transport.setTaskPushNotificationConfig(config)).rejects.toThrow(PushNotificationNotSupportedError);
    await expect(transport.getTaskPushNotificationConfig(one)).rejects.toThrow(PushNotificationNotSupportedError);
    await expect(transport.listTaskPushNotificationConfig({ id: "t" })).rejects.toThrow(
      PushNotificationNotSupportedError,
    );
    await expect(transport.deleteTaskPushNotificationConfig(one)).rejects.toThrow(PushNotificationNotSupportedError);
  });
});
