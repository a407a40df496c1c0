import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Role, TaskState, type AgentCard, type Artifact, type Part, type SendMessageRequest } from "@a2a-js/sdk";
import { AgentEvent, type AgentExecutor, type ExecutionEventBus, type RequestContext } from "@a2a-js/sdk/server";
import { agentCardHandler } from "@a2a-js/sdk/server/express";
import express, { type Express } from "express";

/* Shared code of the programs on the official JavaScript SDK. */

/** The parts of a message or artifact with this text. */
export const partsOf = (value: string): Part[] => [
  { content: { $case: "text", value }, mediaType: "text/plain", filename: "", metadata: {} },
];

export function artifactOf(name: string, text: string): Artifact {
  const artifactId = crypto.randomUUID();
  return { artifactId, name, description: "", parts: partsOf(text), extensions: [], metadata: {} };
}

/** A request with a user message. */
export function requestOf(text: string): SendMessageRequest {
  return {
    tenant: "",
    message: {
      messageId: crypto.randomUUID(),
      contextId: "",
      taskId: "",
      role: Role.ROLE_USER,
      parts: partsOf(text),
      metadata: {},
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: undefined,
    metadata: {},
  };
}

/** The first event of a task. */
export function submittedOf({ taskId: id, contextId, userMessage }: RequestContext) {
  const status = {
    state: TaskState.TASK_STATE_SUBMITTED,
    message: undefined,
    timestamp: new Date().toISOString(),
  };
  return AgentEvent.task({ id, contextId, status, artifacts: [], history: [userMessage], metadata: {} });
}

/** An agent whose tasks cannot be canceled. */
export abstract class JsAgent implements AgentExecutor {
  abstract execute(context: RequestContext, bus: ExecutionEventBus): Promise<void>;

  cancelTask(): Promise<void> {
    return Promise.reject(new Error("It cannot be canceled"));
  }
}

/** A card without skills or security. */
export function cardOf(
  name: string,
  description: string,
  urls: Readonly<Record<string, string>>,
  extensions: NonNullable<AgentCard["capabilities"]>["extensions"] = [],
): AgentCard {
  return {
    name,
    description,
    version: "1.0.0",
    provider: undefined,
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    capabilities: { streaming: true, extendedAgentCard: false, pushNotifications: false, extensions },
    supportedInterfaces: Object.entries(urls).map(([protocolBinding, url]) => ({
      protocolBinding,
      protocolVersion: "1.0",
      url,
      tenant: "",
    })),
    skills: [],
    securitySchemes: {},
    securityRequirements: [],
    signatures: [],
  };
}

export interface Listening {
  readonly app: Express;
  readonly url: string;
  stop(): Promise<void>;
}

/** An Express application that listens on its own port. */
export async function listening(): Promise<Listening> {
  const app = express();
  const server: Server = app.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return {
    app,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export function serveCard(app: Express, card: AgentCard): void {
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: () => Promise.resolve(card) }));
}
