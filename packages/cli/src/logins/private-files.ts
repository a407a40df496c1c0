import { randomBytes } from "node:crypto";
import { constants, type Stats } from "node:fs";
import { link, mkdir, open, readdir, readFile, rename, rm, stat, writeFile, type FileHandle } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { codeOf, CommandError } from "../errors.ts";

/** A login has a few kilobytes. */
const maxFileBytes = 1 << 20;

/** Age at which a lock from another machine counts as stale. No work under a lock takes that long. */
const staleLockMs = 60_000;

/**
 * Small files in one folder that only their user can read. A file is replaced atomically. Links are not followed. Files and folders that
 * others can read or change are rejected. Windows has no modes; there, the permissions of the user's profile folder protect them.
 */
export class PrivateFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  path(name: string): string {
    return join(this.#folder, name);
  }

  async names(): Promise<readonly string[]> {
    try {
      return await readdir(this.#folder);
    } catch (error) {
      if (codeOf(error) === "ENOENT") return [];
      throw error;
    }
  }

  /** The text of a file; `undefined` if it does not exist. */
  async read(name: string): Promise<string | undefined> {
    const path = this.path(name);
    let file: FileHandle;
    try {
      // Without O_NONBLOCK a named pipe would block.
      file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      if (codeOf(error) === "ELOOP") throw new CommandError(`${path} must not be a link; delete it`);
      throw error;
    }
    try {
      const found = await file.stat();
      if (!found.isFile()) throw new CommandError(`${path} must be a regular file`);
      if (found.size > maxFileBytes) throw new CommandError(`${path} is too large to be a login`);
      checkOwner(path, found);
      if (hasModes && (found.mode & 0o077) !== 0) {
        throw new CommandError(`other users can read ${path}. Run: chmod 600 ${path}`);
      }
      return await file.readFile("utf8");
    } finally {
      await file.close();
    }
  }

  /** Writes or replaces a file. */
  async write(name: string, text: string): Promise<void> {
    await this.#prepare();
    const path = this.path(name);
    const fresh = `${path}.${randomBytes(8).toString("hex")}.new`;
    try {
      const file = await open(fresh, "wx", 0o600);
      try {
        await file.writeFile(text);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(fresh, path);
    } catch (error) {
      await rm(fresh, { force: true });
      throw error;
    }
  }

  /** Deletes a file. Returns whether it existed. */
  async remove(name: string): Promise<boolean> {
    try {
      await rm(this.path(name));
      return true;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return false;
      throw error;
    }
  }

  /** Runs a function while holding the lock of a name. */
  async exclusively<T>(name: string, run: () => Promise<T>): Promise<T> {
    await this.#prepare();
    const path = this.path(`${name}.lock`);
    await takeLock(path);
    try {
      return await run();
    } finally {
      await rm(path, { force: true });
    }
  }

  async #prepare(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const found = await stat(this.#folder);
    checkOwner(this.#folder, found);
    if (hasModes && (found.mode & 0o022) !== 0) {
      throw new CommandError(`other users can write to ${this.#folder}. Run: chmod 700 ${this.#folder}`);
    }
  }
}

const hasModes = process.platform !== "win32";

function checkOwner(path: string, { uid }: Stats): void {
  if (process.getuid !== undefined && uid !== process.getuid())
    throw new CommandError(`${path} belongs to another user`);
}

/** Identifies the holder of a lock. It contains the host name, because several machines can share a home folder. */
const holder = `${hostname()} ${process.pid} ${randomBytes(8).toString("hex")}`;

async function takeLock(path: string): Promise<void> {
  let seen: string | undefined;
  let since = performance.now();
  for (;;) {
    if (await created(path, holder)) return;
    const other = await readFile(path, "utf8").catch(() => undefined);
    // Measured with the monotonic clock of this process, because the time of the file can come from another clock.
    if (other !== seen) [seen, since] = [other, performance.now()];
    if (other !== undefined && (isDead(other) || performance.now() - since > staleLockMs)) await breakLock(path, other);
    else await pause(20);
  }
}

/** Creates a file with its text, atomically. Returns false if it exists. */
async function created(path: string, text: string): Promise<boolean> {
  const fresh = `${path}.${randomBytes(8).toString("hex")}.new`;
  await writeFile(fresh, text, { flag: "wx", mode: 0o600 });
  try {
    await link(fresh, path);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  } finally {
    await rm(fresh, { force: true });
  }
}

/** Whether the process that holds a lock has exited. */
function isDead(lock: string): boolean {
  const [, host, pid = ""] = /^(\S+) (\d+) /.exec(lock) ?? [];
  if (host !== hostname()) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return codeOf(error) === "ESRCH";
  }
}

/** Removes a stale lock. A lock that another process has taken meanwhile is put back. */
async function breakLock(path: string, text: string): Promise<void> {
  const taken = `${path}.${randomBytes(8).toString("hex")}.new`;
  try {
    await rename(path, taken);
    if ((await readFile(taken, "utf8")) !== text) await link(taken, path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT" && codeOf(error) !== "EEXIST") throw error;
  } finally {
    await rm(taken, { force: true });
  }
}
