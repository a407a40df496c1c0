import type { ClaudeContent, ClaudePrompt, ClaudeStream } from "@parley/frameworks/claude";
import type * as z from "zod";

/* The SDK is large and needs a key, so without AI_MODEL a script stands in for it. */

/** The exports of `@anthropic-ai/claude-agent-sdk` that the agent uses. */
interface SDK {
  query(parameters: { prompt: AsyncIterable<ClaudePrompt>; options?: Options }): ClaudeStream;
  tool<Shape extends z.ZodRawShape>(
    name: string,
    description: string,
    shape: Shape,
    handler: (input: z.infer<z.ZodObject<Shape>>) => Promise<Result>,
  ): Tool;
  createSdkMcpServer(server: Server & { name: string }): Server;
}

interface Options {
  model?: string | undefined;
  systemPrompt?: string;
  mcpServers?: Record<string, Server>;
  allowedTools?: string[];
  canUseTool?(name: string, input: object, options: { toolUseID: string }): Promise<{ behavior: string } | null>;
  resume?: string;
  sessionId?: string;
  sessionStore?: {
    append(key: object, lines: Line[]): Promise<void>;
    load(key: object): Promise<Line[] | null>;
  };
}

interface Server {
  readonly tools: Tool[];
}

interface Result {
  readonly content: { readonly type: "text"; readonly text: string }[];
}

interface Tool {
  readonly name: string;
  handler(input: object): Promise<Result>;
}

type Call = { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly input: object };
type Block =
  | ClaudeContent
  | Call
  | { readonly type: "tool_result"; readonly tool_use_id: string; readonly content: string };

/** A line of the transcript. */
interface Line {
  readonly type: string;
  readonly message: { readonly content: readonly Block[] };
}

/** Loads the SDK with the model of AI_MODEL, or a script. */
export async function loadSDK(): Promise<SDK> {
  const name = "@anthropic-ai/claude-agent-sdk";
  return process.env["AI_MODEL"] === undefined ? script : ((await import(name)) as SDK);
}

const call = (name: string, input: object): Call => ({ type: "tool_use", id: crypto.randomUUID(), name, input });
const say = (text: string): Block => ({ type: "text", text });

/** Answers like a model: looks up the invoice, pays it, and reports the receipt. */
function answer(lines: readonly Line[]): Block {
  const blocks = lines.flatMap(({ type, message }) => (type === "user" ? message.content : []));
  // After a crash, the session is told to continue.
  const at = blocks.findLastIndex((block) => block.type === "text" && !block.text.startsWith("Continue"));
  const prompt = blocks[at];
  const said = prompt?.type === "text" ? prompt.text : "";
  const result = blocks.slice(at).findLast((block) => block.type === "tool_result")?.content;
  if (said.startsWith("The user did not approve")) return say("I have paid nothing.");
  const number = Number(/\d+/.exec(said)?.[0] ?? 1);
  if (result?.includes("receipt")) return say(`Invoice ${number} is paid: ${result}`);
  if (result === undefined && !said.startsWith("The user approved")) return call("mcp__bank__invoice", { number });
  return call("mcp__bank__pay", { number, amount: number * 10 });
}

/** Stands in for the SDK. The same conversation always gets the same answer. */
const script: SDK = {
  tool: (name, _description, _shape, handler) => ({ name, handler }),
  createSdkMcpServer: (server) => server,
  async *query({ prompt, options = {} }) {
    const { allowedTools = [], canUseTool, mcpServers = {}, resume, sessionId, sessionStore } = options;
    const key = { projectKey: "script", sessionId: resume ?? sessionId };
    const lines = [...((resume !== undefined && (await sessionStore?.load(key))) || [])];
    const write = async (type: string, ...content: readonly Block[]): Promise<Line> => {
      const line = { type, message: { content } };
      lines.push(line);
      await sessionStore?.append(key, [line]);
      return line;
    };
    for await (const { message } of prompt) {
      await write("user", ...message.content);
      break;
    }
    for (;;) {
      const block = answer(lines);
      yield await write("assistant", block);
      if (block.type !== "tool_use") break;
      const { id, name, input } = block;
      const isAllowed =
        allowedTools.includes(name) || (await canUseTool?.(name, input, { toolUseID: id }))?.behavior === "allow";
      const tool = mcpServers["bank"]?.tools.find((each) => name === `mcp__bank__${each.name}`);
      const done = isAllowed ? await tool?.handler(input) : undefined;
      const content = done?.content[0]?.text ?? "The user is asked";
      yield await write("user", { type: "tool_result", tool_use_id: id, content });
      if (!isAllowed) break;
    }
    yield { type: "result", subtype: "success", stop_reason: "end_turn" };
  },
};
