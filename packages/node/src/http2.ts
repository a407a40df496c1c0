import { validateHeaderValue } from "node:http";
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { BodyBudget, ByteFlow, ByteReader, RequestFacts, Sink } from "@parley/a2a/protocol";
import { brokeOff, IncomingBody, readText } from "./body.ts";
import {
  ConnectionFacts,
  isBodiless,
  originForm,
  type Exchange,
  type Head,
  type Headers,
  type WholeBody,
  WritableSink,
} from "./exchange.ts";

/** How long a request may take to come in whole, in milliseconds; over HTTP/1.1 Node itself sees to it. */
export const requestTimeout = 300_000;

/** How long the rest of a request that was answered is still read and thrown away, in milliseconds. */
const lingerTime = 2_000;

/**
 * An exchange over HTTP/2: one stream of a connection. Written to the stream itself; Node's imitation of HTTP/1.1 on top
 * of it tells nobody when there is room again.
 */
export class Http2Exchange implements Exchange {
  readonly method: string;
  readonly url: string;
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  #signal: AbortSignal | undefined;
  #facts: RequestFacts | undefined;
  user: (() => unknown) | undefined;
  /** Somebody reads the body, and may go on with it after the head of the answer. */
  #reading = false;

  /** `url` where a framework has taken a prefix away. */
  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, url: string | undefined = headers[":path"]) {
    this.method = headers[":method"] ?? "GET";
    this.url = originForm(url ?? "/");
    this.#stream = stream;
    this.#headers = headers;
  }

  header(name: string): string | undefined {
    const value = this.#headers[name] ?? (name === "host" ? this.#headers[":authority"] : undefined);
    return Array.isArray(value) ? value.join(", ") : value;
  }

  get facts(): RequestFacts {
    return (this.#facts ??= new ConnectionFacts(this.#stream.session?.socket, this.user));
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
    return new IncomingBody(stream, reader, asksFirst ? () => stream.additionalHeaders({ ":status": 100 }) : undefined);
  }

  async text(limit: number, budget?: BodyBudget): Promise<string> {
    const stream = this.#stream;
    if (stream.readableEnded) return "";
    if (stream.destroyed || stream.session === undefined) throw brokeOff();
    const late = setTimeout(() => stream.destroy(new Error("The request takes too long")), requestTimeout);
    try {
      return await readText(this, { limit, budget, length: this.#headers["content-length"] });
    } finally {
      this.#reading = false;
      clearTimeout(late);
    }
  }

  send(head: Head, body: WholeBody): void {
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
  }

  open(head: Head): Sink {
    const sink = new WritableSink(this.#stream);
    if (!this.#stream.closed) this.#respond(head, this.#headersOf(head), false);
    // Who asks for the head only has no use for the body, and its writer lets go at once.
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
   * What is left of a request is thrown away, and the peer told to stop (RFC 9113 §8.1) a moment after the answer is out:
   * what it is told at once can overtake the end of an answer that waits for room with the peer.
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

  /** A head never waits here. */
  flush(): void {}

  end(): void {
    this.#stream.end();
  }

  get begun(): boolean {
    return this.#stream.headersSent;
  }

  get pending(): boolean {
    return this.#stream.writableLength > 0;
  }

  /** Not by `close`: that ends the answer first, as if it were whole. */
  breakOff(): void {
    this.#stream.destroy(new Error("The answer broke off"));
  }

  /** What goes out on other streams of the connection counts as progress too. */
  closeWhenStalled(timeout: number): void {
    // Handed to `setTimeout` it would be told once only.
    this.#stream.on("timeout", giveUp).setTimeout(timeout);
  }

  #onGone(run: () => void): void {
    if (this.#stream.closed) run();
    else this.#stream.on("aborted", run);
  }
}

/** Over HTTP/1.1 Node looks itself; here a proxy would make two lines of one. */
function validateHeaders(headers: Headers): void {
  for (const name in headers) validateHeaderValue(name, headers[name] as string);
}

function giveUp(this: ServerHttp2Stream): void {
  if (this.writableLength > 0) this.destroy(new Error("The peer takes nothing"));
}
