import { memoryStore, serve, silentLogger, type Agent, type ServeOptions, type Server } from "@parley/node";
import { onTestFinished } from "vitest";

/* A client without Parley, which uses `fetch` and parses server-sent events itself. */

/** The requests that the tests need, in the form of one binding and version. */
export interface PlainBinding {
  readonly name: string;
  send(text: string, init?: PlainMessage): PlainRequest;
  stream(text: string, init?: PlainMessage): PlainRequest;
  subscribe(taskId: string): PlainRequest;
}

export interface PlainMessage {
  readonly messageId?: string;
  readonly taskId?: string;
  readonly metadata?: object;
}

export interface PlainRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly version: string;
  readonly body?: object;
}

const message = (text: string, init: PlainMessage = {}): object => ({
  messageId: crypto.randomUUID(),
  role: "ROLE_USER",
  parts: [{ text }],
  ...init,
});
const oldMessage = (text: string, init: PlainMessage = {}): object => ({
  kind: "message",
  messageId: crypto.randomUUID(),
  role: "user",
  parts: [{ kind: "text", text }],
  ...init,
});
const rpc = (version: string, method: string, params: object): PlainRequest => ({
  method: "POST",
  path: "/",
  version,
  body: { jsonrpc: "2.0", id: 1, method, params },
});
const post = (version: string, path: string, body: object): PlainRequest => ({ method: "POST", path, version, body });

/** Every binding with server-sent events, in both versions. */
export const plainBindings: readonly PlainBinding[] = [
  {
    name: "JSON-RPC of 1.0",
    send: (text, init) => rpc("1.0", "SendMessage", { message: message(text, init) }),
    stream: (text, init) => rpc("1.0", "SendStreamingMessage", { message: message(text, init) }),
    subscribe: (id) => rpc("1.0", "SubscribeToTask", { id }),
  },
  {
    name: "HTTP+JSON of 1.0",
    send: (text, init) => post("1.0", "/message:send", { message: message(text, init) }),
    stream: (text, init) => post("1.0", "/message:stream", { message: message(text, init) }),
    subscribe: (id) => ({ method: "GET", path: `/tasks/${id}:subscribe`, version: "1.0" }),
  },
  {
    name: "JSON-RPC of 0.3",
    send: (text, init) => rpc("0.3", "message/send", { message: oldMessage(text, init) }),
    stream: (text, init) => rpc("0.3", "message/stream", { message: oldMessage(text, init) }),
    subscribe: (id) => rpc("0.3", "tasks/resubscribe", { id }),
  },
];

/** Starts a server on its own port, and closes it after the test. */
export async function served(agent: Agent, options: Partial<ServeOptions> = {}): Promise<Server> {
  const server = await serve(agent, { port: 0, store: memoryStore(), logger: silentLogger, ...options });
  onTestFinished(() => server.close({ grace: 0 }));
  return server;
}

/** Calls a server. */
export function call(
  { url }: Pick<Server, "url">,
  { method, path, version, body }: PlainRequest,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(url + path, {
    method,
    headers: { "content-type": "application/json", "a2a-version": version, ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

/** An event of a stream, with its id and its result. */
export interface PlainEvent {
  readonly id: string | undefined;
  readonly json: string;
}

/** Reads this many events, and then breaks the connection. */
export async function eventsOf(response: Response, count = Number.POSITIVE_INFINITY): Promise<PlainEvent[]> {
  const type = response.headers.get("content-type") ?? "";
  if (!type.startsWith("text/event-stream")) throw new Error(`No stream: ${response.status} ${await response.text()}`);
  const events: PlainEvent[] = [];
  let text = "";
  for await (const chunk of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const json = /^data: (.*)$/m.exec(block)?.[1];
      if (json === undefined) continue;
      events.push({ id: /^id: (.*)$/m.exec(block)?.[1], json });
      if (events.length === count) return events;
    }
  }
  return events;
}

/** Returns the task in a response or an event, in either version. */
export function taskIn(json: string): { readonly id: string; readonly text: string | undefined } | undefined {
  const parsed = JSON.parse(json) as { result?: Record<string, unknown> };
  const result = (parsed.result ?? parsed) as Record<string, unknown>;
  const task = (result["task"] ?? (result["kind"] === "task" ? result : undefined)) as
    | { id: string; status: { message?: { parts: { text?: string }[] } } }
    | undefined;
  return task && { id: task.id, text: task.status.message?.parts[0]?.text };
}
