import { AgentCard, Role, TaskState, type StreamResponse, type Task } from "@a2a-js/sdk";
import { ClientFactory } from "@a2a-js/sdk/client";
import { GrpcTransportFactory } from "@a2a-js/sdk/client/grpc";
import { describe, expect, test } from "vitest";
import { obedient } from "./support/agents.ts";
import { serve, type Host } from "./support/host.ts";

/** The client of the official SDK, which supports both services. */
function connect({ address }: Host, protocolVersion: string) {
  const card = AgentCard.fromJSON({
    name: "Obedient",
    description: "",
    version: "1.0.0",
    capabilities: { streaming: true, pushNotifications: true },
    defaultInputModes: [],
    defaultOutputModes: [],
    skills: [],
    supportedInterfaces: [{ url: address, protocolBinding: "GRPC", protocolVersion, tenant: "" }],
  });
  const transports = [new GrpcTransportFactory({ legacyCompat: { enabled: true } })];
  return new ClientFactory({ transports }).createFromAgentCard(card);
}

const user = (words: string, more: object = {}, configuration?: object) => ({
  tenant: "",
  message: {
    messageId: crypto.randomUUID(),
    contextId: "",
    taskId: "",
    role: Role.ROLE_USER,
    parts: [{ content: { $case: "text" as const, value: words }, metadata: {}, filename: "", mediaType: "" }],
    metadata: { n: [1, null, "x", { deep: true }] },
    extensions: [],
    referenceTaskIds: [],
    ...more,
  },
  configuration:
    configuration === undefined
      ? undefined
      : {
          acceptedOutputModes: [],
          taskPushNotificationConfig: undefined,
          historyLength: undefined,
          returnImmediately: false,
          ...configuration,
        },
  metadata: {},
});

describe.each(["1.0", "0.3"])("the official client by gRPC of %s", (version) => {
  test("sends, waits, and gets every kind of part", async () => {
    await using server = await serve(obedient());
    const client = await connect(server, version);
    const task = (await client.sendMessage(user("go", {}, { returnImmediately: false }))) as Task;
    expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    const [a, b] = task.artifacts;
    expect(a?.parts[0]?.content).toEqual({ $case: "text", value: "al" });
    expect(a?.parts[1]?.content).toEqual({ $case: "data", value: { n: null, list: [1.5] } });
    // Its copy of the 0.3 proto lacks the name of a file.
    const filename = version === "0.3" ? "" : "f.bin";
    expect(b?.parts[0]).toMatchObject({ content: { $case: "raw" }, filename, mediaType: "application/x" });
    expect(task.history[0]?.metadata).toEqual({ n: [1, null, "x", { deep: true }] });
    const got = await client.getTask({ tenant: "", id: task.id, historyLength: 1 });
    expect(got.history).toHaveLength(1);
    const reply = await client.sendMessage(user("reply"));
    expect(reply).toMatchObject({ role: Role.ROLE_AGENT, parts: [{ content: { value: "Hello" } }] });
  });

  test("streams a turn, continues a task, and subscribes to it", async () => {
    await using server = await serve(obedient());
    const client = await connect(server, version);
    const kinds: string[] = [];
    for await (const { payload } of client.sendMessageStream(user("go"))) kinds.push(payload?.$case ?? "");
    expect(kinds).toEqual(["task", "statusUpdate", "artifactUpdate", "artifactUpdate", "statusUpdate"]);
    const asked = (await client.sendMessage(user("wait", {}, { returnImmediately: true }))) as Task;
    const events: StreamResponse[] = [];
    for await (const event of client.resubscribeTask({ tenant: "", id: asked.id })) {
      events.push(event);
      if (events.length === 1) await client.cancelTask({ tenant: "", id: asked.id, metadata: {} });
    }
    const states = events.map(({ payload }) =>
      payload?.$case === "statusUpdate" || payload?.$case === "task" ? payload.value.status?.state : undefined,
    );
    expect(states.at(-1)).toBe(TaskState.TASK_STATE_CANCELED);
  });

  test("recognizes our errors", async () => {
    await using server = await serve(obedient());
    const client = await connect(server, version);
    await expect(client.getTask({ tenant: "", id: "none", historyLength: undefined })).rejects.toMatchObject({
      name: "TaskNotFoundError",
    });
    const done = (await client.sendMessage(user("go", {}, { returnImmediately: false }))) as Task;
    await expect(client.cancelTask({ tenant: "", id: done.id, metadata: {} })).rejects.toMatchObject({
      name: "TaskNotCancelableError",
    });
  });
});
