import { A2AError, type A2AErrorCode, type A2AErrorOptions } from "@parley/a2a/model";
import {
  abortError,
  byVersion,
  clientService,
  codecV11,
  readEvents,
  requestHeaders,
  wires,
  type CallContext,
  type ClientBinding,
  type ClientHost,
  type ClientTransport,
  type Codec,
  type EncodedCall,
  type StreamName,
  type StreamReply,
} from "@parley/a2a/protocol";
import { WebSocket } from "ws";
import {
  bindingName,
  subprotocol,
  type CallFrame,
  type ClientFrame,
  type Headers,
  type ServerFrame,
} from "./frames.ts";

/** The meaning of a rejected handshake's status. */
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
  // A connection has the limits and the headers of its client, so clients do not share connections.
  const connections = new WeakMap<ClientHost, Map<string, Connection>>();
  return {
    name: bindingName,
    versions: [...known.keys()],
    unusable: (url) =>
      /^wss?:/.test(url) && URL.canParse(url) ? undefined : "is not an address such as wss://example.com/ws",
    origin: (url) => new URL(url.replace(/^ws/, "http")).origin,
    open({ url }, version, host) {
      const own = connections.get(host) ?? new Map<string, Connection>();
      connections.set(host, own);
      const connection = own.get(url) ?? new Connection(url, host);
      own.set(url, connection);
      const codec = known.get(version) as Codec;
      return clientService(codec.shapes, host, new WebSocketTransport(codec, connection, url, host));
    },
  };
}

/** Sends the calls of one service over a connection. */
class WebSocketTransport implements ClientTransport {
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

  async call(encoded: EncodedCall): Promise<{ result: unknown; extensions?: readonly string[] }> {
    const call = await this.#begin(encoded);
    const frame = await call.first(encoded.timeout);
    call.leave();
    if (frame?.result === undefined) throw strange(this.#url, "no result");
    return { result: frame.result, ...activated(frame) };
  }

  async stream(encoded: EncodedCall<StreamName>): Promise<StreamReply> {
    const call = await this.#begin(encoded);
    const frame = await call.first(encoded.timeout);
    if (frame?.stream !== true) throw strange(this.#url, "no stream");
    const batches = readEvents(this.#codec.shapes, encoded.operation, {
      batches: call.events(),
      read: ({ event, seq }) => ({ event, seq }),
      close: () => call.leave(),
    });
    return { batches, ...activated(frame) };
  }

  async #begin({ operation, params, context }: EncodedCall): Promise<Call> {
    const { signal } = context;
    if (signal?.aborted === true) throw abortError(signal);
    const headers = await requestHeaders(this.#host, { url: this.#url, operation }, context, this.#codec);
    const call = new Call(this.#connection, this.#codec, this.#url, context);
    this.#connection.begin(call, { method: operation, params, headers });
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

/** One call, and the unread frames of its answer. The window limits what the server sends. */
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

  /** Ends the call: no frame follows. */
  end(failure?: A2AError): void {
    this.#failure ??= failure;
    this.#over = true;
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#connection.forget(this);
    this.#wake();
  }

  /** Ends the call, and notifies the server if it has not ended it. */
  leave(failure?: A2AError): void {
    if (!this.#over) this.#connection.send({ id: this.id, leave: true });
    this.end(failure);
  }

  /** The first frame of the answer. `limit` is the timeout in milliseconds. */
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

  /** Frames of events as they arrive. When the reader requests more, the server learns how many were read. */
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

/** The only connection to an address. Opens when a call needs it, and again after it was lost. */
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

  /** Sends a call as soon as the connection is open. */
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

  /** `headers` are those of the first call, for a proxy, which sees the handshake and no frames. */
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
      // An exceeded limit of this client is an error of `ws`; one of the server is a close code (RFC 6455 §7.4.1).
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
      this.#drop(ws, strange(this.#url, "a frame that is not JSON", cause));
    }
  }

  /** Closes a connection without traffic: after a second without an open call, otherwise after `idleTimeout`. */
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
