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
import { Plan } from "../../../examples/travel-planner/plan.ts";
import { sentences } from "../../../examples/travel-planner/words.ts";

const port = Number(process.env["PORT"] ?? 4000);
const expertsAt = process.env["EXPERTS"] ?? "http://127.0.0.1:4001";

const card: AgentCard = {
  name: "Travel planner",
  description: "Plans a trip: a flight, a hotel and a car.",
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
  defaultOutputModes: ["text/plain", "application/json"],
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

function dataPart(value: unknown): Part {
  return { content: { $case: "data", value }, metadata: undefined, filename: "", mediaType: "application/json" };
}

function dataOf(parts: readonly Part[] = []): unknown {
  return parts.flatMap(({ content }) => (content?.$case === "data" ? [content.value as unknown] : []))[0];
}

function textOf(parts: readonly Part[] = []): string {
  return parts.flatMap(({ content }) => (content?.$case === "text" ? [content.value] : [])).join("\n");
}

/** The progress of an agent that the planner has called. */
interface Delegated {
  readonly client: Client;
  taskId: string;
  contextId: string;
  state: TaskState;
  question: string;
  data: unknown;
}

/** A trip: the progress of the planner and, once there is a plan, of the experts. */
interface Trip {
  readonly planner: Delegated;
  readonly experts: readonly Delegated[];
  searching: boolean;
}

function isOption(value: unknown): value is { readonly what: string; readonly price: number } {
  return typeof value === "object" && value !== null && "what" in value && "price" in value;
}

class PlannerExecutor implements AgentExecutor {
  /** The trip of each task. */
  readonly #trips = new Map<string, Trip>();
  readonly #canceled = new Set<string>();
  readonly #factory = new ClientFactory();

  async cancelTask(taskId: string, bus: ExecutionEventBus): Promise<void> {
    this.#canceled.add(taskId);
    const trip = this.#trips.get(taskId);
    const open = (trip === undefined ? [] : [trip.planner, ...trip.experts]).filter(
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
    /** Sends a message to another agent, and forwards the agent's output until the agent finishes or asks a question. */
    const delegate = async (to: Delegated, part: Part, shows = true): Promise<void> => {
      const stream = to.client.sendMessageStream({
        tenant: "",
        metadata: undefined,
        configuration: undefined,
        message: {
          messageId: crypto.randomUUID(),
          role: Role.ROLE_USER,
          parts: [part],
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
          to.data = dataOf(artifact.parts);
          if (shows)
            publishArtifact({ ...artifact, artifactId: `${to.taskId}-${artifact.artifactId}` }, append, lastChunk);
        }
      }
    };
    try {
      const said = textPart(textOf(userMessage.parts));
      let trip = this.#trips.get(taskId);
      if (trip === undefined) {
        const clients = await Promise.all(
          // The client resolves the card's path against the URL, so the trailing slash matters.
          ["planner", "flights", "hotels", "cars"].map((name) =>
            this.#factory.createFromUrl(`${expertsAt}/${name}/`, AGENT_CARD_PATH),
          ),
        );
        const [planner, ...experts] = clients.map((client) => ({
          client,
          taskId: "",
          contextId: "",
          state: TaskState.TASK_STATE_SUBMITTED,
          question: "",
          data: undefined,
        }));
        if (planner === undefined) throw new Error("There is no planner");
        trip = { planner, experts, searching: false };
        this.#trips.set(taskId, trip);
        await delegate(planner, said, false);
      } else {
        const asking = [trip.planner, ...trip.experts].find(({ question }) => question !== "");
        if (asking !== undefined) await delegate(asking, said, asking !== trip.planner);
      }
      if (trip.planner.state === TaskState.TASK_STATE_COMPLETED && !trip.searching) {
        trip.searching = true;
        const plan = dataPart(trip.planner.data);
        await Promise.all(trip.experts.map((each) => delegate(each, plan)));
      }
      const all = [trip.planner, ...trip.experts];
      const question = all.find(({ question: asked }) => asked !== "")?.question;
      if (question !== undefined) {
        publishState(TaskState.TASK_STATE_INPUT_REQUIRED, question);
        return;
      }
      this.#trips.delete(taskId);
      if (this.#canceled.has(taskId)) return;
      const options = trip.experts.map(({ data }) => data).filter(isOption);
      if (options.length < trip.experts.length) {
        publishState(TaskState.TASK_STATE_FAILED, "Another agent did not do its part.");
        return;
      }
      const price = options.reduce((sum, option) => sum + option.price, 0);
      const { language } = Plan.parse(trip.planner.data);
      const artifact: Artifact = {
        artifactId: "trip",
        name: "trip",
        description: "",
        parts: [textPart(sentences[language].trip(options, price)), dataPart({ price })],
        metadata: undefined,
        extensions: [],
      };
      publishArtifact(artifact, false, true);
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
