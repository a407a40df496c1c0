import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
} from "@a2a-js/sdk/server";
import type { AgentExecutor, ExecutionEventBus, RequestContext } from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import { type AgentCard as SdkCard, Role, TaskState } from "@a2a-js/sdk";
import { LegacyA2AService, legacyGrpcService } from "@a2a-js/sdk/compat/v0_3/server/grpc";
import { A2AService, grpcService } from "@a2a-js/sdk/server/grpc";
import { Server, ServerCredentials, ServerInterceptingCall, status, type ServerInterceptor } from "@grpc/grpc-js";
import express from "express";
import { onTestFinished } from "vitest";
import { listen } from "../../../packages/a2a/test/client/support.ts";

/** An agent on the official SDK's server, our most likely peer. */

function part(text: string) {
  return {
    content: { $case: "text" as const, value: text },
    metadata: undefined,
    filename: "",
    mediaType: "text/plain",
  };
}

/** Does what a message says. A test opens the `gate`. */
class Obedient implements AgentExecutor {
  readonly gates = new Map<string, () => void>();

  async execute(
    { taskId, contextId, userMessage, task, request }: RequestContext,
    bus: ExecutionEventBus,
  ): Promise<void> {
    const [first] = userMessage.parts;
    const text = first?.content?.$case === "text" ? first.content.value : "";
    const status = (state: TaskState, says?: string) => ({
      state,
      timestamp: new Date().toISOString(),
      message:
        says === undefined
          ? undefined
          : {
              messageId: crypto.randomUUID(),
              role: Role.ROLE_AGENT,
              parts: [part(says)],
              taskId,
              contextId,
              extensions: [],
              metadata: {},
              referenceTaskIds: [],
            },
    });
    const update = (state: TaskState, says?: string): void =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state, says), metadata: {} }));
    if (text === "reply") {
      const message = status(0, `tenant ${request.tenant}`).message;
      if (message !== undefined) bus.publish(AgentEvent.message({ ...message, taskId: "" }));
      return;
    }
    bus.publish(
      AgentEvent.task(
        task ?? {
          id: taskId,
          contextId,
          status: status(TaskState.TASK_STATE_SUBMITTED),
          artifacts: [],
          history: [userMessage],
          metadata: {},
        },
      ),
    );
    if (text === "ask") return update(TaskState.TASK_STATE_INPUT_REQUIRED, "Which one?");
    update(TaskState.TASK_STATE_WORKING);
    for (const [at, chunk] of ["al", "pha"].entries()) {
      const artifact = {
        artifactId: "a1",
        name: "out",
        description: "",
        parts: [part(chunk)],
        metadata: {},
        extensions: [],
      };
      bus.publish(
        AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: at > 0, lastChunk: at > 0, metadata: {} }),
      );
    }
    if (text === "wait") await new Promise<void>((resolve) => this.gates.set(taskId, resolve));
    update(TaskState.TASK_STATE_COMPLETED);
  }

  async cancelTask(taskId: string, bus: ExecutionEventBus): Promise<void> {
    const status = { state: TaskState.TASK_STATE_CANCELED, timestamp: new Date().toISOString(), message: undefined };
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId: "", status, metadata: {} }));
    await Promise.resolve();
  }
}

export interface SdkAgent {
  readonly url: string;
  /** Waits until the task waits, and lets it continue. */
  release(taskId: string): Promise<void>;
}

/** Rejects the calls of unknown callers before the SDK gets them. */
const grpcGuard: ServerInterceptor = (_method, call) =>
  new ServerInterceptingCall(call, {
    start: (next) =>
      next({
        onReceiveMetadata(metadata, proceed) {
          if (isKnown((name) => metadata.get(name)[0])) proceed(metadata);
          else call.sendStatus({ code: status.UNAUTHENTICATED, details: "Who are you?" });
        },
      }),
  });

/** Whether a request has what a guarded agent requires: both schemes of its card. */
function isKnown(header: (name: string) => unknown): boolean {
  return header("authorization") === "Bearer token-of-a-peer" && header("x-api-key") === "key-of-a-peer";
}

const guards = {
  securitySchemes: {
    bearer: {
      scheme: {
        $case: "httpAuthSecurityScheme" as const,
        value: { description: "", scheme: "Bearer", bearerFormat: "" },
      },
    },
    key: {
      scheme: {
        $case: "apiKeySecurityScheme" as const,
        value: { description: "", location: "header", name: "X-API-Key" },
      },
    },
  },
  securityRequirements: [{ schemes: { bearer: { list: [] }, key: { list: [] } } }],
};

/** `isGuarded`: it requires a token and an API key. */
export async function sdkAgent(tenant = "", isGuarded = false): Promise<SdkAgent> {
  const app = express();
  if (isGuarded) {
    app.use((request, response, next) => {
      if (request.path.startsWith("/.well-known/") || isKnown((name) => request.headers[name])) next();
      else response.status(401).set("WWW-Authenticate", "Bearer").send("Who are you?");
    });
  }
  const url = await listen((request, response) => void app(request, response));
  const grpc = new Server({ interceptors: isGuarded ? [grpcGuard] : [] });
  onTestFinished(() => grpc.forceShutdown());
  const port = await new Promise<number>((resolve, reject) =>
    grpc.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  const card: SdkCard = {
    name: "Obedient",
    description: "Does what it is told.",
    supportedInterfaces: ["1.0", "0.3"].flatMap((protocolVersion) => [
      { url: `${url}/rpc`, protocolBinding: "JSONRPC", tenant, protocolVersion },
      { url: `${url}/rest`, protocolBinding: "HTTP+JSON", tenant, protocolVersion },
      { url: `127.0.0.1:${port}`, protocolBinding: "GRPC", tenant, protocolVersion },
    ]),
    provider: undefined,
    version: "1.0.0",
    capabilities: { streaming: true, pushNotifications: true, extensions: [], extendedAgentCard: true },
    ...(isGuarded ? guards : { securitySchemes: {}, securityRequirements: [] }),
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
    signatures: [],
  };
  const executor = new Obedient();
  const requestHandler = new DefaultRequestHandler(
    card,
    new InMemoryTaskStore(),
    executor,
    undefined,
    new InMemoryPushNotificationStore(),
    undefined,
    () => Promise.resolve({ ...card, name: "Obedient, extended" }),
  );
  const options = {
    requestHandler,
    userBuilder: UserBuilder.noAuthentication,
    legacyCompat: { enabled: true },
  };
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
  app.use("/rpc", jsonRpcHandler(options));
  app.use("/rest", restHandler(options));
  grpc.addService(A2AService, grpcService(options));
  grpc.addService(LegacyA2AService, legacyGrpcService(options));
  return {
    url,
    async release(taskId) {
      while (!executor.gates.has(taskId)) await new Promise((resolve) => setTimeout(resolve, 2));
      executor.gates.get(taskId)?.();
    },
  };
}
