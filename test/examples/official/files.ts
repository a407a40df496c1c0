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
  DefaultRequestHandler,
  InMemoryTaskStore,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import express from "express";
import { toJsonLines } from "../../../examples/files/convert.ts";

const port = Number(process.env["PORT"] ?? 4000);

const card: AgentCard = {
  name: "Table converter",
  description: "Converts CSV files to JSON Lines.",
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
  defaultInputModes: ["text/plain", "text/csv"],
  defaultOutputModes: ["application/jsonl"],
  skills: [
    {
      id: "convert",
      name: "Convert",
      description: "Converts a CSV file to JSON Lines",
      tags: ["csv", "json"],
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

class ConverterExecutor implements AgentExecutor {
  readonly #canceled = new Set<string>();

  async cancelTask(taskId: string): Promise<void> {
    this.#canceled.add(taskId);
  }

  async execute({ taskId, contextId, userMessage }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const file = userMessage.parts.find(({ content }) => content?.$case === "raw");
    if (file?.content?.$case !== "raw") {
      bus.publish(AgentEvent.message(agentMessage("Send me a CSV file.", contextId, "")));
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
    const name = file.filename.replace(/(\.csv)?$/i, ".jsonl");
    const publishChunk = (value: Buffer, append: boolean, lastChunk: boolean): void =>
      bus.publish(
        AgentEvent.artifactUpdate({
          taskId,
          contextId,
          artifact: {
            artifactId: "file",
            name,
            description: "",
            parts: [
              {
                content: { $case: "raw", value },
                metadata: undefined,
                filename: name,
                mediaType: "application/jsonl",
              },
            ],
            metadata: undefined,
            extensions: [],
          },
          append,
          lastChunk,
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
      publishState(TaskState.TASK_STATE_WORKING, `Converting ${file.filename} to ${name}`);
      let begun = false;
      let pending: Uint8Array | undefined;
      for await (const piece of toJsonLines([file.content.value])) {
        if (this.#canceled.has(taskId)) {
          publishState(TaskState.TASK_STATE_CANCELED);
          return;
        }
        if (pending !== undefined) {
          publishChunk(Buffer.from(pending), begun, false);
          begun = true;
          // Publishing events never waits, so this lets the event loop handle other requests.
          await new Promise(setImmediate);
        }
        pending = piece;
      }
      publishChunk(Buffer.from(pending ?? []), begun, true);
      publishState(TaskState.TASK_STATE_COMPLETED);
    } catch (error) {
      publishState(TaskState.TASK_STATE_FAILED, `This is not a table: ${(error as Error).message}`);
    } finally {
      this.#canceled.delete(taskId);
    }
  }
}

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new ConverterExecutor());
const app = express();
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
// By default the handler accepts bodies up to 100 kB.
app.use(express.json({ limit: "10mb" }));
app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.listen(port, "127.0.0.1", () => console.log(`Table converter at http://127.0.0.1:${port}`));
