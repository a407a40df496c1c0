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
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import express from "express";
import * as z from "zod";
import { realModel, scriptedModel, type Model, type ModelMessage } from "../../../packages/cli/templates/mcp/model.ts";

const port = Number(process.env["PORT"] ?? 4000);

const card: AgentCard = {
  name: "Dice",
  description: "Rolls dice.",
  version: "0.1.0",
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
      id: "roll",
      name: "Roll dice",
      description: "Rolls dice such as 2d6 or d20.",
      tags: ["dice"],
      examples: ["2d6"],
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

const maxRounds = 10;
const Arguments = z.record(z.string(), z.json());
const Text = z.object({ type: z.literal("text"), text: z.string() });

class DiceExecutor implements AgentExecutor {
  /** The conversations, by context id. */
  readonly #conversations = new Map<string, ModelMessage[]>();
  readonly #running = new Map<string, AbortController>();
  readonly #model: Model;
  readonly #mcp: Client;

  constructor(model: Model, mcp: Client) {
    this.#model = model;
    this.#mcp = mcp;
  }

  async cancelTask(taskId: string, bus: ExecutionEventBus): Promise<void> {
    this.#running.get(taskId)?.abort();
    bus.publish(
      AgentEvent.statusUpdate({
        taskId,
        contextId: "",
        status: { state: TaskState.TASK_STATE_CANCELED, timestamp: new Date().toISOString(), message: undefined },
        metadata: undefined,
      }),
    );
  }

  async execute({ taskId, contextId, userMessage, task }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const publishState = (state: TaskState, text?: string): void => {
      const message: Message | undefined =
        text === undefined
          ? undefined
          : {
              messageId: crypto.randomUUID(),
              role: Role.ROLE_AGENT,
              parts: [textPart(text)],
              taskId,
              contextId,
              extensions: [],
              metadata: undefined,
              referenceTaskIds: [],
            };
      bus.publish(
        AgentEvent.statusUpdate({
          taskId,
          contextId,
          status: { state, timestamp: new Date().toISOString(), message },
          metadata: undefined,
        }),
      );
    };
    bus.publish(
      AgentEvent.task(
        task ?? {
          id: taskId,
          contextId,
          status: { state: TaskState.TASK_STATE_SUBMITTED, timestamp: new Date().toISOString(), message: undefined },
          artifacts: [],
          history: [userMessage],
          metadata: userMessage.metadata,
        },
      ),
    );
    publishState(TaskState.TASK_STATE_WORKING);
    const said = userMessage.parts.flatMap(({ content }) => (content?.$case === "text" ? [content.value] : []));
    const messages = this.#conversations.get(contextId) ?? [];
    this.#conversations.set(contextId, messages);
    messages.push({ role: "user", content: said.join("\n") });
    const running = new AbortController();
    this.#running.set(taskId, running);
    try {
      const answer = await this.#answer(messages, running.signal);
      if (answer === undefined) {
        publishState(TaskState.TASK_STATE_FAILED, `The model has not finished after ${maxRounds} answers.`);
        return;
      }
      bus.publish(
        AgentEvent.artifactUpdate({
          taskId,
          contextId,
          artifact: {
            artifactId: crypto.randomUUID(),
            name: "answer",
            description: "",
            parts: [textPart(answer)],
            metadata: undefined,
            extensions: [],
          },
          append: false,
          lastChunk: true,
          metadata: undefined,
        }),
      );
      publishState(TaskState.TASK_STATE_COMPLETED);
    } catch {
      if (!running.signal.aborted) publishState(TaskState.TASK_STATE_FAILED);
    } finally {
      this.#running.delete(taskId);
    }
  }

  async #answer(messages: ModelMessage[], signal: AbortSignal): Promise<string | undefined> {
    const { tools } = await this.#mcp.listTools();
    const offered = tools.map(({ name, description = "", inputSchema }) => ({
      name,
      description,
      inputSchema: Arguments.parse(inputSchema),
    }));
    for (let round = 1; round <= maxRounds; round += 1) {
      const answer = await this.#model(messages, offered, signal);
      messages.push(answer);
      if (answer.tool_calls === undefined) return answer.content ?? "";
      for (const { id, function: tool } of answer.tool_calls) {
        let content: string;
        try {
          const given = Arguments.parse(JSON.parse(tool.arguments));
          const result = await this.#mcp.callTool({ name: tool.name, arguments: given }, { signal });
          content = result.content.flatMap((part) => Text.safeParse(part).data?.text ?? []).join("\n");
        } catch (error) {
          if (signal.aborted) throw error;
          content = String(error);
        }
        messages.push({ role: "tool", tool_call_id: id, content });
      }
    }
    return undefined;
  }
}

const name = process.env["AI_MODEL"];
const mcp = new Client({ name: "dice", version: "0.1.0" });
const args = ["--import", import.meta.resolve("tsx"), process.env["TOOLS"] ?? "tools.ts"];
await mcp.connect(new StdioClientTransport({ command: process.execPath, args }));
const executor = new DiceExecutor(name === undefined ? scriptedModel : realModel(name), mcp);
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
const app = express();
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.listen(port, "127.0.0.1", () => console.log(`Dice at http://127.0.0.1:${port}`));
