import type { JsonObject, JsonValue } from "@parley/a2a/model";
import type { AgentYield, MessageRefused, Turn } from "@parley/a2a/internal/protocol/index";

/* The port of the tools: what of a turn and of an MCP client is used, and what an agent gets. */

/** What is used of a turn. */
export type ToolTurn = Pick<Turn, "step" | "working" | "message" | "number" | "signal" | "logger">;

/** What is used of an MCP client: `Client` of `@modelcontextprotocol/client` fits, and so does `McpPool.server()`. */
export interface McpClient {
  /** The name that this program gives the server. Default: none, as a `Client` has. */
  readonly name?: string;
  /** Lists the tools, of all pages. */
  listTools(params?: undefined, options?: McpCallOptions): Promise<{ readonly tools: readonly unknown[] }>;
  /** Calls a tool. */
  callTool(params: McpCall, options?: McpCallOptions): Promise<unknown>;
  /** What the server says about itself. */
  getServerVersion(): { readonly name: string } | undefined;
}

/** One call of a tool. The last two continue a call that asked for input (2026-07-28). */
export interface McpCall {
  /** Name of the tool. */
  name: string;
  /** Its arguments. */
  arguments?: Record<string, unknown>;
  /** Facts about the call, such as its idempotency key. */
  _meta?: Record<string, unknown>;
  /** Answers to the questions of the server. */
  inputResponses?: Record<string, never>;
  /** What the server sent with its questions. */
  requestState?: string;
}

/** Options of a call. */
export interface McpCallOptions {
  /** Ends the call. */
  signal?: AbortSignal;
  /** Longest call, in milliseconds. */
  timeout?: number;
  /** Called with each progress notification. */
  onprogress?: (progress: { readonly message?: string | undefined }) => void;
  /** Returns questions of the server instead of answering them. */
  allowInputRequired?: boolean;
  /** The tool as it was listed, without its output schema: patterns of strangers can run for ever. */
  toolDefinition?: { readonly name: string; readonly inputSchema: { readonly type: "object" } };
  /** Answers an elicitation of a server of 2025-11-25. Only servers of a pool call it. */
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
      /** There is no answer now. */
      readonly action: "cancel";
    };

/** Remembers which tools were approved. Keep it in a store of yours, so that a change is noticed after a restart too. */
export interface ToolPins {
  /**
   * Stores the digest of a tool unless one is stored, and returns the stored one. To approve a change, store its digest (`HeldTool.digest`).
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
   * Name of the server, for pins and questions. Default: its name in the pool, or the one that it gives itself. With `pins`, a `Client` of the SDK
   * needs it: a server that renames itself would have new pins.
   */
  readonly server?: string;
  /** Names of the tools that the agent may use. Default: all. */
  readonly allow?: readonly string[];
  /** Holds back a tool whose description or schema differs from the first that was seen. Default: no pins. */
  readonly pins?: ToolPins;
  /** Maximum number of tools. Further ones are omitted. Default 128. */
  readonly maxTools?: number;
  /** Largest description of a tool, in bytes of UTF-8. Longer ones are cut. Default 1,024. */
  readonly maxDescriptionBytes?: number;
  /** Largest schema of a tool, in bytes of JSON. Tools with larger ones are held back. Default 16 KiB. */
  readonly maxSchemaBytes?: number;
  /** Largest result of a call, in bytes of JSON. Larger ones are cut. At most 200 KiB. Default 64 KiB. */
  readonly maxResultBytes?: number;
  /** Longest call, in milliseconds. Default 5 minutes. */
  readonly timeoutMs?: number;
  /**
   * What to do about a call whose process died before its result was stored: `call` it again, with the same idempotency key, or `refuse` unless
   * the tool says that it only reads or is idempotent. Default `call`.
   */
  readonly onUncertain?: "call" | "refuse";
}

/** A tool that an agent may use. Its texts are the server's: marked, capped and safe to show. */
export interface McpTool {
  /** Its name. */
  readonly name: string;
  /** What it does, as the server describes it. */
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly inputSchema: JsonObject;
}

/** A tool that is not offered. */
export interface HeldTool {
  /** Its name. */
  readonly name: string;
  /** Why it is held back. */
  readonly reason: string;
  /** Its digest now. Absent: it is not held back for a change. */
  readonly digest?: string;
}

/** The result of a call. An error of the tool is a result too: a model should read it. */
export interface McpResult {
  /** The texts, joined by line breaks. */
  readonly text: string;
  /** All content, as MCP defines it. */
  readonly content: readonly JsonObject[];
  /** The result as data. Absent: the tool gave none, or it was too large. */
  readonly structuredContent?: JsonValue;
  /** Whether the tool says that it failed. */
  readonly isError: boolean;
}

/** A tool for the model of a framework, such as `tools` of the AI SDK with `jsonSchema(inputSchema)`. */
export interface ModelTool {
  /** What it does, as the server describes it. */
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly inputSchema: JsonObject;
  /** Calls the tool. `toolCallId` identifies the call: a stored result is returned for it. */
  execute(args: JsonObject, call: { readonly toolCallId: string }): Promise<McpResult>;
}

/** The tools of one server in one turn. `mcpTools()` makes it. */
export interface McpTools {
  /** The tools that may be called. */
  readonly tools: readonly McpTool[];
  /** Tools that are held back, and why. */
  readonly held: readonly HeldTool[];
  /** How many tools were omitted, because there are more than `maxTools`. */
  readonly omitted: number;
  /**
   * Calls a tool once per `id`, and shows its progress as the status of the task. A repeated call with the same id returns the stored result,
   * after a crash and in later turns of the task.
   *
   * @throws MessageRefused with the question of the tool, if it has one. Do not catch it: the task then asks its user, and the next turn
   * comes to the same call and continues it with the answer.
   * @throws McpToolError for a tool that is held back or unknown, and for a server that fails.
   */
  call(id: string, name: string, args?: JsonObject): AsyncGenerator<AgentYield, McpResult, void>;
  /** The same without progress, for code that cannot yield. */
  run(id: string, name: string, args?: JsonObject): Promise<McpResult>;
  /** The tools for the model of a framework, by name. */
  forModel(): Readonly<Record<string, ModelTool>>;
  /** The question of a tool that a framework has caught. Throw it after the model's turn. */
  readonly question: MessageRefused | undefined;
}

/** A tool cannot be called, or its server failed. */
export class McpToolError extends Error {
  /** Always `McpToolError`. */
  override readonly name: string = "McpToolError";
}
