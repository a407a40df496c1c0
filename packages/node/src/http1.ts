import type { IncomingMessage, ServerResponse } from "node:http";
import type { BodyBudget, ByteFlow, ByteReader, RequestFacts, Sink } from "@parley/a2a/protocol";
import { IncomingBody, readText } from "./body.ts";
import {
  isBodiless,
  originForm,
  type Exchange,
  type Head,
  type WholeBody,
  ConnectionFacts,
  WritableSink,
} from "./exchange.ts";

/** An exchange over HTTP/1.1. Everything is looked up when it is asked for: most calls need little of it. */
export class Http1Exchange implements Exchange {
  readonly method: string;
  readonly url: string;
  readonly #incoming: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #asksFirst: boolean;
  #signal: AbortSignal | undefined;
  #facts: RequestFacts | undefined;
  user: (() => unknown) | undefined;

  /** `url` where a framework has taken a prefix away; `asksFirst` where the client waits to be told to send its body (RFC 9110 §10.1.1). */
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
    return Array.isArray(value) ? value.join(", ") : value;
  }

  get facts(): RequestFacts {
    return (this.#facts ??= new ConnectionFacts(this.#incoming.socket, this.user));
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
    // Where a parser has been before, an empty body may have come to its end, and tells so to nobody any more.
    if (this.#incoming.readableEnded) return Promise.resolve("");
    // Node holds the bytes that came meanwhile, so nothing is read, and nothing asked for, of a body that is announced as too large.
    return readText(this, { limit, budget, length: this.#incoming.headers["content-length"] });
  }

  send({ status, headers }: Head, body: WholeBody, last: boolean): void {
    const parting = last ? { connection: "close", ...headers } : headers;
    const complete = isBodiless(status) ? parting : { "content-length": Buffer.byteLength(body ?? ""), ...parting };
    if (!bodyIsLeft(this.#incoming)) {
      this.#response.writeHead(status, complete).end(body);
      return;
    }
    this.#response.writeHead(status, { ...complete, connection: "close" });
    this.#response.write(body ?? "");
    linger(this.#incoming, this.#response);
  }

  open({ status, headers }: Head): Sink {
    this.#response.writeHead(status, headers);
    const sink = new WritableSink(this.#response);
    // Who asks for the head only has no use for the body, and its writer lets go at once.
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

  get pending(): boolean {
    return this.#response.writableLength > 0;
  }

  breakOff(): void {
    this.#response.destroy();
  }

  /** Node looks at partial progress of a large write as well, and keeps all timeouts of one length in one list behind one timer. */
  closeWhenStalled(timeout: number): void {
    this.#response.setTimeout(timeout, giveUp);
  }
}

/** One function for all: streams are many. */
function giveUp(this: ServerResponse): void {
  if (this.writableLength > 0) this.destroy();
}

/** How long the rest of a refused request is still read and thrown away, in milliseconds. */
const lingerTime = 2_000;

/** The longest unread request body that is worth reading to keep a connection. */
const worthDraining = 64 * 1024;

/** Whether so much of the request was left unread that the connection is of no more use. */
function bodyIsLeft(incoming: IncomingMessage): boolean {
  if (incoming.complete) return false;
  const announced = incoming.headers["content-length"];
  if (announced === undefined) return incoming.headers["transfer-encoding"] !== undefined;
  return Number(announced) > worthDraining;
}

/**
 * Ends a response whose request is still on its way. Closing a socket with unread bytes in it resets the connection, and
 * the reset can overtake the answer: so the answer goes out whole, by its content-length, the rest of the request is
 * thrown away for a moment, and the close comes after (RFC 9112 §9.6).
 */
function linger(incoming: IncomingMessage, response: ServerResponse): void {
  const end = (): void => {
    clearTimeout(timer);
    response.end();
  };
  const timer = setTimeout(end, lingerTime);
  incoming.once("end", end).once("close", end).on("error", end).resume();
}

/** Calls `run` once when the peer leaves before its answer is complete; at once when it has left. */
export function onGone(incoming: IncomingMessage, response: ServerResponse, run: () => void): void {
  const { socket } = incoming;
  if (response.destroyed || socket.destroyed) {
    run();
  } else if (response.socket !== null) {
    // Not `once`: it comes once anyway, and each wrapper is two hundred bytes of a stream.
    response.on("close", () => {
      if (!response.writableFinished) run();
    });
  } else {
    // On a pipelined connection an answer that waits behind another one has no socket yet, and hears nothing of its end.
    socket.setMaxListeners(0).once("close", run);
    response.once("finish", () => socket.off("close", run));
  }
}
