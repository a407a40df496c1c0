import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioTransport1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as HttpTransport1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema, type CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { onTestFinished } from "vitest";

/* The official clients of MCP, with one face. */

/** Where a server is: a command, or the URL of Streamable HTTP. */
export type McpAt = readonly string[] | string;

interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onprogress?: (progress: { readonly message?: string | undefined }) => void;
}

export interface Connected {
  /** The process of a command. */
  readonly pid: number;
  /** The negotiated version of the protocol. */
  readonly version: string | undefined;
  /** What the server asked: the message of a form, or a link. */
  readonly asked: string[];
  tools(): Promise<string[]>;
  /** The text of the result. */
  call(name: string, args: Record<string, string>, options?: CallOptions): Promise<string>;
  /** The URIs of the resources. */
  resources(): Promise<string[]>;
  read(uri: string): Promise<unknown>;
  close(): Promise<void>;
}

const info = { name: "test", version: "1.0.0" };
const capabilities = { elicitation: { form: {}, url: {} } };

/** The answer to each question. */
function answered(
  asked: string[],
  params: { readonly mode?: string | undefined; readonly message: string; url?: string },
) {
  asked.push(params.mode === "url" ? (params.url ?? "") : params.message);
  return params.mode === "url"
    ? { action: "accept" as const }
    : { action: "accept" as const, content: { answer: "blue" } };
}

function textOf({ content }: { content: readonly { type: string; text?: string }[] }): string {
  return content.map((each) => each.text).join("\n");
}

async function version1(at: McpAt): Promise<Connected> {
  const client = new Client1(info, { capabilities });
  const asked: string[] = [];
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => answered(asked, params));
  let pid = 0;
  if (typeof at === "string") await client.connect(new HttpTransport1(new URL(at)));
  else {
    const [command = "", ...args] = at;
    const transport = new StdioTransport1({ command, args, stderr: "ignore" });
    await client.connect(transport);
    pid = transport.pid ?? 0;
  }
  return {
    pid,
    // The newest version that this client supports.
    version: "2025-11-25",
    asked,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args, options) =>
      textOf((await client.callTool({ name, arguments: args }, undefined, options)) as CallToolResult),
    resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    read: async (uri) => (await client.readResource({ uri })).contents[0],
    close: () => client.close(),
  };
}

async function version2(at: McpAt, mode: "legacy" | "auto"): Promise<Connected> {
  const client = new Client(info, { capabilities, versionNegotiation: { mode } });
  const asked: string[] = [];
  client.setRequestHandler("elicitation/create", ({ params }) => answered(asked, params));
  let pid = 0;
  if (typeof at === "string") await client.connect(new StreamableHTTPClientTransport(new URL(at)));
  else {
    const [command = "", ...args] = at;
    const transport = new StdioClientTransport({ command, args, stderr: "ignore" });
    await client.connect(transport);
    pid = transport.pid ?? 0;
  }
  return {
    pid,
    version: client.getNegotiatedProtocolVersion(),
    asked,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args, options) => textOf(await client.callTool({ name, arguments: args }, options)),
    resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    read: async (uri) => (await client.readResource({ uri })).contents[0],
    close: () => client.close(),
  };
}

const connecting = {
  "version 1": version1,
  "version 2 (2025-11-25)": (at: McpAt) => version2(at, "legacy"),
  "version 2 (2026-07-28)": (at: McpAt) => version2(at, "auto"),
};

export type ClientName = keyof typeof connecting;

export const clientNames: readonly ClientName[] = ["version 1", "version 2 (2025-11-25)", "version 2 (2026-07-28)"];

/** Connects a client for the present test. */
export async function connected(client: ClientName, at: McpAt): Promise<Connected> {
  const made = await connecting[client](at);
  onTestFinished(() => made.close());
  return made;
}
