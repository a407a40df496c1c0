import { lookup } from "node:dns/promises";
import {
  request as httpRequest,
  Agent as HttpAgent,
  type Agent,
  type IncomingMessage,
  type AgentOptions,
  type ClientRequest,
} from "node:http";
import { request as httpsRequest, Agent as HttpsAgent, type RequestOptions } from "node:https";
import type { LookupFunction, Socket } from "node:net";
import { Readable } from "node:stream";
import type { Dialer, DialInit, ResolvedAddress } from "@parley/a2a/internal/net/port";

/** Options of `nodeDialer()`. */
export interface DialerOptions {
  /** Resolves host names. Default: the resolver of the system, which also reads `/etc/hosts`. */
  readonly resolve?: Dialer["resolve"];
  /** Certificates to trust, the client certificate with its key, and further TLS options of `node:https`. */
  readonly tls?: Pick<RequestOptions, "ca" | "cert" | "key" | "passphrase" | "minVersion">;
  /** How long a connection waits for another request, in milliseconds. 0: each request has its own connection. Default 4 s. */
  readonly idleTimeout?: number;
}

/**
 * Opens connections only to the addresses that the guard has checked, which prevents DNS rebinding: the name may resolve to another
 * address a moment later. The `Host` header and the check of the certificate use the host name.
 *
 * Reuses a connection only for the same origin at the same set of checked addresses, so never for a name that now resolves to
 * other addresses. If the server closes the connection at that moment, a GET or HEAD that has received no bytes is retried on a new
 * connection. Other requests fail, because the server may have acted on them.
 */
export function nodeDialer(options: DialerOptions = {}): Dialer {
  const { resolve = resolveBySystem, tls = {}, idleTimeout = 4_000 } = options;
  const kept = new KeptConnections(idleTimeout);
  return { resolve, fetch: (url, addresses, init) => dial({ url, addresses, init, tls, kept }) };
}

async function resolveBySystem(hostname: string): Promise<readonly ResolvedAddress[]> {
  const found = await lookup(hostname, { all: true });
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
}

/** Maximum interim answers before the final one. HTTP has no limit (RFC 9110 §15.2). */
const maxInformation = 16;

/** A request with its options. */
interface Call {
  readonly url: URL;
  readonly addresses: readonly ResolvedAddress[];
  readonly init: DialInit;
  readonly tls: RequestOptions;
  readonly kept: KeptConnections;
}

/** Sends a request. Retries once if a kept connection turns out to be closed and the request is safe to repeat. */
async function dial(call: Call): Promise<Response> {
  const { url, init, kept } = call;
  try {
    return await send(call, kept.agent(url.protocol));
  } catch (thrown) {
    const { method = "GET", body, signal } = init;
    const repeatable = (method === "GET" || method === "HEAD") && body === undefined && signal?.aborted !== true;
    if (!(thrown instanceof KeptConnectionClosed)) throw thrown;
    if (!repeatable) throw thrown.cause;
    return send(call, false);
  }
}

/** A connection that was used before was closed without any byte of an answer. */
class KeptConnectionClosed extends Error {}

/** Sends a request once. The promise always settles, and no callback throws. */
function send({ url, addresses, init, tls }: Call, agent: Agent | false): Promise<Response> {
  const { method = "GET", headers = {}, body, signal } = init;
  return new Promise((resolve, reject) => {
    const options: RequestOptions & { readonly connectionKey: string } = {
      ...tls,
      method,
      // A compressed answer could exceed the limit on its size when it is decompressed.
      headers: { "accept-encoding": "identity", ...headers },
      lookup: pinned(addresses),
      agent,
      connectionKey: connectionKey(url, addresses),
      ...(signal === undefined ? {} : { signal }),
    };
    const request = url.protocol === "https:" ? httpsRequest(url, options) : httpRequest(url, options);
    const refuse = (error: unknown): void => {
      reject(error instanceof Error ? error : new Error(String(error)));
      request.destroy();
    };
    let information = 0;
    let read = 0;
    request.on("socket", ({ bytesRead }) => (read = bytesRead));
    request.on("error", (error: NodeJS.ErrnoException) => {
      const closed = error.code === "ECONNRESET" || error.code === "EPIPE";
      const stale = closed && request.reusedSocket && request.socket?.bytesRead === read;
      reject(stale ? new KeptConnectionClosed(undefined, { cause: error }) : error);
    });
    request.on("close", () => reject(new Error("The server closed the connection before it answered")));
    request.on("information", () => {
      if (++information > maxInformation) refuse(new Error("The server sent only interim answers"));
    });
    request.on("upgrade", (_incoming, socket) => {
      socket.destroy();
      refuse(new Error("The server switched to another protocol"));
    });
    request.on("response", (incoming) => {
      try {
        resolve(toResponse(incoming, method));
      } catch (error) {
        incoming.on("error", () => {});
        refuse(error);
      }
    });
    request.end(body);
  });
}

/** A resolver that always returns the same addresses. Node does not look up literal addresses; the guard passes them unchanged. */
function pinned(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_hostname, { all }, callback) => {
    const [first] = addresses;
    if (all === true) callback(null, [...addresses]);
    else callback(null, first?.address ?? "", first?.family);
  };
}

/** Reason phrases that `Response` accepts. Other reason phrases are omitted, because they have no meaning for clients (RFC 9110 §15). */
const reason = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Bytes to buffer before reading from the connection pauses. Node's default is 16,384 pieces of any size. */
const waiting = new ByteLengthQueuingStrategy({ highWaterMark: 64 * 1024 });

/** The answer as a `Response`. Throws if that is not possible. */
function toResponse(incoming: IncomingMessage, method: string): Response {
  const { statusCode: status = 0, statusMessage = "", rawHeaders } = incoming;
  if (status < 200 || status > 599) throw new Error(`The server answered with the invalid status ${status}`);
  const statusText = reason.test(statusMessage) ? statusMessage : "";
  const headers = new Headers();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    headers.append(rawHeaders[index] ?? "", rawHeaders[index + 1] ?? "");
  }
  if (method === "HEAD" || status === 204 || status === 304 || headers.get("content-length") === "0") {
    // Such an answer has no body, so the connection can be reused.
    incoming.on("error", () => {}).resume();
    return new Response(null, { status, statusText, headers });
  }
  if (status === 205) {
    // It has no body either, but Node would read bytes that the server sends anyway.
    incoming.on("error", () => {}).destroy();
    return new Response(null, { status, statusText, headers });
  }
  const body = Readable.toWeb(incoming, { strategy: waiting }) as ReadableStream<Uint8Array>;
  return new Response(body, { status, statusText, headers });
}

/** Maximum idle connections. */
const maxIdle = 256;
/** Maximum idle connections of one origin at the same addresses. */
const maxIdleOfOne = 16;

/** Options of a request for its connection's agent. */
interface Pinned {
  /** See `connectionKey`. */
  readonly connectionKey?: string;
}

/**
 * The key for reusing a connection: the origin, and the set of checked addresses. It needs no TLS
 * options, because each dialer has its own connections.
 */
function connectionKey(url: URL, addresses: readonly ResolvedAddress[]): string {
  return [url.origin, ...addresses.map(({ address }) => address).sort()].join(" ");
}

/**
 * Idle connections of a dialer, kept open for another request. They are closed after a while; if the server announces when it would close
 * them, a second earlier. They do not keep the process alive.
 */
class KeptConnections {
  readonly #agents: Readonly<Record<string, HttpAgent>> | undefined;
  readonly #idle = new Set<Socket>();
  /** One listener for all connections, to save memory. */
  readonly #forget: (this: Socket) => void;

  /** @param wait - How long a connection waits for another request, in milliseconds. 0: no connection is kept. */
  constructor(wait: number) {
    const idle = this.#idle;
    this.#forget = function (this: Socket): void {
      idle.delete(this);
    };
    if (wait <= 0) return;
    const options: AgentOptions = { keepAlive: true, timeout: wait, maxFreeSockets: maxIdleOfOne };
    this.#agents = { "http:": this.#own(new HttpAgent(options)), "https:": this.#own(new HttpsAgent(options)) };
  }

  /** The agent for requests of a protocol. `false`: each request has its own connection. */
  agent(protocol: string): HttpAgent | false {
    return this.#agents?.[protocol] ?? false;
  }

  #own<T extends HttpAgent>(agent: T): T {
    return Object.assign(agent, {
      getName: (options: Pinned = {}) => options.connectionKey ?? "",
      keepSocketAlive: (socket: Socket) => this.#keep(agent, socket),
      reuseSocket: (socket: Socket, request: ClientRequest) => {
        this.#idle.delete(socket);
        socket.removeListener("close", this.#forget);
        HttpAgent.prototype.reuseSocket.call(agent, socket, request);
      },
    });
  }

  /** Whether the connection waits for another request. If not, Node closes it. */
  #keep(agent: HttpAgent, socket: Socket): boolean {
    if (this.#idle.size >= maxIdle) return false;
    // Node's declarations lack the result.
    const kept = HttpAgent.prototype.keepSocketAlive.call(agent, socket) as unknown as boolean;
    if (kept) this.#idle.add(socket.on("close", this.#forget));
    return kept;
  }
}
