import {
  A2A_PROTOCOL_VERSION,
  AGENT_CARD_PATH,
  Role,
  TaskState,
  type AgentCard,
  type Artifact,
  type Message,
  type Part,
} from "@a2a-js/sdk";
import { ClientFactory, type Client } from "@a2a-js/sdk/client";
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

const port = Number(process.env["PORT"] ?? 4000);
const expertsAt = process.env["EXPERTS"] ?? "http://127.0.0.1:4001";

const card: AgentCard = {
  name: "Travel planner",
  description: "Plans a trip: a flight and a hotel.",
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
      id: "plan",
      name: "Plan a trip",
      description: "Plans a trip to a city",
      tags: ["travel"],
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

function textOf(parts: readonly Part[] = []): string {
  return parts.flatMap(({ content }) => (content?.$case === "text" ? [content.value] : [])).join("\n");
}

/** How far an agent that the planner has called has come. */
interface Delegated {
  readonly client: Client;
  taskId: string;
  contextId: string;
  state: TaskState;
  question: string;
  text: string;
}

class PlannerExecutor implements AgentExecutor {
  /** What each task waits for. */
  readonly #trips = new Map<string, readonly Delegated[]>();
  readonly #canceled = new Set<string>();
  readonly #factory = new ClientFactory();

  async cancelTask(taskId: string, bus: ExecutionEventBus): Promise<void> {
    this.#canceled.add(taskId);
    const open = (this.#trips.get(taskId) ?? []).filter(
      ({ taskId: id, state }) => id !== "" && state !== TaskState.TASK_STATE_COMPLETED,
    );
    await Promise.allSettled(
      open.map(({ client, taskId: id }) => client.cancelTask({ tenant: "", id, metadata: undefined })),
    );
    this.#trips.delete(taskId);
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
      if (this.#canceled.has(taskId)) return;
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
    const publishArtifact = (artifact: Artifact, append: boolean, lastChunk: boolean): void =>
      bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append, lastChunk, metadata: undefined }));
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
    /** Sends a message to another agent, and passes on what it says until it is done or asks a question. */
    const delegate = async (to: Delegated, text: string): Promise<void> => {
      const stream = to.client.sendMessageStream({
        tenant: "",
        metadata: undefined,
        configuration: undefined,
        message: {
          messageId: crypto.randomUUID(),
          role: Role.ROLE_USER,
          parts: [textPart(text)],
          taskId: to.taskId,
          contextId: to.contextId,
          extensions: [],
          metadata: undefined,
          referenceTaskIds: [],
        },
      });
      for await (const { payload } of stream) {
        if (payload?.$case === "task") {
          to.taskId = payload.value.id;
          to.contextId = payload.value.contextId;
        } else if (payload?.$case === "statusUpdate") {
          const { state = TaskState.TASK_STATE_UNSPECIFIED, message } = payload.value.status ?? {};
          const said = textOf(message?.parts);
          to.state = state;
          to.question = state === TaskState.TASK_STATE_INPUT_REQUIRED ? said : "";
          if (state === TaskState.TASK_STATE_WORKING && said !== "") publishState(state, said);
        } else if (payload?.$case === "artifactUpdate" && payload.value.artifact !== undefined) {
          const { artifact, append, lastChunk } = payload.value;
          to.text += textOf(artifact.parts);
          publishArtifact({ ...artifact, artifactId: `${to.taskId}-${artifact.artifactId}` }, append, lastChunk);
        }
      }
    };
    try {
      const text = textOf(userMessage.parts);
      let trip = this.#trips.get(taskId);
      if (trip === undefined) {
        const clients = await Promise.all(
          // The path of the card is resolved against the URL, so the last slash belongs to it.
          ["flights", "hotels"].map((name) => this.#factory.createFromUrl(`${expertsAt}/${name}/`, AGENT_CARD_PATH)),
        );
        trip = clients.map((client) => ({
          client,
          taskId: "",
          contextId: "",
          state: TaskState.TASK_STATE_SUBMITTED,
          question: "",
          text: "",
        }));
        this.#trips.set(taskId, trip);
        await Promise.all(trip.map((each) => delegate(each, text)));
      } else {
        const asking = trip.find(({ question }) => question !== "");
        if (asking !== undefined) await delegate(asking, text);
      }
      const question = trip.find(({ question: asked }) => asked !== "")?.question;
      if (question !== undefined) {
        publishState(TaskState.TASK_STATE_INPUT_REQUIRED, question);
        return;
      }
      this.#trips.delete(taskId);
      if (this.#canceled.has(taskId)) return;
      if (trip.some(({ state }) => state !== TaskState.TASK_STATE_COMPLETED)) {
        publishState(TaskState.TASK_STATE_FAILED, "Another agent did not do its part.");
        return;
      }
      const plan: Artifact = {
        artifactId: "plan",
        name: "plan",
        description: "",
        parts: [textPart(trip.map((each) => `${each.text}.`).join(" "))],
        metadata: undefined,
        extensions: [],
      };
      publishArtifact(plan, false, true);
      publishState(TaskState.TASK_STATE_COMPLETED);
    } catch {
      this.#trips.delete(taskId);
      publishState(TaskState.TASK_STATE_FAILED, "Another agent could not be reached.");
    } finally {
      this.#canceled.delete(taskId);
    }
  }
}

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new PlannerExecutor());
const app = express();
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.listen(port, "127.0.0.1", () => console.log(`Travel planner at http://127.0.0.1:${port}`));
