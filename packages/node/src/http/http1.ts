import type { IncomingMessage, ServerResponse } from "node:http";
import type { BodyBudget, ByteFlow, ByteReader, Sink } from "@parley/a2a/internal/protocol/index";
import { IncomingBody, readText } from "./body.ts";
import { isBodiless, originForm, WritableSink, type Exchange, type Head, type WholeBody } from "./exchange.ts";
import { ConnectionFacts, type FrameworkFacts } from "./facts.ts";
import type { Proxies } from "./proxies.ts";

/** An exchange over HTTP/1.1. Its members are looked up when they are read, because most calls need few of them. */
export class Http1Exchange implements Exchange {
  readonly method: string;
  readonly url: string;
  readonly #incoming: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #asksFirst: boolean;
  #signal: AbortSignal | undefined;
  #facts: ConnectionFacts | undefined;
  framework: FrameworkFacts | undefined;
  proxies: Proxies | undefined;

  /**
   * @param url - The original URL, if a framework has removed a prefix.
   * @param asksFirst - Whether the client sends its body only after `100 Continue` (RFC 9110 §10.1.1).
   */
  constructor(
    incoming: IncomingMessage,
    response: ServerResponse,
    url: string | undefined = incoming.url,
    asksFirst = false,
  ) {
    this.method = incoming.method ?? "GET";
    this.url = originForm(url ?? "/");
    this.#incoming = incoming;
    this.#response = response;
    this.#asksFirst = asksFirst;
  }

  header(name: string): string | undefined {
    const value = this.#incoming.headers[name];
    if (typeof value === "string") return value;
    // Node's object has a prototype, so names such as `constructor` find a function there.
    return Array.isArray(value) ? value.join(", ") : undefined;
  }

  *fields(): Generator<readonly [string, string]> {
    const { rawHeaders } = this.#incoming;
    for (let at = 0; at < rawHeaders.length; at += 2) yield [rawHeaders[at] ?? "", rawHeaders[at + 1] ?? ""];
  }

  get facts(): ConnectionFacts {
    return (this.#facts ??= new ConnectionFacts(this.#incoming.socket, this));
  }

  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      const controller = new AbortController();
      onGone(this.#incoming, this.#response, () => controller.abort());
      this.#signal = controller.signal;
    }
    return this.#signal;
  }

  read(reader: ByteReader): ByteFlow {
    return new IncomingBody(this.#incoming, reader, this.#asksFirst ? () => this.#response.writeContinue() : undefined);
  }

  text(limit: number, budget?: BodyBudget): Promise<string> {
    // An empty body that a framework has read has ended already, and emits no further event.
    if (this.#incoming.readableEnded) return Promise.resolve("");
    // Node buffers the bytes, so a body whose announced size is too large is never read.
    return readText(this, { limit, budget, length: this.#incoming.headers["content-length"] });
  }

  send({ status, headers }: Head, body: WholeBody, last: boolean, stallTimeout: number): void {
    const response = this.#response;
    const own = last ? { connection: "close", ...headers } : headers;
    const complete = isBodiless(status) ? own : { "content-length": Buffer.byteLength(body ?? ""), ...own };
    if (bodyIsLeft(this.#incoming)) {
      response.writeHead(status, { ...complete, connection: "close" });
      response.write(body ?? "");
      linger(this.#incoming, response);
    } else response.writeHead(status, complete).end(body);
    // Data is still buffered: the client may never read the rest.
    if (response.writableLength > 0) response.setTimeout(stallTimeout, abortWhenStalled);
  }

  open({ status, headers }: Head, last: boolean, stallTimeout: number): Sink {
    const own = last ? { connection: "close", ...headers } : headers;
    // Partial progress of a large write restarts the time. Node keeps all timeouts of one length behind one timer.
    this.#response.writeHead(status, own).setTimeout(stallTimeout, abortWhenStalled);
    const sink = new WritableSink(this.#response);
    // A HEAD request needs no body, so the writer releases its source immediately.
    if (this.method === "HEAD") sink.close();
    else onGone(this.#incoming, this.#response, () => sink.close());
    return sink;
  }

  flush(): void {
    this.#response.flushHeaders();
  }

  end(): void {
    this.#response.end();
  }

  get begun(): boolean {
    return this.#response.headersSent;
  }

  breakOff(): void {
    this.#response.destroy();
  }
}

/** One function for all streams, which saves memory. */
function abortWhenStalled(this: ServerResponse): void {
  if (this.writableLength > 0) this.destroy();
}

/** Milliseconds for which the rest of a rejected request is read and discarded. */
const lingerTime = 2_000;

/** The largest unread request body, in bytes, that is read to keep the connection. */
const worthDraining = 64 * 1024;

/** Whether too much of the request is unread to keep the connection. */
function bodyIsLeft(incoming: IncomingMessage): boolean {
  if (incoming.complete) return false;
  const announced = incoming.headers["content-length"];
  if (announced === undefined) return incoming.headers["transfer-encoding"] !== undefined;
  return Number(announced) > worthDraining;
}

/**
 * Ends a response whose request is not completely read. Closing a socket with unread bytes resets the connection, which may cost the
 * client the answer. So this sends the whole answer, reads and discards the request for a moment, and then closes the connection
 * (RFC 9112 §9.6).
 */
function linger(incoming: IncomingMessage, response: ServerResponse): void {
  const end = (): void => {
    clearTimeout(timer);
    response.end();
  };
  const timer = setTimeout(end, lingerTime);
  incoming.once("end", end).once("close", end).on("error", end).resume();
}

/** Calls `run` once the client disconnects before its answer is complete, or immediately if it already has. */
function onGone(incoming: IncomingMessage, response: ServerResponse, run: () => void): void {
  const { socket } = incoming;
  if (response.destroyed || socket.destroyed) {
    run();
  } else if (response.socket !== null) {
    // Not `once`: the event is emitted only once anyway, and the wrapper of `once` takes two hundred bytes per stream.
    response.on("close", () => {
      if (!response.writableFinished) run();
    });
  } else {
    // A pipelined answer that waits for an earlier one has no socket yet, and gets no event when the socket closes.
    socket.setMaxListeners(0).once("close", run);
    response.once("finish", () => socket.off("close", run));
  }
}
