import type { IncomingMessage, ServerResponse } from "node:http";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Readable, Writable } from "node:stream";
import { frameOf, trailers as trailersFlag } from "../frames.ts";
import { closeWhenStalled, roomIn, sentBy } from "./http2-wire.ts";
import { Base64Reader } from "./base64-reader.ts";
import type { Metadata, Receiver, Wire } from "./wire.ts";

/** HTTP of either version, as much of it as gRPC-Web needs. */
interface Exchange {
  readonly readable: Readable;
  readonly writable: Writable;
  header(name: string): string | undefined;
  readonly path: string;
  readonly remoteAddress: string;
  /** Where it carries other exchanges at the same time. */
  readonly connection?: object;
  begin(headers: Metadata): void;
  /** Breaks the answer off when the peer takes nothing for so long. */
  closeWhenStalled(timeout: number): void;
  /** Calls `run` when the peer leaves before the answer is whole. */
  onGone(run: () => void): void;
}

/** gRPC-Web: the frames of gRPC as the body of any HTTP, the trailers as the last of them; in base64 where the client cannot read bytes. */
export class WebWire implements Wire {
  readonly path: string;
  readonly #exchange: Exchange;
  readonly #headers: Metadata;
  readonly #isText: boolean;
  readonly #stallTimeout: number;
  #opened = false;

  /** `contentType`: of the request, which is that of the answer; `granted`: what browsers are told (CORS). */
  constructor(exchange: Exchange, contentType: string, granted: Metadata, stallTimeout: number) {
    this.path = exchange.path;
    this.#exchange = exchange;
    this.#isText = contentType.startsWith("application/grpc-web-text");
    this.#headers = { ...granted, "content-type": contentType, "cache-control": "no-store", "x-accel-buffering": "no" };
    this.#stallTimeout = stallTimeout;
  }

  header(name: string): string | undefined {
    return this.#exchange.header(name);
  }

  get remoteAddress(): string {
    return this.#exchange.remoteAddress;
  }

  get connection(): object | undefined {
    return this.#exchange.connection;
  }

  pause(): void {
    this.#exchange.readable.pause();
  }

  resume(): void {
    this.#exchange.readable.resume();
  }

  listen(receiver: Receiver): void {
    const { readable } = this.#exchange;
    const text = this.#isText ? new Base64Reader() : undefined;
    readable.on("data", (chunk: Buffer) => receiver.chunk(text === undefined ? chunk : text.push(chunk)));
    readable.on("end", () => {
      if (!readable.readableAborted) receiver.end();
    });
    readable.on("error", () => receiver.gone());
    this.#exchange.onGone(() => receiver.gone());
    if (readable.readableEnded) receiver.end();
  }

  open(metadata?: Metadata): void {
    if (this.#opened || this.#exchange.writable.destroyed) return;
    this.#opened = true;
    this.#exchange.begin({ ...metadata, ...this.#headers });
    this.#exchange.closeWhenStalled(this.#stallTimeout);
  }

  write(frames: Uint8Array): boolean {
    const { writable } = this.#exchange;
    return !writable.destroyed && writable.write(this.#isText ? Buffer.from(frames).toString("base64") : frames);
  }

  ready(): Promise<void> {
    return roomIn(this.#exchange.writable);
  }

  sent(): Promise<void> {
    return sentBy(this.#exchange.writable);
  }

  close(trailers: Metadata, frames?: Uint8Array, metadata?: Metadata): void {
    const { readable, writable } = this.#exchange;
    this.open(metadata);
    if (frames !== undefined) this.write(frames);
    const lines = Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`);
    this.write(frameOf(Buffer.from(lines.join("")), trailersFlag));
    writable.end();
    readable.resume();
  }
}

export function http1Exchange(incoming: IncomingMessage, response: ServerResponse): Exchange {
  return {
    readable: incoming,
    writable: response,
    header: (name) => {
      const value = incoming.headers[name];
      return Array.isArray(value) ? value.join(", ") : value;
    },
    path: pathOf(incoming.url),
    remoteAddress: incoming.socket.remoteAddress ?? "",
    begin: (headers) => {
      response.writeHead(200, headers);
      response.flushHeaders();
    },
    closeWhenStalled: (timeout) => {
      response.setTimeout(timeout, () => {
        if (response.writableLength > 0) response.destroy();
      });
    },
    onGone: (run) => {
      response.on("close", () => {
        if (!response.writableFinished) run();
      });
    },
  };
}

export function http2Exchange(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Exchange {
  return {
    readable: stream,
    writable: stream,
    header: (name) => {
      const value = headers[name] ?? (name === "host" ? headers[":authority"] : undefined);
      return Array.isArray(value) ? value.join(", ") : value;
    },
    path: pathOf(headers[":path"]),
    remoteAddress: stream.session?.socket.remoteAddress ?? "",
    ...(stream.session !== undefined && { connection: stream.session }),
    begin: (metadata) => stream.respond({ ":status": 200, ...metadata }),
    closeWhenStalled: (timeout) => closeWhenStalled(stream, timeout),
    onGone: (run) => {
      stream.on("aborted", run).on("close", () => {
        if (!stream.writableFinished) run();
      });
    },
  };
}

function pathOf(url = "/"): string {
  const mark = url.indexOf("?");
  return mark < 0 ? url : url.slice(0, mark);
}
