/** Declares the used part of the Claude Agent SDK, which is too large to install here. test/interop/claude.test.ts uses the real SDK. */
export const claude = `
declare module "@anthropic-ai/claude-agent-sdk" {
  import type { ClaudePrompt } from "@parley/frameworks/claude";
  import type { ZodRawShape, infer as Infer, ZodObject } from "zod";
  interface Permission {
    behavior: "allow" | "deny";
    message?: string;
    updatedInput?: Record<string, unknown>;
  }
  export interface Options {
    model?: string;
    systemPrompt?: string;
    tools?: string[];
    allowedTools?: string[];
    disallowedTools?: string[];
    cwd?: string;
    env?: Record<string, string | undefined>;
    mcpServers?: Record<string, object>;
    canUseTool?: (toolName: string, input: Record<string, unknown>) => Promise<Permission | null>;
  }
  export function query(parameters: {
    prompt: string | AsyncIterable<ClaudePrompt>;
    options?: Options;
  }): AsyncGenerator<object, void> & { interrupt(): Promise<object | undefined> };
  export function createSdkMcpServer(options: { name: string; tools?: object[] }): object;
  export function tool<Schema extends ZodRawShape>(
    name: string,
    description: string,
    schema: Schema,
    handler: (input: Infer<ZodObject<Schema>>) => Promise<{ content: { type: "text"; text: string }[] }>,
  ): object;
}
`;
