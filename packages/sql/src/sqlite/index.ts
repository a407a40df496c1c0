/**
 * The SQLite store, on the driver that the runtime has.
 * @packageDocumentation
 */

import { accessSync, mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { silentLogger, type Logger } from "@parley/a2a/internal/base/index";
import { unavailable, type Store } from "@parley/server/internal/store/index";
import { retryWhileBusy, type Driver } from "./driver.ts";
import {
  defaultDriver,
  loadDriver,
  MissingDriver,
  openConnection,
  type ConnectionOptions,
  type DriverName,
} from "./drivers/load.ts";
import { checkFiles, FileWatch, identityOf } from "./files.ts";
import { UnknownVersion } from "../shared/versions.ts";
import { checkVersion, migrate, newestVersion } from "./migrations.ts";
import { driverStore } from "./store.ts";
import { threadFile, threadWriter } from "./thread-writer.ts";
import { driverWriter, type Writer } from "./writer.ts";

export { defaultDriver, type DriverName };
export { sqliteWebhookMemory, type SqliteWebhookMemoryOptions } from "./webhook-memory.ts";

/** Options of `sqliteStore()`. */
export interface SqliteStoreOptions {
  /** The database file. It is created with its folder if it is missing. `:memory:` keeps everything in memory until the store is closed. */
  readonly path: string;
  /**
   * Whether the file is created where it is missing, and brought to the version of this release. `false`: it must be a database
   * of this version, and nothing else is changed, as for a program that looks at the file of a server. Default true.
   */
  readonly create?: boolean;
  /**
   * What an acknowledged append survives. `FULL` (the default): a crash of the process and a loss of power, since every
   * commit waits for the disk. `NORMAL`: a crash of the process; after a loss of power the last commits may be missing. The
   * file is consistent either way. Under load many tasks share a commit, and `FULL` costs next to nothing; on a slow disk
   * `NORMAL` answers a single request sooner.
   */
  readonly synchronous?: "FULL" | "NORMAL";
  /** Milliseconds that a call waits for another process that writes, before it fails as `Unavailable`. Default 5000. */
  readonly busyTimeout?: number;
  /** Largest size of the file, in pages of 4096 bytes; an append beyond it fails as `Unavailable`. Default: none. */
  readonly maxPages?: number;
  /**
   * The library that runs SQLite: `node:sqlite` (Node 22.16 or newer), `bun:sqlite` (Bun) or `libsql` (a package to
   * install). Default: the library of the runtime, or `libsql` where it has none, such as on Node 20.
   */
  readonly driver?: DriverName;
  /** Milliseconds between two checks of `watch` for changes by other processes. Default 200. */
  readonly watchInterval?: number;
  /**
   * Whether a thread of its own writes, so that requests are answered while it waits for the disk. Default true. There is
   * no thread for `:memory:`, nor in a program that was bundled into one file.
   */
  readonly thread?: boolean;
  /** Logs when the files of the database are removed while it is open, and when they are back. Default: silent. */
  readonly logger?: Logger;
}

/**
 * A durable store in one SQLite file. Several processes may use the file at once, so that one can drain while its
 * successor runs.
 *
 * Rejects with an `A2AError` of code `Unavailable` if the file cannot be opened, is not such a database or was written by a
 * release that is more than one version of the tables newer, and if the driver is missing; the message then says what to install. If the files are removed, renamed or
 * replaced while the store is open, every call rejects as `Unavailable` until the same files are back.
 */
export async function sqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { synchronous = "FULL", busyTimeout = 5000, maxPages, watchInterval = 200, thread = true } = options;
  const { logger = silentLogger, driver: driverName = defaultDriver(), create = true } = options;
  const inMemory = options.path === ":memory:";
  const path = inMemory ? options.path : resolve(options.path);
  const connection: ConnectionOptions = { path, driver: driverName, synchronous, busyTimeout, maxPages };
  let driver: Driver | undefined;
  let writer: Writer | undefined;
  try {
    const open = await loadDriver(options.driver);
    if (!inMemory && create) mkdirSync(dirname(path), { recursive: true });
    if (!create) accessSync(path);
    // The thread starts while this one creates the tables.
    const file = thread && !inMemory ? threadFile() : undefined;
    const beside = (writer = file && threadWriter(file, connection));
    const opened = (driver = await openConnection(open, connection));
    // It may be the file of another program.
    if (!create) await retryWhileBusy(() => checkVersion(opened), busyTimeout);
    else {
      await retryWhileBusy(() => opened.prepare("PRAGMA journal_mode = WAL").all(), busyTimeout);
      const found = await retryWhileBusy(() => migrate(opened), busyTimeout);
      if (found > newestVersion) {
        const versions = { path, found, newest: newestVersion };
        logger.info("SQLite: the file is of the next release, and this one works with it", versions);
      }
    }
    const identity = inMemory ? {} : identityOf(path);
    // If the thread has ended, every call to it rejects.
    beside?.keepTo(identity).catch(() => undefined);
    const writes = (writer = beside ?? driverWriter(opened, { busyTimeout, check: () => checkFiles(identity) }));
    const files = new FileWatch(path, identity, logger);
    return driverStore(opened, writes, { durable: !inMemory, busyTimeout, watchInterval, files });
  } catch (thrown) {
    await writer?.close().catch(() => undefined);
    driver?.close();
    const isTold = thrown instanceof UnknownVersion || thrown instanceof MissingDriver;
    throw unavailable(isTold ? thrown.message : sentenceOf(path, thrown), thrown);
  }
}

/** What is wrong with a file, as far as it is known, without its path: the cause has that. */
function sentenceOf(path: string, thrown: unknown): string {
  const message = thrown instanceof Error ? thrown.message : "";
  const reason = isFolder(path) ? "it is a folder" : message.includes(dirname(path)) ? "" : message;
  return `The database cannot be opened${reason === "" ? "" : `: ${reason}`}`;
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
