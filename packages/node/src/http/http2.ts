import { validateHeaderValue } from "node:http";
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { BodyBudget, ByteFlow, ByteReader, Sink } from "@parley/a2a/internal/protocol/index";
import { brokeOff, IncomingBody, readText } from "./body.ts";
import {
  isBodiless,
  originForm,
  WritableSink,
  type Exchange,
  type Head,
  type Headers,
  type WholeBody,
} from "./exchange.ts";
import { ConnectionFacts, type FrameworkFacts } from "./facts.ts";
import type { Proxies } from "./proxies.ts";

/** Longest time to receive a whole request, in milliseconds. */
export const requestTimeout = 300_000;

/** Milliseconds for which the rest of an answered request is read and discarded. */
const lingerTime = 2_000;

/**
 * An exchange over HTTP/2: one stream of a connection. It writes to the stream itself, because Node's compatibility API does not
 * report when there is room again.
 */
export class Http2Exchange implements Exchange {
  readonly method: string;
  readonly url: string;
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly #timeout: number;
  #signal: AbortSignal | undefined;
  #facts: ConnectionFacts | undefined;
  framework: FrameworkFacts | undefined;
  proxies: Proxies | undefined;
  /** Whether the body is being read, which may continue after the head of the answer. */
  #reading = false;

  /**
   * @param url - The original URL, if a framework has removed a prefix.
   * @param timeout - Longest time to receive the request, in milliseconds.
   */
  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    url: string | undefined = headers[":path"],
    timeout: number = requestTimeout,
  ) {
    this.#timeout = timeout;
    this.method = headers[":method"] ?? "GET";
    this.url = originForm(url ?? "/");
    this.#stream = stream;
    this.#headers = headers;
  }

  header(name: string): string | undefined {
    const value = this.#headers[name] ?? (name === "host" ? this.#headers[":authority"] : undefined);
    if (typeof value === "string") return value;
    // Another server's object may have a prototype, on which names such as `constructor` find a function.
    return Array.isArray(value) ? value.join(", ") : undefined;
  }

  *fields(): Generator<readonly [string, string]> {
    const host = this.header("host");
    if (host !== undefined) yield ["host", host];
    for (const [name, value] of Object.entries(this.#headers)) {
      if (name.startsWith(":") || name === "host" || value === undefined) continue;
      for (const one of Array.isArray(value) ? value : [value]) yield [name, one];
    }
  }

  get facts(): ConnectionFacts {
    return (this.#facts ??= new ConnectionFacts(this.#stream.session?.socket, this));
  }

  get connection(): object | undefined {
    return this.#stream.session;
  }

  get takesTrailers(): boolean {
    return true;
  }

  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      const controller = new AbortController();
      this.#onGone(() => controller.abort());
      this.#signal = controller.signal;
    }
    return this.#signal;
  }

  read(reader: ByteReader): ByteFlow {
    this.#reading = true;
    const stream = this.#stream;
    const asksFirst = this.#headers.expect?.toLowerCase() === "100-continue";
    this.#limitTime();
    return new IncomingBody(stream, reader, asksFirst ? () => stream.additionalHeaders({ ":status": 100 }) : undefined);
  }

  /** Ends a request that is not complete in time. Exempts gRPC, whose requests may be streams of hours, with a time limit per message. */
  #limitTime(): void {
    const stream = this.#stream;
    if (stream.readableEnded || stream.destroyed || this.#headers["content-type"]?.startsWith("application/grpc"))
      return;
    const late = setTimeout(() => stream.destroy(new Error("The request takes too long")), this.#timeout);
    const over = (): void => clearTimeout(late);
    stream.once("end", over).once("close", over);
  }

  async text(limit: number, budget?: BodyBudget): Promise<string> {
    const stream = this.#stream;
    if (stream.readableEnded) return "";
    if (stream.destroyed || stream.session === undefined) throw brokeOff();
    try {
      return await readText(this, { limit, budget, length: this.#headers["content-length"] });
    } finally {
      this.#reading = false;
    }
  }

  send(head: Head, body: WholeBody, _last: boolean, stallTimeout: number): void {
    const stream = this.#stream;
    if (stream.closed) return;
    const headers = this.#headersOf(head);
    if (head.trailers === undefined && body !== undefined && !isBodiless(head.status)) {
      headers["content-length"] = Buffer.byteLength(body);
    }
    const bodiless = body === undefined || body.length === 0 || isBodiless(head.status) || this.method === "HEAD";
    const endStream = bodiless && head.trailers === undefined;
    this.#respond(head, headers, endStream);
    if (!endStream) stream.end(bodiless ? undefined : body);
    // Data is still buffered: the client may never read the rest.
    if (stream.writableLength > 0) this.#abortWhenStalled(stallTimeout);
  }

  open(head: Head, _last: boolean, stallTimeout: number): Sink {
    const sink = new WritableSink(this.#stream);
    if (!this.#stream.closed) this.#respond(head, this.#headersOf(head), false);
    this.#abortWhenStalled(stallTimeout);
    // A HEAD request needs no body, so the writer releases its source immediately.
    if (this.method === "HEAD") sink.close();
    else this.#onGone(() => sink.close());
    return sink;
  }

  #headersOf({ status, headers }: Head): OutgoingHttpHeaders {
    validateHeaders(headers);
    return { ":status": status, ...headers };
  }

  #respond({ trailers }: Head, headers: OutgoingHttpHeaders, endStream: boolean): void {
    const stream = this.#stream;
    if (!stream.endAfterHeaders && !stream.readableEnded) this.#discardRequest();
    if (trailers === undefined) {
      stream.respond(headers, { endStream });
      return;
    }
    stream.respond(headers, { waitForTrailers: true });
    stream.on("wantTrailers", () => {
      if (!stream.destroyed) stream.sendTrailers(trailers());
    });
  }

  /**
   * Discards the rest of the request. Asks the client to stop (RFC 9113 §8.1), but only shortly after the answer: sent immediately,
   * this could arrive before the end of an answer that waits for the client.
   */
  #discardRequest(): void {
    const stream = this.#stream;
    stream.on("finish", () => {
      if (stream.readableEnded) return;
      stream.resume();
      const late = setTimeout(() => stream.destroy(), lingerTime);
      stream.on("close", () => clearTimeout(late));
    });
    if (!this.#reading) stream.resume();
  }

  /** Over HTTP/2 the head is sent by `open`. */
  flush(): void {}

  end(): void {
    this.#stream.end();
  }

  get begun(): boolean {
    return this.#stream.headersSent;
  }

  /** Does not use `close`, which would end the answer as if it were complete. */
  breakOff(): void {
    this.#stream.destroy(new Error("The answer broke off"));
  }

  /** Data sent on other streams of the connection counts as progress, too. */
  #abortWhenStalled(timeout: number): void {
    // A callback of `setTimeout` would run only once.
    this.#stream.on("timeout", abortWhenStalled).setTimeout(timeout);
  }

  #onGone(run: () => void): void {
    if (this.#stream.closed) run();
    else this.#stream.on("aborted", run);
  }
}

/** Rejects line breaks in headers, which a proxy to HTTP/1.1 could turn into two headers. For HTTP/1.1, Node checks this. */
function validateHeaders(headers: Headers): void {
  for (const name in headers) validateHeaderValue(name, headers[name] ?? "");
}

function abortWhenStalled(this: ServerHttp2Stream): void {
  if (this.writableLength > 0) this.destroy(new Error("The client stopped reading the answer"));
}
