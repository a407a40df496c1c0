import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Sink } from "@parley/a2a/internal/protocol/index";
import type { ServerContext } from "@parley/a2a/internal/transport/server/context";
import { compressed, frameOf, FrameReader } from "../frames.ts";
import { StatusError } from "../status.ts";

/** The timeout that a client sets for a call (`grpc-timeout`). */
export class Deadline {
  /** The answer to the client, once the deadline has passed. */
  error: StatusError | undefined;
  readonly passed: Promise<StatusError>;
  readonly #timer: NodeJS.Timeout;
  #controller: AbortController | undefined;

  /** `timeout` is in milliseconds. Calls `run` when the deadline passes. */
  constructor(timeout: number, run: (error: StatusError) => void) {
    let resolve: (error: StatusError) => void;
    this.passed = new Promise((settle) => (resolve = settle));
    this.#timer = setTimeout(() => {
      this.error = new StatusError("DEADLINE_EXCEEDED", "The deadline has passed");
      run(this.error);
      resolve(this.error);
      this.#controller?.abort();
    }, timeout);
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.error !== undefined) this.#controller.abort();
    return this.#controller.signal;
  }

  /** Stops the timer of a call that has ended. */
  clear(): void {
    clearTimeout(this.#timer);
  }
}

/** Writes the frames of an answer until the client leaves or the deadline passes. */
export class CallWriter {
  readonly #sink: Sink;
  readonly #deadline: Deadline | undefined;
  readonly #compresses: boolean;

  constructor(sink: Sink, deadline: Deadline | undefined, compresses: boolean) {
    this.#sink = sink;
    this.#deadline = deadline;
    this.#compresses = compresses;
  }

  /** Whether nobody reads what is written. */
  get closed(): boolean {
    return this.#sink.closed || this.#deadline?.error !== undefined;
  }

  /** Calls `run` when the writer closes, at once if it is closed. `run` may be called twice. */
  onClose(run: () => void): void {
    this.#sink.onClose(run);
    void this.#deadline?.passed.then(run);
  }

  /** Sends frames. Returns a promise where they are compressed, or where the client must read before it is sent more. */
  write(frames: Uint8Array): Promise<void> | undefined {
    if (this.#compresses) return this.#writeCompressed(frames);
    return this.closed || this.#sink.write(frames) ? undefined : this.#ready();
  }

  async #writeCompressed(frames: Uint8Array): Promise<void> {
    const bytes = await compressFrames(frames);
    if (!this.closed && !this.#sink.write(bytes)) await this.#ready();
  }

  #ready(): Promise<void> {
    const ready = this.#sink.ready();
    return this.#deadline === undefined ? ready : Promise.race([ready, this.#deadline.passed.then(() => undefined)]);
  }
}

/** Bytes of one write of a large answer. A multiple of three, so that the base64 of a piece has no padding. */
const pieceLength = 3 * 21_845;

/** Writes a large answer piece by piece, as the client reads it, and then gives back the memory reserved in `room`. */
export async function writeLarge(writer: CallWriter, bytes: Uint8Array, room: ServerContext): Promise<void> {
  try {
    for (let at = 0; at < bytes.length && !writer.closed; at += pieceLength) {
      const written = writer.write(bytes.subarray(at, at + pieceLength));
      if (written !== undefined) await room.awaitReader(written);
    }
  } finally {
    room.end();
  }
}

const compress = promisify(gzip);

/** Messages below this length are not compressed: the result would be larger, or not worth the work. */
const shortestCompressed = 1024;

/** The same frames, with long messages compressed. */
export async function compressFrames(frames: Uint8Array): Promise<Uint8Array> {
  const plain = new FrameReader(frames.length).push(frames);
  return Buffer.concat(await Promise.all(plain.map(({ payload }) => compressedFrame(payload))));
}

async function compressedFrame(message: Uint8Array): Promise<Uint8Array> {
  return message.length < shortestCompressed ? frameOf(message) : frameOf(await compress(message), compressed);
}
