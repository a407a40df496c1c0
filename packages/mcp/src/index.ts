/**
 * An A2A agent as an MCP server. `@parley/mcp/tools` is the reverse.
 * @packageDocumentation
 */
export { mcpServer } from "./server/bridge.ts";
export type { CallerCredentials, McpBridge, McpServerOptions, McpStdio } from "./server/options.ts";
