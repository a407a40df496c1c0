/**
 * Serves an A2A agent as an MCP server. `@parley/mcp/tools` does the reverse.
 * @packageDocumentation
 */
export { mcpServer } from "./server/bridge.ts";
export type { CallerCredentials, McpBridge, McpServerOptions, McpStdio } from "./server/options.ts";
