import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** Any parsed JSON: each damage knows the members that it changes. */
export type Json = ReturnType<typeof JSON.parse>;

/** A request on its way to the server. Changes are sent. */
export interface Asked {
  /** The name in JSON-RPC, for every binding; `AgentCard` for the card. */
  readonly operation: string;
  readonly rest: boolean;
  method: string;
  path: string;
  readonly query: URLSearchParams;
  readonly headers: Record<string, string>;
  /** Parsed if it is JSON, else text. */
  body: Json;
  /** Parameters of the operation: of the query, or of the body. */
  get(name: string): Json;
  set(name: string, value: Json): void;
  remove(name: string): void;
  /** The message of a send. */
  readonly message: Json;
}

/** An answer on its way back. */
export interface Answered {
  status: number;
  readonly headers: Record<string, string>;
  body: Json;
  /** Without the envelope of JSON-RPC. */
  result: Json;
  readonly error: Json;
}

/** A server's mistake, injected between the server and the runner. */
export interface Damage {
  readonly ask?: (asked: Asked) => void | Answered;
  readonly answer?: (answered: Answered, asked: Asked) => void;
  /** Replaces one event of a stream, without its envelope. */
  readonly event?: (event: Json, at: number, asked: Asked) => readonly Json[];
  /** Replaces one event, with its envelope. */
  readonly raw?: (event: Json) => Json;
  /** Holds all events until the end, and orders them. */
  readonly gather?: (events: readonly Json[]) => readonly Json[];
  /** Keeps the stream open after its last event. */
  readonly hold?: boolean;
  /** Called when a client closes a stream. `streams`: the task's other streams. */
  readonly closed?: (asked: Asked, streams: readonly ServerResponse[], origin: string) => void;
}

const operations: readonly (readonly [RegExp, string])[] = [
  [/^GET .*\.well-known\/agent-card\.json$/, "AgentCard"],
  [/^POST .*\/message:send$/, "SendMessage"],
  [/^POST .*\/message:stream$/, "SendStreamingMessage"],
  [/^POST .*\/tasks\/[^/]+:cancel$/, "CancelTask"],
  [/^\w+ .*\/tasks\/[^/]+:subscribe$/, "SubscribeToTask"],
  [/^GET .*\/tasks$/, "ListTasks"],
  [/^GET .*\/tasks\/[^/]+$/, "GetTask"],
  [/^GET .*\/extendedAgentCard$/, "GetExtendedAgentCard"],
  [/^POST .*\/pushNotificationConfigs$/, "CreateTaskPushNotificationConfig"],
  [/^GET .*\/pushNotificationConfigs$/, "ListTaskPushNotificationConfigs"],
  [/^GET .*\/pushNotificationConfigs\/[^/]+$/, "GetTaskPushNotificationConfig"],
  [/^DELETE .*\/pushNotificationConfigs\/[^/]+$/, "DeleteTaskPushNotificationConfig"],
];

/** A body that can be changed. A body that is not an object stays text. */
const parse = (body: string): Json => {
  try {
    const value = JSON.parse(body);
    return typeof value === "object" && value !== null ? value : body;
  } catch {
    return body;
  }
};

const typed = (value: string): Json => (/^-?\d+$/.test(value) ? Number(value) : value);

async function read(request: IncomingMessage): Promise<Asked> {
  const url = new URL(request.url ?? "/", "http://proxy");
  const body = parse(await text(request));
  const known = operations.find(([pattern]) => pattern.test(`${request.method} ${url.pathname}`))?.[1];
  const rpc = known === undefined && typeof body === "object" && typeof body?.method === "string";
  const { host: _, connection: __, "content-length": ___, ...headers } = request.headers as Record<string, string>;
  const rest = known !== undefined && known !== "AgentCard";
  const asked: Asked = {
    operation: known ?? (rpc ? body.method : ""),
    rest,
    method: request.method ?? "GET",
    path: url.pathname,
    query: url.searchParams,
    headers,
    body,
    get(name) {
      if (asked.method === "GET") return asked.query.has(name) ? typed(asked.query.get(name) ?? "") : undefined;
      return (rest ? asked.body : asked.body?.params)?.[name];
    },
    set(name, value) {
      if (asked.method === "GET") asked.query.set(name, typeof value === "string" ? value : JSON.stringify(value));
      else (rest ? asked.body : asked.body.params)[name] = value;
    },
    remove(name) {
      asked.query.delete(name);
      const params = rest ? asked.body : asked.body?.params;
      if (typeof params === "object" && params !== null) delete params[name];
    },
    get message() {
      return (rest ? asked.body : asked.body?.params)?.message;
    },
  };
  return asked;
}

function answered(status: number, headers: Record<string, string>, body: Json): Answered {
  return {
    status,
    headers,
    body,
    get result() {
      return this.body?.jsonrpc === undefined ? this.body : this.body.result;
    },
    set result(value: Json) {
      if (this.body?.jsonrpc === undefined) this.body = value;
      else this.body.result = value;
    },
    get error() {
      return this.body?.error;
    },
  };
}

/** An error in the form of the request's binding. */
export function refusal(asked: Asked, code: number, status: number, message: string): Answered {
  const error = asked.rest ? { code: status, status: "", message, details: [] } : { code, message };
  const body = asked.rest ? { error } : { jsonrpc: "2.0", id: asked.body?.id ?? null, error };
  return answered(asked.rest ? status : 200, { "content-type": "application/json" }, body);
}

/** The id of the task that is subscribed to. */
function subscribed(asked: Asked): string | undefined {
  const [, id] = /\/tasks\/([^/]+):subscribe$/.exec(asked.path) ?? [];
  return id ?? asked.get("id");
}

/** Starts a proxy that damages what passes. */
export async function startDamaged(origin: string, damage: Damage): Promise<{ url: string; close(): Promise<void> }> {
  /** Open streams, with the ids of their tasks once they are known. */
  const streams = new Map<ServerResponse, string | undefined>();
  const server = createServer((request, response) => {
    void pass(request, response).catch(() => response.destroy());
  });
  // By default, connections close after five idle seconds: on a busy machine, under the next request.
  server.keepAliveTimeout = 120_000;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = await read(request);
    const { operation } = asked;
    const at = damage.ask?.(asked);
    if (at !== undefined) return write(response, at);
    const search = asked.query.size === 0 ? "" : `?${asked.query.toString()}`;
    const controller = new AbortController();
    const body = typeof asked.body === "string" ? asked.body : JSON.stringify(asked.body);
    const upstream = await fetch(origin + asked.path + search, {
      method: asked.method,
      headers: asked.headers,
      ...(asked.method === "GET" || asked.method === "DELETE" ? {} : { body: new TextEncoder().encode(body) }),
      signal: controller.signal,
    });
    const {
      "content-length": _,
      "transfer-encoding": __,
      connection: ___,
      ...headers
    } = Object.fromEntries(upstream.headers) as Record<string, string>;
    if (headers["content-type"]?.startsWith("text/event-stream") !== true) {
      const answer = answered(upstream.status, headers, parse(await upstream.text()));
      if (operation === "AgentCard" && typeof answer.body === "object") {
        answer.body = JSON.parse(JSON.stringify(answer.body).replaceAll(origin, url));
        // Damages only HTTP: gRPC passes unread.
        answer.body.supportedInterfaces = answer.body.supportedInterfaces?.filter(
          ({ protocolBinding }: Json) => protocolBinding !== "GRPC",
        );
        answer.body.additionalInterfaces = answer.body.additionalInterfaces?.filter(
          ({ transport }: Json) => transport !== "GRPC",
        );
      }
      damage.answer?.(answer, asked);
      return write(response, answer);
    }
    const head = answered(upstream.status, headers, undefined);
    damage.answer?.(head, asked);
    response.writeHead(head.status, head.headers).flushHeaders();
    streams.set(response, subscribed(asked));
    response.on("close", () => {
      const task = streams.get(response);
      streams.delete(response);
      // Tests run concurrently: ignores streams of other tasks.
      const others = [...streams].filter(([, id]) => id === task).map(([other]) => other);
      if (!response.writableFinished) damage.closed?.(asked, others, origin);
      controller.abort();
    });
    await relay(upstream, response, asked).catch(() => {});
    if (damage.hold !== true) response.end();
  }

  async function relay(upstream: Response, response: ServerResponse, asked: Asked): Promise<void> {
    const gathered: Json[] = [];
    const emit = (event: Json): void =>
      void response.write(`data: ${JSON.stringify(damage.raw?.(event) ?? event)}\n\n`);
    let count = 0;
    let rest = "";
    const decoder = new TextDecoder();
    for await (const chunk of upstream.body as unknown as AsyncIterable<Uint8Array>) {
      const blocks = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const data = block.split("\n").flatMap((line) => (line.startsWith("data:") ? [line.slice(5)] : []));
        if (data.length === 0) continue;
        const event = JSON.parse(data.join("\n"));
        if (event.error !== undefined) {
          // A JSON-RPC error that answers a streaming call is one event.
          const answer = answered(upstream.status, {}, event);
          damage.answer?.(answer, asked);
          emit(answer.body);
          continue;
        }
        const inner = event.jsonrpc === undefined ? event : event.result;
        if (inner?.task?.id !== undefined && streams.has(response)) streams.set(response, inner.task.id);
        for (const one of damage.event?.(inner, count++, asked) ?? [inner]) {
          const wrapped = event.jsonrpc === undefined ? one : { ...event, result: one };
          if (damage.gather === undefined) emit(wrapped);
          else gathered.push(wrapped);
        }
      }
    }
    for (const event of damage.gather?.(gathered) ?? []) emit(event);
  }

  return {
    url,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function write(response: ServerResponse, { status, headers, body }: Answered): void {
  response.writeHead(status, headers);
  response.end(body === undefined || body === "" ? undefined : typeof body === "string" ? body : JSON.stringify(body));
}
