/**
 * MCP tools inside an agent.
 * @packageDocumentation
 */
export { mcpTools } from "./mcp-tools.ts";
export {
  toAISDK,
  toLangChain,
  toOpenAIAgents,
  type AISDKTool,
  type LangChainTool,
  type OpenAIAgentsTool,
} from "./models.ts";
export { memoryPins } from "./pins.ts";
export { mcpPool, type HttpServer, type McpPool, type McpPoolOptions, type StdioServer } from "./pool.ts";
export {
  McpToolError,
  type ElicitAnswer,
  type HeldTool,
  type McpCall,
  type McpCallOptions,
  type McpClient,
  type McpResult,
  type McpTool,
  type McpTools,
  type McpToolsOptions,
  type ModelTool,
  type ToolPins,
  type ToolTurn,
} from "./port.ts";
