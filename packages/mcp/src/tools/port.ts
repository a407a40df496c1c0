import type { JsonObject, JsonValue } from "@parley/a2a/model";
import type { AgentYield, MessageRefused, Turn } from "@parley/a2a/internal/protocol/index";

/* The interface of the tools: their inputs (a turn and an MCP client) and what an agent gets from them. */

/** The members of a turn that the tools use. */
export type ToolTurn = Pick<Turn, "step" | "working" | "message" | "number" | "signal" | "logger">;

/** The members of an MCP client that the tools use. `Client` of `@modelcontextprotocol/client` and `McpPool.server()` fit. */
export interface McpClient {
  /** The local name of the server. A `Client` of the SDK has no local name. */
  readonly name?: string;
  /** Lists the tools of all pages. */
  listTools(params?: undefined, options?: McpCallOptions): Promise<{ readonly tools: readonly unknown[] }>;
  /** Calls a tool. */
  callTool(params: McpCall, options?: McpCallOptions): Promise<unknown>;
  /** Returns the name that the server reports. */
  getServerVersion(): { readonly name: string } | undefined;
}

/** One tool call. The last two members continue a call that asked for input (2026-07-28). */
export interface McpCall {
  /** Name of the tool. */
  name: string;
  /** Arguments of the call. */
  arguments?: Record<string, unknown>;
  /** Metadata of the call, such as its idempotency key. */
  _meta?: Record<string, unknown>;
  /** Answers to the server's questions. */
  inputResponses?: Record<string, never>;
  /** The opaque state that the server sent with its questions. */
  requestState?: string;
}

/** Options of a call. */
export interface McpCallOptions {
  /** Aborts the call. */
  signal?: AbortSignal;
  /** Maximum duration of a call, in milliseconds. */
  timeout?: number;
  /** Called with each progress notification. */
  onprogress?: (progress: { readonly message?: string | undefined }) => void;
  /** Returns the server's questions instead of answering them. */
  allowInputRequired?: boolean;
  /** The tool as listed, without its output schema, because untrusted patterns can run forever. */
  toolDefinition?: { readonly name: string; readonly inputSchema: { readonly type: "object" } };
  /** Answers an elicitation from a 2025-11-25 server. Only servers of a pool call this function. */
  onElicit?: (request: unknown) => ElicitAnswer;
}

/** An answer to an elicitation. */
export type ElicitAnswer =
  | {
      /** The user answered. */
      readonly action: "accept";
      /** The values, by field. */
      readonly content?: Record<string, string | number | boolean>;
    }
  | {
      /** No answer is available now. */
      readonly action: "cancel";
    };

/** Remembers approved tools. Use a persistent store to detect changes across restarts. */
export interface ToolPins {
  /**
   * Stores the digest of a tool unless one is already stored. Returns the stored digest. To approve a change, store its digest (`HeldTool.digest`).
   *
   * @param server - Name of the server.
   * @param tool - Name of the tool.
   * @param digest - SHA-256 of its description and schemas, as hexadecimal digits.
   */
  pin(server: string, tool: string, digest: string): Promise<string> | string;
}

/** Options of `mcpTools()`. */
export interface McpToolsOptions {
  /**
   * Name of the server, for pins and questions. Required for an SDK `Client` with `pins`, because a server that renames itself would evade its pins.
   * Default: the name in the pool, else the name that the server reports.
   */
  readonly server?: string;
  /** Names of the tools that the agent may use. Default: all. */
  readonly allow?: readonly string[];
  /** Withholds a tool whose description or schema has changed since it was first seen. Default: no pins. */
  readonly pins?: ToolPins;
  /** Maximum number of tools. Further tools are omitted. Default: 128. */
  readonly maxTools?: number;
  /** Maximum length of a tool description, in bytes of UTF-8. Longer descriptions are truncated. Default: 1,024. */
  readonly maxDescriptionBytes?: number;
  /** Maximum size of a tool's schema, in bytes of JSON. Tools with larger schemas are withheld. Default: 16 KiB. */
  readonly maxSchemaBytes?: number;
  /** Maximum size of a result, in bytes of JSON, up to 200 KiB. Larger results are truncated. Default: 64 KiB. */
  readonly maxResultBytes?: number;
  /** Maximum duration of a call, in milliseconds. Default: 5 minutes. */
  readonly timeoutMs?: number;
  /**
   * What to do with a call if the process died before its result was stored: `call` repeats it with the same idempotency key; `refuse` repeats it only
   * if the tool declares that it is read-only or idempotent. Default: `call`.
   */
  readonly onUncertain?: "call" | "refuse";
}

/** A tool that an agent may use. Its texts come from the server, and are marked, truncated and sanitized. */
export interface McpTool {
  /** Name of the tool. */
  readonly name: string;
  /** The server's description of the tool. */
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly inputSchema: JsonObject;
}

/** A tool that is withheld from the agent. */
export interface HeldTool {
  /** Name of the tool. */
  readonly name: string;
  /** Why it is withheld. */
  readonly reason: string;
  /** The current digest of the tool. Present only if the tool is withheld because of a change. */
  readonly digest?: string;
}

/** The result of a call. A tool error is also a result, for the model to read. */
export interface McpResult {
  /** The texts, joined by line breaks. */
  readonly text: string;
  /** All content, as MCP defines it. */
  readonly content: readonly JsonObject[];
  /** The result as data. Absent if the tool returned no data or the data was too large. */
  readonly structuredContent?: JsonValue;
  /** Whether the tool reported an error. */
  readonly isError: boolean;
}

/** A tool for the model of a framework, such as `tools` of the AI SDK with `jsonSchema(inputSchema)`. */
export interface ModelTool {
  /** The server's description of the tool. */
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly inputSchema: JsonObject;
  /** Calls the tool. A repeated `toolCallId` returns the stored result. */
  execute(args: JsonObject, call: { readonly toolCallId: string }): Promise<McpResult>;
}

/** The tools of one server in one turn, from `mcpTools()`. */
export interface McpTools {
  /** The tools that may be called. */
  readonly tools: readonly McpTool[];
  /** Withheld tools, with the reasons. */
  readonly held: readonly HeldTool[];
  /** Number of tools omitted because of `maxTools`. */
  readonly omitted: number;
  /**
   * Calls a tool once per `id`, and shows its progress as the status of the task. A repeated call with the same id returns the stored result,
   * after a crash and in later turns of the task.
   *
   * @throws MessageRefused if the tool asks a question. Do not catch this error: the task then asks the user, and the next turn reaches the
   * same call, which continues with the answer.
   * @throws McpToolError if the tool is withheld or unknown, or the server fails.
   */
  call(id: string, name: string, args?: JsonObject): AsyncGenerator<AgentYield, McpResult, void>;
  /** Like `call()`, but without progress, for code that cannot yield. */
  run(id: string, name: string, args?: JsonObject): Promise<McpResult>;
  /** The tools for the model of a framework, by name. */
  forModel(): Readonly<Record<string, ModelTool>>;
  /** The question of a tool, if a framework caught the error. Throw this error after the model's turn. */
  readonly question: MessageRefused | undefined;
}

/** A tool cannot be called, or its server failed. */
export class McpToolError extends Error {
  /** Always `McpToolError`. */
  override readonly name: string = "McpToolError";
}
