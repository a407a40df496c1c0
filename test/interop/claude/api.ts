import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/* Anthropic's Messages API on loopback, with a scripted model, and an endpoint to which tools report their calls. */

export type Block =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly input: object };

/** The input of the model. */
export interface Asked {
  readonly model: string;
  readonly system: unknown;
  readonly messages: readonly { readonly role: string; readonly content: readonly AskedBlock[] | string }[];
}

interface AskedBlock {
  readonly type: string;
  readonly text?: string;
  readonly content?: unknown;
  readonly tool_use_id?: string;
}

export interface Script {
  /** The model's answer. `undefined` to never answer. */
  model(asked: Asked): Promise<readonly Block[] | undefined>;
  /** Called when a tool starts. Returns its result, or `undefined` if it must never end. */
  tool(name: string): Promise<string | undefined>;
}

const usage = { input_tokens: 5, output_tokens: 7 };

/** Starts the API. `left` resolves when the callers of unanswered calls have disconnected. */
export async function startApi(
  script: Script,
): Promise<{ readonly url: string; readonly left: Promise<void>[]; close(): void }> {
  const left: Promise<void>[] = [];
  const server = createServer((request, response) => {
    void answer(script, request, response, (call) => left.push(call));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { url, left, close };
}

async function answer(
  script: Script,
  request: IncomingMessage,
  response: ServerResponse,
  wait: (left: Promise<void>) => void,
): Promise<void> {
  const { pathname } = new URL(request.url ?? "", "http://local");
  const body = (await request.setEncoding("utf8").toArray()).join("");
  const [, tool] = /^\/tool\/(.+)$/.exec(pathname) ?? [];
  const isModel = pathname === "/v1/messages";
  if (!isModel && tool === undefined) return void response.writeHead(404).end();
  const closed = once(response, "close").then(() => {});
  const found = tool === undefined ? await script.model(JSON.parse(body) as Asked) : await script.tool(tool);
  if (found === undefined) return wait(closed);
  if (typeof found === "string") return void response.end(found);
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of eventsOf(found)) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
}

interface Event {
  readonly type: string;
  readonly [member: string]: unknown;
}

function eventsOf(blocks: readonly Block[]): readonly Event[] {
  const message = {
    id: `msg_${crypto.randomUUID()}`,
    type: "message",
    role: "assistant",
    model: "claude-test",
    content: [],
  };
  const reason = blocks.some(({ type }) => type === "tool_use") ? "tool_use" : "end_turn";
  return [
    { type: "message_start", message: { ...message, stop_reason: null, stop_sequence: null, usage } },
    ...blocks.flatMap((block, index) => piecesOf(block).map((piece) => ({ ...piece, index }))),
    { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage },
    { type: "message_stop" },
  ];
}

function piecesOf(block: Block): readonly Event[] {
  const start = block.type === "text" ? { type: "text", text: "" } : { ...block, input: {} };
  const deltas =
    block.type === "text"
      ? (block.text.match(/\S+\s*/g) ?? []).map((text) => ({ type: "text_delta", text }))
      : [{ type: "input_json_delta", partial_json: JSON.stringify(block.input) }];
  return [
    { type: "content_block_start", content_block: start },
    ...deltas.map((delta) => ({ type: "content_block_delta", delta })),
    { type: "content_block_stop" },
  ];
}
