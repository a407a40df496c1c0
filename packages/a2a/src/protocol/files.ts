import type { Bytes } from "../base/index.ts";
import type { JsonObject, Part } from "../model/index.ts";

/* Files as bytes: what an agent sends and gets, and what a client downloads. */

/**
 * The bytes of a file, in pieces of any size: a Node stream, the body of a `fetch`, a `Blob`, a generator, or bytes that are
 * there already.
 */
export type ByteSource =
  | AsyncIterable<Uint8Array>
  | Iterable<Uint8Array>
  | ReadableStream<Uint8Array>
  | Blob
  | Uint8Array
  | ArrayBuffer;

/** What `turn.file()` takes beside the bytes. */
export interface FileInit {
  /** Name of the file, such as `report.pdf`. It is the name of the artifact too. */
  readonly name: string;
  /** Media type of the file, such as `application/pdf`. Default: that of a `Blob`. */
  readonly mediaType?: string;
  /** Identifier of the artifact, unique in the task. Default: one that a resumed run makes again. */
  readonly artifactId?: string;
  /** Description of the artifact, for people. */
  readonly description?: string;
  /** Anything else about the artifact. */
  readonly metadata?: JsonObject;
  /**
   * Bytes of a chunk, at most 8 MiB, rounded down to a multiple of three. A chunk takes a third more as JSON, and must be smaller than
   * `limits.eventBytes`. Default 192 KiB.
   */
  readonly chunkBytes?: number;
}

/** What `turn.file()` has sent. */
export interface SentFile {
  /** Identifier of the artifact. */
  readonly artifactId: string;
  /** Size of the file in bytes. */
  readonly bytes: number;
}

/** A stream of bytes that can be read with `for await` in every runtime. */
export type ByteStream = ReadableStream<Bytes> & AsyncIterable<Bytes>;

/** A file of a message or an artifact. */
export interface FileContent {
  /**
   * Name of the file. Its sender chose it, and it was made safe: it has no folders, no control characters, and at most 200 bytes. Join
   * it to a folder of your own to write the file.
   */
  readonly name: string;
  /** Media type, such as `text/csv`. `undefined` where the sender gave none. */
  readonly mediaType: string | undefined;
  /** Size in bytes. `undefined` where it is not known before the file is read. */
  readonly size: number | undefined;
  /** The address of a file that is elsewhere. `undefined`: the bytes are in the message or artifact. */
  readonly url: string | undefined;
  /**
   * The bytes in pieces.
   *
   * @throws A2AError when it is read: `UnsupportedOperation` for a file with a `url` where no `fetch` was given, and what that throws.
   */
  stream(): ByteStream;
  /** The bytes as a whole. Throws what `stream()` throws. */
  bytes(): Promise<Bytes>;
  /** The bytes as text in UTF-8. Throws what `stream()` throws. */
  text(): Promise<string>;
}

/**
 * Fetches a file at an address that a stranger chose: `guardedFetch()` of `@parley/a2a/protocol`, which refuses addresses of internal
 * networks.
 */
export type FileFetch = (url: string, init: { readonly signal?: AbortSignal }) => Promise<Response>;

/** What `turn.files()` takes. */
export interface FilesOptions {
  /** Reads files that are given as a URL. Default: none is read. */
  readonly fetch?: FileFetch;
  /** Other parts of the task, such as those of an earlier message or of an artifact. Default: those of the message. */
  readonly parts?: readonly Part[];
}
