import { A2AError, type A2AErrorCode } from "@parley/a2a";
import type { A2AErrorOptions } from "@parley/a2a/model";
import {
  Payload,
  type AgentService,
  type CallContext,
  type OperationName,
  type Operations,
  type Reply,
  type StreamItem,
  type StreamName,
  type StreamOperations,
  type StreamReply,
  type UnaryName,
  type UnaryOperations,
} from "@parley/a2a/protocol";
import {
  abortError,
  requestHeaders,
  untilOver,
  waits,
  type ClientBinding,
  type ClientHost,
} from "@parley/a2a/transport/client";
import { byVersion, codecV11, wires, type Codec } from "@parley/a2a/wires";
import { WebSocket } from "ws";
import {
  bindingName,
  subprotocol,
  type CallFrame,
  type ClientFrame,
  type Headers,
  type ServerFrame,
} from "./frames.ts";

/** What the status of a refused handshake means. */
const refusals: ReadonlyMap<number, A2AErrorCode> = new Map([
  [401, "Unauthenticated"],
  [403, "PermissionDenied"],
  [503, "Unavailable"],
]);

/** How long a connection without calls is kept, in milliseconds. */
const idleTime = 1_000;

/** A2A over WebSocket at a client: for `connect(agent, { bindings: [webSocketBinding()] })`. */
export function webSocketBinding(codecs: readonly Codec[] = [...Object.values(wires), codecV11]): ClientBinding {
  const known = byVersion(codecs);
  const connections = new Map<string, Connection>();
  return {
    name: bindingName,
    versions: [...known.keys()],
    unusable: (url) =>
      /^wss?:/.test(url) && URL.canParse(url) ? undefined : "is no address such as wss://example.com/ws",
    origin: (url) => new URL(url.replace(/^ws/, "http")).origin,
    open({ url }, version, host) {
      const connection = connections.get(url) ?? new Connection(url, host);
      connections.set(url, connection);
      return new WebSocketService(known.get(version) as Codec, connection, url, host);
    },
  };
}

/** An agent behind a connection. */
class WebSocketService implements AgentService {
  readonly #codec: Codec;
  readonly #connection: Connection;
  readonly #url: string;
  readonly #host: ClientHost;

  constructor(codec: Codec, connection: Connection, url: string, host: ClientHost) {
    this.#codec = codec;
    this.#connection = connection;
    this.#url = url;
    this.#host = host;
  }

  async call<Name extends UnaryName>(
    operation: Name,
    request: UnaryOperations[Name]["request"],
    context: CallContext,
  ): Promise<Reply<UnaryOperations[Name]["response"]>> {
    const call = await this.#begin(operation, request, context);
    const usual = waits(operation, request) ? false : this.#host.limits.connectTimeout;
    const frame = await call.first(context.outgoing?.connectTimeout ?? usual);
    call.leave();
    if (frame?.result === undefined) throw strange(this.#url, "no result");
    const value = this.#codec.shapes.decodeResponse<Name>(operation, frame.result);
    return { payload: new Payload(value), ...activated(frame) };
  }

  async stream<Name extends StreamName>(
    operation: Name,
    request: StreamOperations[Name]["request"],
    context: CallContext,
  ): Promise<StreamReply> {
    const { shapes } = this.#codec;
    const call = await this.#begin(operation, request, context);
    const frame = await call.first(context.outgoing?.connectTimeout ?? this.#host.limits.connectTimeout);
    if (frame?.stream !== true) throw strange(this.#url, "no stream");
    let ends: boolean | undefined;
    const itemOf = ({ event, seq }: ServerFrame): StreamItem => {
      ends = shapes.endsStream?.(event);
      return { payload: new Payload(shapes.decodeEvent(event)), ...(seq !== undefined && { seq }) };
    };
    const items = untilOver(call.events(), operation, itemOf, () => ends);
    const batches: StreamReply["batches"] = {
      [Symbol.asyncIterator]: () => ({
        next: () => items.next(),
        async return() {
          // Also where nobody has read yet, so that the generator has nothing to clean up.
          call.leave();
          await items.return();
          return { done: true, value: undefined };
        },
      }),
    };
    return { batches, ...activated(frame) };
  }

  async #begin<Name extends OperationName>(
    method: Name,
    request: Operations[Name]["request"],
    context: CallContext,
  ): Promise<Call> {
    const { signal } = context;
    if (signal?.aborted === true) throw abortError(signal);
    const params = this.#codec.shapes.encodeRequest(method, request);
    const headers = await requestHeaders(this.#host, { url: this.#url, operation: method }, context, this.#codec);
    const call = new Call(this.#connection, this.#codec, this.#url, context);
    this.#connection.begin(call, { method, params, headers });
    return call;
  }
}

function activated({ headers }: ServerFrame): { extensions?: readonly string[] } {
  const uris = headers?.["a2a-extensions"];
  return uris === undefined ? {} : { extensions: uris.split(",") };
}

function strange(url: string, what: string, cause?: unknown): A2AError {
  return new A2AError("InvalidResponse", `${url} does not answer in the protocol: ${what}`, { cause });
}

/** One call, and the frames of its answer that nobody has read yet. Their number is bounded by what is told to be taken. */
class Call {
  id = 0;
  readonly #connection: Connection;
  readonly #codec: Codec;
  readonly #url: string;
  readonly #signal: AbortSignal | undefined;
  readonly #frames: ServerFrame[] = [];
  #failure: A2AError | undefined;
  #over = false;
  #wake = (): void => {};
  readonly #abort = (): void => this.leave(abortError(this.#signal as AbortSignal));

  constructor(connection: Connection, codec: Codec, url: string, { signal }: CallContext) {
    this.#connection = connection;
    this.#codec = codec;
    this.#url = url;
    this.#signal = signal;
    signal?.addEventListener("abort", this.#abort);
  }

  receive(frame: ServerFrame): void {
    if ("error" in frame) this.end(this.#errorOf(frame));
    else if (frame.end === true) this.end();
    else this.#frames.push(frame);
    this.#wake();
  }

  #errorOf({ error, status = 500, headers = {} }: ServerFrame): A2AError {
    const decoded = this.#codec.shapes.decodeError(status, error);
    const told: A2AErrorOptions = decoded;
    const challenge = headers["www-authenticate"] ?? decoded.challenge;
    const retryAfter = headers["retry-after"] === undefined ? decoded.retryAfter : Number(headers["retry-after"]);
    return new A2AError(decoded.code, decoded.message, { ...told, challenge, retryAfter });
  }

  /** Nothing comes any more. */
  end(failure?: A2AError): void {
    this.#failure ??= failure;
    this.#over = true;
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#connection.forget(this);
    this.#wake();
  }

  /** Nobody waits for the rest. */
  leave(failure?: A2AError): void {
    if (!this.#over) this.#connection.send({ id: this.id, leave: true });
    this.end(failure);
  }

  /** The first frame of the answer, within a time limit in milliseconds. */
  async first(limit: number | false): Promise<ServerFrame | undefined> {
    const disarm = limit === false ? undefined : this.#connection.after(limit, () => this.#late(limit));
    await this.#some();
    disarm?.();
    if (this.#frames.length === 0 && this.#failure !== undefined) throw this.#failure;
    return this.#frames.shift();
  }

  #late(limit: number): void {
    this.leave(new A2AError("Timeout", `No answer from ${this.#url} within ${limit} ms`));
  }

  /** Frames of events, as they come; says that they are taken once the reader asks for more. */
  async *events(): AsyncGenerator<readonly ServerFrame[], void, void> {
    try {
      for (;;) {
        await this.#some();
        const frames = this.#frames.splice(0);
        if (frames.length > 0) yield frames;
        else if (this.#failure !== undefined) throw this.#failure;
        else if (this.#over) return;
        if (!this.#over) this.#connection.send({ id: this.id, taken: frames.length });
      }
    } finally {
      this.leave();
    }
  }

  async #some(): Promise<void> {
    while (this.#frames.length === 0 && !this.#over) await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}

/** The one connection that is kept to an address: made when a call needs it, and again when it went. */
class Connection {
  readonly #url: string;
  readonly #host: ClientHost;
  readonly #calls = new Map<number, Call>();
  #ws: WebSocket | undefined;
  #last = 0;
  #disarm = (): void => {};

  constructor(url: string, host: ClientHost) {
    this.#url = url;
    this.#host = host;
  }

  after(ms: number, run: () => void): () => void {
    return this.#host.clock.after(ms, run);
  }

  /** Sends a call, once there is a connection. */
  begin(call: Call, frame: Omit<CallFrame, "id">): void {
    call.id = ++this.#last;
    this.#calls.set(call.id, call);
    const ws = (this.#ws ??= this.#connect(frame.headers));
    const send = (): void => {
      if (this.#calls.has(call.id)) this.send({ id: call.id, ...frame });
    };
    if (ws.readyState === WebSocket.OPEN) send();
    else ws.once("open", send);
    this.#watch();
  }

  send(frame: ClientFrame): void {
    if (this.#ws?.readyState === WebSocket.OPEN) this.#ws.send(JSON.stringify(frame));
  }

  forget(call: Call): void {
    if (this.#calls.delete(call.id) && this.#calls.size === 0) this.#watch();
  }

  /** `headers` of the call that opens it: for what stands before the server, and looks at no frames. */
  #connect(headers: Headers = {}): WebSocket {
    const { connectTimeout, maxResponseBytes, maxEventBytes } = this.#host.limits;
    const ws = new WebSocket(this.#url, subprotocol, {
      headers,
      maxPayload: Math.max(maxResponseBytes, maxEventBytes),
      ...(connectTimeout !== false && { handshakeTimeout: connectTimeout }),
    });
    // Each call that waits for the connection listens.
    ws.setMaxListeners(0);
    let opened = false;
    let cause: (Error & { readonly code?: string }) | undefined;
    ws.on("open", () => (opened = true));
    ws.on("message", (data: Buffer) => this.#receive(ws, data.toString()));
    ws.on("error", (error) => (cause ??= error));
    ws.on("unexpected-response", (request, { statusCode = 0 }) => {
      request.destroy();
      const code = refusals.get(statusCode) ?? "ConnectionFailed";
      this.#drop(ws, new A2AError(code, `${this.#url} refused the connection with HTTP ${statusCode}`));
    });
    ws.on("close", (code, reason) => {
      const why = cause?.message ?? (String(reason) || `closed with ${code}`);
      const lost = opened ? "ConnectionLost" : "ConnectionFailed";
      // Own limits show as an error of `ws`, those of the server as a code (RFC 6455 §7.4.1).
      const own = cause?.code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH" ? "InvalidResponse" : undefined;
      const error = own ?? (code === 1009 ? "RequestTooLarge" : lost);
      this.#drop(ws, new A2AError(error, `The connection to ${this.#url} ended: ${why}`, { cause }));
    });
    return ws;
  }

  #receive(ws: WebSocket, text: string): void {
    if (ws !== this.#ws) return;
    this.#watch();
    try {
      const frame = JSON.parse(text) as ServerFrame;
      if (frame.id !== undefined) this.#calls.get(frame.id)?.receive(frame);
    } catch (cause) {
      this.#drop(ws, strange(this.#url, "a frame that is none", cause));
    }
  }

  /** A silent connection is given up: at once where nobody waits, else after the time limit for silence. */
  #watch(): void {
    this.#disarm();
    const ws = this.#ws;
    const idle = this.#calls.size === 0 ? idleTime : this.#host.limits.idleTimeout;
    if (ws === undefined || idle === false) return;
    const error = new A2AError("ConnectionLost", `Nothing more from ${this.#url} within ${idle} ms`);
    this.#disarm = this.after(idle, () => this.#drop(ws, error));
  }

  #drop(ws: WebSocket, error: A2AError): void {
    if (ws !== this.#ws) return;
    this.#ws = undefined;
    this.#disarm();
    for (const call of this.#calls.values()) call.end(error);
    ws.close();
  }
}
