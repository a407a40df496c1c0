import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { AgentCard, Artifact, Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from "@a2a-js/sdk";
import {
  AgentEvent,
  DefaultExecutionEventBusManager,
  DefaultPushNotificationSender,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import { A2AService, grpcService } from "@a2a-js/sdk/server/grpc";
import { Server as GrpcServer, ServerCredentials } from "@grpc/grpc-js";
import express from "express";
import { work } from "./work.ts";

/** How long the agent works, in milliseconds: a test has to find it working. */
const longRunning = 6_000;

/** The ACTS §11 behaviors of the agent below. A run without options tests the card's behaviors. */
const behaviors = [
  "tck-complete-task",
  "tck-message-response",
  "tck-multi-turn",
  "tck-input-required",
  "tck-cancel",
  "tck-long-running",
  "tck-task-failure",
  "tck-auth-required",
  "tck-artifact-text",
  "tck-artifact-data",
  "tck-artifact-file",
  "tck-artifact-file-url",
  "tck-stream-basic",
  "tck-stream-chunked",
];

/** The behaviours of ACTS §11 on the official SDK. */
class Acts implements AgentExecutor {
  /** The first message of each task, which selects its behavior. */
  readonly #begun = new Map<string, string>();
  readonly #contexts = new Map<string, string>();
  readonly #canceled = new Map<string, AbortController>();

  async execute({ taskId, contextId, userMessage, task }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const ids = { taskId, contextId };
    const content = userMessage.parts[0]?.content;
    const text = content?.$case === "text" ? content.value : "";
    const behavior = this.#begun.get(taskId) ?? /^tck-[a-z-]+/.exec(text)?.[0] ?? "";
    const say = (words: string): object => ({
      messageId: crypto.randomUUID(),
      role: "ROLE_AGENT",
      parts: [{ text: words }],
    });
    if (behavior === "tck-message-response") {
      bus.publish(AgentEvent.message(Message.fromJSON({ ...say("A direct answer."), contextId })));
      bus.finished();
      return;
    }
    this.#begun.set(taskId, behavior);
    this.#contexts.set(taskId, contextId);
    const canceled = new AbortController();
    this.#canceled.set(taskId, canceled);
    const now = (): string => new Date().toISOString();
    const state = (name: string, words?: string): void => {
      const message = words === undefined ? {} : { message: { ...say(words), ...ids } };
      const status = { state: `TASK_STATE_${name}`, timestamp: now(), ...message };
      bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ ...ids, status })));
    };
    const artifact = (part: object, more: object = {}): void => {
      const made = Artifact.toJSON(Artifact.fromJSON({ artifactId: "result", parts: [part] }));
      bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON({ ...ids, artifact: made, ...more })));
    };
    const wait = (time: number): Promise<void> => work(time, canceled.signal);
    if (task === undefined) {
      const status = { state: "TASK_STATE_SUBMITTED", timestamp: now() };
      const begun = { id: taskId, contextId, status, history: [Message.toJSON(userMessage)] };
      bus.publish(AgentEvent.task(Task.fromJSON(begun)));
    }
    const file = { filename: "output.txt", mediaType: "text/plain" };
    const steps: Readonly<Record<string, () => void | Promise<void>>> = {
      "tck-multi-turn": () => state(text === "done" ? "COMPLETED" : "INPUT_REQUIRED"),
      "tck-auth-required": () => state("AUTH_REQUIRED", "Sign in."),
      "tck-task-failure": () => state("FAILED", "It went wrong."),
      "tck-artifact-text": () => artifact({ text: "Generated text content" }),
      "tck-artifact-data": () => artifact({ data: { key: "value", count: 42 } }),
      "tck-artifact-file": () => artifact({ raw: "dGV4dA==", ...file }),
      "tck-artifact-file-url": () => artifact({ url: "https://example.com/output.txt", ...file }),
      "tck-stream-basic": () => {
        state("WORKING");
        artifact({ text: "Streamed" });
      },
      "tck-stream-chunked": () => {
        state("WORKING");
        artifact({ text: "one " }, { lastChunk: false });
        artifact({ text: "two" }, { append: true, lastChunk: true });
      },
      "tck-cancel": async () => {
        state("WORKING");
        await wait(60_000);
      },
      "tck-long-running": async () => {
        state("WORKING");
        await wait(longRunning / 2);
        if (canceled.signal.aborted) return;
        artifact({ text: "Worked on it." });
        await wait(longRunning / 2);
      },
    };
    await steps[behavior]?.();
    if (canceled.signal.aborted) return;
    if (!["tck-multi-turn", "tck-auth-required", "tck-task-failure"].includes(behavior)) state("COMPLETED", "Done.");
    bus.finished();
  }

  cancelTask = async (taskId: string, bus: ExecutionEventBus): Promise<void> => {
    this.#canceled.get(taskId)?.abort();
    const status = { state: "TASK_STATE_CANCELED", timestamp: new Date().toISOString() };
    const ids = { taskId, contextId: this.#contexts.get(taskId) };
    bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ ...ids, status })));
    bus.finished();
  };
}

/** An agent under test on the official SDK. */
export const startOfficialActs = (): Promise<OfficialServer> => startOfficial(new Acts());

export interface OfficialServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves an agent on the official SDK's own servers: all bindings, streams, push notifications. */
export async function startOfficial(agent: AgentExecutor): Promise<OfficialServer> {
  const app = express();
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const grpc = new GrpcServer();
  const grpcPort = await new Promise<number>((resolve, reject) => {
    grpc.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    );
  });
  const card = AgentCard.fromJSON({
    name: "Official",
    description: "Runs on the official SDK.",
    version: "1.0.0",
    supportedInterfaces: [
      { url: `${url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url: `${url}/rest`, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
      { url: `127.0.0.1:${grpcPort}`, protocolBinding: "GRPC", protocolVersion: "1.0" },
    ],
    capabilities: { streaming: true, pushNotifications: true },
    defaultInputModes: ["text/plain", "application/json"],
    defaultOutputModes: ["text/plain", "application/json"],
    skills: [
      { id: "acts", name: "ACTS", description: "Behaves as it is told.", tags: ["conformance"], examples: behaviors },
    ],
  });
  const webhooks = new InMemoryPushNotificationStore();
  const requestHandler = new DefaultRequestHandler(
    card,
    new InMemoryTaskStore(),
    agent,
    new DefaultExecutionEventBusManager(),
    webhooks,
    new DefaultPushNotificationSender(webhooks),
    undefined,
    undefined,
    { validateInputModes: true },
  );
  const userBuilder = UserBuilder.noAuthentication;
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
  app.use("/rpc", jsonRpcHandler({ requestHandler, userBuilder }));
  app.use("/rest", restHandler({ requestHandler, userBuilder }));
  grpc.addService(A2AService, grpcService({ requestHandler, userBuilder }));
  return {
    url,
    async close() {
      grpc.forceShutdown();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
