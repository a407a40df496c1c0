import type { Bytes, Clock, Logger } from "@parley/a2a/internal/base/index";
import type { SealKeyring } from "../seal/index.ts";
import type { Store } from "../store/index.ts";

/** Properties of a link to a blob. */
export interface BlobLink {
  /** How long the link works, in seconds. */
  readonly expires: number;
  /** Name for the file that a browser saves, without folders and control characters. */
  readonly filename?: string;
  /** Media type, such as `application/pdf`. */
  readonly mediaType?: string;
}

/** A range of bytes. */
export interface BlobRange {
  /** The first byte, from 0. */
  readonly start: number;
  /** The last byte. Absent, or beyond the end: up to the end. */
  readonly end?: number;
}

/** A blob being read. */
export interface BlobContent {
  /** Size of the whole blob in bytes, also for a range. */
  readonly size: number;
  /** The bytes in pieces, once. Iterate it, or call `return()` of its iterator. Otherwise its source stays open. */
  readonly body: AsyncIterable<Bytes>;
}

/** A blob in a list. */
export interface BlobEntry {
  /** Its key. */
  readonly key: string;
  /** Size in bytes. */
  readonly size: number;
  /** When it was stored, or its upload began, in milliseconds since the Unix epoch. */
  readonly time: number;
}

/** Selects the blobs to list. */
export interface BlobQuery {
  /** Only keys with this prefix, which is empty or ends with a slash. */
  readonly prefix: string;
  /** `next` of the previous page. */
  readonly after?: string;
  /** Maximum entries of the page. */
  readonly limit: number;
}

/** A page of a list. */
export interface BlobPage {
  /** At most as many as requested. */
  readonly blobs: readonly BlobEntry[];
  /** Where the next page begins. Absent on the last page. */
  readonly next?: string;
}

/**
 * Stores large files outside of the database. A blob is written once, under its own key, and never changed. Keys are segments of
 * `A-Z a-z 0-9 _ - ~` separated by slashes, at most 800 characters.
 *
 * Every method rejects with an `A2AError` of code `Unavailable` if the store is unavailable. Errors contain no credentials or signed URLs.
 * `blobStoreContract()` of `@parley/testing` tests a blob store.
 */
export interface BlobStore {
  /** Maximum memory of one `put`, in bytes. A server stores as many files at a time as fit into its limit. Default 1 MiB. */
  readonly uploadBytes?: number;
  /** Stores a blob. Resolves when it is durable. If `body` throws, or the process dies, there is no blob. Must not hold the whole blob in memory. */
  put(key: string, body: AsyncIterable<Bytes>): Promise<void>;
  /** Reads a blob, or a range of it. `undefined`: no blob under the key. A range beyond the end has no bytes. */
  get(key: string, range?: BlobRange): Promise<BlobContent | undefined>;
  /**
   * Changes the key of a blob. For a moment, the blob may have both keys, but never none. Rejects if there is no blob under `from`. Absent:
   * the server reads the blob and stores it again.
   */
  move?(from: string, to: string): Promise<void>;
  /** Deletes blobs. Missing ones are ignored. */
  delete(keys: readonly string[]): Promise<void>;
  /** Lists blobs, in any stable order. A blob that exists during the whole list is in exactly one of its pages. */
  list(query: BlobQuery): Promise<BlobPage>;
  /** A URL at which anyone can read the blob for a while. Absent: the server creates its own URLs. */
  link?(key: string, about: BlobLink): Promise<string>;
}

/** The option `blobs` of a handler: large files outside of the database. */
export interface BlobOptions {
  /** `fileBlobs()` of `@parley/node`, or `s3Blobs()`. Each database needs its own. */
  readonly store: BlobStore;
  /** Files up to this many bytes stay in the database. Default 256 KiB. */
  readonly inlineBytes?: number;
  /** Largest file in bytes. Default 1 GiB. */
  readonly fileBytes?: number;
  /** Maximum bytes of all files of a task outside of the database. Default 4 GiB. */
  readonly taskBytes?: number;
  /**
   * Memory for files that are being stored, of all callers together, in bytes. An upload to `s3Blobs()` takes 25 MiB, an
   * upload to `fileBlobs()` 1 MiB. Further files wait until others are stored. Default 200 MiB.
   */
  readonly uploadBytes?: number;
  /**
   * Largest body of a message with large files, in bytes: they are stored while they arrive, so the message is never in memory as a whole. Over
   * HTTP files are base64, which takes 4/3 of their bytes. The rest of the message is limited by `limits.bodyBytes`. Default 1.5 GiB, so that a
   * file of 1 GiB fits.
   */
  readonly messageBytes?: number;
  /**
   * Maximum bytes of all such messages together while they are received. No caller gets more than half of it. Beyond it, messages wait for up to
   * 10 seconds, and are then rejected (`Unavailable`). Default four times `messageBytes`.
   */
  readonly unfinishedBytes?: number;
  /** How long a link to a file works, in milliseconds, up to 7 days. Default 15 minutes. */
  readonly linkTime?: number;
  /** Whether links lead to the store, or to this server, which reads the store. Default: to the store, if it has links. */
  readonly links?: "store" | "server";
  /**
   * Secrets for links to this server, 32 bytes each in base64. The first key signs links; links of the other keys still work.
   * Default: the keys of `push`, or on a loopback address a key that ends with the process.
   */
  readonly keys?: readonly string[];
  /**
   * How long an unused file is kept, in milliseconds: the file of a deleted task, an aborted upload, or a message that was
   * answered without a task. It must exceed any turn and any upload of a message (`requestTimeout`), and a minute. Default 1 day.
   */
  readonly keepUnused?: number;
  /** How often the store is searched for unused files, in milliseconds. Default 1 hour. */
  readonly interval?: number;
}

/** `BlobOptions` with their defaults. */
export interface BlobSettings extends Required<Omit<BlobOptions, "keys">> {
  /** The base URL of the server's own links. */
  readonly url: string;
  readonly keyring: SealKeyring;
}

/** Server dependencies of large files. */
export interface BlobDeps {
  readonly tasks: Store;
  readonly clock: Clock;
  readonly logger: Logger;
}

const segment = /^[A-Za-z0-9_-][A-Za-z0-9_~-]{0,254}$/;

/** Whether a text is the key of a blob. */
export function isBlobKey(key: string): boolean {
  return key.length <= 800 && key.split("/").every((each) => segment.test(each.replace(/^~/, "_")));
}

/** Throws a `TypeError` for an invalid key, which could lead out of the folder or bucket. */
export function checkBlobKey(key: string): void {
  if (!isBlobKey(key)) throw new TypeError(`Not the key of a blob: ${JSON.stringify(key.slice(0, 100))}`);
}
