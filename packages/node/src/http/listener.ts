import type { IncomingMessage, ServerResponse } from "node:http";
import { Http2ServerResponse, type Http2ServerRequest } from "node:http2";
import type { Readable } from "node:stream";
import { silentLogger, withoutQuery, type Logger } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import {
  bodyTooLarge,
  type BodyWriter,
  type HostPrincipal,
  type Sink,
  type UniversalHandler,
} from "@parley/a2a/internal/protocol/index";
import type { Handler } from "@parley/server/internal/handler";
import type { Exchange, Head, WholeBody } from "./exchange.ts";
import { Http1Exchange } from "./http1.ts";
import { Http2Exchange } from "./http2.ts";
import type { Port, PortHandlers } from "./port.ts";
import type { Proxies, TrustProxy } from "./proxies.ts";
import type { Upgrades } from "./upgrade.ts";

/** HTTP options of a server or mount. */
export interface HttpOptions {
  /** Logs errors below the protocol. Default: no log. */
  readonly logger?: Logger;
  /**
   * Closes the connection of a client that reads nothing for this many milliseconds while data of an answer waits for it. A
   * large write that makes progress restarts the time. Default 30 s.
   */
  readonly stallTimeout?: number;
  /**
   * The trusted proxies in front of this server. Their forwarding headers determine the facts of a request, and so affect
   * authenticators and limits. Default: none, so such headers have no effect. They never affect cards.
   */
  readonly trustProxy?: TrustProxy;
}

/** A request of a Node server. */
export type NodeRequest = IncomingMessage | Http2ServerRequest;

/** Options of `nodeListener`. `Incoming`: the type of the server's requests. */
export interface NodeListenerOptions<Incoming extends NodeRequest = NodeRequest> extends HttpOptions {
  /**
   * Returns the caller for `hostUser()` of `@parley/a2a/auth`, or a falsy value if no user is logged in. It is called at most once per request,
   * when the principal is read.
   */
  readonly principal?: (incoming: Incoming) => HostPrincipal | Promise<HostPrincipal>;
}

/** A request listener for `http.createServer`, `http2.createServer` and similar servers. */
export type NodeListener<Incoming extends NodeRequest = NodeRequest> = (
  incoming: Incoming,
  response: ServerResponse | Http2ServerResponse,
) => void;

/**
 * A listener for Node servers that answers every request through `handle`. Never throws. If `trustProxy` is invalid, this
 * is logged immediately, and every request fails.
 */
export function nodeListener<Incoming extends NodeRequest = NodeRequest>(
  handle: UniversalHandler,
  options: NodeListenerOptions<Incoming> = {},
): NodeListener<Incoming> {
  const { principal } = options;
  const responder = new Responder(handle, options, proxiesOf(options));
  return (incoming, response) => {
    const exchange = exchangeOf(incoming, response);
    if (principal !== undefined) exchange.framework = { principal: () => principal(incoming) };
    void responder.answer(exchange);
  };
}

/** The proxies in the options. Their code is loaded only if there are any. */
function proxiesOf({ trustProxy, logger = silentLogger }: HttpOptions): Promise<Proxies> | undefined {
  if (trustProxy === undefined) return undefined;
  const proxies = import("./proxies.ts").then((loaded) => new loaded.Proxies(trustProxy));
  proxies.catch((cause: unknown) => logger.error("Invalid option `trustProxy`; every request fails", { cause }));
  return proxies;
}

/** The exchange for a request and a response of Node. `url`: the original URL, if a framework has removed a prefix. */
export function exchangeOf(
  incoming: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
  url: string | undefined = incoming.url,
): Exchange {
  if (!(response instanceof Http2ServerResponse)) return new Http1Exchange(incoming as IncomingMessage, response, url);
  // Node's compatibility API of HTTP/2 would add empty trailers.
  response.stream.removeAllListeners("wantTrailers");
  return new Http2Exchange(response.stream, incoming.headers, url);
}

/** A whole answer that waits for the end of this turn of the event loop. */
interface ReadyAnswer {
  readonly exchange: Exchange;
  readonly head: Head;
  readonly body: WholeBody;
}

/** Passes requests to a handler, and sends its answers. */
export class Responder {
  readonly #handle: UniversalHandler;
  readonly #logger: Logger;
  readonly #stallTimeout: number;
  readonly #proxies: Proxies | Promise<Proxies> | undefined;
  readonly #isLast: () => boolean;
  #ready: ReadyAnswer[] = [];
  #unansweredCount = 0;

  /**
   * @param proxies - The proxies of `options.trustProxy`.
   * @param isLast - Whether connections of HTTP/1.1 close after their next answer.
   */
  constructor(
    handle: UniversalHandler,
    options: Pick<HttpOptions, "logger" | "stallTimeout">,
    proxies?: Proxies | Promise<Proxies>,
    isLast: () => boolean = () => false,
  ) {
    this.#handle = handle;
    this.#logger = options.logger ?? silentLogger;
    this.#stallTimeout = options.stallTimeout ?? 30_000;
    this.#proxies = proxies;
    this.#isLast = isLast;
  }

  /** Number of unanswered requests. A request with a streamed answer counts as answered once the stream begins. */
  get unansweredCount(): number {
    return this.#unansweredCount;
  }

  /** Resolves when the answer is ready to be sent, or its stream has begun. Never rejects. */
  async answer(exchange: Exchange): Promise<void> {
    this.#unansweredCount += 1;
    try {
      if (this.#proxies !== undefined) {
        exchange.proxies = this.#proxies instanceof Promise ? await this.#proxies : this.#proxies;
      }
      const response = await this.#handle(exchange);
      const { body } = response;
      if (typeof body === "function") this.#stream(exchange, response, body);
      else this.#sendSoon({ exchange, head: response, body });
    } catch (cause) {
      this.#fail(exchange, cause);
    } finally {
      this.#unansweredCount -= 1;
    }
  }

  /**
   * Sends all answers of one turn of the event loop together, after the last request of that turn was read. The kernel then
   * wakes a client process once and not for each answer, which saves a third of the CPU of a small answer.
   */
  #sendSoon(answer: ReadyAnswer): void {
    this.#ready.push(answer);
    if (this.#ready.length > 1) return;
    setImmediate(() => {
      const ready = this.#ready;
      this.#ready = [];
      for (const each of ready) this.#send(each);
    });
  }

  #send({ exchange, head, body }: ReadyAnswer): void {
    try {
      exchange.send(head, body, this.#isLast(), this.#stallTimeout);
    } catch (cause) {
      this.#fail(exchange, cause);
    }
  }

  /** Nothing awaits the end of a stream, because a waiting function takes half a kilobyte for each idle stream. */
  #stream(exchange: Exchange, head: Head, body: BodyWriter): void {
    let sink: Sink;
    try {
      sink = exchange.open(head, this.#isLast(), this.#stallTimeout);
    } catch (cause) {
      // Still calls the writer, so that it releases its source.
      body(closedSink).catch(() => undefined);
      throw cause;
    }
    const written = body(sink);
    // Flushed after the first write of the body, which then shares a packet with the headers.
    exchange.flush();
    written.then(
      () => exchange.end(),
      (cause: unknown) => this.#fail(exchange, cause),
    );
  }

  #fail(exchange: Exchange, cause: unknown): void {
    const { method, url } = exchange;
    this.#logger.error("Failed to answer request", { method, url: withoutQuery(url), cause });
    if (exchange.begun) exchange.breakOff();
    else exchange.send(internalError, internalErrorBody, this.#isLast(), this.#stallTimeout);
  }
}

/** A sink whose client has disconnected. */
const closedSink: Sink = { closed: true, write: () => false, ready: () => Promise.resolve(), onClose: (run) => run() };

/** The answer after a bug in this program. Bindings write all other errors. */
const internalError: Head = { status: 500, headers: { "content-type": "application/json" } };
const internalErrorBody = '{"error":{"code":500,"status":"INTERNAL","message":"Internal error"}}';

/** The members of a handler that a mount needs. */
export type MountedHandler = Pick<Handler, "handle" | "answers">;

/** Returns the exchange. If a parser of the framework has read the body, its text is serialized from `body`, the parser's result. */
export function withParsedBody(exchange: Exchange, incoming: Readable, body: unknown): Exchange {
  if (!incoming.readableDidRead) return exchange;
  exchange.rewritten = typeof body !== "string" && !Buffer.isBuffer(body);
  // The parser has consumed the body.
  Object.defineProperty(exchange, "read", { value: undefined });
  exchange.text = async (limit) => {
    const text = textOf(body);
    if (Buffer.byteLength(text) > limit) throw bodyTooLarge("Request body", limit);
    return text;
  };
  return exchange;
}

function textOf(body: unknown): string {
  if (typeof body === "string") return body;
  if (Buffer.isBuffer(body)) return body.toString("utf8");
  if (body === undefined) {
    throw new Error("Other middleware has read the request body. Mount the agents before that middleware");
  }
  try {
    return JSON.stringify(body);
  } catch (cause) {
    // Parsers read any depth, but `JSON.stringify` fails on values that are nested thousands of levels deep.
    throw new A2AError("InvalidRequest", "The request body is nested too deeply", { cause });
  }
}

/** Connects a port to a responder, for both versions of HTTP, and to the bindings that take over connections. */
export function dispatch(port: Port, responder: Responder, upgrades?: Upgrades): PortHandlers {
  return {
    http1(incoming, response, asksFirst) {
      port.connections.owe(response);
      void responder.answer(new Http1Exchange(incoming, response, incoming.url, asksFirst));
    },
    http2(stream, headers) {
      // Without a listener an error of the stream would end the process. The event `aborted` reports that the client disconnected.
      stream.on("error", ignore);
      void responder.answer(new Http2Exchange(stream, headers, undefined, port.requestTimeout));
    },
    ...(upgrades?.possible === true && { upgrades }),
  };
}

function ignore(): void {}
