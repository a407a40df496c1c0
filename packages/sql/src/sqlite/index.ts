/**
 * The SQLite store.
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
} from "./libraries.ts";
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
  /** The database file, created with its folder if it is missing. `:memory:` keeps everything in memory. */
  readonly path: string;
  /**
   * Whether to create the file and upgrade its tables. With `false`, the file must have the tables of this version and is not changed. Use
   * `false` for a tool that reads the file of a server. Default true.
   */
  readonly create?: boolean;
  /**
   * Which failures an acknowledged append survives. With `FULL` (default), it survives process crashes and power loss, because each commit
   * waits for the disk. With `NORMAL`, it survives process crashes; power loss may undo the last commits, but the file stays consistent.
   * Under load many tasks share a commit, so `FULL` costs little; on a slow disk `NORMAL` answers single requests sooner.
   */
  readonly synchronous?: "FULL" | "NORMAL";
  /** How long a call waits while another process writes, in milliseconds, before it fails as `Unavailable`. Default 5000. */
  readonly busyTimeout?: number;
  /** Maximum size of the file, in pages of 4096 bytes. Appends beyond this size fail as `Unavailable`. Default: no limit. */
  readonly maxPages?: number;
  /**
   * The SQLite library: `node:sqlite` (Node 22.16 or newer), `bun:sqlite` or the package `libsql`. Default: the runtime's library, else
   * `libsql`.
   */
  readonly driver?: DriverName;
  /** Milliseconds between two polls of `watch` for changes by other processes. Default 200. */
  readonly watchInterval?: number;
  /**
   * Whether to write in a thread, so that requests are answered while a write waits for the disk. Default true. Has no effect for
   * `:memory:` and in a program bundled into one file.
   */
  readonly thread?: boolean;
  /** Logs when the files are removed while open, and when they are back. Default: silent. */
  readonly logger?: Logger;
}

/**
 * A durable store in one SQLite file. Several processes may share the file, such as one that drains and its successor.
 *
 * Rejects with an `A2AError` of code `Unavailable` if the driver is missing, or if the file cannot be opened, is not a Parley store, or is more
 * than one version newer. The error says what to do. While the files are removed, renamed or replaced, every call rejects as `Unavailable`.
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
    // The writer thread starts while the main thread creates the tables.
    const file = thread && !inMemory ? threadFile() : undefined;
    const beside = (writer = file && threadWriter(file, connection));
    const opened = (driver = await openConnection(open, connection));
    // The file may belong to another program.
    if (!create) await retryWhileBusy(() => checkVersion(opened), busyTimeout);
    else {
      await retryWhileBusy(() => opened.prepare("PRAGMA journal_mode = WAL").all(), busyTimeout);
      const found = await retryWhileBusy(() => migrate(opened), busyTimeout);
      if (found > newestVersion) {
        const versions = { path, found, newest: newestVersion };
        logger.info("SQLite: the file is one version newer; this release works with it", versions);
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

/** The reason without the file path, which only the cause contains. */
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
