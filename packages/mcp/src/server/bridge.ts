import { connect, type Client } from "@parley/a2a";
import { line, type Clock, type Logger, type Principal } from "@parley/a2a/protocol";
import {
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  hostHeaderValidationResponse,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  originValidationResponse,
  Server,
  type McpRequestContext,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";
import { clientsFor, handlesOf, viewOf, type BridgeDeps, type CallerView } from "./agent.ts";
import { callTool, type ToolRequest } from "./calls.ts";
import { anonymous, handleKey } from "./handles.ts";
import type { McpBridge, McpServerOptions } from "./options.ts";
import { elicitModes } from "./questions.ts";
import { encoded, serveResources, Watches } from "./resources.ts";
import { maxRequestBytes, Sessions } from "./sessions.ts";
import { serveSkillFiles, skillFiles } from "./skill-files.ts";
import { skillTools, taskTools } from "./skills.ts";
import { serveTasks, takesTasks } from "./tasks.ts";

/* Connects an agent to MCP's two transports. */

const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** The bridge's timers keep the process alive, because on stdio nothing else might. */
const runtimeClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/**
 * Serves an A2A agent as an MCP server, with its skills as tools. Supports MCP 2025-11-25 and 2026-07-28.
 *
 * @param agent - A client, or the URL of the agent.
 * @throws A2AError if the agent cannot be reached; TypeError for an unknown skill or a short key.
 *
 * @example
 * ```ts
 * const bridge = await mcpServer("https://example.com/weather", { skills: ["forecast"] });
 * await serve(agent, {
 *   routes: (request) => (new URL(request.url).pathname === "/mcp" ? bridge.fetch(request) : undefined),
 * });
 * ```
 */
export async function mcpServer(agent: Client | string | URL, options: McpServerOptions = {}): Promise<McpBridge> {
  const { maxWaitMs = 50_000, maxAnswerBytes = 2 ** 20, maxDescriptionBytes = 1024 } = options;
  const { pollIntervalMs = 2000, clock = runtimeClock, logger = silent } = options;
  const key = await handleKey(options.key);
  const client = typeof agent === "string" || agent instanceof URL ? await connect(agent, options.connect) : agent;
  const { tools, omitted } = skillTools(client.card, options.skills, maxDescriptionBytes);
  if (omitted > 0)
    logger.warn("The card has more skills than the maximum number of tools; select some with the option skills", {
      omitted,
    });
  const base = `a2a://${new URL(client.chosen.url).host}`;
  const deps: BridgeDeps = {
    client,
    tools,
    skillFiles: await skillFiles(tools),
    maxWaitMs,
    pollIntervalMs,
    clock,
    logger,
    base,
    limits: {
      maxBytes: maxAnswerBytes,
      uriOf: (taskId, id) => `${base}/tasks/${encoded(taskId)}/artifacts/${encoded(id)}`,
    },
    clientFor: clientsFor(agent, client, options, clock),
    handlesFor: handlesOf(key),
  };
  const onerror = (error: Error): void => logger.warn("MCP request failed", { cause: error });
  const watches = new Watches((uri) => handler.notify.resourceUpdated(uri), clock);
  const all = new Set([watches]);
  const handler = createMcpHandler((context) => serverFor(deps, context, () => watches), {
    onerror,
    maxRequestBodySize: maxRequestBytes,
  });
  /** A server for a connection that can receive notifications. */
  const connected = (context: McpRequestContext): Server =>
    serverFor(deps, context, (server) => {
      const made = new Watches((uri) => void server.sendResourceUpdated({ uri }).catch(onerror), clock);
      all.add(made);
      server.onclose = () => {
        made.close();
        all.delete(made);
      };
      return made;
    });
  const sessions = new Sessions((caller) => connected({ era: "legacy", authInfo: authOf(caller) }), onerror);
  return {
    client,
    async fetch(request, caller) {
      if (caller !== undefined && key === undefined) {
        throw new TypeError("fetch() with a caller needs the option key, which binds tasks to their callers");
      }
      const refused = options.localOnly === true ? foreign(request) : undefined;
      if (refused !== undefined) return refused;
      const known = caller ?? anonymous;
      const answer = options.sessions === false ? undefined : await sessions.answer(request, known);
      return answer ?? handler.fetch(request, { authInfo: authOf(known) });
    },
    stdio() {
      let resolve = (): void => undefined;
      const closed = new Promise<void>((done) => (resolve = done));
      const transport = new StdioServerTransport(process.stdin, process.stdout, { maxBufferSize: maxRequestBytes });
      const served = serveStdio((context) => connected(context), { onerror, transport });
      const { onclose } = transport;
      // The transport also closes after a message that is too large.
      transport.onclose = () => {
        onclose?.();
        resolve();
      };
      // Standard input may end before anything keeps the process open.
      process.stdin.once("end", resolve).once("close", resolve);
      return { closed, close: () => served.close().then(resolve) };
    },
    async close() {
      for (const each of all) each.close();
      await sessions.close();
      await handler.close();
    },
  };
}

/** The rejection of a request from a page in a browser. */
function foreign(request: Request): Response | undefined {
  return (
    hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
    originValidationResponse(request, localhostAllowedOrigins())
  );
}

/** Carries only the principal of the caller. The bridge never reads the token of the request. */
function authOf(caller: Principal): NonNullable<McpRequestContext["authInfo"]> {
  return { token: "", clientId: "", scopes: [], extra: { caller } };
}

function callerOf(authInfo: McpRequestContext["authInfo"]): Principal {
  const caller = authInfo?.extra?.["caller"];
  return isPrincipal(caller) ? caller : anonymous;
}

/** Asks the client of a 2025-11-25 request. Only the signal ends the wait; there is no timeout. */
function askBy({ mcpReq }: ServerContext): NonNullable<ToolRequest["ask"]> {
  return ({ method, params }, signal) => mcpReq.send({ method, params }, z.unknown(), { signal, timeout: 2 ** 31 - 1 });
}

/** The client capabilities in a 2026-07-28 request. Each request declares its capabilities. */
function declaredIn({ mcpReq }: ServerContext): object | undefined {
  const envelope: Readonly<Record<string, unknown>> = { ...mcpReq.envelope };
  const capabilities = envelope[CLIENT_CAPABILITIES_META_KEY];
  return typeof capabilities === "object" && capabilities !== null ? capabilities : undefined;
}

function isPrincipal(value: unknown): value is Principal {
  return typeof value === "object" && value !== null && "subject" in value && typeof value.subject === "string";
}

/** Makes the server for one request, or for one connection: a session or stdio. */
function serverFor(
  deps: BridgeDeps,
  { era, requestInfo, authInfo }: McpRequestContext,
  watches: (server: Server) => Watches,
): Server {
  const { card } = deps.client;
  const caller = callerOf(authInfo);
  const isModern = era === "modern";
  // A single 2025-11-25 request has no connection for notifications.
  const subscribe = isModern || requestInfo === undefined;
  const info = { name: line(card.name, 100), version: line(card.version, 100) };
  const capabilities = { tools: {}, resources: { subscribe } };
  // In 2025-11-25, the SDK's own questions would ignore the time limit of the call.
  const server = new Server(info, { capabilities, inputRequired: { legacyShim: isModern } });
  const view = (): Promise<CallerView> => viewOf(deps, caller);
  const requestOf = async (context: ServerContext): Promise<ToolRequest> => {
    const capabilities = isModern ? declaredIn(context) : server.getClientCapabilities();
    return {
      deps,
      view: await view(),
      context,
      modes: elicitModes(capabilities),
      begin: deps.clock.elapsed(),
      ask: isModern ? undefined : askBy(context),
      takesTasks: isModern && takesTasks(capabilities),
      see: () => undefined,
    };
  };
  server.setRequestHandler("tools/list", () => ({ tools: [...deps.tools.map(({ tool }) => tool), ...taskTools] }));
  server.setRequestHandler("tools/call", async ({ params }, context) =>
    callTool(await requestOf(context), params.name, params.arguments),
  );
  serveResources(server, deps, view, watches(server));
  serveSkillFiles(server, deps.skillFiles, isModern);
  if (isModern) serveTasks(server, requestOf);
  return server;
}
