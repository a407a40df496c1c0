import type { BlobStore } from "./port.ts";

/** The option `blobs` of a handler: where large files are kept, outside of the database. */
export interface BlobOptions {
  /** Where they are kept: `fileBlobs()` of `@parley/node`, or `s3Blobs()`. It belongs to the database of this server alone. */
  readonly store: BlobStore;
  /** Files up to this many bytes stay in the database. Default 256 KiB. */
  readonly inlineBytes?: number;
  /** Largest file in bytes. Default 1 GiB. */
  readonly fileBytes?: number;
  /** Most bytes of all files of a task that are outside of the database. Default 4 GiB. */
  readonly taskBytes?: number;
  /**
   * Most bytes of memory for files that are being stored, of all callers together. One in `s3Blobs()` takes 25 MiB, one in `fileBlobs()`
   * 1 MiB. Further files wait until others are stored. Default 200 MiB.
   */
  readonly uploadBytes?: number;
  /**
   * Largest body of a message with large files, in bytes: they are stored while they come, so the message is never in memory as a whole. Over
   * HTTP files are base64, which takes 4/3 of their bytes. What the message has beside them is limited by `limits.bodyBytes`. Default 1.5 GiB,
   * so that a file of 1 GiB fits.
   */
  readonly messageBytes?: number;
  /**
   * Most bytes of all such messages together while they are received. No caller gets more than half of it. When it is full, messages wait for
   * room for up to 10 seconds, or are refused (`Unavailable`). Default four times `messageBytes`.
   */
  readonly unfinishedBytes?: number;
  /** How long a link to a file works, in milliseconds, at most 7 days. Default 15 minutes. */
  readonly linkTime?: number;
  /** Whether links lead to the store, or to this server, which reads the store for them. Default: to the store where it has links. */
  readonly links?: "store" | "server";
  /**
   * Secrets for links to this server, 32 bytes each in base64. The first one makes links; the others are former ones, whose links still
   * work. Default: those of `push`, or one that ends with the process, on a loopback address alone.
   */
  readonly keys?: readonly string[];
  /**
   * How long a file is kept that no task has, in milliseconds: one of a deleted task, of an upload that was given up, or of a message that
   * was answered without a task. It must be longer than any turn and than any upload
   * of a message (`requestTimeout`), and at least a minute. Default 1 day.
   */
  readonly keepUnused?: number;
  /** How often the store is searched for such files, in milliseconds. Default 1 hour. */
  readonly interval?: number;
}
