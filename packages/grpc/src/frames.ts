import { A2AError } from "@parley/a2a/model";
import { GrowingBytes } from "@parley/a2a/internal/protocol/index";
import type { Writer } from "./protobuf/wire.ts";

// A frame is a byte of flags, four bytes of length and the message: the Length-Prefixed-Message of gRPC over HTTP/2.
// gRPC-Web sends the trailers as a last frame.

const headLength = 5;

/** Flags of a frame. */
export const compressed = 0x01;
/** In gRPC-Web: the frame contains the trailers. */
export const trailers = 0x80;

export interface Frame {
  readonly flags: number;
  readonly payload: Uint8Array;
}

/** Splits received bytes into frames. */
export class FrameReader {
  readonly #limit: number;
  readonly #tooLarge: (limit: number) => A2AError;
  /** The incomplete head. */
  readonly #head = new Uint8Array(headLength);
  #headSize = 0;
  /** The incomplete message, and its whole length. */
  #payload: GrowingBytes | undefined;
  #length = 0;

  /** Rejects a message of more than `limit` bytes by its head, with the error that `tooLarge` creates. */
  constructor(limit: number, tooLarge?: (limit: number) => A2AError) {
    this.#limit = limit;
    this.#tooLarge = tooLarge ?? (() => new A2AError("RequestTooLarge", `Message larger than ${limit} bytes`));
  }

  /** Whether the last frame is incomplete. */
  get partial(): boolean {
    return this.#payload !== undefined || this.#headSize > 0;
  }

  /** Memory of the incomplete message, in bytes. */
  get held(): number {
    return this.#payload?.capacity ?? 0;
  }

  /** Final length of the incomplete message, in bytes. */
  get expected(): number {
    return this.#payload === undefined ? 0 : this.#length;
  }

  /**
   * The frames that this chunk completes. A frame within the chunk is a view of it.
   *
   * @throws A2AError `RequestTooLarge`. The reader cannot be used after that.
   */
  push(chunk: Uint8Array): readonly Frame[] {
    const frames: Frame[] = [];
    let at = 0;
    while (at < chunk.length) {
      if (this.#payload !== undefined) {
        at += this.#fill(this.#payload, chunk.subarray(at), frames);
      } else if (this.#headSize > 0 || chunk.length - at < headLength) {
        this.#head[this.#headSize++] = byteAt(chunk, at++);
        if (this.#headSize === headLength) this.#begin(this.#head, 0, frames);
      } else {
        const length = this.#lengthAt(chunk, at);
        const begun = at + headLength;
        if (chunk.length - begun < length) {
          this.#begin(chunk, at, frames);
          at = begun;
        } else {
          frames.push({ flags: byteAt(chunk, at), payload: chunk.subarray(begun, begun + length) });
          at = begun + length;
        }
      }
    }
    return frames;
  }

  /** Begins a message that extends beyond this chunk. Its head is at `at`. */
  #begin(bytes: Uint8Array, at: number, frames: Frame[]): void {
    const length = this.#lengthAt(bytes, at);
    this.#head[0] = byteAt(bytes, at);
    this.#headSize = 0;
    if (length === 0) {
      frames.push({ flags: this.#head[0], payload: new Uint8Array(0) });
      return;
    }
    this.#payload = new GrowingBytes(length);
    this.#length = length;
  }

  /** Appends the next bytes of the message. Returns their number. */
  #fill(payload: GrowingBytes, rest: Uint8Array, frames: Frame[]): number {
    const missing = this.#length - payload.length;
    payload.append(rest.length > missing ? rest.subarray(0, missing) : rest);
    if (rest.length < missing) return rest.length;
    frames.push({ flags: byteAt(this.#head, 0), payload: payload.view() });
    this.#payload = undefined;
    return missing;
  }

  #lengthAt(bytes: Uint8Array, at: number): number {
    const length = lengthAt(bytes, at + 1);
    if (length > this.#limit) throw this.#tooLarge(this.#limit);
    return length;
  }
}

/** Whether decompression stopped because the result exceeds `maxOutputLength`. */
export function exceedsLimit(thrown: unknown): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === "ERR_BUFFER_TOO_LARGE";
}

/** Reads four bytes. Destructuring would create an iterator. */
export function lengthAt(bytes: Uint8Array, at: number): number {
  const high = (byteAt(bytes, at) << 24) | (byteAt(bytes, at + 1) << 16);
  return (high | (byteAt(bytes, at + 2) << 8) | byteAt(bytes, at + 3)) >>> 0;
}

/** A byte within the bounds of `bytes`. */
export function byteAt(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}

/** Reserves the head of a frame. The message is written next. Returns the argument for `endFrame`. */
export function beginFrame(writer: Writer): number {
  return writer.skip(headLength);
}

/** Writes the head of the frame that `beginFrame` reserved. */
export function endFrame(writer: Writer, begun: number, flags = 0): void {
  putHead(writer.bytes, begun, flags, writer.at - begun - headLength);
}

/** A frame of an encoded message. */
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
