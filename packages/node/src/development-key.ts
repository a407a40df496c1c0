import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { link, lstat, mkdir, open, rm, stat, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";

/*
 * A key for development: a file that only its user can read, so that webhooks survive a restart. It needs no settings, so it
 * is rejected if another user may have read or written it.
 */

const name = "development-key";
/** 32 bytes in base64 and the end of the line. More is not read. */
const maxBytes = 256;

/** Why a key cannot be made here. The server can do without, as before there were such files. */
export class CannotMakeKey extends Error {}

/**
 * The key in a folder, which is made when it is missing. Several processes that start at once get the same one. Links are not followed.
 *
 * @throws Error if there is a file that cannot be used: it is never replaced, since it may have sealed what is stored.
 * @throws CannotMakeKey if the key is missing and cannot be created.
 */
export async function developmentKey(folder: string): Promise<string> {
  const path = join(folder, name);
  await prepare(folder);
  const found = await read(path);
  if (found !== undefined) return found;
  await make(path);
  const made = await read(path);
  if (made === undefined) throw new CannotMakeKey(`${path} was deleted while it was made`);
  return made;
}

/** Makes the folder for its user alone. One that is there may be readable by others, and a link, but must not be writable by all. */
async function prepare(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new CannotMakeKey(`${folder} cannot be made (${codeOf(cause)})`, { cause });
  }
  const { uid, mode } = await stat(folder);
  if (!hasModes) return;
  if (!isOwn(uid) && uid !== 0) {
    const what = (await lstat(folder)).isSymbolicLink() ? "leads to a folder of" : "belongs to";
    throw new Error(`${folder} ${what} another user, who could read or replace the development key: ${otherwise}`);
  }
  if ((mode & 0o002) !== 0)
    throw new Error(`All users may write in ${folder}, which has the development key. Do: chmod o-w ${folder}`);
}

async function read(path: string): Promise<string | undefined> {
  let file: FileHandle;
  try {
    // Without O_NONBLOCK a named pipe would block.
    file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (cause) {
    const code = codeOf(cause);
    if (code === "ENOENT") return undefined;
    if (code === "ELOOP") throw new Error(`${path} is a link, which is not followed. Delete it: ${anew}`, { cause });
    throw new Error(`Failed to read the development key ${path} (${code}): ${otherwise}`, { cause });
  }
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new Error(`${path} must be a file, for the development key`);
    if (hasModes && !isOwn(found.uid))
      throw new Error(`${path} belongs to another user, who knows the key: ${otherwise}`);
    if (hasModes && (found.mode & 0o077) !== 0)
      throw new Error(
        `Other users may read the development key ${path}. Delete it, and ${anew}; or keep it: chmod 600 ${path}`,
      );
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0);
    const text = buffer.toString("latin1", 0, bytesRead).trim();
    if (!/^[A-Za-z0-9+/]{43}=$/.test(text)) {
      throw new Error(`${path} must have 32 bytes in base64, and has something else. Delete it, and ${anew}`);
    }
    return text;
  } finally {
    await file.close();
  }
}

/** Makes the file with its content at once: no process finds half of it, and none replaces that of another. */
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
    // Another process was first.
    if (codeOf(cause) !== "EEXIST") throw new CannotMakeKey(`${path} cannot be made (${codeOf(cause)})`, { cause });
  } finally {
    await rm(fresh, { force: true }).catch(() => undefined);
  }
}

const otherwise = "set PARLEY_KEYS, or `developmentKey: false`";
const anew = "the next start makes a new one, which cannot open the secrets of webhooks that are registered now";

/** Windows has no modes: there the folder of the user's profile keeps others out. */
const hasModes = process.platform !== "win32";

function isOwn(uid: number): boolean {
  return process.getuid === undefined || uid === process.getuid();
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}
