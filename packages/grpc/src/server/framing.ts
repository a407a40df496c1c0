import type { ByteReader, Sink, UniversalResponse } from "@parley/a2a/internal/protocol/index";
import { beginFrame, endFrame, frameOf, trailers as trailersFlag } from "../frames.ts";
import { write } from "../protobuf/encode.ts";
import type { MessageType } from "../protobuf/types.ts";
import { toBase64 } from "../protobuf/text.ts";
import { Writer } from "../protobuf/wire.ts";

/** Headers or trailers, with names in lower case. */
export type Metadata = Readonly<Record<string, string>>;

/** The trailers of a call that succeeded. */
export const ok: Metadata = { "grpc-status": "0" };

/** The supported compressions: the value of `grpc-accept-encoding`. */
export const encodings = "gzip,identity";

/** Receives frames, and signals when it can receive more. */
export interface FrameSink extends Omit<Sink, "write"> {
  write(frames: Uint8Array): boolean;
}

/** Writes the frames of a stream, and returns its trailers. Never rejects. */
export type FramesWriter = (sink: FrameSink) => Promise<Metadata>;

/** Carries frames and trailers: over HTTP/2 (gRPC), or any version of HTTP (gRPC-Web). */
export interface Framing {
  /** Adapts a reader of frames to the body. */
  reader(frames: ByteReader): ByteReader;
  withoutMessage(trailers: Metadata): UniversalResponse;
  /** An answer with known messages. `metadata` goes into its headers. */
  whole(frames: Uint8Array, trailers: Metadata, metadata?: Metadata): UniversalResponse;
  /** An answer with messages to follow. */
  stream(write: FramesWriter, metadata?: Metadata): UniversalResponse;
}

const grpcHead: Metadata = { "content-type": "application/grpc", "grpc-accept-encoding": encodings };

/** gRPC over HTTP/2: the body has only frames, and HTTP trailers end the call. */
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

/** Uses `Object.assign`, because two spreads would cost more than the rest of a small answer. */
function grpcHeadWith(metadata: Metadata | undefined): Metadata {
  return metadata === undefined ? grpcHead : Object.assign({}, metadata, grpcHead);
}

/** gRPC-Web: the body has frames, the last one with the trailers, in base64 for clients that read only text. */
export class WebFraming implements Framing {
  readonly #headers: Metadata;
  readonly #isText: boolean;

  /** `contentType` applies to request and answer. `granted` holds the headers of CORS. */
  constructor(contentType: string, granted: Metadata) {
    this.#isText = contentType.startsWith("application/grpc-web-text");
    this.#headers = { ...granted, "content-type": contentType, "cache-control": "no-store", "x-accel-buffering": "no" };
  }

  reader(frames: ByteReader): ByteReader {
    if (!this.#isText) return frames;
    const base64 = new Base64Reader();
    return { chunk: (bytes) => frames.chunk(base64.push(bytes)), end: () => frames.end(), gone: () => frames.gone() };
  }

  withoutMessage(trailers: Metadata): UniversalResponse {
    return this.#answer(this.#encode(trailersFrame(trailers)));
  }

  whole(frames: Uint8Array, trailers: Metadata, metadata?: Metadata): UniversalResponse {
    const end = trailersFrame(trailers);
    const body = this.#isText ? toBase64(frames) + toBase64(end) : Buffer.concat([frames, end]);
    return this.#answer(body, metadata);
  }

  stream(write: FramesWriter, metadata?: Metadata): UniversalResponse {
    return this.#answer((sink) => {
      const written = write({
        write: (frames) => sink.write(this.#encode(frames)),
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
    return this.#isText ? toBase64(frames) : frames;
  }
}

function trailersFrame(trailers: Metadata): Uint8Array {
  const lines = Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`);
  return frameOf(Buffer.from(lines.join("")), trailersFlag);
}

/** Decodes base64 that arrives in pieces of any length: one text, or several with padding each. */
class Base64Reader {
  #rest = "";

  push(piece: Uint8Array): Uint8Array {
    const text = this.#rest + Buffer.from(piece).toString("latin1");
    const whole = text.length - (text.length % 4);
    this.#rest = text.slice(whole);
    const parts = text.slice(0, whole).match(/[^=]+=*/g) ?? [];
    return Buffer.concat(parts.map((part) => Buffer.from(part, "base64")));
  }
}

/** Writes messages as frames. All messages share one buffer. */
export class FrameWriter {
  readonly #writer = new Writer(4096);

  write(type: MessageType, values: readonly unknown[]): Uint8Array {
    const writer = this.#writer;
    writer.reset();
    for (const value of values) {
      const begun = beginFrame(writer);
      write(writer, type, value);
      endFrame(writer, begun);
    }
    // A small Buffer comes from a pool; a Uint8Array never does.
    const frames = Buffer.from(writer.written());
    // Releases the buffer if a large message made it grow.
    writer.reset();
    return frames;
  }
}
