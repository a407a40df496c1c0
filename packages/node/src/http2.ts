import { validateHeaderValue } from "node:http";
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { BodyBudget, Sink } from "@parley/a2a/protocol";
import { brokeOff, readText } from "./body.ts";
import { isBodiless, originForm, type Exchange, type Headers } from "./exchange.ts";
import { WritableSink } from "./sink.ts";

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
  readonly #continue: boolean;
  #signal: AbortSignal | undefined;

  /** `url` where a framework has taken a prefix away. */
  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, url: string | undefined = headers[":path"]) {
    this.method = headers[":method"] ?? "GET";
    this.url = originForm(url ?? "/");
    this.#stream = stream;
    this.#headers = headers;
    this.#continue = headers.expect?.toLowerCase() === "100-continue";
  }

  header(name: string): string | undefined {
    const value = this.#headers[name] ?? (name === "host" ? this.#headers[":authority"] : undefined);
    return Array.isArray(value) ? value.join(", ") : value;
  }

  get remoteAddress(): string {
    return this.#stream.session?.socket.remoteAddress ?? "";
  }

  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      const controller = new AbortController();
      this.#onGone(() => controller.abort());
      this.#signal = controller.signal;
    }
    return this.#signal;
  }

  async text(limit: number, budget?: BodyBudget): Promise<string> {
    const stream = this.#stream;
    const { session } = stream;
    if (stream.readableEnded) return "";
    if (stream.destroyed || session === undefined) throw brokeOff();
    const late = setTimeout(() => stream.destroy(new Error("The request takes too long")), requestTimeout);
    try {
      const text = await readText(stream, limit, budget, {
        length: this.#headers["content-length"],
        connection: session,
        ...(this.#continue && { before: () => stream.additionalHeaders({ ":status": 100 }) }),
      });
      // A stream that its peer gives up comes to its end as one that is whole.
      if (stream.aborted) throw brokeOff();
      return text;
    } finally {
      clearTimeout(late);
    }
  }

  send(status: number, headers: Headers, body = ""): void {
    const stream = this.#stream;
    if (stream.closed) return;
    const head = this.#head(status, headers);
    if (!isBodiless(status)) head["content-length"] = Buffer.byteLength(body);
    const endStream = body === "" || isBodiless(status) || this.method === "HEAD";
    stream.respond(head, { endStream });
    if (!endStream) stream.end(body);
  }

  open(status: number, headers: Headers): Sink {
    const sink = new WritableSink(this.#stream);
    if (!this.#stream.closed) this.#stream.respond(this.#head(status, headers));
    // Who asks for the head only has no use for the body, and its writer lets go at once.
    if (this.method === "HEAD") sink.close();
    else this.#onGone(() => sink.close());
    return sink;
  }

  #head(status: number, headers: Headers): OutgoingHttpHeaders {
    // Over HTTP/1.1 Node looks itself; here a proxy would make two lines of one.
    for (const [name, value] of Object.entries(headers)) validateHeaderValue(name, value);
    if (!this.#stream.endAfterHeaders && !this.#stream.readableEnded) this.#discardRequest();
    return { ":status": status, ...headers };
  }

  /**
   * What is left of a request is thrown away, and the peer told to stop (RFC 9113 §8.1) a moment after the answer is out:
   * what it is told at once can overtake the end of an answer that waits for room with the peer.
   */
  #discardRequest(): void {
    const stream = this.#stream;
    stream.on("finish", () => {
      const late = setTimeout(() => stream.destroy(), lingerTime);
      stream.on("close", () => clearTimeout(late));
    });
    stream.resume();
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

function giveUp(this: ServerHttp2Stream): void {
  if (this.writableLength > 0) this.destroy(new Error("The peer takes nothing"));
}
