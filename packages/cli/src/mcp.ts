import type { AddressInfo } from "node:net";
import { line } from "@parley/a2a/internal/base/display";
import { mcpServer, type McpBridge } from "@parley/mcp";
import { nodeListener } from "@parley/node";
import { answerBy } from "@parley/server/internal/server/routes";
import { open, type CallOptions } from "./connection.ts";
import { UsageError } from "./errors.ts";
import type { Io } from "./io.ts";
import { listening } from "./listen.ts";
import { logTo } from "./output/text.ts";

interface McpOptions extends CallOptions {
  readonly skill?: readonly string[];
  readonly http?: number;
  readonly maxWait: number;
}

/** `parley mcp`. Serves an agent as an MCP server until the client leaves, or a signal. Returns the exit code. */
export async function mcp(io: Io, at: string, options: McpOptions): Promise<number> {
  const { skill, http, maxWait } = options;
  const client = await open(io, at, options);
  // Standard output is reserved for the protocol.
  const logger = await logTo(io, options.verbose === true ? "debug" : "warn", "text");
  const bridge = await mcpServer(client, {
    maxWaitMs: maxWait * 1000,
    logger,
    localOnly: true,
    ...(skill !== undefined && { skills: skill }),
  }).catch((error: unknown) => {
    throw error instanceof TypeError ? new UsageError(`--skill <id>: ${error.message}`, { cause: error }) : error;
  });
  let stop = (): void => undefined;
  const stopped = new Promise<void>((done) => (stop = done));
  const release = io.onInterrupt(stop);
  try {
    if (http === undefined) {
      const served = bridge.stdio();
      io.stderr.write(`Serving ${line(client.card.name)} over standard input and output\n`);
      await Promise.race([served.closed, stopped]);
      await served.close();
    } else await serveHttp(io, bridge, http, stopped);
  } finally {
    release();
    await bridge.close();
  }
  return 0;
}

/** Serves Streamable HTTP to programs of this machine. */
async function serveHttp(io: Io, bridge: McpBridge, port: number, stopped: Promise<void>): Promise<void> {
  const answer = async (request: Request): Promise<Response> =>
    new URL(request.url).pathname === "/mcp" ? bridge.fetch(request) : new Response(null, { status: 404 });
  const server = await listening(port, "--http");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  server.on(
    "request",
    nodeListener(
      async (request) => (await answerBy(request, url, maxBodyBytes, answer)) ?? { status: 404, headers: {} },
    ),
  );
  io.stdout.write(`MCP server is ready at ${url}/mcp\n`);
  await stopped;
  server.close();
  server.closeAllConnections();
}

/** Files come as base64 in the body. */
const maxBodyBytes = 16 << 20;
