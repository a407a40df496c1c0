import { A2AError } from "@parley/a2a";
import type { Writer } from "./protobuf/writer.ts";

/**
 * Messages on the stream of a call: a byte of flags, four of length, the message (gRPC over HTTP/2, "Length-Prefixed-
 * Message"). gRPC-Web has the trailers as one more frame.
 */

const headLength = 5;

/** Flags of a frame. */
export const compressed = 0x01;
/** gRPC-Web: header lines in place of a message. */
export const trailers = 0x80;

export interface Frame {
  readonly flags: number;
  readonly payload: Uint8Array;
}

/** Cuts what arrives into frames. */
export class FrameReader {
  readonly #limit: number;
  /** What has come of a frame that is not whole. */
  #chunks: Uint8Array[] = [];
  #size = 0;
  /** Bytes of it, head included, once the head is there. */
  #wanted = headLength;

  /** A message of more than `limit` bytes is refused as soon as its head is there. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether a frame has begun and is not whole. */
  get partial(): boolean {
    return this.#size > 0;
  }

  /**
   * Adds the frames that are whole with this chunk to `frames`, as views into it where they came in one.
   *
   * @throws A2AError `RequestTooLarge`; nothing can be read any more then.
   */
  push(chunk: Uint8Array, frames: Frame[] = []): readonly Frame[] {
    let rest = chunk;
    if (this.#size > 0) {
      this.#chunks.push(chunk);
      this.#size += chunk.length;
      // A message in a thousand pieces is put together once, not a thousand times.
      if (this.#size < this.#wanted) return frames;
      rest = join(this.#chunks, this.#size);
      this.#chunks = [];
      this.#size = 0;
      this.#wanted = headLength;
    }
    let at = 0;
    while (rest.length - at >= headLength) {
      const length = lengthAt(rest, at + 1);
      if (length > this.#limit) throw new A2AError("RequestTooLarge", `Message larger than ${this.#limit} bytes`);
      const begun = at + headLength;
      if (rest.length - begun < length) {
        this.#wanted = headLength + length;
        break;
      }
      frames.push({ flags: rest[at] as number, payload: rest.subarray(begun, begun + length) });
      at = begun + length;
    }
    if (at < rest.length) {
      this.#chunks.push(rest.subarray(at));
      this.#size = rest.length - at;
    }
    return frames;
  }
}

/** Four bytes that are there, one by one: to take an array apart is to iterate over it. */
function lengthAt(bytes: Uint8Array, at: number): number {
  const high = ((bytes[at] as number) << 24) | ((bytes[at + 1] as number) << 16);
  return (high | ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number)) >>> 0;
}

function join(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const all = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

/** Leaves room for the head of a frame whose message is written next; returns what `endFrame` wants. */
export function beginFrame(writer: Writer): number {
  return writer.skip(headLength);
}

/** Writes the head before what was written since. */
export function endFrame(writer: Writer, begun: number, flags = 0): void {
  putHead(writer.bytes, begun, flags, writer.at - begun - headLength);
}

/** A frame of bytes that are there already. */
export function frameOf(payload: Uint8Array, flags = 0): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(headLength + payload.length);
  putHead(frame, 0, flags, payload.length);
  frame.set(payload, headLength);
  return frame;
}

function putHead(bytes: Uint8Array, at: number, flags: number, length: number): void {
  bytes[at] = flags;
  bytes[at + 1] = length >>> 24;
  bytes[at + 2] = length >>> 16;
  bytes[at + 3] = length >>> 8;
  bytes[at + 4] = length;
}
