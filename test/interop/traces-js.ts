import type { AddressInfo } from "node:net";
import { Role, TaskState, type AgentCard, type Part } from "@a2a-js/sdk";
import { ClientFactory } from "@a2a-js/sdk/client";
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import { A2AService, grpcService } from "@a2a-js/sdk/server/grpc";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import express from "express";
import type { RunningServer } from "./peer.ts";

/* An agent on the official SDK of JavaScript, which knows nothing of traces: it calls another agent without a traceparent. */

const part = (value: string): Part => ({
  content: { $case: "text", value },
  mediaType: "text/plain",
  filename: "",
  metadata: {},
});

/** The header, as the SDK gives its agents those of a request. */
function traceparentOf(headers: unknown): string {
  const value = typeof headers === "object" && headers !== null && "traceparent" in headers && headers.traceparent;
  return String(value);
}

/** Answers with the `traceparent` that it has received, after it has called the agent behind it. */
class Executor implements AgentExecutor {
  readonly #behind: string;

  constructor(behind: string) {
    this.#behind = behind;
  }

  async execute({ taskId, contextId, userMessage, context }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const status = (state: TaskState) => ({ state, message: undefined, timestamp: new Date().toISOString() });
    const submitted = status(TaskState.TASK_STATE_SUBMITTED);
    bus.publish(
      AgentEvent.task({
        id: taskId,
        contextId,
        status: submitted,
        artifacts: [],
        history: [userMessage],
        metadata: {},
      }),
    );
    const client = await new ClientFactory().createFromUrl(this.#behind);
    await client.sendMessage({
      tenant: "",
      message: {
        messageId: crypto.randomUUID(),
        contextId: "",
        taskId: "",
        role: Role.ROLE_USER,
        parts: [part("hello")],
        metadata: {},
        extensions: [],
        referenceTaskIds: [],
      },
      configuration: undefined,
      metadata: {},
    });
    const artifact = {
      artifactId: crypto.randomUUID(),
      name: "traceparent",
      description: "",
      parts: [part(traceparentOf(context.state.get("headers")))],
      extensions: [],
      metadata: {},
    };
    bus.publish(
      AgentEvent.artifactUpdate({ taskId, contextId, artifact, lastChunk: true, append: false, metadata: {} }),
    );
    const completed = status(TaskState.TASK_STATE_COMPLETED);
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: completed, metadata: {} }));
    bus.finished();
  }

  cancelTask(): Promise<void> {
    return Promise.reject(new Error("It cannot be canceled"));
  }
}

/** Starts the agent, over each binding. `behind`: the URL of the agent that it calls. */
export async function startJsServer(behind: string): Promise<RunningServer> {
  const app = express();
  const server = app.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const rpc = new Server();
  const port = await new Promise<number>((resolve, reject) =>
    rpc.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const at = (protocolBinding: string, address: string) => ({
    protocolBinding,
    protocolVersion: "1.0",
    url: address,
    tenant: "",
  });
  const card: AgentCard = {
    name: "JavaScript",
    description: "Says which trace it is in",
    version: "1.0.0",
    provider: undefined,
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    capabilities: { streaming: true, extendedAgentCard: false, pushNotifications: false, extensions: [] },
    supportedInterfaces: [at("JSONRPC", `${url}/rpc`), at("HTTP+JSON", `${url}/rest`), at("GRPC", `127.0.0.1:${port}`)],
    skills: [],
    securitySchemes: {},
    securityRequirements: [],
    signatures: [],
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Executor(behind));
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: () => Promise.resolve(card) }));
  app.use("/rpc", jsonRpcHandler(options));
  app.use("/rest", restHandler(options));
  rpc.addService(A2AService, grpcService({ ...options }));
  return {
    url,
    async stop() {
      rpc.forceShutdown();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
