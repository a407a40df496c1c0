import type { JsonObject, JsonValue } from "@parley/a2a/model";
import { McpToolError, type McpTools } from "./port.ts";
import { isObject, jsonOf } from "./reading.ts";

/* Converts the tools for each framework. The types are structural, because the frameworks are not dependencies. */

/** A tool for AI SDK 6 and 7. */
export interface AISDKTool {
  /** The server's description of the tool. */
  readonly description: string;
  /** JSON Schema of the arguments, wrapped as a Standard Schema. The server validates the arguments. */
  readonly inputSchema: {
    readonly "~standard": {
      readonly version: 1;
      readonly vendor: "parley";
      readonly validate: (value: unknown) => { readonly value: JsonObject };
      readonly jsonSchema: {
        readonly input: () => Record<string, unknown>;
        readonly output: () => Record<string, unknown>;
      };
    };
  };
  /** Calls the tool once per call id. */
  readonly execute: (input: JsonObject, options: { readonly toolCallId: string }) => Promise<string>;
}

/**
 * Converts the tools for the AI SDK. Calls of these tools are already steps, so do not make the tools durable again.
 *
 * @example
 * ```ts
 * import { generateText } from "ai";
 *
 * const pool = mcpPool({ servers: { workshop: { command: "workshop-mcp" } } });
 * const tools = toAISDK(await mcpTools(turn, pool.server("workshop")));
 * const { text } = await generateText({ model: "openai/gpt-5", tools, prompt: turn.text });
 * ```
 */
export function toAISDK(tools: McpTools): Record<string, AISDKTool> {
  const made = tools.tools.map(({ name, description, inputSchema }): [string, AISDKTool] => {
    // A copy, because the AI SDK modifies the schema.
    const schema = (): Record<string, unknown> => schemaOf(inputSchema);
    const validate = (value: unknown): { readonly value: JsonObject } => ({ value: isObject(value) ? value : {} });
    const jsonSchema = { input: schema, output: schema };
    return [
      name,
      {
        description,
        inputSchema: { "~standard": { version: 1, vendor: "parley", validate, jsonSchema } },
        execute: (input, { toolCallId }) => run(tools, toolCallId, name, input),
      },
    ];
  });
  return Object.fromEntries(made);
}

/** The argument of `new DynamicStructuredTool()` of `@langchain/core`. */
export interface LangChainTool {
  /** Name of the tool. */
  readonly name: string;
  /** The server's description of the tool. */
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly schema: Record<string, unknown>;
  /** Calls the tool once per call id. Throws McpToolError without a call id. */
  readonly func: (input: unknown, runManager?: unknown, config?: object) => Promise<string>;
}

/**
 * Converts the tools for LangChain and LangGraph.
 *
 * @example
 * ```ts
 * import { DynamicStructuredTool } from "@langchain/core/tools";
 * import { ToolNode } from "@langchain/langgraph/prebuilt";
 *
 * const pool = mcpPool({ servers: { workshop: { command: "workshop-mcp" } } });
 * const tools = toLangChain(await mcpTools(turn, pool.server("workshop")));
 * const node = new ToolNode(tools.map((each) => new DynamicStructuredTool(each)));
 * ```
 */
export function toLangChain(tools: McpTools): LangChainTool[] {
  return tools.tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    schema: boundedOf(inputSchema),
    func: (input, _, config) => run(tools, memberOf(memberOf(config, "toolCall"), "id"), name, input),
  }));
}

/** The argument of `tool()` of `@openai/agents`. */
export interface OpenAIAgentsTool {
  /** Name of the tool. */
  readonly name: string;
  /** The server's description of the tool. */
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: {
    type: "object";
    properties: Record<string, never>;
    required: string[];
    additionalProperties: true;
  };
  /** False, because MCP schemas do not follow OpenAI's strict mode. */
  readonly strict: false;
  /** Calls the tool once per call id. Throws McpToolError without a call id. */
  readonly execute: (input: unknown, context?: unknown, details?: object) => Promise<string>;
  /** Tells the model why a call failed. Throws the question of a tool, which ends the run. */
  readonly errorFunction: (context: unknown, error: unknown) => string;
}

/**
 * Converts the tools for the OpenAI Agents SDK. If a tool asks a question, the run ends; throw `tools.question` then.
 *
 * @example
 * ```ts
 * import * as openai from "@openai/agents";
 *
 * const pool = mcpPool({ servers: { workshop: { command: "workshop-mcp" } } });
 * const tools = toOpenAIAgents(await mcpTools(turn, pool.server("workshop")));
 * const mechanic = new openai.Agent({ name: "Mechanic", tools: tools.map((each) => openai.tool(each)) });
 * ```
 */
export function toOpenAIAgents(tools: McpTools): OpenAIAgentsTool[] {
  return tools.tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    parameters: parametersOf(inputSchema),
    strict: false,
    execute: (input, _, details) => run(tools, memberOf(memberOf(details, "toolCall"), "callId"), name, input),
    errorFunction: (_, error) => {
      if (tools.question !== undefined) throw tools.question;
      return error instanceof Error ? error.message : String(error);
    },
  }));
}

async function run(tools: McpTools, id: unknown, name: string, input: unknown): Promise<string> {
  if (typeof id !== "string" || id === "") {
    throw new McpToolError(`The call of ${name} has no id; pass the id of the model's tool call`);
  }
  const { text, isError } = await tools.run(id, name, isObject(input) ? input : {});
  return isError ? `The tool failed: ${text}` : text;
}

function schemaOf(schema: JsonObject): Record<string, unknown> {
  const own = jsonOf(schema);
  return isObject(own) ? { ...own } : {};
}

/** Removes patterns and excess references, which could run forever when LangChain validates with this untrusted schema. The server validates too. */
function boundedOf(schema: JsonObject): Record<string, unknown> {
  let references = 0;
  const made: unknown = JSON.parse(JSON.stringify(schema), (key, value: unknown) => {
    if ((key === "pattern" && typeof value === "string") || key === "patternProperties") return undefined;
    const isReference = typeof value === "string" && /^\$(ref|dynamicRef|recursiveRef)$/.test(key);
    return isReference && (references += 1) > maxReferences ? undefined : value;
  });
  return isObject(made) ? { ...made } : {};
}

/** Nested references multiply the work, because n references can be followed 3^(n/3) times. */
const maxReferences = 32;

function parametersOf(schema: JsonObject): OpenAIAgentsTool["parameters"] {
  const { properties, required, ...rest } = schema;
  const names: readonly JsonValue[] = Array.isArray(required) ? required : [];
  return {
    ...rest,
    type: "object",
    // OpenAI's schema type covers only a part of JSON Schema.
    properties: (isObject(properties) ? properties : {}) as Record<string, never>,
    required: names.filter((each) => typeof each === "string"),
    additionalProperties: true,
  };
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
