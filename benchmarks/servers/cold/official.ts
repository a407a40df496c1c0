import { Role, type AgentCard } from "@a2a-js/sdk";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { jsonRpcHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import express from "express";

const app = express();
const server = app.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const url = `http://127.0.0.1:${address.port}/`;
  const card: AgentCard = {
    name: "Hello",
    description: "Says hello.",
    version: "1.0.0",
    provider: undefined,
    supportedInterfaces: [{ url, protocolBinding: "JSONRPC", tenant: "", protocolVersion: "1.0" }],
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
    signatures: [],
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), {
    execute: async ({ contextId }, bus) => {
      const content = { $case: "text" as const, value: "hello" };
      bus.publish(
        AgentEvent.message({
          messageId: crypto.randomUUID(),
          role: Role.ROLE_AGENT,
          parts: [{ content, metadata: undefined, filename: "", mediaType: "" }],
          taskId: "",
          contextId,
          extensions: [],
          metadata: undefined,
          referenceTaskIds: [],
        }),
      );
      await Promise.resolve();
    },
    cancelTask: () => Promise.resolve(),
  });
  app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  process.send?.(url);
});
