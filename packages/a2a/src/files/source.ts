import type { ByteSource } from "../protocol/index.ts";

/* The bytes of a file, whatever they come from, as pieces of one size. */

/** Pieces of a source. `close` ends it, also while a read waits. */
interface Pieces {
  next(): Promise<IteratorResult<unknown, unknown>> | IteratorResult<unknown, unknown>;
  close(reason?: unknown): void;
}

/** What Node's streams have beside their iterator, which cannot be ended while a read waits. */
interface Destroyable {
  destroy(): unknown;
}

const ignore = (): void => {};

function piecesOf(source: ByteSource): Pieces {
  if (typeof source !== "object" || source === null) throw noSource();
  if (source instanceof Uint8Array || source instanceof ArrayBuffer) return fromIterator([asBytes(source)].values());
  if ("getReader" in source) return fromReader(source.getReader());
  if ("arrayBuffer" in source) return fromReader(source.stream().getReader());
  if (Symbol.asyncIterator in source) {
    const iterator = source[Symbol.asyncIterator]();
    const { destroy } = source as Partial<Destroyable>;
    if (typeof destroy !== "function") return fromIterator(iterator);
    return { next: () => iterator.next(), close: () => void destroy.call(source) };
  }
  if (Symbol.iterator in source) return fromIterator((source as Iterable<unknown>)[Symbol.iterator]());
  throw noSource();
}

function noSource(): TypeError {
  return new TypeError(
    "the bytes of a file must come from an async iterable, a ReadableStream, a Blob or a Uint8Array",
  );
}

function fromReader(reader: ReadableStreamDefaultReader<unknown>): Pieces {
  return {
    next: () => reader.read(),
    close: (reason) => void reader.cancel(reason).catch(ignore),
  };
}

function fromIterator(iterator: AsyncIterator<unknown> | Iterator<unknown>): Pieces {
  return {
    next: () => iterator.next(),
    close: () => void Promise.resolve(iterator.return?.()).catch(ignore),
  };
}

function asBytes(bytes: Uint8Array | ArrayBuffer): Uint8Array {
  return bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);
}

/** One piece of a file. Its bytes are valid until the next piece is asked for. */
export interface FilePiece {
  readonly bytes: Uint8Array;
  readonly last: boolean;
}

/**
 * A file in pieces of exactly `size` bytes, of which the last one may be smaller. So the same bytes make the same pieces, however they
 * come. An empty file is one empty piece. The source is closed when the generator ends early, and when the signal fires.
 *
 * @throws TypeError where a piece of the source is not bytes, and what the source throws.
 */
export async function* evenPieces(
  source: ByteSource,
  size: number,
  signal?: AbortSignal,
): AsyncGenerator<FilePiece, void, void> {
  const pieces = new Abortable(piecesOf(source), signal);
  let buffer: Uint8Array<ArrayBufferLike> = new Uint8Array(0);
  let filled = 0;
  try {
    for (let next = await pieces.next(); next !== undefined; next = await pieces.next()) {
      for (let at = 0; at < next.byteLength;) {
        // A full piece waits for the byte after it: only then is it known not to be the last one.
        if (filled === size) {
          yield { bytes: buffer, last: false };
          filled = 0;
        }
        const part = next.subarray(at, at + size - filled);
        if (filled + part.byteLength > buffer.byteLength) buffer = grown(buffer, filled + part.byteLength, size);
        buffer.set(part, filled);
        filled += part.byteLength;
        at += part.byteLength;
      }
    }
    yield { bytes: buffer.subarray(0, filled), last: true };
  } finally {
    pieces.end();
  }
}

/** A larger buffer with the same content. Small files do without a large one. */
function grown(buffer: Uint8Array, needed: number, most: number): Uint8Array {
  const larger = new Uint8Array(Math.min(most, Math.max(needed, buffer.byteLength * 2)));
  larger.set(buffer);
  return larger;
}

/** Reads a source. A signal ends a read that waits, and closes the source. */
class Abortable {
  readonly #pieces: Pieces;
  readonly #signal: AbortSignal | undefined;
  readonly #abort: () => void;
  #reject: (reason: unknown) => void = ignore;
  #over = false;

  constructor(pieces: Pieces, signal: AbortSignal | undefined) {
    this.#pieces = pieces;
    this.#signal = signal;
    this.#abort = () => {
      this.#close(signal?.reason);
      this.#reject(signal?.reason);
    };
    signal?.addEventListener("abort", this.#abort, { once: true });
    if (signal?.aborted === true) this.#abort();
  }

  async next(): Promise<Uint8Array | undefined> {
    this.#signal?.throwIfAborted();
    let result: IteratorResult<unknown, unknown>;
    try {
      result = await this.#read();
    } catch (error) {
      if (this.#signal?.aborted === true) throw this.#signal.reason;
      this.#over = true;
      throw error;
    }
    if (result.done === true) {
      this.#over = true;
      return undefined;
    }
    if (result.value instanceof Uint8Array) return result.value;
    if (result.value instanceof ArrayBuffer) return new Uint8Array(result.value);
    const what =
      typeof result.value === "string" ? "a string: read the stream without an encoding" : typeof result.value;
    throw new TypeError(`a piece of the file is not a Uint8Array, but ${what}`);
  }

  /** Ends the reading, and closes a source that has not ended. */
  end(): void {
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#close(undefined);
  }

  /** Not a race with one promise for the signal: that promise would keep every read in memory. */
  #read(): Promise<IteratorResult<unknown, unknown>> {
    const next = this.#pieces.next();
    if (!(next instanceof Promise)) return Promise.resolve(next);
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      next.then(resolve, reject);
    });
  }

  #close(reason: unknown): void {
    if (this.#over) return;
    this.#over = true;
    try {
      this.#pieces.close(reason);
    } catch {
      // Nobody reads the source any more. In a listener of the signal, the error would end the process.
    }
  }
}
