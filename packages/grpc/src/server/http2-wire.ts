import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { encodings } from "./compression.ts";
import type { Metadata, Receiver, Wire } from "./wire.ts";

/** How long the rest of a request that was answered is still read and thrown away, in milliseconds. */
const lingerTime = 2_000;

const head: OutgoingHttpHeaders = {
  ":status": 200,
  "content-type": "application/grpc",
  "grpc-accept-encoding": encodings,
};
const withTrailers = { waitForTrailers: true };
const withoutBody = { endStream: true };

/** gRPC over a stream of HTTP/2. */
export class Http2Wire implements Wire {
  readonly path: string;
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly #stallTimeout: number;
  #opened = false;
  #trailers: Metadata = {};

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, stallTimeout: number) {
    this.path = headers[":path"] ?? "/";
    this.#stream = stream;
    this.#headers = headers;
    this.#stallTimeout = stallTimeout;
  }

  header(name: string): string | undefined {
    const value = this.#headers[name] ?? (name === "host" ? this.#headers[":authority"] : undefined);
    return Array.isArray(value) ? value.join(", ") : value;
  }

  get remoteAddress(): string {
    return this.#stream.session?.socket.remoteAddress ?? "";
  }

  get connection(): object | undefined {
    return this.#stream.session;
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  listen(receiver: Receiver): void {
    const stream = this.#stream;
    stream.on("data", (chunk: Buffer) => receiver.chunk(chunk));
    // A stream that its peer gives up comes to its end as one that is whole.
    stream.on("end", () => {
      if (!stream.aborted) receiver.end();
    });
    stream.on("close", () => receiver.gone());
    stream.on("aborted", () => receiver.gone());
    if (stream.destroyed) receiver.gone();
    // Who loads this binding first may give it streams late: an empty one can have ended, and tells so to nobody any more.
    else if (stream.readableEnded) receiver.end();
  }

  open(metadata?: Metadata): void {
    this.#begin(metadata);
    closeWhenStalled(this.#stream, this.#stallTimeout);
  }

  #begin(metadata: Metadata | undefined): void {
    const stream = this.#stream;
    if (this.#opened || stream.destroyed || stream.closed) return;
    this.#opened = true;
    // Not by two spreads, which cost more than the rest of this function.
    stream.respond(metadata === undefined ? head : Object.assign({}, metadata, head), withTrailers);
    stream.on("wantTrailers", () => {
      if (!stream.destroyed) stream.sendTrailers(this.#trailers);
    });
  }

  write(frames: Uint8Array): boolean {
    return !this.#stream.destroyed && this.#stream.write(frames);
  }

  ready(): Promise<void> {
    return roomIn(this.#stream);
  }

  sent(): Promise<void> {
    return sentBy(this.#stream);
  }

  close(trailers: Metadata, frames?: Uint8Array, metadata?: Metadata): void {
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return;
    if (!this.#opened && frames === undefined) {
      stream.respond({ ...trailers, ...head }, withoutBody);
    } else {
      this.#begin(metadata);
      this.#trailers = trailers;
      stream.end(frames);
      // What nobody takes hangs on a reader who may never come.
      if (stream.writableLength > 0) closeWhenStalled(stream, this.#stallTimeout);
    }
    if (!stream.readableEnded && !stream.endAfterHeaders) this.#discardRequest();
  }

  /**
   * What is left of a request is thrown away, and the peer told to stop (RFC 9113 §8.1) a moment after the answer is out:
   * what it is told at once can overtake the end of an answer that waits for room with the peer.
   */
  #discardRequest(): void {
    const stream = this.#stream;
    const late = setTimeout(() => stream.destroy(), lingerTime);
    stream.on("close", () => clearTimeout(late));
    stream.resume();
  }
}

/** Resolves when a stream takes more, or is over. */
export function roomIn(
  stream: NodeJS.WritableStream & { readonly writableNeedDrain: boolean; readonly destroyed: boolean },
): Promise<void> {
  if (!stream.writableNeedDrain || stream.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off("drain", done).off("close", done);
      resolve();
    };
    stream.on("drain", done).on("close", done);
  });
}

/** Resolves when a stream that was ended has nothing left to send, or is over. */
export function sentBy(
  stream: NodeJS.WritableStream & { readonly writableFinished: boolean; readonly destroyed: boolean },
): Promise<void> {
  if (stream.writableFinished || stream.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    stream.on("finish", resolve).on("close", resolve);
  });
}

/** Breaks a stream off when its peer takes nothing for so long while something waits to go out (D10). */
export function closeWhenStalled(stream: ServerHttp2Stream, timeout: number): void {
  stream.on("timeout", giveUp).setTimeout(timeout);
}

function giveUp(this: ServerHttp2Stream): void {
  if (this.writableLength > 0) this.destroy(new Error("The peer takes nothing"));
}
