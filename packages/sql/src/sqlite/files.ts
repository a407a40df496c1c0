import { statSync, type Stats } from "node:fs";
import type { Logger } from "@parley/a2a";

/** Beside the database in WAL mode: its log, and the index of that log which processes share. */
const suffixes = ["", "-wal", "-shm"] as const;

/** Which files a database is, by path: one that goes and another that comes have different ones. */
export type Identity = Readonly<Record<string, string>>;

/** SQLite's own code for files that were moved, for which it does not look in WAL mode. */
export const movedCode = "SQLITE_READONLY_DBMOVED";

/** The files are not those any more that were opened: what is written now is gone as soon as they are closed. */
class FilesMoved extends Error {
  readonly code: string = movedCode;
}

/** Of a database that is open: until its last connection is closed, all of its files stay. */
export function identityOf(path: string): Identity {
  const found = suffixes.map((suffix) => [path + suffix, idOf(path + suffix)] as const);
  return Object.fromEntries(found.filter(([, id]) => id !== ""));
}

/** Throws a `FilesMoved` where a file is gone or another one is in its place. It opens none: closing one would end SQLite's locks. */
export function checkFiles(identity: Identity): void {
  for (const file of Object.keys(identity)) {
    const found = idOf(file);
    if (found !== identity[file]) throw new FilesMoved(`${file} is ${found === "" ? "gone" : "another file now"}`);
  }
}

function idOf(file: string): string {
  let stats: Stats | undefined;
  try {
    stats = statSync(file, { throwIfNoEntry: false });
  } catch {
    // A file that cannot be examined counts as gone.
  }
  return stats === undefined ? "" : `${stats.dev}/${stats.ino}`;
}

/** How old a check may be that a read relies on, in milliseconds. Writes check each time: only they can lose something. */
const lookInterval = 100;

/** Checks the files of a database before reads, and logs once when they are gone and once when they are back. */
export class FileWatch {
  readonly #path: string;
  readonly #identity: Identity;
  readonly #logger: Logger;
  #looked = -Infinity;
  #moved = false;

  constructor(path: string, identity: Identity, logger: Logger) {
    this.#path = path;
    this.#identity = identity;
    this.#logger = logger;
  }

  check(): void {
    const now = performance.now();
    if (!this.#moved && now - this.#looked < lookInterval) return;
    checkFiles(this.#identity);
    this.#looked = now;
    if (!this.#moved) return;
    this.#moved = false;
    this.#logger.warn("The files of the database are back: tasks are stored and read again", { path: this.#path });
  }

  /** The files were found moved, here or by the writer. */
  note(cause: unknown): void {
    if (this.#moved) return;
    this.#moved = true;
    this.#logger.error(
      "The files of the database were removed, renamed or replaced while it is in use: every call is refused. Put them back as they were, or start again with the files that are to be used",
      { path: this.#path, cause },
    );
  }
}
