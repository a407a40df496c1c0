import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { check, contentHash, sendMessageRequestSchema } from "@parley/a2a/internal/model/index";
import { answerText, artifactText, Bell, chunkText, commandOf, paced, stampedText } from "./commands.ts";
import { control } from "./control.ts";

// The lower bound: a bare `node:http` server that parses the same JSON and answers it, without checks and without a store. Under
// `/checked` it also checks messages against the schema, and remembers replies for retries.

interface Send {
  readonly message: { readonly messageId: string; readonly parts: readonly [{ readonly text: string }] };
}

type Body = Send | { readonly id: number; readonly method: string; readonly params: Send };

const bell = new Bell();
const task = {
  id: "0199f0a0-0000-7000-8000-000000000000",
  contextId: "0199f0a0-0000-7000-8000-000000000001",
  status: { state: "TASK_STATE_COMPLETED", timestamp: "2026-01-01T00:00:00.000Z" },
};
const reply = { messageId: "m1", role: "ROLE_AGENT", parts: [{ text: answerText }], contextId: task.contextId };
const artifact = { artifactId: "a1", parts: [{ text: artifactText }] };

function event(result: object): string {
  return `data: ${JSON.stringify({ jsonrpc: "2.0", id: 1, result })}\n\n`;
}

function chunk(text: string, more: object = {}): string {
  const artifact = { artifactId: "a1", parts: [{ text }] };
  return event({ artifactUpdate: { taskId: task.id, contextId: task.contextId, artifact, append: true, ...more } });
}

const lastEvent = event({ statusUpdate: { taskId: task.id, contextId: task.contextId, status: task.status } });

/** Writes a stream, `together` events per write, each with different metadata if `unlike` is set. */
async function stream(count: number, together: number, unlike: boolean, response: ServerResponse): Promise<void> {
  for (let number = 0; number < count;) {
    let batch = "";
    for (const last = Math.min(count, number + together); number < last; number++) {
      batch += chunk(chunkText(number), unlike ? { metadata: { number } } : {});
    }
    if (!response.write(batch)) await new Promise((resolve) => response.once("drain", resolve));
    // `drain` can be emitted before other sockets are served.
    await new Promise(setImmediate);
  }
  response.end(lastEvent);
}

async function hold(response: ServerResponse): Promise<void> {
  response.write(": open\n\n");
  for (;;) {
    await bell.wait();
    response.write(chunk(chunkText(0)));
  }
}

async function streaming(name: string, count: number, gap: number, response: ServerResponse): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream" });
  if (name === "stream") return stream(count, gap === 1 ? 1 : 64, gap === 2, response);
  if (name === "hold") return hold(response);
  response.write(event({ task }));
  await bell.wait();
  for await (const number of paced(count, gap)) response.write(chunk(stampedText(number)));
  response.end(lastEvent);
}

/** The last 10,000 to 20,000 replies, by message key. */
let replies = new Map<string, string>();
let olderReplies = new Map<string, string>();

function replyOnce(params: unknown): string {
  const checked = check(sendMessageRequestSchema, params, "request");
  if (!checked.ok) throw new Error("the message is not valid");
  const { message } = checked.value;
  const key = message.messageId + contentHash(message);
  const known = replies.get(key) ?? olderReplies.get(key);
  if (known !== undefined) return known;
  const ids = { messageId: crypto.randomUUID(), contextId: crypto.randomUUID() };
  const text = JSON.stringify({ ...ids, role: "ROLE_AGENT", parts: [{ text: answerText }] });
  if (replies.size >= 10_000) [olderReplies, replies] = [replies, new Map<string, string>()];
  replies.set(key, text);
  return text;
}

function answerChecked(text: string, response: ServerResponse): void {
  const body = JSON.parse(text) as Body;
  const result = `{"message":${replyOnce("params" in body ? body.params : body)}}`;
  end(response, "params" in body ? `{"jsonrpc":"2.0","id":${JSON.stringify(body.id)},"result":${result}}` : result);
}

function end(response: ServerResponse, json: string): void {
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(json) });
  response.end(json);
}

function answer(text: string, response: ServerResponse): void {
  const body = JSON.parse(text) as Body;
  const send = "params" in body ? body.params : body;
  const { name, count, gap } = commandOf(send.message.parts[0].text);
  if (name === "stream" || name === "hold" || name === "pace") return void streaming(name, count, gap, response);
  if (name === "emit") bell.ring();
  const result =
    name === "task" ? { task: { ...task, artifacts: [artifact], history: [send.message] } } : { message: reply };
  end(response, JSON.stringify("params" in body ? { jsonrpc: "2.0", id: body.id, result } : result));
}

const server = createServer((request: IncomingMessage, response) => {
  const parts: Buffer[] = [];
  request.on("data", (part: Buffer) => parts.push(part));
  request.on("end", () => {
    const text = (parts.length === 1 ? parts[0] : Buffer.concat(parts))?.toString() ?? "";
    if (request.url?.startsWith("/checked") === true) answerChecked(text, response);
    else answer(text, response);
  });
});
server.listen(0, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  control({ jsonRpc: url, rest: url }, { grpc: async () => (await import("./raw-grpc.ts")).rawGrpc() });
});
