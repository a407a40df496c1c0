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
import { bursar } from "../../../examples/ai-sdk/bursar.ts";
import type { ModelMessage } from "../../../examples/ai-sdk/model.ts";

const port = Number(process.env["PORT"] ?? 4000);

const card: AgentCard = {
  name: "Bursar",
  description: "Pays invoices, once you approve.",
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
      id: "pay",
      name: "Pay",
      description: "Pays an invoice",
      tags: ["payments"],
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

/** A tool call that waits for approval. */
interface Waiting {
  readonly approvalId: string;
  readonly question: string;
}

class BursarExecutor implements AgentExecutor {
  /** The conversations, by context id. */
  readonly #conversations = new Map<string, ModelMessage[]>();
  /** The waiting calls, by task id. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #running = new Map<string, AbortController>();

  async cancelTask(taskId: string, bus: ExecutionEventBus): Promise<void> {
    this.#waiting.delete(taskId);
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
    const said = userMessage.parts
      .flatMap(({ content }) => (content?.$case === "text" ? [content.value] : []))
      .join("\n");
    const messages = this.#conversations.get(contextId) ?? [];
    this.#conversations.set(contextId, messages);
    const waiting = this.#waiting.get(taskId);
    if (waiting === undefined) messages.push({ role: "user", content: said });
    else if (/^(yes|no)$/i.test(said.trim())) {
      const { approvalId } = waiting;
      const approved = said.trim().toLowerCase() === "yes";
      messages.push({ role: "tool", content: [{ type: "tool-approval-response", approvalId, approved }] });
      this.#waiting.delete(taskId);
    } else {
      publishState(TaskState.TASK_STATE_INPUT_REQUIRED, waiting.question);
      return;
    }
    publishState(TaskState.TASK_STATE_WORKING);
    const running = new AbortController();
    this.#running.set(taskId, running);
    try {
      await this.#run(messages, running.signal, taskId, contextId, bus, publishState);
    } catch {
      if (!running.signal.aborted) publishState(TaskState.TASK_STATE_FAILED);
    } finally {
      this.#running.delete(taskId);
    }
  }

  async #run(
    messages: ModelMessage[],
    abortSignal: AbortSignal,
    taskId: string,
    contextId: string,
    bus: ExecutionEventBus,
    publishState: (state: TaskState, text?: string) => void,
  ): Promise<void> {
    const result = await bursar.stream({ messages, abortSignal });
    let [artifactId, isBegun] = ["", false];
    for await (const part of result.fullStream) {
      if (part.type === "error") throw part.error;
      if (part.type === "tool-call" && part.toolName !== "pay")
        publishState(TaskState.TASK_STATE_WORKING, `Calling ${part.toolName}`);
      if (part.type === "tool-approval-request") {
        const { toolName, input } = part.toolCall;
        const question = `Approve ${toolName} ${JSON.stringify(input)}?`;
        this.#waiting.set(taskId, { approvalId: part.approvalId, question });
      }
      if (part.type === "text-start") [artifactId, isBegun] = [crypto.randomUUID(), false];
      if (part.type !== "text-delta") continue;
      bus.publish(
        AgentEvent.artifactUpdate({
          taskId,
          contextId,
          artifact: {
            artifactId,
            name: "answer",
            description: "",
            parts: [textPart(part.text)],
            metadata: undefined,
            extensions: [],
          },
          append: isBegun,
          lastChunk: false,
          metadata: undefined,
        }),
      );
      isBegun = true;
    }
    messages.push(...(await result.responseMessages));
    if (abortSignal.aborted) return;
    const question = this.#waiting.get(taskId)?.question;
    publishState(
      question === undefined ? TaskState.TASK_STATE_COMPLETED : TaskState.TASK_STATE_INPUT_REQUIRED,
      question,
    );
  }
}

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new BursarExecutor());
const app = express();
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.listen(port, "127.0.0.1", () => console.log(`Bursar at http://127.0.0.1:${port}`));
