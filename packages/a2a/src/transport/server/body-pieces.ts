import { defer } from "../../base/async.ts";
import { A2AError } from "../../model/index.ts";
import type { BodyPlace, BodyReader, ByteFlow, ByteReader, FileReceiver } from "../../protocol/index.ts";
import type { RequestLimits } from "./binding.ts";

/** Maximum size of a piece, in bytes. */
const maxBytes = 64 << 10;
/** Yields to other work after this many pieces that were already in memory. */
const maxAtOnce = 8;

/** The bytes of a body, read piece by piece with backpressure, so that little more than one piece is in memory. */
export class BodyPieces implements ByteReader, BodyReader {
  #flow: ByteFlow | undefined;
  /** The body's place in the memory budget for bodies. */
  place: BodyPlace | undefined;
  /** Called with the number of bytes that were read. */
  onBytes: ((bytes: number) => Promise<void> | void) | undefined;
  readonly #pieces: Uint8Array[] = [];
  /** Pieces that were read and put back. */
  readonly #back: Uint8Array[] = [];
  /** The beginning of the body, read before the body turned out to be large. A part of the beginning may be read again. */
  #begun: Uint8Array | undefined;
  #begunAt = 0;
  /** Maximum memory of the body, in addition to its beginning. */
  #most = 0;
  /** Pieces read from memory since the last yield to other work. */
  #atOnce = 0;
  #onRefused: ((error: Error) => void) | undefined;
  #ended = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  /** Whether the received bytes wait for memory. */
  #waits = false;

  /** Sets the source of the bytes, which sends no bytes before the first `next()`. */
  from(flow: ByteFlow): this {
    this.#flow = flow;
    return this;
  }

  /** The next piece; `undefined` after the last piece. Rejects if the sender has disconnected or the body was rejected. */
  async next(): Promise<Uint8Array | undefined> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#atOnce >= maxAtOnce) {
        this.#atOnce = 0;
        await new Promise<void>(defer);
        continue;
      }
      const back = this.#back.shift() ?? this.#ofBegun();
      if (back !== undefined) {
        this.#atOnce += 1;
        return this.#part(back);
      }
      const piece = this.#waits ? undefined : this.#pieces.shift();
      if (piece !== undefined) {
        await this.onBytes?.(piece.length);
        return this.#part(piece);
      }
      if (this.#ended && this.#pieces.length === 0) return undefined;
      // The next piece may arrive synchronously.
      const woken = new Promise<void>((resolve) => (this.#wake = resolve));
      if (!this.#waits) this.#flow?.resume();
      await woken;
      this.#atOnce = 0;
    }
  }

  /** The piece, or a part of a large piece, so that the work per read is bounded. */
  #part(piece: Uint8Array): Uint8Array {
    if (piece.length <= maxBytes) return piece;
    this.#back.unshift(piece.subarray(maxBytes));
    return piece.subarray(0, maxBytes);
  }

  /** A copy, so that nothing keeps the whole beginning in memory. */
  #ofBegun(): Uint8Array | undefined {
    const begun = this.#begun;
    if (begun === undefined) return undefined;
    const piece = begun.slice(this.#begunAt, (this.#begunAt += maxBytes));
    this.place?.came(piece.length);
    if (this.#begunAt >= begun.length) {
      this.#begun = undefined;
      this.place?.shrink(this.#most);
    }
    return piece;
  }

  /** Puts back the beginning, followed by `piece`. Both were read from this body, and count as held until they are read again. */
  restart(begun: Uint8Array, piece: Uint8Array): void {
    this.#begun = begun.length > 0 ? begun : undefined;
    this.#begunAt = 0;
    this.#pieces.unshift(piece);
  }

  /** Number of bytes of the beginning that are read again. */
  get again(): number {
    return this.#begun?.length ?? 0;
  }

  /** Whether the reader waits for the sender. */
  get isAwaited(): boolean {
    return this.#wake !== undefined && !this.#waits;
  }

  /** Settles like `promise`, or rejects as soon as `refuse()` is called. */
  unlessRefused<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) reject(this.#failure);
      this.#onRefused = reject;
      promise.then(resolve, reject);
    });
  }

  /** Puts a piece back, so that it is read next. */
  unread(piece: Uint8Array): void {
    if (piece.length > 0) this.#back.unshift(piece);
  }

  /** Sets how much memory the body holds now, in bytes. Resolves when this memory is available. */
  async hold(bytes: number, most: number): Promise<void> {
    const begun = this.#begun?.length ?? 0;
    this.#most = most;
    if (this.place?.hold(bytes + begun, most + begun) !== false) return;
    this.#waits = true;
    while (this.#waits && this.#failure === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Called with a received piece. Pauses the sender until the piece is read. */
  chunk(bytes: Uint8Array): void {
    if (this.#failure !== undefined) return;
    this.#pieces.push(bytes);
    this.#flow?.pause();
    this.place?.came(bytes.length);
    this.#go();
  }

  /** Called when the body is complete. */
  end(): void {
    this.#ended = true;
    this.#go();
  }

  /** Called when the sender disconnects before the body is complete. */
  gone(): void {
    this.refuse(new A2AError("InvalidRequest", "Request body broke off"));
  }

  /** Called when there is room for the body. */
  resume(): void {
    this.#waits = false;
    this.#go();
  }

  /** Stops reading. Pending readers get the error. */
  refuse(error: Error): void {
    this.#failure ??= error;
    this.#pieces.length = this.#back.length = 0;
    this.#begun = undefined;
    this.#onRefused?.(error);
    this.#flow?.pause();
    this.#flow?.close?.();
    this.#go();
  }

  /** Stops reading. */
  close(): void {
    this.place?.leave();
    if (!this.#ended) this.refuse(new A2AError("InvalidRequest", "Stopped reading the request body"));
  }

  #go(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

/** Base64 of fewer characters stays in the text, because repeated messages are recognized by their text, which includes short files. */
const minLength = 128 << 10;
/** Memory of data on its way to the blob store, in bytes. */
const windowBytes = 512 << 10;

/** The limits for large files, for all bindings. */
export function fileLimits(
  receiver: FileReceiver,
  limits: RequestLimits,
): { readonly inlineBytes: number; readonly textBytes: number; readonly windowBytes: number } {
  const textBytes = limits.bodyBytes;
  const inlineBytes = Math.min(Math.max(receiver.inlineBytes, (minLength * 3) / 4), (textBytes * 3) / 4);
  return { inlineBytes, textBytes, windowBytes: windowBytes + receiver.bufferBytes };
}
