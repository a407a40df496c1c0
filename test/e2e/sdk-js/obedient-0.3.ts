import { DefaultRequestHandler, InMemoryPushNotificationStore, InMemoryTaskStore } from "@a2a-js/sdk-0.3/server";
import type { AgentExecutor, ExecutionEventBus, RequestContext } from "@a2a-js/sdk-0.3/server";
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from "@a2a-js/sdk-0.3/server/express";
import type { AgentCard, TaskState } from "@a2a-js/sdk-0.3";
import { A2AService, grpcService } from "@a2a-js/sdk-0.3/server/grpc";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import express from "express";
import { onTestFinished } from "vitest";
import { listen } from "../../../packages/a2a/test/client/support.ts";

/** An agent on the server of the official SDK 0.3, the most likely peer of that version. */

/** Does what a message says. A test opens the `gate`. */
class Obedient03 implements AgentExecutor {
  readonly gates = new Map<string, () => void>();
  readonly #contexts = new Map<string, string>();

  async execute({ taskId, contextId, userMessage, task }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const [first] = userMessage.parts;
    const text = first?.kind === "text" ? first.text : "";
    this.#contexts.set(taskId, contextId);
    const update = (state: TaskState, final = false): void =>
      bus.publish({
        kind: "status-update",
        taskId,
        contextId,
        status: { state, timestamp: new Date().toISOString() },
        final,
      });
    const end = (state: TaskState): void => {
      update(state, true);
      bus.finished();
    };
    if (text === "reply") {
      const parts = [{ kind: "text" as const, text: "directly" }];
      bus.publish({ kind: "message", role: "agent", messageId: crypto.randomUUID(), parts, contextId });
      return bus.finished();
    }
    if (task === undefined) {
      const status = { state: "submitted" as const, timestamp: new Date().toISOString() };
      bus.publish({ kind: "task", id: taskId, contextId, status, history: [userMessage], artifacts: [] });
    }
    if (text === "ask") return end("input-required");
    if (text === "fail") return end("failed");
    update("working");
    if (text === "parts") {
      const parts = userMessage.parts.slice(1);
      bus.publish({ kind: "artifact-update", taskId, contextId, artifact: { artifactId: "a1", parts } });
      return end("completed");
    }
    for (const [at, chunk] of ["al", "pha"].entries()) {
      const artifact = { artifactId: "a1", name: "out", parts: [{ kind: "text" as const, text: chunk }] };
      bus.publish({ kind: "artifact-update", taskId, contextId, artifact, append: at > 0, lastChunk: at > 0 });
    }
    if (text === "wait") await new Promise<void>((resolve) => this.gates.set(taskId, resolve));
    end("completed");
  }

  async cancelTask(taskId: string, bus: ExecutionEventBus): Promise<void> {
    const contextId = this.#contexts.get(taskId) ?? "";
    const status = { state: "canceled" as const, timestamp: new Date().toISOString() };
    bus.publish({ kind: "status-update", taskId, contextId, status, final: true });
    bus.finished();
    await Promise.resolve();
  }
}

export interface SdkAgent03 {
  readonly url: string;
  readonly card: AgentCard;
  /** The headers of the received requests, newest last. */
  readonly headers: Readonly<Record<string, unknown>>[];
  /** Waits until the task waits, and lets it continue. */
  release(taskId: string): Promise<void>;
}

export async function sdkAgent03(cardPath: string = "/.well-known/agent-card.json"): Promise<SdkAgent03> {
  const app = express();
  const url = await listen((request, response) => void app(request, response));
  const grpc = new Server();
  onTestFinished(() => grpc.forceShutdown());
  const port = await new Promise<number>((resolve, reject) =>
    grpc.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  const card: AgentCard = {
    name: "Obedient",
    description: "Does what it is told.",
    protocolVersion: "0.3.0",
    url: `${url}/rpc`,
    preferredTransport: "JSONRPC",
    additionalInterfaces: [
      { url: `${url}/rpc`, transport: "JSONRPC" },
      { url: `${url}/rest`, transport: "HTTP+JSON" },
      { url: `127.0.0.1:${port}`, transport: "GRPC" },
    ],
    version: "1.0.0",
    capabilities: { streaming: true, pushNotifications: true },
    supportsAuthenticatedExtendedCard: true,
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
  };
  const executor = new Obedient03();
  const requestHandler = new DefaultRequestHandler(
    card,
    new InMemoryTaskStore(),
    executor,
    undefined,
    new InMemoryPushNotificationStore(),
    undefined,
    () => Promise.resolve({ ...card, name: "Obedient, extended" }),
  );
  const headers: Record<string, unknown>[] = [];
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  app.use((request, _, next) => {
    headers.push(request.headers);
    next();
  });
  app.use(cardPath, agentCardHandler({ agentCardProvider: requestHandler }));
  app.use("/rpc", jsonRpcHandler(options));
  app.use("/rest", restHandler(options));
  grpc.addService(A2AService, grpcService(options));
  return {
    url,
    card,
    headers,
    async release(taskId) {
      while (!executor.gates.has(taskId)) await new Promise((resolve) => setTimeout(resolve, 2));
      executor.gates.get(taskId)?.();
    },
  };
}
