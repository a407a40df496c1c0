import type { Bytes } from "@parley/a2a/internal/base/index";
import { streamOf } from "@parley/a2a/internal/files/content";
import { A2AError, toA2AError } from "@parley/a2a/internal/model/index";
import {
  type BlobContent,
  type BlobEntry,
  type BlobLink,
  type BlobPage,
  type BlobQuery,
  type BlobStore,
  checkBlobKey,
} from "./port.ts";
import { isObject } from "@parley/a2a/internal/model/schema";

/** The required members of an S3 client. The `S3Client` of `@bradenmacdonald/s3-lite-client` has them. */
export interface S3Like {
  /** Stores an object, in parts if it is large. */
  putObject(name: string, data: ReadableStream, options: { readonly partSize: number }): Promise<unknown>;
  /** Reads from `offset` on; `length` 0: to the end. */
  getPartialObject(name: string, options: { readonly offset: number; readonly length: number }): Promise<Response>;
  /** A signed URL. */
  presignedGetObject(
    name: string,
    options: { readonly expirySeconds: number; readonly responseParams: Readonly<Record<string, string>> },
  ): Promise<string>;
  /** Lists a page, and returns where the next one begins. */
  listObjectsGrouped(options: {
    readonly prefix: string;
    readonly delimiter: "";
    readonly maxResults: number;
    readonly pageSize: number;
    readonly continuationToken?: string;
  }): AsyncGenerator<S3Entry, string | undefined, undefined>;
  /** Deletes an object. */
  deleteObject(name: string): Promise<void>;
}

interface S3Entry {
  readonly type: string;
  readonly key?: string;
  readonly size?: number;
  readonly lastModified?: Date;
}

/** Options of `s3Blobs`. */
export interface S3BlobsOptions {
  /** The prefix of every key in the bucket, such as `parley/`. Default: none. */
  readonly prefix?: string;
}

/** The smallest part that S3 accepts. One upload holds at most five of them in memory: 25 MiB. */
const partSize = 5 << 20;
/** Concurrent deletions. */
const atOnce = 16;

/**
 * Keeps blobs in a bucket of S3, or of a compatible service. Use a dedicated bucket, because unknown files in it are deleted after a day. Add a
 * rule to the bucket that aborts incomplete multipart uploads.
 *
 * @example
 * ```ts
 * import { S3Client } from "@bradenmacdonald/s3-lite-client";
 *
 * const { S3_KEY = "", S3_SECRET = "" } = process.env;
 * const client = new S3Client({
 *   endPoint: "https://s3.eu-central-1.amazonaws.com",
 *   region: "eu-central-1",
 *   bucket: "agents",
 *   accessKey: S3_KEY,
 *   secretKey: S3_SECRET,
 * });
 * const blobs = { store: s3Blobs(client) };
 * ```
 */
export function s3Blobs(client: S3Like, { prefix = "" }: S3BlobsOptions = {}): BlobStore {
  const nameOf = (key: string): string => {
    checkBlobKey(key);
    return prefix + key;
  };
  return {
    // Four parts in flight, and the one that is being filled.
    uploadBytes: 5 * partSize,
    async put(key, body) {
      const name = nameOf(key);
      let broken: { readonly error: unknown } | undefined;
      async function* watched(): AsyncGenerator<Bytes, void, void> {
        try {
          yield* body;
        } catch (error) {
          broken = { error };
          throw error;
        }
      }
      try {
        await client.putObject(name, streamOf(watched), { partSize });
      } catch (thrown) {
        // An error of the body is for the caller. The client may have wrapped it.
        if (broken !== undefined) throw broken.error;
        throw unavailable(thrown);
      }
    },
    async get(key, range) {
      const name = nameOf(key);
      const { start = 0, end } = range ?? {};
      try {
        const length = end === undefined ? 0 : end - start + 1;
        return contentOf(await client.getPartialObject(name, { offset: start, length }), { start, end });
      } catch (thrown) {
        if (isMissing(thrown)) return undefined;
        if (statusOf(thrown) === 416) return emptyAt(client, name, start);
        throw unavailable(thrown);
      }
    },
    async delete(keys) {
      const names = keys.map(nameOf);
      for (let at = 0; at < names.length; at += atOnce) {
        await Promise.all(names.slice(at, at + atOnce).map((name) => remove(client, name)));
      }
    },
    async list(query) {
      try {
        return await page(client, prefix, query);
      } catch (thrown) {
        throw unavailable(thrown);
      }
    },
    async link(key, about) {
      const name = nameOf(key);
      try {
        return await client.presignedGetObject(name, {
          expirySeconds: about.expires,
          responseParams: responseOf(about),
        });
      } catch (thrown) {
        throw unavailable(thrown);
      }
    },
  };
}

/** Headers that make browsers save the file instead of running untrusted content. */
function responseOf({ filename, mediaType }: BlobLink): Readonly<Record<string, string>> {
  return {
    "response-content-disposition": dispositionOf(filename),
    ...(mediaType !== undefined && { "response-content-type": mediaType }),
  };
}

/** `Content-Disposition` for a saved file (RFC 6266). */
export function dispositionOf(filename: string | undefined): string {
  if (filename === undefined) return "attachment";
  // RFC 8187: `encodeURIComponent` does not escape all characters that are not `attr-char`.
  const encoded = encodeURIComponent(filename).replace(/['()*]/g, (one) => `%${one.charCodeAt(0).toString(16)}`);
  return `attachment; filename*=UTF-8''${encoded}`;
}

/** A whole blob, or a range. Checks the size in the answer against the body. */
function contentOf(
  response: Response,
  { start, end }: { readonly start: number; readonly end?: number | undefined },
): BlobContent {
  const isPart = response.status === 206;
  const [, from, all] = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get("content-range") ?? "") ?? [];
  const size = Number((isPart ? all : response.headers.get("content-length")) ?? Number.NaN);
  if (!Number.isSafeInteger(size) || (isPart && Number(from) !== start)) {
    void response.body?.cancel().catch(() => {});
    throw Object.assign(new Error("The response does not match the requested range"), { code: "WrongRange" });
  }
  // A server that ignores the range sends the whole blob.
  const skip = isPart ? 0 : start;
  const wanted = isPart ? Math.min(end ?? Infinity, size - 1) - start + 1 : Math.max(0, size - skip);
  return { size, body: exactly(wanted, bodyOf(response.body, skip, unavailable)) };
}

/** Checks that a body has exactly `bytes` bytes, because a truncated file must not look complete. */
function exactly(bytes: number, body: AsyncIterable<Bytes>): AsyncIterable<Bytes> {
  return {
    [Symbol.asyncIterator]() {
      const pieces = body[Symbol.asyncIterator]();
      let left = bytes;
      const end = async (): Promise<IteratorResult<Bytes, undefined>> => {
        await pieces.return?.();
        return { done: true, value: undefined };
      };
      return {
        async next(): Promise<IteratorResult<Bytes, undefined>> {
          const piece = await pieces.next();
          left -= piece.done === true ? 0 : piece.value.length;
          if (left >= 0 && !(piece.done === true && left > 0)) {
            return piece.done === true ? { done: true, value: undefined } : piece;
          }
          await end();
          throw unavailable({ code: left < 0 ? "TooManyBytes" : "TooFewBytes" });
        },
        return: end,
      };
    },
  };
}

/** The empty content of a blob that has no bytes from `start` on, because it is shorter or empty. `undefined`: no such blob. */
async function emptyAt(client: S3Like, name: string, start: number): Promise<BlobContent | undefined> {
  if (start === 0) return { size: 0, body: bodyOf(null, 0, unavailable) };
  try {
    const response = await client.getPartialObject(name, { offset: 0, length: 1 });
    const { size } = contentOf(response, { start: 0, end: 0 });
    await response.body?.cancel();
    return { size, body: bodyOf(null, 0, unavailable) };
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    if (statusOf(thrown) === 416) return { size: 0, body: bodyOf(null, 0, unavailable) };
    throw unavailable(thrown);
  }
}

async function remove(client: S3Like, name: string): Promise<void> {
  try {
    await client.deleteObject(name);
  } catch (thrown) {
    if (!isMissing(thrown)) throw unavailable(thrown);
  }
}

async function page(client: S3Like, before: string, { prefix, after, limit }: BlobQuery): Promise<BlobPage> {
  const size = Math.min(limit, 1000);
  const entries = client.listObjectsGrouped({
    prefix: before + prefix,
    delimiter: "",
    maxResults: size,
    pageSize: size,
    ...(after !== undefined && { continuationToken: after }),
  });
  const blobs: BlobEntry[] = [];
  for (;;) {
    const next = await entries.next();
    if (next.done === true)
      return next.value === undefined || next.value === "" ? { blobs } : { blobs, next: next.value };
    const { key, size: bytes = 0, lastModified } = next.value;
    // Ignore other keys that the server lists, because the caller could delete them.
    if (key?.startsWith(before + prefix) === true && blobs.length < size) {
      blobs.push({ key: key.slice(before.length), size: bytes, time: lastModified?.getTime() ?? Number.NaN });
    }
  }
}

function statusOf(thrown: unknown): unknown {
  return isObject(thrown) ? thrown["statusCode"] : undefined;
}

function isMissing(thrown: unknown): boolean {
  return statusOf(thrown) === 404 && isObject(thrown) && thrown["code"] !== "NoSuchBucket";
}

/** Contains only status and code, because messages of S3 can contain signed data. */
function unavailable(thrown: unknown): A2AError {
  const { code, name } = isObject(thrown) ? thrown : {};
  const what = [statusOf(thrown), code ?? name].filter((each) => typeof each === "number" || typeof each === "string");
  return new A2AError("Unavailable", `Blob store request failed: ${what.join(" ") || "no answer"}`);
}

/** The bytes of a stream, without the first `skip`. Unlike a generator's, `return()` cancels the stream even if nothing was read. */
export function bodyOf(
  stream: ReadableStream<Bytes> | null,
  skip: number,
  failure: (thrown: unknown) => Error = toA2AError,
): AsyncIterable<Bytes> {
  return {
    [Symbol.asyncIterator]() {
      const reader = stream?.getReader();
      let left = skip;
      return {
        async next(): Promise<IteratorResult<Bytes, undefined>> {
          for (;;) {
            const result = await reader?.read().catch((thrown: unknown) => {
              throw failure(thrown);
            });
            if (result === undefined || result.done) return { done: true, value: undefined };
            const piece = left === 0 ? result.value : result.value.subarray(left);
            left = Math.max(0, left - result.value.length);
            if (piece.length > 0) return { done: false, value: piece as Bytes };
          }
        },
        async return(): Promise<IteratorResult<Bytes, undefined>> {
          await reader?.cancel().catch(() => {});
          return { done: true, value: undefined };
        },
      };
    },
  };
}
