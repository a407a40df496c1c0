import type { ByteReader, Sink, UniversalResponse } from "@parley/a2a/protocol";
import { frameOf, trailers as trailersFlag } from "../frames.ts";
import { Base64Reader } from "./base64-reader.ts";
import { encodings } from "./compression.ts";

/** Header or trailer lines, lower-case names. */
export type Metadata = Readonly<Record<string, string>>;

/** Writes the frames of a stream, and gives the trailers that end it. Never rejects. */
export type FramesWriter = (sink: Sink) => Promise<Metadata>;

/** How frames and trailers travel: over HTTP/2 as gRPC has it, or over any HTTP as gRPC-Web has it. */
export interface Framing {
  /** Who is given the body of a request, so that `frames` gets the bytes of its frames. */
  reader(frames: ByteReader): ByteReader;
  /** An answer that has no message. */
  withoutMessage(trailers: Metadata): UniversalResponse;
  /** An answer whose messages are there. `metadata` stands in the head. */
  whole(frames: Uint8Array, trailers: Metadata, metadata?: Metadata): UniversalResponse;
  stream(write: FramesWriter, metadata?: Metadata): UniversalResponse;
}

const grpcHead: Metadata = { "content-type": "application/grpc", "grpc-accept-encoding": encodings };

/** gRPC over HTTP/2: the body is frames and nothing else, what ends a call stands in the trailers of HTTP. */
export const grpcFraming: Framing = {
  reader: (frames) => frames,
  withoutMessage: (trailers) => ({ status: 200, headers: { ...trailers, ...grpcHead } }),
  whole: (frames, trailers, metadata) => ({
    status: 200,
    headers: grpcHeadWith(metadata),
    body: frames,
    trailers: () => trailers,
  }),
  stream(write, metadata) {
    let trailers: Metadata = {};
    return {
      status: 200,
      headers: grpcHeadWith(metadata),
      body: (sink) => write(sink).then((last) => void (trailers = last)),
      trailers: () => trailers,
    };
  },
};

/** Not by two spreads, which cost more than all the rest of a small answer. */
function grpcHeadWith(metadata: Metadata | undefined): Metadata {
  return metadata === undefined ? grpcHead : Object.assign({}, metadata, grpcHead);
}

/** gRPC-Web: the frames of gRPC as the body of any HTTP, the trailers as the last of them; in base64 where the client cannot read bytes. */
export class WebFraming implements Framing {
  readonly #headers: Metadata;
  readonly #isText: boolean;

  /** `contentType`: of the request, which is that of the answer; `granted`: what browsers are told (CORS). */
  constructor(contentType: string, granted: Metadata) {
    this.#isText = contentType.startsWith("application/grpc-web-text");
    this.#headers = { ...granted, "content-type": contentType, "cache-control": "no-store", "x-accel-buffering": "no" };
  }

  reader(frames: ByteReader): ByteReader {
    if (!this.#isText) return frames;
    const base64 = new Base64Reader();
    return {
      chunk: (bytes) => frames.chunk(base64.push(bytes)),
      end: () => frames.end(),
      gone: () => frames.gone(),
    };
  }

  withoutMessage(trailers: Metadata): UniversalResponse {
    return this.#answer(this.#encode(trailersFrame(trailers)));
  }

  whole(frames: Uint8Array, trailers: Metadata, metadata?: Metadata): UniversalResponse {
    const parts = [this.#encode(frames), this.#encode(trailersFrame(trailers))];
    return this.#answer(this.#isText ? parts.join("") : Buffer.concat(parts as Uint8Array[]), metadata);
  }

  stream(write: FramesWriter, metadata?: Metadata): UniversalResponse {
    return this.#answer((sink) => {
      const written = write({
        write: (frames) => sink.write(this.#encode(frames as Uint8Array)),
        ready: () => sink.ready(),
        onClose: (run) => sink.onClose(run),
        get closed() {
          return sink.closed;
        },
      });
      return written.then((trailers) => void sink.write(this.#encode(trailersFrame(trailers))));
    }, metadata);
  }

  #answer(body: UniversalResponse["body"] & {}, metadata?: Metadata): UniversalResponse {
    return { status: 200, headers: { ...metadata, ...this.#headers }, body };
  }

  #encode(frames: Uint8Array): string | Uint8Array {
    return this.#isText ? Buffer.from(frames.buffer, frames.byteOffset, frames.byteLength).toString("base64") : frames;
  }
}

function trailersFrame(trailers: Metadata): Uint8Array {
  const lines = Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`);
  return frameOf(Buffer.from(lines.join("")), trailersFlag);
}
