import { toBase64 } from "../model/index.ts";
import type { AgentEvent, ByteSource, FileInit, SentFile, TurnFiles } from "../protocol/index.ts";

/** A multiple of three, so that base64 has no padding between the chunks: 256 KiB of base64 each. */
const defaultChunk = 192 << 10;
const maxChunk = 8 << 20;

function chunkSize({ chunkBytes = defaultChunk }: FileInit): number {
  if (Number.isInteger(chunkBytes) && chunkBytes >= 3 && chunkBytes <= maxChunk) return chunkBytes - (chunkBytes % 3);
  throw new RangeError(`turn.file(): chunkBytes must be an integer from 3 to ${maxChunk}`);
}

/**
 * The bytes of a source as one artifact in chunks. Each chunk is a part with the name and the type of the file, so that a reader with only
 * the latest chunk knows its file.
 */
export async function* sendFile(
  source: ByteSource,
  artifactId: string,
  init: FileInit,
  signal: AbortSignal,
  outside?: TurnFiles,
): AsyncGenerator<AgentEvent, SentFile, void> {
  const { name, description, metadata } = init;
  if (typeof name !== "string" || name === "") throw new TypeError("turn.file(): name must be a non-empty string");
  const mediaType = init.mediaType ?? typeOf(source);
  const head = {
    artifactId,
    name,
    ...(description === undefined ? {} : { description }),
    ...(metadata === undefined ? {} : { metadata }),
  };
  const about = { filename: name, ...(mediaType === undefined ? {} : { mediaType }) };
  const all = evenPieces(source, chunkSize(init), signal);
  let pieces: Pieces | FilePiece[] = all;
  if (outside !== undefined) {
    const { begun, rest } = await beginning(all, outside.inlineBytes);
    if (rest !== undefined) {
      const { url, size } = await outside.store(bytesOf(begun, rest), about);
      yield { kind: "artifact", artifact: { ...head, parts: [{ ...about, url }] }, lastChunk: true };
      return { artifactId, bytes: size };
    }
    pieces = begun;
  }
  let size = 0;
  for await (const { bytes, last } of pieces) {
    const parts = [{ raw: toBase64(bytes), ...about }];
    yield {
      kind: "artifact",
      artifact: size === 0 ? { ...head, parts } : { artifactId, parts },
      ...(size === 0 ? {} : { append: true }),
      ...(last ? { lastChunk: true } : {}),
    };
    size += bytes.byteLength;
  }
  return { artifactId, bytes: size };
}

type Pieces = AsyncGenerator<FilePiece, void, void>;

/** The pieces of a file that the task stores, and the remaining pieces of a file that is too large for the task. */
async function beginning(
  pieces: Pieces,
  inlineBytes: number,
): Promise<{ readonly begun: FilePiece[]; readonly rest: Pieces | undefined }> {
  const begun: FilePiece[] = [];
  for (let size = 0; ;) {
    const next = await pieces.next();
    if (next.done === true) return { begun, rest: undefined };
    // The source reuses the buffer of this piece for the next one.
    begun.push({ ...next.value, bytes: next.value.bytes.slice() });
    size += next.value.bytes.byteLength;
    if (size > inlineBytes) return { begun, rest: pieces };
  }
}

async function* bytesOf(begun: FilePiece[], rest: Pieces): AsyncGenerator<Uint8Array, void, void> {
  try {
    for (const { bytes } of begun.splice(0)) yield bytes;
    // A store may keep pieces until it has enough for a write.
    for await (const { bytes } of rest) yield bytes.slice();
  } finally {
    await rest.return();
  }
}

function typeOf(source: ByteSource): string | undefined {
  return source instanceof Blob && source.type !== "" ? source.type : undefined;
}

/* The bytes of a file, from any kind of source, in pieces of one size. */

/** Pieces of a source. `close` ends it, even while a read waits. */
interface SourcePieces {
  next(): Promise<IteratorResult<unknown, unknown>> | IteratorResult<unknown, unknown>;
  close(reason?: unknown): void;
}

/** The method of Node's streams that ends them while a read waits, which their iterator cannot. */
interface Destroyable {
  destroy(): unknown;
}

const ignore = (): void => {};

function piecesOf(source: ByteSource): SourcePieces {
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

function fromReader(reader: ReadableStreamDefaultReader<unknown>): SourcePieces {
  return {
    next: () => reader.read(),
    close: (reason) => void reader.cancel(reason).catch(ignore),
  };
}

function fromIterator(iterator: AsyncIterator<unknown> | Iterator<unknown>): SourcePieces {
  return {
    next: () => iterator.next(),
    close: () => void Promise.resolve(iterator.return?.()).catch(ignore),
  };
}

function asBytes(bytes: Uint8Array | ArrayBuffer): Uint8Array {
  return bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);
}

/** One piece of a file. Its bytes are valid until the next piece is requested. */
interface FilePiece {
  readonly bytes: Uint8Array;
  readonly last: boolean;
}

/**
 * A file in pieces of exactly `size` bytes; only the last one may be smaller. So equal bytes give equal pieces, no matter how the source
 * splits them. An empty file is one empty piece. The source is closed when the generator ends early, and when the signal fires.
 *
 * @throws TypeError if a piece of the source is not bytes; and the errors of the source.
 */
async function* evenPieces(
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
        // Holds a full piece back until another byte arrives, because the last piece is marked as such.
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

/** A larger buffer with the same content. Small files never need a large one. */
function grown(buffer: Uint8Array, needed: number, maxBytes: number): Uint8Array {
  const larger = new Uint8Array(Math.min(maxBytes, Math.max(needed, buffer.byteLength * 2)));
  larger.set(buffer);
  return larger;
}

/** Reads a source. A signal ends a pending read and closes the source. */
class Abortable {
  readonly #pieces: SourcePieces;
  readonly #signal: AbortSignal | undefined;
  readonly #abort: () => void;
  #reject: (reason: unknown) => void = ignore;
  #over = false;

  constructor(pieces: SourcePieces, signal: AbortSignal | undefined) {
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
    throw new TypeError(`pieces of a file must be Uint8Array; got ${what}`);
  }

  end(): void {
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#close(undefined);
  }

  /** Does not use `Promise.race` with one promise for the signal, because that promise would keep every read in memory. */
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
      // Nobody reads the source anymore. An error in a listener of the signal would end the process.
    }
  }
}
