import { Server, ServerCredentials } from "@grpc/grpc-js";
import { AgentCard, Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from "@a2a-js/sdk";
import { LegacyA2AService, legacyGrpcService } from "@a2a-js/sdk/compat/v0_3/server/grpc";
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from "@a2a-js/sdk/server";
import { A2AService, grpcService, UserBuilder } from "@a2a-js/sdk/server/grpc";

/** An agent on the official SDK, served by grpc-js: 1.0 and 0.3 on one port. */
export interface OfficialServer extends AsyncDisposable {
  readonly address: string;
}

/**
 * The message decides: `message` is answered directly, `ask` asks back, `hold` works until it is canceled, anything
 * else is repeated as an artifact.
 */
class Executor implements AgentExecutor {
  readonly #contexts = new Map<string, string>();

  async execute({ taskId, contextId, userMessage, task }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const content = userMessage.parts[0]?.content;
    const text = content?.$case === "text" ? content.value : "";
    const say = (words: string): object => ({
      messageId: crypto.randomUUID(),
      role: "ROLE_AGENT",
      parts: [{ text: words }],
      taskId,
      contextId,
    });
    const state = (name: string, words?: string): void => {
      const status = { state: `TASK_STATE_${name}`, ...(words !== undefined && { message: say(words) }) };
      bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ taskId, contextId, status })));
    };
    this.#contexts.set(taskId, contextId);
    if (text === "message") {
      const message = { ...say("direct"), taskId: undefined };
      bus.publish(AgentEvent.message(Message.fromJSON(message)));
      bus.finished();
      return;
    }
    if (task === undefined) {
      const made = {
        id: taskId,
        contextId,
        status: { state: "TASK_STATE_SUBMITTED" },
        history: [Message.toJSON(userMessage)],
      };
      bus.publish(AgentEvent.task(Task.fromJSON(made)));
    }
    state("WORKING");
    if (text === "hold") return;
    if (text === "ask") {
      state("INPUT_REQUIRED", "more");
    } else {
      const artifact = { artifactId: "echo", parts: [{ text: `echo: ${text}` }, { data: { list: [1, null, "x"] } }] };
      bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON({ taskId, contextId, artifact })));
      state("COMPLETED");
    }
    bus.finished();
  }

  async cancelTask(taskId: string, bus: ExecutionEventBus): Promise<void> {
    const contextId = this.#contexts.get(taskId);
    const status = { state: "TASK_STATE_CANCELED" };
    bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ taskId, contextId, status })));
    bus.finished();
  }
}

export async function officialServer(): Promise<OfficialServer> {
  const card = AgentCard.fromJSON({
    name: "Official",
    description: "An agent on the official SDK.",
    version: "1.0.0",
    supportedInterfaces: [
      { url: "127.0.0.1:1", protocolBinding: "GRPC", protocolVersion: "1.0" },
      { url: "127.0.0.1:1", protocolBinding: "GRPC", protocolVersion: "0.3" },
    ],
    capabilities: { streaming: true, pushNotifications: false },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
  });
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Executor());
  const server = new Server();
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  server.addService(A2AService, grpcService(options));
  server.addService(LegacyA2AService, legacyGrpcService(options));
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  return {
    address: `127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.forceShutdown();
    },
  };
}
