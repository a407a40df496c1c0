import process from "node:process";
import { authorizationCode, clientCredentials, type CredentialProvider } from "@parley/a2a/credentials";
import { defineAgent } from "@parley/node";
import { testAgent } from "@parley/testing";
import { exportJWK, importPKCS8 } from "jose";
import * as z from "zod";
import { mcpPool, mcpTools } from "../src/tools/index.ts";

/* The client for MCP's conformance suite: an agent that calls all tools of the server whose URL is its last argument. */

const url = process.argv.at(-1) ?? "";
const scenario = process.env["MCP_CONFORMANCE_SCENARIO"] ?? "";
const Context = z.object({
  client_id: z.string().default("https://conformance-test.local/client-metadata.json"),
  client_secret: z.string().optional(),
  private_key_pem: z.string().optional(),
});
const context = Context.parse(JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}"));

/** A user who agrees to everything. */
async function open(page: URL): Promise<URL> {
  const { headers } = await fetch(page, { redirect: "manual" });
  return new URL(headers.get("location") ?? "");
}

async function provider(): Promise<CredentialProvider> {
  const { client_id: clientId, client_secret: clientSecret, private_key_pem: pem } = context;
  if (pem !== undefined) {
    const key = await exportJWK(await importPKCS8(pem, "ES256", { extractable: true }));
    return clientCredentials({ clientId, clientKey: { ...key, alg: "ES256" } });
  }
  const secret = clientSecret === undefined ? {} : { clientSecret };
  if (scenario.includes("client-credentials")) return clientCredentials({ clientId, ...secret });
  const pending = { redirectUri: "http://localhost:3000/callback", open, close: async () => undefined };
  return authorizationCode({ clientId, ...secret, redirect: { begin: async () => pending } });
}

const credentials = scenario.startsWith("auth/") ? { credentials: await provider() } : {};
const pool = mcpPool({ servers: { suite: { url, ...credentials } }, policy: { allowLoopback: true } });
const agent = defineAgent({
  name: "Caller",
  description: "Calls all tools.",
  version: "1.0.0",
  skills: [],
  defaultInputModes: ["text/plain", "application/json"],
  async *onMessage(turn) {
    const tools = await mcpTools(turn, pool.server("suite"));
    for (const { name } of tools.tools) yield* tools.call(name, name, { a: 5, b: 3 });
    yield turn.completed("Done");
  },
});
const under = await testAgent(agent);
const { task } = await under.client.sendMessage("Go");
if (task?.status.state === "TASK_STATE_INPUT_REQUIRED")
  await under.client.sendMessage({ message: { taskId: task.id, parts: [{ data: {} }] } });
process.stdout.write(`${JSON.stringify(task?.status)}\n`);
await pool.close();
await under.close();
