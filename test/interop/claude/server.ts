import { writeSync } from "node:fs";
import { createRequire } from "node:module";
import { fromClaude, type ClaudeQuery } from "@parley/frameworks/claude";
import { serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";
import { card, clock, path, port } from "../../../packages/frameworks/test/crash/life.ts";

// The server of claude.test.ts: node server.ts FILE PORT. The environment has the SDK's folder, a home directory and the URL of the API.

const { PATH, SDK = "", API = "", HOME = "" } = process.env;

interface SDKModule {
  readonly query: ClaudeQuery;
  createSdkMcpServer(options: object): object;
  tool(name: string, description: string, schema: object, run: () => Promise<object>): object;
}

const load = createRequire(`${SDK}/package.json`);
const sdk = (await import(load.resolve("@anthropic-ai/claude-agent-sdk"))) as SDKModule;

const toolOf = (name: string): object =>
  sdk.tool(name, name, {}, async () => {
    const answer = await fetch(`${API}/tool/${name}`);
    return { content: [{ type: "text", text: await answer.text() }] };
  });

const env = {
  PATH,
  HOME,
  CLAUDE_CONFIG_DIR: HOME,
  ANTHROPIC_BASE_URL: API,
  ANTHROPIC_API_KEY: "x",
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
};

const options = (): object => ({
  model: "claude-sonnet-4-5",
  systemPrompt: "You pay invoices.",
  cwd: HOME,
  env,
  allowedTools: ["mcp__bank__look"],
  // An SDK MCP server serves only one session.
  mcpServers: { bank: sdk.createSdkMcpServer({ name: "bank", tools: ["look", "pay"].map(toolOf) }) },
});

const lease = { maxDeaths: 1000, maxAttempts: 1000 };
await serve([{ path: "/claude", agent: fromClaude(sdk.query, { ...card, options }) }], {
  port: Number(port),
  store: await sqliteStore({ path }),
  clock,
  pollInterval: 20,
  logger: false,
  lease,
});
writeSync(1, "ready\n");
