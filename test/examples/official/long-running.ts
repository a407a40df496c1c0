import {
  A2A_PROTOCOL_VERSION,
  AGENT_CARD_PATH,
  Role,
  TaskState,
  type AgentCard,
  type Message,
  type Part,
} from "@a2a-js/sdk";
import {
  AgentEvent,
  DefaultPushNotificationSender,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import express from "express";
import { countPrimes } from "../../../examples/long-running/primes.ts";

const port = Number(process.env["PORT"] ?? 4000);
const piece = 1_000_000;
const most = 100_000_000_000;

const card: AgentCard = {
  name: "Prime counter",
  description: "Counts the primes up to a number. Large numbers take minutes.",
  version: "1.0.0",
  provider: undefined,
  supportedInterfaces: [
    {
      url: `http://127.0.0.1:${port}/`,
      protocolBinding: "JSONRPC",
      tenant: "",
      protocolVersion: A2A_PROTOCOL_VERSION,
    },
  ],
  capabilities: { streaming: true, pushNotifications: true, extensions: [], extendedAgentCard: false },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain", "application/json"],
  skills: [
    {
      id: "count",
      name: "Count primes",
      description: "Counts the primes up to a number",
      tags: ["math"],
      examples: [],
      inputModes: [],
      outputModes: [],
      securityRequirements: [],
    },
  ],
  signatures: [],
};

function textPart(text: string): Part {
  return { content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "text/plain" };
}

function dataPart(value: unknown): Part {
  return { content: { $case: "data", value }, metadata: undefined, filename: "", mediaType: "application/json" };
}

function agentMessage(text: string, contextId: string, taskId: string): Message {
  return {
    messageId: crypto.randomUUID(),
    role: Role.ROLE_AGENT,
    parts: [textPart(text)],
    taskId,
    contextId,
    extensions: [],
    metadata: undefined,
    referenceTaskIds: [],
  };
}

class PrimeCounterExecutor implements AgentExecutor {
  readonly #canceled = new Set<string>();

  async cancelTask(taskId: string): Promise<void> {
    this.#canceled.add(taskId);
  }

  async execute({ taskId, contextId, userMessage }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const prompt = userMessage.parts
      .flatMap(({ content }) => (content?.$case === "text" ? [content.value] : []))
      .join("\n");
    const limit = Number(/\d+/.exec(prompt)?.[0]);
    if (!(limit >= 2 && limit <= most)) {
      bus.publish(AgentEvent.message(agentMessage(`Up to which number? It may be from 2 to ${most}.`, contextId, "")));
      return;
    }
    const publishState = (state: TaskState, text?: string): void =>
      bus.publish(
        AgentEvent.statusUpdate({
          taskId,
          contextId,
          status: {
            state,
            timestamp: new Date().toISOString(),
            message: text === undefined ? undefined : agentMessage(text, contextId, taskId),
          },
          metadata: undefined,
        }),
      );
    try {
      bus.publish(
        AgentEvent.task({
          id: taskId,
          contextId,
          status: {
            state: TaskState.TASK_STATE_SUBMITTED,
            timestamp: new Date().toISOString(),
            message: undefined,
          },
          artifacts: [],
          history: [userMessage],
          metadata: userMessage.metadata,
        }),
      );
      let next = 2;
      let count = 0;
      while (next <= limit) {
        if (this.#canceled.has(taskId)) {
          publishState(TaskState.TASK_STATE_CANCELED);
          return;
        }
        const end = Math.min(next + piece, limit + 1);
        count += countPrimes(next, end);
        next = end;
        publishState(TaskState.TASK_STATE_WORKING, `${count} primes below ${next}`);
        // Publishing events never waits, so this lets the event loop handle other requests.
        await new Promise(setImmediate);
      }
      bus.publish(
        AgentEvent.artifactUpdate({
          taskId,
          contextId,
          artifact: {
            artifactId: "count",
            name: "count",
            description: "",
            parts: [textPart(`${count}`), dataPart({ limit, count })],
            metadata: undefined,
            extensions: [],
          },
          append: false,
          lastChunk: true,
          metadata: undefined,
        }),
      );
      publishState(TaskState.TASK_STATE_COMPLETED);
    } finally {
      this.#canceled.delete(taskId);
    }
  }
}

const pushStore = new InMemoryPushNotificationStore();
const requestHandler = new DefaultRequestHandler(
  card,
  new InMemoryTaskStore(),
  new PrimeCounterExecutor(),
  undefined,
  pushStore,
  new DefaultPushNotificationSender(pushStore),
);
const app = express();
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.listen(port, "127.0.0.1", () => console.log(`Prime counter at http://127.0.0.1:${port}`));
