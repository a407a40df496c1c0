import type { Bytes } from "../base/index.ts";
import type { JsonObject, Part, SendMessageRequest } from "../model/index.ts";
import type { AgentService, IncomingFilesByUrl, Principal } from "./service.ts";

/* Files as bytes: sent and received by an agent, downloaded by a client. */

/** The bytes of a file in pieces of any size: a Node stream, the body of a `fetch`, a `Blob`, a generator, or bytes in memory. */
export type ByteSource =
  | AsyncIterable<Uint8Array>
  | Iterable<Uint8Array>
  | ReadableStream<Uint8Array>
  | Blob
  | Uint8Array
  | ArrayBuffer;

/** Options of `turn.file()`. */
export interface FileInit {
  /** Name of the file, such as `report.pdf`. It is the name of the artifact too. */
  readonly name: string;
  /** Media type of the file, such as `application/pdf`. Default: the type of a `Blob`. */
  readonly mediaType?: string;
  /** Identifier of the artifact, unique in the task. Default: an id that is the same in a resumed run. */
  readonly artifactId?: string;
  /** Description of the artifact, for people. */
  readonly description?: string;
  /** Anything else about the artifact. */
  readonly metadata?: JsonObject;
  /**
   * Bytes of a chunk, at most 8 MiB, rounded down to a multiple of three. Its JSON is a third larger, and must stay below `limits.eventBytes`.
   * Default 192 KiB.
   */
  readonly chunkBytes?: number;
}

/** The file that `turn.file()` has sent. */
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
   * Name of the file, chosen by its sender and made safe: no folders, no control characters, at most 200 bytes. Join it to a folder that you choose.
   */
  readonly name: string;
  /** Media type, such as `text/csv`. `undefined` if the sender gave none. */
  readonly mediaType: string | undefined;
  /** Size in bytes. `undefined` if it is not known before the file is read. */
  readonly size: number | undefined;
  /** The URL of a file that is stored elsewhere. `undefined`: the bytes are in the message or artifact. */
  readonly url: string | undefined;
  /** The bytes in pieces. Reading throws `UnsupportedOperation` for a `url` without a `fetch`, and the errors of `fetch`. */
  stream(): ByteStream;
  /** The bytes as a whole. Throws the errors of `stream()`. */
  bytes(): Promise<Bytes>;
  /** The bytes as text in UTF-8. Throws the errors of `stream()`. */
  text(): Promise<string>;
}

/** Fetches a file at an untrusted address: `guardedFetch()` of `@parley/a2a/protocol` rejects addresses of internal networks. */
export type FileFetch = (url: string, init: { readonly signal?: AbortSignal }) => Promise<Response>;

/** Options of `turn.files()`. */
export interface FilesOptions {
  /** Fetches files that the sender passed as URLs. Default: such files cannot be read. */
  readonly fetch?: FileFetch;
  /** Other parts of the task, such as those of an earlier message or an artifact. Default: the parts of the message. */
  readonly parts?: readonly Part[];
}

/* Large files of messages, which are stored while the body of their request is read (`blobs`). */

/** The sender of a message with large files, and the message's size if known. */
export interface FileSender {
  /** The owner of the files. */
  readonly principal: Principal;
  /** The IP address of the client, which distinguishes anonymous callers. */
  readonly address: string | undefined;
  /** The agents that the message may address. */
  readonly services: ReadonlyMap<string | undefined, AgentService>;
  /** The announced size of the body in bytes. `undefined`: the client does not declare it. */
  readonly bytes: number | undefined;
  /** Aborted when the client disconnects. */
  readonly signal: () => AbortSignal;
}

/** Extracts large files from messages while they are being received. */
export interface FileReceiver {
  /** Larger files, in bytes, are stored outside the message. */
  readonly inlineBytes: number;
  /** Maximum size of a body with files, in bytes. */
  readonly messageBytes: number;
  /** Maximum memory of one file while it is stored, in bytes. */
  readonly bufferBytes: number;
  /** Begins to receive a message. Throws `Unavailable` if other messages use all the memory. */
  open(sender: FileSender): Promise<IncomingFiles>;
}

/** The sender of a body. */
export interface WatchedSender {
  /** Whether the server currently waits for it. */
  readonly isAwaited: boolean;
  /** Stops reading. */
  refuse(error: Error): void;
}

/** The large files of one request, while it is read and answered. */
export interface IncomingFiles {
  /** From now on, rejects the sender if it is slow while other messages wait for the memory that it uses. */
  watch(sender: WatchedSender): void;
  /** Reports received bytes of the body. Throws `RequestTooLarge` or `Unavailable` if there is no room for more. */
  came(bytes: number): Promise<void> | void;
  /**
   * Stores a file. Once it is durable, resolves to 24 random bytes that replace it in the message. Throws `RequestTooLarge`, `Unavailable`, and the
   * errors of `bytes`; nothing is stored then.
   */
  store(bytes: AsyncIterable<Bytes>): Promise<Bytes>;
  /** Whether no file was extracted, so the body is as the client wrote it. */
  readonly isEmpty: boolean;
  /** The request, with URLs of its files instead of their bytes. */
  resolve(request: SendMessageRequest): SendMessageRequest;
  /** The files, for the context of the call. */
  readonly files: IncomingFilesByUrl;
  /** Called when the body is complete: releases its memory to other messages, because the answer may take hours. */
  received(): void;
  /** Ends the request. Files that the message does not keep are deleted. Never rejects. */
  close(): Promise<void>;
}

/** A turn's access to files that are stored outside its task. */
export interface TurnFiles {
  /** Files up to this many bytes stay in the task. */
  readonly inlineBytes: number;
  /**
   * Stores a file. Once it is durable, resolves to the URL for its part. Throws `InvalidAgentResponse` if it is too large, `Unavailable`, and the
   * errors of `bytes`.
   */
  store(
    bytes: AsyncIterable<Uint8Array>,
    about: { readonly filename?: string; readonly mediaType?: string },
  ): Promise<{ readonly url: string; readonly size: number }>;
  /** The stored file at the URL of a part. `undefined` if it does not exist. */
  open(url: string): { readonly size: number; bytes(): AsyncIterable<Uint8Array> } | undefined;
  /** Parts for another agent: with the bytes of files, or with links to files too large for a message. */
  sendable(parts: readonly Part[]): Promise<readonly Part[]>;
  /** Whether `sendable()` turns some of them into links, which differ each time. */
  hasLinks(parts: readonly Part[]): boolean;
}
