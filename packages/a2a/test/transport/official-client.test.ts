import { Role, TaskState, type StreamResponse, type Task } from "@a2a-js/sdk";
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";
import { afterEach, describe, expect, test } from "vitest";
import { A2AError, createHandler, defineAgent, memoryStore, type Handler, type Interceptor } from "../../src/index.ts";

/** The official client, without a network in between: every request of its is one of the handler's. */

const open: Handler[] = [];
afterEach(async () => {
  for (const handler of open.splice(0)) await handler.close();
});

const base = "https://agents.example/echo";

async function connect(binding: "JSONRPC" | "HTTP+JSON", interceptors: readonly Interceptor[] = []) {
  const agent = defineAgent({
    name: "Echo",
    description: "Says it again",
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      if (turn.text === "ask") return yield turn.inputRequired("What?");
      yield turn.working("on it");
      yield turn.artifact({ name: "echo", parts: [{ text: turn.text }] });
    },
  });
  const handler = createHandler(agent, { store: memoryStore(), publicUrl: base, interceptors });
  open.push(handler);
  const fetchImpl: typeof fetch = (input, init) => handler.fetch(new Request(input, init));
  const transports = [
    binding === "JSONRPC" ? new JsonRpcTransportFactory({ fetchImpl }) : new RestTransportFactory({ fetchImpl }),
  ];
  const cardResolver = new DefaultAgentCardResolver({ fetchImpl });
  return new ClientFactory({ transports, cardResolver }).createFromUrl(`${base}/`);
}

const noFilter = {
  tenant: "",
  contextId: "",
  status: TaskState.TASK_STATE_UNSPECIFIED,
  pageSize: undefined,
  pageToken: "",
  historyLength: undefined,
  statusTimestampAfter: undefined,
  includeArtifacts: undefined,
};

const user = (words: string, more: object = {}) => ({
  tenant: "",
  message: {
    messageId: crypto.randomUUID(),
    contextId: "",
    taskId: "",
    role: Role.ROLE_USER,
    parts: [{ content: { $case: "text" as const, value: words }, metadata: {}, filename: "", mediaType: "" }],
    metadata: {},
    extensions: [],
    referenceTaskIds: [],
    ...more,
  },
  configuration: undefined,
  metadata: {},
});

describe.each(["JSONRPC", "HTTP+JSON"] as const)("the official client over %s", (binding) => {
  test("finds the card below the base, sends, and gets and lists the task", async () => {
    const client = await connect(binding);
    const result = await client.sendMessage(user("hello"));
    const task = result as Task;
    expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    const got = await client.getTask({ tenant: "", id: task.id, historyLength: 0 });
    expect(got.artifacts[0]?.parts[0]?.content).toEqual({ $case: "text", value: "hello" });
    expect(got.history).toEqual([]);
    const listed = await client.listTasks({ ...noFilter, contextId: task.contextId });
    expect(listed.tasks.map(({ id }) => id)).toEqual([task.id]);
  });

  test("streams a turn to its end", async () => {
    const client = await connect(binding);
    const cases: string[] = [];
    for await (const event of client.sendMessageStream(user("hello"))) cases.push(event.payload?.$case ?? "none");
    expect(cases[0]).toBe("task");
    expect(cases).toContain("artifactUpdate");
    expect(cases.at(-1)).toBe("statusUpdate");
  });

  test("subscribes to a task that waits for its user, and cancels it", async () => {
    const client = await connect(binding);
    const task = (await client.sendMessage(user("ask"))) as Task;
    expect(task.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    const stream = client.resubscribeTask({ tenant: "", id: task.id });
    const first = await stream.next();
    expect((first.value as StreamResponse).payload?.$case).toBe("task");
    const canceled = await client.cancelTask({ tenant: "", id: task.id, metadata: {} });
    expect(canceled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    const rest: string[] = [];
    for await (const event of stream) rest.push(event.payload?.$case ?? "none");
    expect(rest).toEqual(["statusUpdate"]);
  });

  test("gets typed errors", async () => {
    const client = await connect(binding);
    await expect(client.getTask({ tenant: "", id: "nobody", historyLength: undefined })).rejects.toMatchObject({
      name: "TaskNotFoundError",
    });
    const task = (await client.sendMessage(user("hello"))) as Task;
    await expect(client.cancelTask({ tenant: "", id: task.id, metadata: {} })).rejects.toMatchObject({
      name: "TaskNotCancelableError",
    });
    await expect(client.sendMessage(user("again", { taskId: task.id }))).rejects.toMatchObject({
      name: "UnsupportedOperationError",
    });
  });

  test("gets the type of an error in mid-stream", async () => {
    const breaking: Interceptor = (next) => ({
      call: (operation, request, context) => next.call(operation, request, context),
      stream: async (operation, request, context) => {
        const { batches } = await next.stream(operation, request, context);
        return {
          batches: (async function* () {
            for await (const batch of batches) {
              yield batch.slice(0, 1);
              throw new A2AError("InvalidAgentResponse", "Nonsense came");
            }
          })(),
        };
      },
    });
    const client = await connect(binding, [breaking]);
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const event of client.sendMessageStream(user("hello"))) seen.push(event);
    })();
    const error: unknown = await reading.catch((thrown: unknown) => thrown);
    expect(seen).toHaveLength(1);
    // Over JSON-RPC the official client wraps what it read.
    const typed = binding === "JSONRPC" ? (error as Error).cause : error;
    expect(typed).toMatchObject({ name: "InvalidAgentResponseError" });
  });
});
