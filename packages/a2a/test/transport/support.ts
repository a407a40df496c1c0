import { silentLogger, type Clock, type LogFields, type Logger } from "../../src/base/index.ts";
import { type AgentCard, type Task, A2AError } from "../../src/model/index.ts";
import {
  anonymous,
  operations,
  Payload,
  TextPayload,
  type AgentService,
  type CallContext,
  type OperationName,
  type Reply,
  type Sink,
  type StreamItem,
  type UniversalHandler,
  type UniversalRequest,
  type UniversalResponse,
} from "../../src/protocol/index.ts";
import { jsonRpcBinding } from "../../src/transport/jsonrpc/handler.ts";
import { restBinding } from "../../src/transport/rest/handler.ts";
import type { ServiceMount } from "../../src/transport/router/claims.ts";
import { createRouter, type RouterOptions } from "../../src/transport/router/router.ts";
import { KeepAlive } from "../../src/transport/server/event-stream.ts";
import { codecV1 } from "../../src/wire/v1/index.ts";
import { collect } from "../../../../test/secrets.ts";

export const task: Task = { id: "t1", contextId: "c1", status: { state: "TASK_STATE_COMPLETED" } };
export const message = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "hi" }] } as const;

export interface SeenCall {
  readonly operation: OperationName;
  readonly request: unknown;
  readonly context: CallContext;
}

/** A source to which the test pushes batches. */
export class Feed implements AsyncIterable<readonly StreamItem[]> {
  returned = 0;
  readonly #waiting: ((result: IteratorResult<readonly StreamItem[]>) => void)[] = [];
  readonly #ready: (readonly StreamItem[] | Error | "end")[] = [];
  #fail: ((error: Error) => void) | undefined;

  push(...batch: StreamItem[]): void {
    this.#put(batch);
  }

  end(): void {
    this.#put("end");
  }

  fail(error: Error): void {
    this.#put(error);
  }

  #put(entry: readonly StreamItem[] | Error | "end"): void {
    const resolve = this.#waiting.shift();
    if (resolve === undefined) this.#ready.push(entry);
    else if (entry === "end") resolve({ done: true, value: undefined });
    else if (entry instanceof Error) this.#fail?.(entry);
    else resolve({ done: false, value: entry });
  }

  [Symbol.asyncIterator](): AsyncIterator<readonly StreamItem[]> {
    return {
      next: () =>
        new Promise((resolve, reject) => {
          this.#fail = reject;
          this.#waiting.push(resolve);
          const entry = this.#ready.shift();
          if (entry !== undefined) this.#put(entry);
        }),
      return: () => {
        this.returned++;
        for (const resolve of this.#waiting.splice(0)) resolve({ done: true, value: undefined });
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }
}

export type Script = (call: SeenCall) => unknown;

/** A service with responses from the test. The service records its calls. */
export class ScriptedService implements AgentService {
  readonly calls: SeenCall[] = [];
  feed: Feed = new Feed();
  extensions: readonly string[] | undefined;
  script: Script = () => ({ payload: new Payload(task) });

  async call(operation: OperationName, request: unknown, context: CallContext): Promise<Reply<never>> {
    const call = { operation, request, context };
    this.calls.push(call);
    const reply = (await this.script(call)) as Reply<never>;
    return this.extensions === undefined ? reply : { ...reply, extensions: this.extensions };
  }

  async stream(operation: OperationName, request: unknown, context: CallContext) {
    const call = { operation, request, context };
    this.calls.push(call);
    await this.script(call);
    return { batches: this.feed, ...(this.extensions !== undefined && { extensions: this.extensions }) };
  }

  get last(): SeenCall {
    const call = this.calls.at(-1);
    if (call === undefined) throw new Error("The service was not called");
    return call;
  }
}

export function card(extra: Partial<AgentCard> = {}): AgentCard {
  return {
    name: "Echo",
    description: "Says it again",
    version: "1.0.0",
    supportedInterfaces: [{ url: "https://agents.example", protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    capabilities: { streaming: true },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
    ...extra,
  };
}

/** A clock that the test advances. */
export class StillClock implements Clock {
  #now = 0;
  #due: { readonly at: number; readonly run: () => void }[] = [];

  /** The number of pending timers. */
  get timers(): number {
    return this.#due.length;
  }

  now(): number {
    return this.#now;
  }

  elapsed(): number {
    return this.#now;
  }

  after(ms: number, run: () => void): () => void {
    const entry = { at: this.#now + ms, run };
    this.#due.push(entry);
    return () => {
      this.#due = this.#due.filter((each) => each !== entry);
    };
  }

  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const next = this.#due.filter(({ at }) => at <= end).sort((one, other) => one.at - other.at)[0];
      if (next === undefined) break;
      this.#due = this.#due.filter((each) => each !== next);
      this.#now = next.at;
      next.run();
    }
    this.#now = end;
  }
}

export class LinesLogger implements Logger {
  readonly lines: { readonly level: string; readonly message: string; readonly fields: LogFields | undefined }[] = [];
  debug(): void {}
  info(): void {}
  warn(message: string, fields?: LogFields): void {
    this.lines.push({ level: "warn", message, fields });
    collect(message, fields);
  }
  error(message: string, fields?: LogFields): void {
    this.lines.push({ level: "error", message, fields });
    collect(message, fields);
  }
}

/** Options of a test's router. `keepAlive` is in milliseconds. */
export type GivenOptions = Partial<Omit<RouterOptions, "keepAlive">> & { readonly keepAlive?: number };

export function routerOptions({
  keepAlive = 15_000,
  clock = new StillClock(),
  ...more
}: GivenOptions = {}): RouterOptions {
  return {
    bindings: [jsonRpcBinding(), restBinding()],
    codecs: [codecV1],
    operations,
    authenticate: () => anonymous,
    limits: { bodyBytes: 1000, depth: 64 },
    strictVersion: false,
    keepAlive: new KeepAlive(clock, keepAlive),
    maxAge: 300,
    clock,
    logger: silentLogger,
    ...more,
  };
}

/** Serves one service at the root. */
export function serveAlone(service: AgentService, options: GivenOptions = {}): UniversalHandler {
  return serveMounts([{ path: "", service, card: card() }], options);
}

export function serveMounts(mounts: readonly ServiceMount[], options: GivenOptions = {}): UniversalHandler {
  return createRouter(mounts, routerOptions(options)).handle;
}

export interface RequestInit {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

/** Creates a request as a host does. A body is `application/json` unless the headers say otherwise. */
export function request(
  method: string,
  url: string,
  { headers = {}, body = "", signal }: RequestInit = {},
): UniversalRequest {
  const all: Record<string, string> = body === "" ? { ...headers } : { "content-type": "application/json", ...headers };
  return {
    method,
    url,
    header: (name) => all[name],
    text: (limit) =>
      new TextEncoder().encode(body).length > limit
        ? Promise.reject(new A2AError("RequestTooLarge"))
        : Promise.resolve(body),
    signal: signal ?? new AbortController().signal,
  };
}

export function rpc(method: string, params?: unknown, id: unknown = 1): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method, ...(params !== undefined && { params }) });
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly json: ReturnType<typeof JSON.parse>;
}

/** Sends a request whose response is not a stream. Returns the response. */
export async function ask(handler: UniversalHandler, asked: UniversalRequest): Promise<Answer> {
  const { status, headers, body = "" } = await handler(asked);
  if (typeof body !== "string") throw new Error("A stream came where none was expected");
  return { status, headers, text: body, json: body === "" ? undefined : JSON.parse(body) };
}

export const post = (
  handler: UniversalHandler,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> => ask(handler, request("POST", "/", { body, headers }));

/** A sink that the test reads. The sink can be slow, and can close. */
class BufferSink implements Sink {
  readonly writes: string[] = [];
  closed = false;
  full = false;
  readonly #listeners: (() => void)[] = [];
  #waiting: (() => void)[] = [];

  get text(): string {
    return this.writes.join("");
  }

  write(chunk: string): boolean {
    if (!this.closed) this.writes.push(chunk);
    return !this.full && !this.closed;
  }

  ready(): Promise<void> {
    return !this.full || this.closed ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }

  drain(): void {
    this.full = false;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  onClose(run: () => void): void {
    if (this.closed) run();
    else this.#listeners.push(run);
  }

  leave(): void {
    this.closed = true;
    for (const run of this.#listeners) run();
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

export interface OpenStream {
  readonly head: UniversalResponse;
  readonly sink: BufferSink;
  readonly done: Promise<void>;
}

/** Opens a stream. `full`: the sink accepts one write, and no other write until it is drained. */
export async function open(handler: UniversalHandler, asked: UniversalRequest, full = false): Promise<OpenStream> {
  const head = await handler(asked);
  if (typeof head.body !== "function") throw new Error(`No stream: ${head.status} ${String(head.body ?? "")}`);
  const sink = new BufferSink();
  sink.full = full;
  return { head, sink, done: head.body(sink) };
}

export function status(state: string, seq: number): StreamItem {
  const event = { statusUpdate: { taskId: "t1", contextId: "c1", status: { state } } };
  return { seq, payload: new TextPayload(JSON.stringify(event)) };
}

/** Waits until all work that depends only on settled promises has run. */
export const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));
