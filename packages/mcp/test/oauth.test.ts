import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { connect } from "@parley/a2a";
import { jwt } from "@parley/a2a/auth";
import { clientCredentials, memoryTokenStore, tokenExchange } from "@parley/a2a/credentials";
import { defineAgent, memoryStore, serve } from "@parley/node";
import { decodeJwt } from "jose";
import { expect, onTestFinished, test } from "vitest";
import { agentUrl, askWith } from "../../../test/identity/asked.ts";
import { userToken } from "../../../test/identity/logins.ts";
import { providerSecret } from "../../../test/identity/provider-clients.ts";
import { startProvider } from "../../../test/identity/provider.ts";
import { mcpServer } from "../src/index.ts";
import { mcpPool, mcpTools, McpToolError, type HttpServer } from "../src/tools/index.ts";
import { officialClient, textsOf } from "./agent.ts";

/* With a real OpenID provider: no token reaches a server for which it was not issued. */

const secret = { clientSecret: providerSecret };
const exchanging = { clientId: "exchanger", ...secret, scopes: ["chat"], store: memoryTokenStore() };

async function provider(): Promise<{ readonly issuer: string }> {
  const started = await startProvider();
  onTestFinished(() => started.close());
  return started;
}

const card = { name: "Test", description: "A test", version: "1.0.0", skills: [] };
const quiet = { port: 0, logger: false, signals: false } as const;

/** An MCP server that accepts only tokens issued for it, and reports the caller. */
async function manuals(issuer: string, names = true): Promise<{ readonly url: string; readonly seen: string[] }> {
  const seen: string[] = [];
  const handler = createMcpHandler(({ requestInfo }) => {
    const server = new McpServer({ name: "manuals", version: "1.0.0" });
    const { sub, client_id } = decodeJwt(requestInfo?.headers.get("authorization")?.slice(7) ?? "");
    server.registerTool("whoami", {}, () => ({ content: [{ type: "text", text: String(sub ?? client_id) }] }));
    return server;
  });
  const agent = defineAgent({ ...card, async *onMessage() {} });
  const server = await serve(agent, {
    ...quiet,
    routes(request) {
      const token = request.headers.get("authorization")?.replace("Bearer ", "");
      const metadata = `${new URL(request.url).origin}/.well-known/oauth-protected-resource/mcp`;
      if (request.url === metadata) return Response.json({ resource: url(), authorization_servers: [issuer] });
      if (!request.url.endsWith("/mcp")) return undefined;
      const challenge = { "www-authenticate": names ? `Bearer resource_metadata="${metadata}"` : "Bearer" };
      if (token === undefined) return new Response(null, { status: 401, headers: challenge });
      seen.push(token);
      return decodeJwt(token).aud === url() ? handler.fetch(request) : new Response(null, { status: 401 });
    },
  });
  const url = (): string => `${server.url}/mcp`;
  onTestFinished(() => server.close());
  return { url: url(), seen };
}

const policy = { allowLoopback: true };

/** Runs an agent that asks an MCP server who is calling. Returns the answer, and the token of the agent's caller. */
async function answer(issuer: string, remote: HttpServer, isPerCaller: boolean): Promise<[string | undefined, string]> {
  const pool = mcpPool({ servers: { remote }, policy });
  const agent = defineAgent({
    ...card,
    async *onMessage(turn) {
      const tools = await mcpTools(turn, pool.server("remote", isPerCaller ? turn.principal : undefined));
      yield turn.completed((await tools.run("one", "whoami")).text);
    },
  });
  const authenticator = jwt({ issuer });
  const server = await serve(agent, { ...quiet, store: memoryStore(), authenticator });
  onTestFinished(async () => {
    await pool.close();
    await server.close();
  });
  const { access_token } = await userToken({ issuer }, { resource: server.url, scope: "chat", user: "grace" });
  const client = await connect(server.url, { headers: { authorization: `Bearer ${access_token}` } });
  return [(await client.sendMessage("Who am I?")).task?.status.message?.parts[0]?.text, access_token];
}

test("a pool exchanges the caller's token for one that is issued for the MCP server", async () => {
  const { issuer } = await provider();
  const { url, seen } = await manuals(issuer);
  const remote: HttpServer = { url, credentials: (subject) => tokenExchange({ ...exchanging, issuer, subject }) };
  const [said, own] = await answer(issuer, remote, true);
  expect(said).toBe("grace");
  expect(seen).not.toContain(own);
  expect(decodeJwt(seen[0] ?? "")).toMatchObject({ aud: url, act: { sub: "exchanger" } });
  const pool = mcpPool({ servers: { remote }, policy });
  expect(() => pool.server("remote")).toThrow(McpToolError);
});

test.each([
  ["named by the MCP server", true],
  ["in its metadata at the well-known location", false],
])("a pool gets its own token from the authorization server %s", async (_, names) => {
  const { issuer } = await provider();
  const { url, seen } = await manuals(issuer, names);
  const credentials = clientCredentials({ clientId: "service", ...secret, scopes: ["chat"] });
  const [said, own] = await answer(issuer, { url, credentials }, false);
  expect(said).toBe("service");
  expect(new Set(seen).size).toBe(1);
  expect(seen).not.toContain(own);
});

test("a bridge exchanges the MCP caller's token for one that is issued for the agent", async () => {
  const { issuer } = await provider();
  const authenticator = jwt({ issuer });
  const heard: string[] = [];
  const agent = defineAgent({ ...card, onMessage: (turn) => turn.reply(turn.principal.subject) });
  const server = await serve(agent, {
    ...quiet,
    store: memoryStore(),
    authenticator,
    authorizer({ context }) {
      heard.push(context.headers?.("authorization")?.replace("Bearer ", "") ?? "");
      return "allow";
    },
  });
  onTestFinished(() => server.close());
  // The host of the bridge accepts a token that was issued for it.
  const { access_token: token } = await userToken({ issuer }, { resource: agentUrl, scope: "chat", user: "grace" });
  const caller = await askWith(authenticator, token);
  const tokens = new Map([[caller.subject, token]]);
  const bridge = await mcpServer(server.url, {
    key: "secret-of-the-bridge-that-is-long-enough",
    credentialsFor: ({ subject }) => ({
      credentials: [tokenExchange({ ...exchanging, issuer, subject: { token: tokens.get(subject) ?? "" } })],
    }),
  });
  const client = await officialClient(bridge, "2026-07-28", { caller });
  const said = await client.callTool({ name: "send_message", arguments: { message: "Who am I?" } });
  expect(textsOf(said)).toContain("grace");
  expect(heard).toHaveLength(1);
  expect(decodeJwt(heard[0] ?? "")).toMatchObject({ aud: server.url, act: { sub: "exchanger" } });
});
