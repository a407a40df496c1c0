/**
 * Stores large files in a folder.
 * @packageDocumentation
 */

import { randomUUID } from "node:crypto";
import { constants, type Dirent } from "node:fs";
import { lstat, mkdir, open, opendir, readdir, rename, rm, rmdir, stat, type FileHandle } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { A2AError } from "@parley/a2a/model";
import {
  type BlobContent,
  type BlobEntry,
  type BlobPage,
  type BlobQuery,
  type BlobStore,
  checkBlobKey,
} from "@parley/server/internal/blobs/port";

/** Bytes of one read. */
const pieceBytes = 64 << 10;
/** Age at which the remains of a crashed upload are deleted, in milliseconds. */
const leftAfter = 24 * 60 * 60 * 1000;
/** Folder of files that are being written. Its name is not a valid segment of a key, so no key can name it. */
const unfinished = ".unfinished";
/** A segment of a key. */
const segment = /^[\w~-]+$/;

/**
 * Keeps blobs as files below a folder. Processes of one machine can share it; processes of several machines need a file system that they
 * share, or `s3Blobs()` of `@parley/server/store`. Only their user can read files and folders. The folder itself may be a symbolic link;
 * links inside it are never followed.
 *
 * @example
 * ```ts
 * const blobs = { store: fileBlobs("./data/files") };
 * ```
 */
export function fileBlobs(given: string): BlobStore {
  const folder = resolve(given);
  const pathOf = (key: string): string => {
    checkBlobKey(key);
    return join(folder, ...key.split("/"));
  };
  return {
    put: (key, body) => stored(() => write(folder, pathOf(key), body)),
    async get(key, range) {
      const path = pathOf(key);
      return stored(() => read(folder, path, range?.start ?? 0, range?.end));
    },
    async delete(keys) {
      const paths = keys.map(pathOf);
      await stored(async () => {
        for (const path of paths) await remove(folder, path);
      });
    },
    move: (from, to) => moveBlob(folder, pathOf(from), pathOf(to)),
    list: (query) => stored(() => list(folder, query)),
  };
}

/** Converts errors of the file system to errors of the store. Errors of the body stay unchanged. */
async function stored<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    throw codeOf(thrown) === undefined ? thrown : unavailable(thrown);
  }
}

/** Contains only the error's code, because a file system's message would reveal a path. */
function unavailable(thrown: unknown): A2AError {
  return new A2AError("Unavailable", `Blob store request failed: ${codeOf(thrown) ?? "unknown"}`);
}

function codeOf(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || thrown instanceof A2AError || !("syscall" in thrown)) return undefined;
  return "code" in thrown ? String(thrown.code) : undefined;
}

/**
 * Whether a path below the folder contains a symbolic link, which could lead out of the folder. The store never creates links, so such a
 * link comes from another program.
 */
async function passesLink(folder: string, path: string): Promise<boolean> {
  for (let at = path; at.length > folder.length; at = dirname(at)) {
    try {
      if ((await lstat(at)).isSymbolicLink()) return true;
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
  return false;
}

async function refuseLinks(folder: string, path: string): Promise<void> {
  if (await passesLink(folder, path)) throw new A2AError("Unavailable", "The blob store contains a symbolic link");
}

function isMissing(thrown: unknown): boolean {
  const code = codeOf(thrown);
  return code === "ENOENT" || code === "ENOTDIR" || code === "EISDIR";
}

/** Writes to a temporary file, syncs and renames it: readers see all of it or nothing, even after a crash of the machine. */
async function write(folder: string, path: string, body: AsyncIterable<Uint8Array>): Promise<void> {
  const before = join(folder, unfinished);
  await refuseLinks(folder, before);
  await refuseLinks(folder, path);
  await mkdir(before, { recursive: true, mode: 0o700 });
  const own = join(before, randomUUID());
  try {
    const file = await open(own, "wx", 0o600);
    try {
      for await (const piece of body) await writeAll(file, piece);
      await file.sync();
    } finally {
      await file.close();
    }
    await moved(own, path);
    await syncFolders(folder, path);
  } catch (error) {
    await rm(own, { force: true });
    throw error;
  }
}

async function writeAll(file: FileHandle, piece: Uint8Array): Promise<void> {
  for (let at = 0; at < piece.length;) at += (await file.write(piece, at)).bytesWritten;
}

async function moveBlob(folder: string, from: string, to: string): Promise<void> {
  await stored(async () => {
    await refuseLinks(folder, from);
    await refuseLinks(folder, to);
    await moved(from, to);
    await syncFolders(folder, to);
  });
}

/** Moves a file. Retries, because deleting the last blob of a task may remove its folder at the same time. */
async function moved(from: string, to: string): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    try {
      await rename(from, to);
      return;
    } catch (error) {
      if (codeOf(error) !== "ENOENT" || tries === 3) throw error;
    }
  }
}

/** Syncs the folders above a file, so that their new entries are durable, too. */
async function syncFolders(folder: string, path: string): Promise<void> {
  for (let at = dirname(path); at.length >= folder.length; at = dirname(at)) {
    const opened = await open(at, "r");
    try {
      // Windows cannot sync a folder.
      await opened.sync().catch(() => {});
    } finally {
      await opened.close();
    }
  }
}

async function read(folder: string, path: string, start: number, end = Infinity): Promise<BlobContent | undefined> {
  let size: number;
  try {
    if (await passesLink(folder, path)) return undefined;
    const found = await stat(path);
    if (!found.isFile()) return undefined;
    size = found.size;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  // The file is opened on the first read, so an unread body holds no file open.
  return { size, body: pieces(path, start, Math.min(size, end + 1)) };
}

async function* pieces(path: string, start: number, end: number): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
  if (start >= end) return;
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      for (let at = start; at < end;) {
        const buffer = new Uint8Array(Math.min(pieceBytes, end - at));
        const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
        if (bytesRead === 0) throw new A2AError("Unavailable", "The blob was truncated while it was read");
        at += bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await file.close();
    }
  } catch (error) {
    throw codeOf(error) === undefined ? error : unavailable(error);
  }
}

async function remove(folder: string, path: string): Promise<void> {
  // Removes a link like a file; its target stays.
  if (await passesLink(folder, dirname(path))) return;
  try {
    await rm(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  // Remove empty folders, too. A folder that another process has just used is not empty, and stays.
  for (let at = dirname(path); at.length > folder.length; at = dirname(at)) {
    const removed = await rmdir(at).then(
      () => true,
      () => false,
    );
    if (!removed) return;
  }
}

async function list(folder: string, { prefix, after, limit }: BlobQuery): Promise<BlobPage> {
  if (prefix === "" && after === undefined) await removeLeft(join(folder, unfinished));
  const blobs: BlobEntry[] = [];
  const last = after?.split("/") ?? [];
  const from = prefix.split("/").slice(0, -1);
  for await (const key of keysBelow(folder, from, last)) {
    const found = await stat(join(folder, ...key.split("/"))).catch(() => undefined);
    if (found === undefined) continue;
    if (blobs.length === limit) return { blobs, next: blobs.at(-1)?.key ?? "" };
    blobs.push({ key, size: found.size, time: found.mtimeMs });
  }
  return { blobs };
}

/** The keys below a folder that follow `last`, in the order of their segments. */
async function* keysBelow(
  folder: string,
  at: readonly string[],
  last: readonly string[],
): AsyncGenerator<string, void, void> {
  const entries = await entriesOf(join(folder, ...at));
  const depth = at.length;
  const onPath = last.length > 0 && at.every((segment, index) => last[index] === segment);
  const border = onPath ? last[depth] : undefined;
  for (const entry of entries) {
    // Skip uploads and foreign entries, such as the file system's `lost+found`.
    if (!segment.test(entry.name)) continue;
    if (border !== undefined && (entry.name < border || (entry.name === border && depth === last.length - 1))) continue;
    // Skips symbolic links.
    if (entry.isDirectory()) yield* keysBelow(folder, [...at, entry.name], last);
    else if (entry.isFile()) yield [...at, entry.name].join("/");
  }
}

async function entriesOf(path: string): Promise<Dirent[]> {
  try {
    return (await readdir(path, { withFileTypes: true })).sort((one, other) => (one.name < other.name ? -1 : 1));
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** Deletes the remains of uploads whose process crashed. */
async function removeLeft(path: string): Promise<void> {
  try {
    if ((await lstat(path)).isSymbolicLink()) return;
    for await (const { name } of await opendir(path)) {
      const own = join(path, name);
      const found = await lstat(own).catch(() => undefined);
      if (found !== undefined && Date.now() - found.mtimeMs > leftAfter) await rm(own, { force: true });
    }
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}
