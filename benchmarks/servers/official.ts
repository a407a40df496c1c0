import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Role, TaskState, type AgentCard } from "@a2a-js/sdk";
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
  type TaskStore,
} from "@a2a-js/sdk/server";
import { DatabaseTaskStore } from "@a2a-js/sdk/server/database";
import { jsonRpcHandler, restHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import express from "express";
import { Kysely, SqliteDialect } from "kysely";
import Database from "libsql";
import { answerText, artifactText, Bell, chunkText, commandOf, paced, questionText, stampedText } from "./commands.ts";
import { control } from "./control.ts";

// The official SDK as in its README, on Express: node official.js memory|FILE.

const [place = "memory"] = process.argv.slice(2);
const bell = new Bell();

const part = (text: string) => ({
  content: { $case: "text" as const, value: text },
  metadata: undefined,
  filename: "",
  mediaType: "",
});

const executor: AgentExecutor = {
  async execute({ taskId, contextId, userMessage, task }: RequestContext, bus: ExecutionEventBus) {
    const content = userMessage.parts[0]?.content;
    const { name, count, gap } = commandOf(content?.$case === "text" ? content.value : "");
    const message = (text: string, of: string) => ({
      messageId: crypto.randomUUID(),
      role: Role.ROLE_AGENT,
      parts: [part(text)],
      taskId: of,
      contextId,
      extensions: [],
      metadata: undefined,
      referenceTaskIds: [],
    });
    const status = (state: TaskState, text?: string) => ({
      state,
      timestamp: new Date().toISOString(),
      message: text === undefined ? undefined : message(text, taskId),
    });
    const update = (state: TaskState, text?: string): void =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state, text), metadata: undefined }));
    const chunk = (text: string, append: boolean, lastChunk = false): void =>
      bus.publish(
        AgentEvent.artifactUpdate({
          taskId,
          contextId,
          artifact: {
            artifactId: "a1",
            name: "",
            description: "",
            parts: [part(text)],
            metadata: undefined,
            extensions: [],
          },
          append,
          lastChunk,
          metadata: undefined,
        }),
      );

    if (name === "emit") bell.ring();
    if (name === "reply" || name === "emit") return bus.publish(AgentEvent.message(message(answerText, "")));
    const made = {
      id: taskId,
      contextId,
      status: status(TaskState.TASK_STATE_SUBMITTED),
      artifacts: [],
      history: [userMessage],
      metadata: undefined,
    };
    if (task === undefined) bus.publish(AgentEvent.task(made));
    switch (name) {
      case "ask":
        return update(TaskState.TASK_STATE_INPUT_REQUIRED, questionText);
      case "task":
        chunk(artifactText, false, true);
        break;
      case "stream":
        for (let number = 0; number < count; number++) {
          chunk(chunkText(number), number > 0);
          // The event bus has no backpressure: without a pause here nothing else would run.
          await new Promise(setImmediate);
        }
        if (gap > 0) await bell.wait();
        break;
      case "pace":
        update(TaskState.TASK_STATE_WORKING);
        await bell.wait();
        for await (const number of paced(count, gap)) chunk(stampedText(number), number > 0);
        break;
      case "hold":
        update(TaskState.TASK_STATE_WORKING);
        for (let number = 0; ; number++) {
          await bell.wait();
          chunk(chunkText(number), number > 0);
        }
    }
    update(TaskState.TASK_STATE_COMPLETED);
  },

  async cancelTask(taskId, bus) {
    const status = { state: TaskState.TASK_STATE_CANCELED, timestamp: new Date().toISOString(), message: undefined };
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId: "", status, metadata: undefined }));
    await Promise.resolve();
  },
};

/** The SDK's store for SQLite in WAL mode, with the tables that its own tool creates. */
function sqliteTasks(path: string): TaskStore {
  const database = new Database(path);
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
  const entry = createRequire(import.meta.url).resolve("@a2a-js/sdk");
  const tool = join(dirname(entry), "cli", "a2a_db.js");
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    [tool, "upgrade", "--sql", "--dialect", "sqlite", "--store", "tasks"],
    { encoding: "utf8" },
  );
  if (status !== 0) throw new Error(`a2a-db failed: ${stderr}`);
  database.exec(stdout);
  return new DatabaseTaskStore(new Kysely({ dialect: new SqliteDialect({ database }) }));
}

const app = express();
const server = app.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const url = `http://127.0.0.1:${address.port}`;
  const card: AgentCard = {
    name: "Benchmark",
    description: "Does what its first words say.",
    version: "1.0.0",
    provider: undefined,
    supportedInterfaces: [
      { url: `${url}/rpc`, protocolBinding: "JSONRPC", tenant: "", protocolVersion: "1.0" },
      { url: `${url}/rest`, protocolBinding: "HTTP+JSON", tenant: "", protocolVersion: "1.0" },
      // The SDK serves only bindings that the card names. The port in the address is not used.
      { url: "127.0.0.1", protocolBinding: "GRPC", tenant: "", protocolVersion: "1.0" },
    ],
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
    signatures: [],
  };
  const store = place === "memory" ? new InMemoryTaskStore() : sqliteTasks(place);
  const requestHandler = new DefaultRequestHandler(card, store, executor);
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  app.use("/rpc", jsonRpcHandler(options));
  app.use("/rest", restHandler(options));
  control(
    { jsonRpc: `${url}/rpc`, rest: `${url}/rest` },
    { grpc: async () => (await import("./official-grpc.ts")).officialGrpc(requestHandler) },
  );
});
