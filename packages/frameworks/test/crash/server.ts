import { writeSync } from "node:fs";
import { serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";
import { agents as aiSDK } from "./ai-sdk-agents.ts";
import { agents as claude } from "./claude-agents.ts";
import { agents as langGraph } from "./langgraph-agents.ts";
import { clock, path, port } from "./life.ts";
import { agents as mastra } from "./mastra-agents.ts";
import { agents as openAI } from "./openai-agents.ts";

// The server of kills.test.ts. It prints "ready" once it listens.

const agents = { ...aiSDK, ...claude, ...openAI, ...langGraph, ...mastra };

/** The test kills every process, so deaths must not suspend a task. */
const lease = { maxDeaths: 1000, maxAttempts: 1000 };

await serve(
  Object.entries(agents).map(([name, agent]) => ({ path: `/${name}`, agent })),
  { port: Number(port), store: await sqliteStore({ path }), clock, pollInterval: 20, logger: false, lease },
);
writeSync(1, "ready\n");
