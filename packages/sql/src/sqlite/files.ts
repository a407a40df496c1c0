import { statSync, type Stats } from "node:fs";
import type { Logger } from "@parley/a2a/internal/base/index";
import { movedCode } from "./driver.ts";

/** Suffixes of a database's files. In WAL mode there are two more files: the log, and its shared index. */
const suffixes = ["", "-wal", "-shm"] as const;

/** The device and inode of each file of a database, by path. */
export type Identity = Readonly<Record<string, string>>;

/** The files at these paths are not the files that were opened, so writes would be lost. */
class FilesMoved extends Error {
  readonly code: string = movedCode;
}

/** Call this while the database is open. */
export function identityOf(path: string): Identity {
  const found = suffixes.map((suffix) => [path + suffix, idOf(path + suffix)] as const);
  return Object.fromEntries(found.filter(([, id]) => id !== ""));
}

/** Throws `FilesMoved` if a file is missing or replaced. Does not open files, because closing a file would drop SQLite's locks. */
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

/** Milliseconds for which reads rely on one check. Writes always check, because only they can lose data. */
const checkInterval = 100;

/** Checks the files before reads. Logs once when they are missing and once when they are back. */
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
    this.#logger.warn("SQLite: the database files are back; the store works again", { path: this.#path });
  }

  /** Reports that a read or the writer found the files moved. */
  note(cause: unknown): void {
    if (this.#moved) return;
    this.#moved = true;
    this.#logger.error(
      "SQLite: the database files were removed, renamed or replaced while open; rejecting every call. Restore them, or restart with the files to use",
      { path: this.#path, cause },
    );
  }
}
