import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { AGENT_CARD_PATH, AgentCard, Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from "@a2a-js/sdk";
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import express from "express";

class Echo implements AgentExecutor {
  readonly #hanging = new Map<string, () => void>();

  async execute(context: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const { taskId, contextId, userMessage } = context;
    const ids = { taskId, contextId };
    const content = userMessage.parts[0]?.content;
    const text = content?.$case === "text" ? content.value : "";
    const status = (state: string, words?: string): void => {
      const message = words && { ...ids, messageId: words, role: "ROLE_AGENT", parts: [{ text: words }] };
      bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ ...ids, status: { state, message } })));
    };
    if (text === "reply") {
      const reply = { messageId: "reply", role: "ROLE_AGENT", contextId, parts: [{ text: "Just a word." }] };
      bus.publish(AgentEvent.message(Message.fromJSON(reply)));
      bus.finished();
      return;
    }
    const task = { id: taskId, contextId, status: { state: "TASK_STATE_SUBMITTED" } };
    bus.publish(AgentEvent.task(context.task ?? Task.fromJSON(task)));
    status("TASK_STATE_WORKING", "On it");
    if (text === "ask") {
      status("TASK_STATE_INPUT_REQUIRED", "Which?");
    } else if (text === "hang") {
      await new Promise<void>((resolve) => this.#hanging.set(taskId, resolve));
      status("TASK_STATE_CANCELED");
    } else {
      for (const [i, word] of ["You ", `said ${text}`].entries()) {
        const artifact = { artifactId: "echo", name: "echo", parts: [{ text: word }] };
        bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON({ ...ids, artifact, append: i > 0 })));
      }
      status("TASK_STATE_COMPLETED");
    }
    bus.finished();
  }

  cancelTask = async (taskId: string): Promise<void> => {
    this.#hanging.get(taskId)?.();
  };
}

/** An agent on the official SDK's own server: JSON-RPC and REST. */
export async function startOfficial(): Promise<{ url: string; close(): Promise<void> }> {
  const app = express();
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const card = AgentCard.fromJSON({
    name: "Official",
    description: "Runs on the official SDK.",
    version: "1.0.0",
    supportedInterfaces: [
      { url: `${url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url: `${url}/rest`, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
    ],
    capabilities: { streaming: true },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
  });
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Echo());
  const userBuilder = UserBuilder.noAuthentication;
  app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
  app.use("/rpc", jsonRpcHandler({ requestHandler, userBuilder }));
  app.use("/rest", restHandler({ requestHandler, userBuilder }));
  return {
    url,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
