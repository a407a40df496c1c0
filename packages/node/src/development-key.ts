import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { link, lstat, mkdir, open, rm, stat, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";

/*
 * A key for development, in a file that only its user can read, so that webhooks survive a restart. The key is rejected if another user
 * may have read or written it.
 */

const name = "development-key";
/** Maximum bytes to read: more than 32 bytes in base64 and a line end. */
const maxBytes = 256;

/** The key could not be created. The server works without it, but webhooks with secrets then end with the process. */
export class CannotMakeKey extends Error {}

/**
 * The key in a folder. Creates it if it is missing; processes that start at the same time get the same key. Follows no links.
 *
 * @throws Error if the file exists and cannot be used. It is never replaced, because it may have sealed stored data.
 * @throws CannotMakeKey if the key is missing and cannot be created.
 */
export async function developmentKey(folder: string): Promise<string> {
  const path = join(folder, name);
  await prepare(folder);
  const found = await read(path);
  if (found !== undefined) return found;
  await make(path);
  const made = await read(path);
  if (made === undefined) throw new CannotMakeKey(`${path} was deleted while it was created`);
  return made;
}

/** Creates the folder for its user only. An existing folder may be readable by others, and a link, but must not be writable by all. */
async function prepare(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new CannotMakeKey(`Failed to create ${folder} (${codeOf(cause)})`, { cause });
  }
  const { uid, mode } = await stat(folder);
  if (!hasModes) return;
  if (!isOwn(uid) && uid !== 0) {
    const what = (await lstat(folder)).isSymbolicLink() ? "leads to a folder of" : "belongs to";
    throw new Error(`${folder} ${what} another user, who could read or replace the development key: ${otherwise}`);
  }
  if ((mode & 0o002) !== 0)
    throw new Error(`All users can write to ${folder} with the development key. Run: chmod o-w ${folder}`);
}

async function read(path: string): Promise<string | undefined> {
  let file: FileHandle;
  try {
    // Without O_NONBLOCK a named pipe would block.
    file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (cause) {
    const code = codeOf(cause);
    if (code === "ENOENT") return undefined;
    if (code === "ELOOP") throw new Error(`${path} must not be a link. Delete it: ${anew}`, { cause });
    throw new Error(`Failed to read the development key ${path} (${code}): ${otherwise}`, { cause });
  }
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new Error(`${path} must be a file with the development key`);
    if (hasModes && !isOwn(found.uid))
      throw new Error(`${path} belongs to another user, who knows the key: ${otherwise}`);
    if (hasModes && (found.mode & 0o077) !== 0)
      throw new Error(
        `Other users may read the development key ${path}. Delete it, and ${anew}; or keep it: chmod 600 ${path}`,
      );
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0);
    const text = buffer.toString("latin1", 0, bytesRead).trim();
    if (!/^[A-Za-z0-9+/]{43}=$/.test(text)) {
      throw new Error(`${path} must contain 32 bytes in base64, and does not. Delete it, and ${anew}`);
    }
    return text;
  } finally {
    await file.close();
  }
}

/** Creates the file atomically: no process sees a part of it or replaces the file of another process. */
async function make(path: string): Promise<void> {
  const fresh = `${path}.${randomBytes(8).toString("hex")}.new`;
  try {
    const file = await open(fresh, "wx", 0o600);
    try {
      await file.writeFile(`${randomBytes(32).toString("base64")}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await link(fresh, path);
  } catch (cause) {
    // EEXIST: another process has created the file first.
    if (codeOf(cause) !== "EEXIST") throw new CannotMakeKey(`Failed to create ${path} (${codeOf(cause)})`, { cause });
  } finally {
    await rm(fresh, { force: true }).catch(() => undefined);
  }
}

const otherwise = "set PARLEY_KEYS, or `developmentKey: false`";
const anew = "the next start makes a new one, which cannot open the secrets of webhooks that are registered now";

/** Windows has no file modes: there, the permissions of the user's profile folder protect the key. */
const hasModes = process.platform !== "win32";

function isOwn(uid: number): boolean {
  return process.getuid === undefined || uid === process.getuid();
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}
