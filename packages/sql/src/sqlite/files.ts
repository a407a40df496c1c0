import { statSync, type Stats } from "node:fs";
import type { Logger } from "@parley/a2a/internal/base/index";
import { movedCode } from "./driver.ts";

/** In WAL mode a database has two more files: its log, and the index of that log, which processes share. */
const suffixes = ["", "-wal", "-shm"] as const;

/** The device and inode of each file of a database, by path. */
export type Identity = Readonly<Record<string, string>>;

/** The files at these paths are not those that were opened: what is written now is lost when they are closed. */
class FilesMoved extends Error {
  readonly code: string = movedCode;
}

/** Call it while the database is open: its files stay until the last connection is closed. */
export function identityOf(path: string): Identity {
  const found = suffixes.map((suffix) => [path + suffix, idOf(path + suffix)] as const);
  return Object.fromEntries(found.filter(([, id]) => id !== ""));
}

/**
 * Throws a `FilesMoved` where a file is missing or was replaced. It opens no file: a process that opens and closes a
 * database file a second time loses SQLite's locks.
 */
export function checkFiles(identity: Identity): void {
  for (const file of Object.keys(identity)) {
    const found = idOf(file);
    if (found !== identity[file]) throw new FilesMoved(`${file} ${found === "" ? "is missing" : "was replaced"}`);
  }
}

function idOf(file: string): string {
  let stats: Stats | undefined;
  try {
    stats = statSync(file, { throwIfNoEntry: false });
  } catch {
    // A file that cannot be examined counts as missing.
  }
  return stats === undefined ? "" : `${stats.dev}/${stats.ino}`;
}

/** Milliseconds for which reads rely on one check. Writes check each time: only they can lose data. */
const checkInterval = 100;

/** Checks the files of a database before reads. Logs once when they are missing and once when they are back. */
export class FileWatch {
  readonly #path: string;
  readonly #identity: Identity;
  readonly #logger: Logger;
  #checkedAt = -Infinity;
  #moved = false;

  constructor(path: string, identity: Identity, logger: Logger) {
    this.#path = path;
    this.#identity = identity;
    this.#logger = logger;
  }

  check(): void {
    const now = performance.now();
    if (!this.#moved && now - this.#checkedAt < checkInterval) return;
    checkFiles(this.#identity);
    this.#checkedAt = now;
    if (!this.#moved) return;
    this.#moved = false;
    this.#logger.warn("The files of the database are back: the store works again", { path: this.#path });
  }

  /** Reports that a read or the writer found the files moved. */
  note(cause: unknown): void {
    if (this.#moved) return;
    this.#moved = true;
    this.#logger.error(
      "The files of the database were removed, renamed or replaced while it is in use: every call is refused. Put them back, or restart with the files to use",
      { path: this.#path, cause },
    );
  }
}
