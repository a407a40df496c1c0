import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import type { Clock } from "../../src/base/index.ts";
import type { AgentCard, AgentInterface, StreamResponse, Task, TaskState } from "../../src/model/index.ts";
import type { ConnectOptions } from "../../src/client/index.ts";

/** Starts misbehaving third-party servers. */

export type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** Starts a server on a free port until the test is over. Returns the base URL. */
export async function listen(listener: Listener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Returns the URL of a port without a listener. */
export async function deadUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

export function cardOf(interfaces: readonly AgentInterface[], more: Partial<AgentCard> = {}): AgentCard {
  return {
    name: "Stranger",
    description: "Does as it likes.",
    version: "1.0.0",
    supportedInterfaces: interfaces,
    capabilities: { streaming: true },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
    ...more,
  };
}

export function jsonRpcAt(url: string, more: Partial<AgentInterface> = {}): AgentInterface {
  return { url, protocolBinding: "JSONRPC", protocolVersion: "1.0", ...more };
}

export function restAt(url: string, more: Partial<AgentInterface> = {}): AgentInterface {
  return { url, protocolBinding: "HTTP+JSON", protocolVersion: "1.0", ...more };
}

export const replayExtensions = { extensions: [{ uri: "urn:parley:extension:stream-resume:v1" }] };
export const resendExtensions = { extensions: [{ uri: "urn:parley:extension:idempotent-send:v1" }] };

/** Makes a client retry quickly, so that a test with the system clock need not wait. */
export const soon: ConnectOptions = {
  retry: { budget: 200, minDelay: 1, maxDelay: 2 },
  reconnect: { budget: 200, minDelay: 1, maxDelay: 2 },
};

/** The same without a retry budget, for servers that answer eventually, because a slow machine could exceed any budget. */
export const endless: ConnectOptions = {
  retry: { budget: Infinity, minDelay: 1, maxDelay: 2 },
  reconnect: { budget: Infinity, minDelay: 1, maxDelay: 2 },
};

export function bodyOf(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => (text += chunk));
    request.on("end", () => resolve(text));
    request.on("error", reject);
  });
}

/** The event stream of one response from a JSON-RPC server. */
export interface Wire {
  /** Sends only the head of the response. */
  open(): void;
  /** Sends an event, with an id if `id` is given. */
  send(event: StreamResponse, id?: number | string): void;
  raw(text: string): void;
  /** Ends the response as HTTP requires. */
  end(): void;
  /** Breaks the connection. */
  drop(): void;
}

export interface RpcCall {
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly headers: IncomingHttpHeaders;
  /** The number of this call among the calls of its method, from 1. */
  readonly number: number;
  readonly response: ServerResponse;
  readonly events: Wire;
  answer(result: unknown): void;
  fail(code: number, message: string, data?: unknown): void;
  page(status: number, headers: Record<string, string>, body: string): void;
  drop(): void;
}

export interface RpcServer {
  readonly url: string;
  readonly calls: readonly RpcCall[];
  methods(): string[];
}

/** Starts a JSON-RPC server whose behaviour the test defines for each call. */
export async function rpcServer(script: (call: RpcCall) => void | Promise<void>): Promise<RpcServer> {
  const calls: RpcCall[] = [];
  const url = await listen((request, response) => {
    void (async () => {
      const { id, method, params } = JSON.parse(await bodyOf(request)) as {
        id: number;
        method: string;
        params: Record<string, unknown>;
      };
      const call: RpcCall = {
        method,
        params,
        headers: request.headers,
        number: calls.filter((one) => one.method === method).length + 1,
        response,
        events: {
          open() {
            if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" });
            response.flushHeaders();
          },
          send(event, seq) {
            this.open();
            const line = seq === undefined ? "" : `id: ${seq}\n`;
            response.write(`${line}data: ${JSON.stringify({ jsonrpc: "2.0", id, result: event })}\n\n`);
          },
          raw(text) {
            this.open();
            response.write(text);
          },
          end: () => response.end(),
          drop: () => void setImmediate(() => request.socket.destroy()),
        },
        answer(result) {
          response.writeHead(200, { "content-type": "application/json" });
          response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
        },
        fail(code, message, data) {
          response.writeHead(200, { "content-type": "application/json" });
          response.end(
            JSON.stringify({ jsonrpc: "2.0", id, error: { code, message, ...(data === undefined ? {} : { data }) } }),
          );
        },
        page(status, headers, body) {
          response.writeHead(status, headers);
          response.end(body);
        },
        drop: () => void request.socket.destroy(),
      };
      calls.push(call);
      await script(call);
    })();
  });
  return { url, calls, methods: () => calls.map(({ method }) => method) };
}

export function taskOf(state: TaskState, more: Partial<Task> = {}): Task {
  return { id: "t1", contextId: "c1", status: { state }, ...more };
}

export function taskEvent(state: TaskState = "TASK_STATE_WORKING", more: Partial<Task> = {}): StreamResponse {
  return { task: taskOf(state, more) };
}

export function statusEvent(state: TaskState): StreamResponse {
  return { statusUpdate: { taskId: "t1", contextId: "c1", status: { state } } };
}

export function chunkEvent(text: string, append = true): StreamResponse {
  return {
    artifactUpdate: { taskId: "t1", contextId: "c1", append, artifact: { artifactId: "a1", parts: [{ text }] } },
  };
}

/** Returns an event as its reader saw it, in a short form for comparison. */
export function glance(event: StreamResponse): string {
  if (event.message !== undefined) return "message";
  if (event.artifactUpdate !== undefined) return String(event.artifactUpdate.artifact.parts[0]?.text);
  const state = (event.task?.status ?? event.statusUpdate?.status)?.state ?? "";
  return `${event.task === undefined ? "" : "task "}${state.replace("TASK_STATE_", "")}`;
}

export async function glances(stream: AsyncIterable<StreamResponse>): Promise<string[]> {
  const seen: string[] = [];
  for await (const event of stream) seen.push(glance(event));
  return seen;
}

/** Returns the error of a promise, which must reject. */
export function errorOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => {
      throw new Error("it worked");
    },
    (error: unknown) => error,
  );
}

/** Waits for a condition. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}

/** A clock that the test advances. */
export class HandClock implements Clock {
  #now = Date.UTC(2026, 0, 1);
  readonly #timers = new Set<{ readonly at: number; readonly ms: number; readonly run: () => void }>();

  /** The number of timers that have been set so far. */
  rearmed = 0;

  now(): number {
    return this.#now;
  }

  elapsed(): number {
    return this.#now;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#now + ms, ms, run };
    this.#timers.add(timer);
    this.rearmed++;
    return () => this.#timers.delete(timer);
  }

  /** Waits until a timer of this duration is pending. */
  async armed(ms: number): Promise<void> {
    await until(() => [...this.#timers].some((timer) => timer.ms === ms));
  }

  get waiting(): number {
    return this.#timers.size;
  }

  advance(ms: number): void {
    this.#now += ms;
    for (const timer of this.#timers) {
      if (timer.at > this.#now) continue;
      this.#timers.delete(timer);
      timer.run();
    }
  }
}
