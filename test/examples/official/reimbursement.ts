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
import { Expense, formAfter, free } from "../../../examples/reimbursement/form.ts";

const port = Number(process.env["PORT"] ?? 4000);

const card: AgentCard = {
  name: "Reimbursement Agent",
  description:
    "This agent handles the reimbursement process for the employees given the amount and purpose of the reimbursement.",
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
  defaultInputModes: ["text/plain", "application/json"],
  defaultOutputModes: ["text/plain", "application/json"],
  skills: [
    {
      id: "process_reimbursement",
      name: "Process Reimbursement Tool",
      description: "Helps with the reimbursement process for users given the amount and purpose of the reimbursement.",
      tags: ["reimbursement"],
      examples: ["Can you reimburse me $20 for my lunch with the clients?"],
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

class ReimbursementExecutor implements AgentExecutor {
  /** Expenses that wait for an approver, by task id. */
  readonly #waiting = new Map<string, Expense>();

  async cancelTask(taskId: string, bus: ExecutionEventBus): Promise<void> {
    this.#waiting.delete(taskId);
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
    const publishState = (state: TaskState, parts?: Part[]): void => {
      const message: Message | undefined = parts && {
        messageId: crypto.randomUUID(),
        role: Role.ROLE_AGENT,
        parts,
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
          status: {
            state: TaskState.TASK_STATE_SUBMITTED,
            timestamp: new Date().toISOString(),
            message: undefined,
          },
          artifacts: [],
          history: [userMessage],
          metadata: userMessage.metadata,
        },
      ),
    );
    const waiting = this.#waiting.get(taskId);
    let expense = waiting;
    if (expense === undefined) {
      const said = userMessage.parts.flatMap(({ content }) => (content?.$case === "text" ? [content.value] : []));
      const ask = [textPart("Please fill in the form."), dataPart({ form: formAfter(said.join("\n")) })];
      const at = userMessage.parts.findIndex(({ content }) => content?.$case === "data");
      const content = userMessage.parts[at]?.content;
      if (content?.$case !== "data") {
        publishState(TaskState.TASK_STATE_INPUT_REQUIRED, ask);
        return;
      }
      const checked = Expense.safeParse(content.value);
      if (!checked.success) {
        const wrong = checked.error.issues.map(
          ({ path, message }) => `- message.parts[${at}].data.${path.join(".")} does not fit: ${message}`,
        );
        const text = `\nThe message cannot be used:\n${wrong.join("\n")}`;
        publishState(TaskState.TASK_STATE_INPUT_REQUIRED, [...ask, textPart(text)]);
        return;
      }
      expense = checked.data;
    }
    if (expense.amount > free && waiting === undefined) {
      this.#waiting.set(taskId, expense);
      const question = `${expense.amount} is more than ${free}. Who has approved it?`;
      publishState(TaskState.TASK_STATE_INPUT_REQUIRED, [textPart(question)]);
      return;
    }
    this.#waiting.delete(taskId);
    const approvedBy =
      waiting &&
      userMessage.parts.flatMap(({ content }) => (content?.$case === "text" ? [content.value] : [])).join("\n");
    bus.publish(
      AgentEvent.artifactUpdate({
        taskId,
        contextId,
        artifact: {
          artifactId: "reimbursement",
          name: "reimbursement",
          description: "",
          parts: [dataPart({ ...expense, approvedBy, status: "paid" })],
          metadata: undefined,
          extensions: [],
        },
        append: false,
        lastChunk: true,
        metadata: undefined,
      }),
    );
    publishState(TaskState.TASK_STATE_COMPLETED);
  }
}

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new ReimbursementExecutor());
const app = express();
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.listen(port, "127.0.0.1", () => console.log(`Reimbursement at http://127.0.0.1:${port}`));
