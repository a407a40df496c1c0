import { A2A_PROTOCOL_VERSION, AGENT_CARD_PATH, Role, TaskState, type AgentCard, type Part } from "@a2a-js/sdk";
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import { systemClock } from "@parley/server";
import express from "express";
import { generate } from "../../../examples/token-streamer/model.ts";

const port = Number(process.env["PORT"] ?? 4000);
const pause = Number(process.env["PAUSE"] ?? 50);

const card: AgentCard = {
  name: "Storyteller",
  description: "Tells a story word by word.",
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
  capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [
    {
      id: "tell",
      name: "Tell a story",
      description: "Continues from a first line",
      tags: ["story", "streaming"],
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

class StorytellerExecutor implements AgentExecutor {
  readonly #canceled = new Set<string>();

  async cancelTask(taskId: string): Promise<void> {
    this.#canceled.add(taskId);
  }

  async execute({ taskId, contextId, userMessage }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const prompt = userMessage.parts
      .flatMap(({ content }) => (content?.$case === "text" ? [content.value] : []))
      .join("\n");
    if (prompt === "") {
      bus.publish(
        AgentEvent.message({
          messageId: crypto.randomUUID(),
          role: Role.ROLE_AGENT,
          parts: [textPart("Give me a first line.")],
          taskId: "",
          contextId,
          extensions: [],
          metadata: undefined,
          referenceTaskIds: [],
        }),
      );
      return;
    }
    const publishState = (state: TaskState): void =>
      bus.publish(
        AgentEvent.statusUpdate({
          taskId,
          contextId,
          status: { state, timestamp: new Date().toISOString(), message: undefined },
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
      publishState(TaskState.TASK_STATE_WORKING);
      let told = 0;
      for await (const { text, last } of generate(prompt, { after: 0, clock: systemClock, pause })) {
        if (this.#canceled.has(taskId)) {
          publishState(TaskState.TASK_STATE_CANCELED);
          return;
        }
        bus.publish(
          AgentEvent.artifactUpdate({
            taskId,
            contextId,
            artifact: {
              artifactId: "story",
              name: "story",
              description: "",
              parts: [textPart(text)],
              metadata: undefined,
              extensions: [],
            },
            append: told > 0,
            lastChunk: last,
            metadata: undefined,
          }),
        );
        told += 1;
      }
      publishState(TaskState.TASK_STATE_COMPLETED);
    } finally {
      this.#canceled.delete(taskId);
    }
  }
}

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new StorytellerExecutor());
const app = express();
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.listen(port, "127.0.0.1", () => console.log(`Storyteller at http://127.0.0.1:${port}`));
