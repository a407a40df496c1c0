import type { IncomingMessage, ServerResponse } from "node:http";
import { Http2ServerResponse, type Http2ServerRequest } from "node:http2";
import { silentLogger, type Logger, A2AError, type Handler } from "@parley/a2a";
import type { BodyWriter, Sink, UniversalHandler } from "@parley/a2a/protocol";
import type { Exchange, Head, WholeBody } from "./exchange.ts";
import { Http1Exchange } from "./http1.ts";
import { Http2Exchange } from "./http2.ts";
import type { Readable } from "node:stream";
import type { Port, PortHandlers } from "./port.ts";
import type { Upgrades } from "./upgrade.ts";

/** How answers leave this host. */
export interface HttpOptions {
  /** Where the host says what went wrong beneath the protocol. Default: nowhere. */
  readonly logger?: Logger;
  /**
   * A peer that takes nothing for this many milliseconds while an answer waits to go out is given up (default 30 s). A
   * large write that makes some progress is given another term.
   */
  readonly stallTimeout?: number;
}

/** What `http.createServer`, `http2.createServer` and their likes call for a request. */
export type NodeListener = (
  incoming: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
) => void;

/** A listener for servers of Node that answers everything through `handle`. Never throws. */
export function nodeListener(handle: UniversalHandler, options: HttpOptions = {}): NodeListener {
  const responder = new Responder(handle, options);
  return (incoming, response) => void responder.answer(exchangeOf(incoming, response));
}

/** The exchange that Node's objects stand for; `url` where a framework has taken a prefix away. */
export function exchangeOf(
  incoming: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
  url: string | undefined = incoming.url,
): Exchange {
  if (!(response instanceof Http2ServerResponse)) return new Http1Exchange(incoming as IncomingMessage, response, url);
  // The imitation would send trailers of its own, which are empty.
  response.stream.removeAllListeners("wantTrailers");
  return new Http2Exchange(response.stream, incoming.headers, url);
}

/** An answer that waits for the others of its turn of the event loop. */
interface Departure {
  readonly exchange: Exchange;
  readonly head: Head;
  readonly body: WholeBody;
}

/** Has requests answered, and writes the answers. */
export class Responder {
  readonly #handle: UniversalHandler;
  readonly #logger: Logger;
  readonly #stallTimeout: number;
  readonly #isLast: () => boolean;
  #leaving: Departure[] = [];

  /** `isLast`: whether connections end with their next answer. */
  constructor(handle: UniversalHandler, options: HttpOptions, isLast: () => boolean = () => false) {
    this.#handle = handle;
    this.#logger = options.logger ?? silentLogger;
    this.#stallTimeout = options.stallTimeout ?? 30_000;
    this.#isLast = isLast;
  }

  /** Resolves when the answer is ready to leave, or a stream has begun; never rejects. */
  async answer(exchange: Exchange): Promise<void> {
    try {
      const response = await this.#handle(exchange);
      const { body } = response;
      if (typeof body === "function") this.#stream(exchange, response, body);
      else this.#leave({ exchange, head: response, body });
    } catch (cause) {
      this.#fail(exchange, cause);
    }
  }

  /**
   * Answers of one turn of the event loop leave together, after its last request was read: the kernel wakes a peer for
   * the first of them, and finds it awake for the others. That is a third of the CPU of a small answer.
   */
  #leave(departure: Departure): void {
    this.#leaving.push(departure);
    if (this.#leaving.length > 1) return;
    setImmediate(() => {
      const leaving = this.#leaving;
      this.#leaving = [];
      for (const each of leaving) this.#send(each);
    });
  }

  #send({ exchange, head, body }: Departure): void {
    try {
      exchange.send(head, body, this.#isLast());
      // What the kernel did not take at once hangs on a reader who may never read it.
      if (exchange.pending) exchange.closeWhenStalled(this.#stallTimeout);
    } catch (cause) {
      this.#fail(exchange, cause);
    }
  }

  /** Nothing awaits the end of a stream: a function that waits is half a kilobyte for each that stands idle. */
  #stream(exchange: Exchange, head: Head, body: BodyWriter): void {
    let sink: Sink;
    try {
      sink = exchange.open(head);
    } catch (cause) {
      // The writer lets go of what it holds for the answer.
      body(nobody).catch(() => undefined);
      throw cause;
    }
    exchange.closeWhenStalled(this.#stallTimeout);
    const written = body(sink);
    // After the writer's first words, so that they share a packet with the headers.
    exchange.flush();
    written.then(
      () => exchange.end(),
      (cause: unknown) => this.#fail(exchange, cause),
    );
  }

  #fail(exchange: Exchange, cause: unknown): void {
    const { method, url } = exchange;
    this.#logger.error("A request could not be answered", { method, url, cause });
    if (exchange.begun) exchange.breakOff();
    else exchange.send(internalError, internalErrorBody, this.#isLast());
  }
}

/** A peer that is gone. */
const nobody: Sink = {
  closed: true,
  write: () => false,
  ready: () => Promise.resolve(),
  onClose: (run) => run(),
};

/** Only a defect below the bindings leads here: they word their errors themselves. */
const internalError: Head = { status: 500, headers: { "content-type": "application/json" } };
const internalErrorBody = '{"error":{"code":500,"status":"INTERNAL","message":"Internal error"}}';

/** What a mount needs of a handler that `createHandler` made. */
export type MountedHandler = Pick<Handler, "handle" | "answers">;

/** The same exchange, where a framework's parser may have read the body before, and left it as `body`. */
export function withParsedBody(exchange: Exchange, incoming: Readable, body: unknown): Exchange {
  if (!incoming.readableDidRead) return exchange;
  exchange.text = async (limit) => {
    const text = textOf(body);
    if (Buffer.byteLength(text) > limit) throw new A2AError("RequestTooLarge");
    return text;
  };
  return exchange;
}

function textOf(body: unknown): string {
  if (typeof body === "string") return body;
  if (Buffer.isBuffer(body)) return body.toString("utf8");
  if (body === undefined) throw new Error("The request body was read before, and not kept: mount the agents first");
  try {
    return JSON.stringify(body);
  } catch (cause) {
    // Parsers take any depth, but what is nested by the thousands cannot be written again.
    throw new A2AError("InvalidRequest", "The request body is nested too deeply", { cause });
  }
}

/** Has the requests of a port answered, over whichever version of HTTP they come, and its connections upgraded. */
export function dispatch(port: Port, responder: Responder, upgrades?: Upgrades): PortHandlers {
  return {
    http1(incoming, response, asksFirst) {
      port.connections.owe(response);
      void responder.answer(new Http1Exchange(incoming, response, incoming.url, asksFirst));
    },
    http2(stream, headers) {
      // A stream that nobody listens to ends the process with its errors; that its peer is gone is told by `aborted`.
      stream.on("error", ignore);
      void responder.answer(new Http2Exchange(stream, headers));
    },
    ...(upgrades?.possible === true && { upgrades }),
  };
}

function ignore(): void {}
