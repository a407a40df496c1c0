import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, type AgentCard, type Client } from "@parley/a2a";
import { grpcBinding } from "../src/client/index.ts";
import { officialServer, type OfficialServer } from "./support/official.ts";

const bindings = [grpcBinding()];
let server: OfficialServer;

beforeAll(async () => {
  server = await officialServer();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

function cardOf(url: string, protocolVersion: string): AgentCard {
  return {
    name: "Official",
    description: "",
    version: "1.0.0",
    supportedInterfaces: [{ url, protocolBinding: "GRPC", protocolVersion }],
    capabilities: { streaming: true },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
  };
}

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "no error",
    (error: unknown) => (error as { code?: unknown }).code,
  );

describe.each(["1.0", "0.3"])("the official SDK's server over gRPC of A2A %s", (version) => {
  const open = (): Promise<Client> => connect(cardOf(server.address, version), { bindings, binding: "GRPC" });

  it("answers a send with its task", async () => {
    const client = await open();
    const { task } = await client.sendMessage("grüße");
    expect(task).toMatchObject({
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [{ artifactId: "echo", parts: [{ text: "echo: grüße" }, { data: { list: [1, null, "x"] } }] }],
    });
  });

  it("answers with a message", async () => {
    const client = await open();
    expect((await client.sendMessage("message")).message?.parts).toEqual([{ text: "direct" }]);
  });

  it("streams", async () => {
    const client = await open();
    const states: unknown[] = [];
    for await (const event of client.sendStreamingMessage("hi")) {
      states.push(
        event.task?.status.state ?? event.statusUpdate?.status.state ?? event.artifactUpdate?.artifact.parts[0],
      );
    }
    expect(states).toEqual([
      "TASK_STATE_SUBMITTED",
      "TASK_STATE_WORKING",
      { text: "echo: hi" },
      "TASK_STATE_COMPLETED",
    ]);
  });

  it("takes a second message, and returns the task", async () => {
    const client = await open();
    const { task } = await client.sendMessage("ask");
    expect(task?.status).toMatchObject({ state: "TASK_STATE_INPUT_REQUIRED", message: { parts: [{ text: "more" }] } });
    const parts = [{ text: "here" }];
    const again = await client.sendMessage({ parts, taskId: task?.id ?? "", contextId: task?.contextId ?? "" });
    expect(again.task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect((await client.getTask(task?.id ?? "")).status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("accepts a subscription, and cancels", async () => {
    const client = await open();
    const stream = client.sendStreamingMessage("hold");
    const states: unknown[] = [];
    for await (const event of stream) {
      const id = event.task?.id ?? event.statusUpdate?.taskId ?? "";
      states.push(event.task?.status.state ?? event.statusUpdate?.status.state);
      if (states.at(-1) === "TASK_STATE_WORKING") await client.cancelTask(id);
    }
    expect(states.at(-1)).toBe("TASK_STATE_CANCELED");
  });

  it("reports errors", async () => {
    const client = await open();
    expect(await codeOf(client.getTask("none"))).toBe("TaskNotFound");
    const { task } = await client.sendMessage("done");
    expect(await codeOf(client.cancelTask(task?.id ?? ""))).toBe("TaskNotCancelable");
  });
});

describe("addresses", () => {
  it.each(["http://", "grpc://", ""])("may begin with %j", async (scheme) => {
    const client = await connect(cardOf(scheme + server.address, "1.0"), { bindings });
    expect((await client.sendMessage("hi")).task?.status.state).toBe("TASK_STATE_COMPLETED");
  });
});
