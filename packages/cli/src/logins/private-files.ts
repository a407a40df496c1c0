import { randomBytes } from "node:crypto";
import { constants, type Stats } from "node:fs";
import { link, mkdir, open, readdir, readFile, rename, rm, stat, writeFile, type FileHandle } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { CommandError } from "../errors.ts";

/** Largest file that is read, in bytes. A login has a few kilobytes. */
const largest = 1 << 20;

/** After how many milliseconds a lock is left over from a process of another machine that has crashed. No work under a lock takes so long. */
const staleLock = 60_000;

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

/**
 * Small files that nobody else may read, in one folder. They are replaced as a whole: a crash leaves the old one or the new one. Links are
 * not followed. A file or a folder that others can read or change is refused. Windows has no modes: there the folder of the user's
 * profile keeps others out.
 */
export class PrivateFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  path(name: string): string {
    return join(this.#folder, name);
  }

  /** Names of the files. */
  async names(): Promise<readonly string[]> {
    try {
      return await readdir(this.#folder);
    } catch (error) {
      if (codeOf(error) === "ENOENT") return [];
      throw error;
    }
  }

  /** The text of a file; `undefined` where there is none. */
  async read(name: string): Promise<string | undefined> {
    const path = this.path(name);
    let file: FileHandle;
    try {
      // Without O_NONBLOCK a named pipe would block.
      file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      if (codeOf(error) === "ELOOP") throw new CommandError(`${path} is a link. It is not followed: delete it`);
      throw error;
    }
    try {
      const found = await file.stat();
      if (!found.isFile()) throw new CommandError(`${path} is not a file`);
      if (found.size > largest) throw new CommandError(`${path} is too large to be a login`);
      checkOwner(path, found);
      if (hasModes && (found.mode & 0o077) !== 0) {
        throw new CommandError(`other users may read ${path}. Do: chmod 600 ${path}`);
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

  /** Deletes a file. Returns whether there was one. */
  async remove(name: string): Promise<boolean> {
    try {
      await rm(this.path(name));
      return true;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return false;
      throw error;
    }
  }

  /** Runs something while no other process does so under the same name. */
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
      throw new CommandError(`other users may write in ${this.#folder}. Do: chmod 700 ${this.#folder}`);
    }
  }
}

const hasModes = process.platform !== "win32";

function checkOwner(path: string, { uid }: Stats): void {
  if (process.getuid !== undefined && uid !== process.getuid())
    throw new CommandError(`${path} belongs to another user`);
}

/** Who holds a lock. The host is named, since a home can be on a disk that several machines share. */
const holder = `${hostname()} ${process.pid} ${randomBytes(8).toString("hex")}`;

async function takeLock(path: string): Promise<void> {
  let seen: string | undefined;
  let since = performance.now();
  for (;;) {
    if (await created(path, holder)) return;
    const other = await readFile(path, "utf8").catch(() => undefined);
    // Measured here, by a clock that does not jump. The time of the file can be that of another clock.
    if (other !== seen) [seen, since] = [other, performance.now()];
    if (other !== undefined && (isDead(other) || performance.now() - since > staleLock)) await breakLock(path, other);
    else await pause(20);
  }
}

/** Creates a file, and its text with it. Returns whether there was none. */
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

/** Whether the process that holds a lock has ended. */
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

/** Removes a lock that nobody holds any more. A lock that another process has taken meanwhile is put back. */
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
