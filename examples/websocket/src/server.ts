import { A2AError, wireErrors } from "@parley/a2a/model";
import {
  answerCall,
  codecOf,
  failureOf,
  parseJson,
  requestedVersion,
  type AnyReply,
  type Codec,
  type OperationName,
  type ServerCall,
  type ServerContext,
  type ServerHost,
  type StreamReply,
  type UniversalRequest,
  type UniversalResponse,
} from "@parley/a2a/protocol";
import type { UpgradeBinding, UpgradedConnection, UpgradeEndpoint } from "@parley/node";
import { WebSocketServer, type WebSocket } from "ws";
import { bindingName, subprotocol, window, type CallFrame, type ClientFrame, type Headers } from "./frames.ts";

/** Most calls that may be open on one connection. */
const maxCalls = 64;

/** A2A over WebSocket: one connection carries all calls to an agent. For `serve(agent, { bindings: [webSocketBinding()] })`. */
export function webSocketBinding(): UpgradeBinding {
  const pathOf = (path: string): string => path || "/ws";
  return {
    name: bindingName,
    upgradesTo: "websocket",
    interfaces({ url, path, tenant }, codec) {
      // Requests of such a version cannot name a tenant.
      if (codec.tenantInPath === true && tenant !== undefined) return [];
      return [{ url: url.replace(/^http/, "ws") + pathOf(path), ...(tenant !== undefined && { tenant }) }];
    },
    http: {
      claim: ({ path }) => ({ paths: [{ path: pathOf(path) }] }),
      open: (host) => new WebSocketEndpoint(host),
    },
  };
}

class WebSocketEndpoint implements UpgradeEndpoint {
  readonly #host: ServerHost;
  readonly #server: WebSocketServer;

  constructor(host: ServerHost) {
    this.#host = host;
    this.#server = new WebSocketServer({
      noServer: true,
      // A slightly larger frame gets an answer (`#receive`). Beyond that, the connection is closed (1009).
      maxPayload: 2 * host.limits.bodyBytes,
      handleProtocols: (offered) => offered.has(subprotocol) && subprotocol,
    });
  }

  /** Tells a client that does not ask for WebSocket to do so (RFC 9110 §15.5.22). */
  answer(): UniversalResponse {
    return { status: 426, headers: { upgrade: "websocket", connection: "upgrade" } };
  }

  upgrade({ request, incoming, socket, head }: UpgradedConnection): void {
    this.#server.handleUpgrade(incoming, socket, head, (ws) => new Connection(this.#host, ws, request));
  }

  close(): void {
    for (const ws of this.#server.clients) ws.close(1001, "The server stops");
  }
}

/** A connection and the calls that are open on it. */
class Connection {
  readonly #host: ServerHost;
  readonly #ws: WebSocket;
  readonly #handshake: UniversalRequest;
  readonly #calls = new Map<number, Call>();

  constructor(host: ServerHost, ws: WebSocket, handshake: UniversalRequest) {
    this.#host = host;
    this.#ws = ws;
    this.#handshake = handshake;
    const stop = showPresence(host, ws);
    ws.on("message", (data: Buffer) => this.#receive(data.toString()));
    // The error closes the connection, too.
    ws.on("error", () => {});
    ws.on("close", () => {
      stop();
      for (const call of this.#calls.values()) call.leave();
    });
  }

  #receive(text: string): void {
    const { limits } = this.#host;
    let frame: ClientFrame;
    try {
      if (Buffer.byteLength(text) > limits.bodyBytes) throw new A2AError("RequestTooLarge");
      // The frame adds a level, so all bindings allow the same nesting of messages.
      frame = parseJson(text, new FrameRequest(this.#handshake, {}), limits, limits.depth + 1) as ClientFrame;
    } catch (thrown) {
      // The id comes first, so the sender of an unreadable frame can be told.
      const id = /^\{"id":(\d{1,15}),/.exec(text)?.[1];
      if (id === undefined) this.#ws.close(1007, "A frame is not JSON, or nested too deeply");
      else this.#callOf({ id: Number(id), method: "SendMessage", params: undefined }).fail(thrown);
      return;
    }
    if (typeof frame !== "object" || frame === null || !Number.isSafeInteger(frame.id)) {
      return this.#ws.close(1008, "A frame has no id");
    }
    const call = this.#calls.get(frame.id);
    if ("method" in frame && call === undefined) void this.#begin(frame);
    else if ("taken" in frame) call?.taken(frame.taken);
    else if ("leave" in frame) call?.leave();
    else this.#ws.close(1008, "A frame is of no known kind, or its id is in use");
  }

  #callOf({ id, method, params, headers = {} }: CallFrame): Call {
    return new Call(this.#host, this.#ws, new FrameRequest(this.#handshake, headers), id, method, params);
  }

  async #begin(frame: CallFrame): Promise<void> {
    const { id } = frame;
    const call = this.#callOf(frame);
    if (this.#calls.size >= maxCalls) {
      return call.fail(new A2AError("Unavailable", "Too many calls are open on this connection", { retryAfter: 1 }));
    }
    this.#calls.set(id, call);
    await answerCall(this.#host, call);
    this.#calls.delete(id);
  }
}

/** A call as an authenticator sees it: its frame takes precedence over the handshake. */
class FrameRequest implements UniversalRequest {
  readonly method = "POST";
  readonly url: string;
  /** Fires when the client leaves this call. */
  readonly left: AbortController = new AbortController();
  readonly #handshake: UniversalRequest;
  readonly #headers: Headers;

  constructor(handshake: UniversalRequest, headers: Headers) {
    this.url = handshake.url;
    this.#handshake = handshake;
    this.#headers = headers;
  }

  header(name: string): string | undefined {
    if (name === "content-type") return "application/json";
    return Object.hasOwn(this.#headers, name) ? String(this.#headers[name]) : this.#handshake.header(name);
  }

  text(): Promise<string> {
    return Promise.reject(new A2AError("InvalidRequest", "A frame has no body"));
  }

  get signal(): AbortSignal {
    return this.left.signal;
  }

  get facts(): UniversalRequest["facts"] {
    return this.#handshake.facts;
  }
}

/** One call: `answerCall` reads its caller and request, and writes the answer through it. */
class Call implements ServerCall<unknown, void> {
  readonly request: FrameRequest;
  readonly operation: OperationName;
  codec: Codec;
  readonly #host: ServerHost;
  readonly #ws: WebSocket;
  readonly #id: number;
  readonly #params: unknown;
  /** Bytes of each event that the client has not read. */
  readonly #ahead: number[] = [];
  #wake = (): void => {};

  constructor(
    host: ServerHost,
    ws: WebSocket,
    request: FrameRequest,
    id: number,
    operation: OperationName,
    params: unknown,
  ) {
    this.#host = host;
    this.#ws = ws;
    this.request = request;
    this.operation = operation;
    this.codec = host.codecs[0];
    this.#id = id;
    this.#params = params;
  }

  get shapes(): Codec["shapes"] {
    return this.codec.shapes;
  }

  accept(): void {
    this.codec = codecOf(this.#host.codecs, requestedVersion(this.request, "") ?? this.codec.version);
    if (!Object.hasOwn(this.#host.operations, this.operation)) throw new A2AError("MethodNotFound");
  }

  body(): unknown {
    return this.#params;
  }

  read(params: unknown): unknown {
    return params;
  }

  async reply(reply: AnyReply, context: ServerContext): Promise<void> {
    const result = this.shapes.encodeResponse<OperationName>(this.operation, reply);
    await this.#send(`"result":${result}${headersOf(reply.extensions)}`);
    context.end();
  }

  async stream({ batches, extensions }: StreamReply, context: ServerContext): Promise<void> {
    const source = batches[Symbol.asyncIterator]();
    const { signal } = this.request;
    signal.addEventListener("abort", () => void source.return?.().catch(() => undefined));
    void this.#send(`"stream":true${headersOf(extensions)}`);
    for (let next = await source.next(); next.done !== true; next = await source.next()) {
      for (const item of next.value) {
        await this.#room();
        if (signal.aborted) break;
        const seq = item.seq === undefined ? "" : `"seq":${item.seq},`;
        this.#ahead.push(await this.#send(`${seq}"event":${this.shapes.encodeEvent(item)}`));
      }
      context.release();
    }
    context.end();
    void this.#send('"end":true');
  }

  fail(thrown: unknown): void {
    const told = { binding: bindingName, method: this.operation };
    const error = failureOf(thrown, this.#host.logger, told, () => this.request.signal.aborted);
    const headers = {
      ...(error.challenge !== undefined && { "www-authenticate": error.challenge }),
      ...(error.retryAfter !== undefined && { "retry-after": String(Math.ceil(error.retryAfter)) }),
    };
    const { http } = wireErrors[error.code];
    void this.#send(`"error":${this.shapes.encodeError(error)},"status":${http},"headers":${JSON.stringify(headers)}`);
  }

  /** The client no longer waits for the answer. */
  leave(): void {
    this.request.left.abort();
    this.#wake();
  }

  taken(events: number): void {
    this.#ahead.splice(0, events);
    this.#wake();
  }

  /** Waits until the client has read enough, or disconnects. */
  async #room(): Promise<void> {
    const { signal } = this.request;
    while (!signal.aborted && this.#ahead.reduce((sum, bytes) => sum + bytes, 0) >= window) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Sends a frame; resolves with its length in bytes, once the kernel has it or the connection is lost. */
  #send(members: string): Promise<number> {
    const bytes = Buffer.from(`{"id":${this.#id},${members}}`);
    return new Promise((resolve) => this.#ws.send(bytes, { binary: false }, () => resolve(bytes.length)));
  }
}

/** The header with the active extensions (A2A 1.0 §3.2.6). */
function headersOf(extensions: readonly string[] = []): string {
  return extensions.length === 0 ? "" : `,"headers":${JSON.stringify({ "a2a-extensions": extensions.join(",") })}`;
}

/**
 * Sends an empty frame as often as event streams get a comment, as a keep-alive, and closes a connection whose client has not answered a
 * ping by then. Returns a function that stops it.
 */
function showPresence({ keepAlive }: ServerHost, ws: WebSocket): () => void {
  let alive = true;
  ws.on("pong", () => (alive = true));
  const beat = keepAlive.add({
    get closed() {
      return ws.readyState !== ws.OPEN;
    },
    write() {
      if (!alive) ws.terminate();
      alive = false;
      ws.ping();
      ws.send("{}");
      return true;
    },
    ready: () => Promise.resolve(),
    onClose: (run) => ws.on("close", run),
  });
  return () => keepAlive.remove(beat);
}
