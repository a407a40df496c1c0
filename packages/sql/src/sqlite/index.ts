import { mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { silentLogger, type Logger } from "@parley/a2a";
import { unavailable, type Store } from "@parley/a2a/store";
import { retryWhileBusy } from "./busy.ts";
import type { Driver } from "./driver.ts";
import { defaultDriver, loadDriver, MissingDriver, type DriverName } from "./drivers/load.ts";
import { FileWatch, identityOf } from "./files.ts";
import { migrate, UnknownVersion } from "./migrations.ts";
import { openDriver, type WriteOptions } from "./open.ts";
import { driverStore } from "./store.ts";
import { threadFile, threadWriter } from "./thread-writer.ts";
import { driverWriter, type Writer } from "./writer.ts";

export { defaultDriver, type DriverName };

/** Options of `sqliteStore()`. */
export interface SqliteStoreOptions {
  /** The file, made with its folder where there is none; `:memory:` for one that goes with the store. */
  readonly path: string;
  /**
   * What an acknowledged append survives. `FULL` (the default): a crash of the process, and a loss of power too, since
   * every commit waits for the disk. `NORMAL`: a crash of the process, but after a crash of the whole machine the last
   * commits may be missing; the file is whole either way. Under load a commit is shared by many tasks, and `FULL` costs
   * next to nothing; on a slow disk `NORMAL` answers a lone request sooner.
   */
  readonly synchronous?: "FULL" | "NORMAL";
  /** How long a call waits while another process writes, in milliseconds, before it fails as `Unavailable`. Default 5000. */
  readonly busyTimeout?: number;
  /** Upper limit of the file, in pages of 4096 bytes; beyond it appends fail as `Unavailable`. Default: none. */
  readonly maxPages?: number;
  /**
   * The library that runs SQLite: `node:sqlite` (Node 22.16 and newer), `bun:sqlite` (Bun) or `libsql` (a package to be
   * installed). Default: what the runtime brings along, `libsql` where it brings none, as Node 20.
   */
  readonly driver?: DriverName;
  /** How often `watch` looks for what other processes wrote, in milliseconds. Default 200. */
  readonly watchInterval?: number;
  /**
   * Whether a thread of its own writes, so that waiting for the disk holds up nobody who answers requests. Default true;
   * `:memory:` has none, and a program that was bundled into one file has none either.
   */
  readonly thread?: boolean;
  /** Told when the files of the database are taken away while it is open, and when they are back. Default: silent. */
  readonly logger?: Logger;
}

/**
 * A durable store in one SQLite file. Several processes may use the file at once, so that one can drain while its successor runs.
 * Rejects with an `A2AError` of code `Unavailable` where the file cannot be opened, was written by a newer release, or is
 * no such database, and where the driver is missing, with what to install. Where the files are removed, renamed or replaced while it is open, every call rejects as `Unavailable`
 * until the same ones are back.
 */
export async function sqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { synchronous = "FULL", busyTimeout = 5000, maxPages, watchInterval = 200, thread = true } = options;
  const { logger = silentLogger, driver: driverName = defaultDriver() } = options;
  const inMemory = options.path === ":memory:";
  const path = inMemory ? options.path : resolve(options.path);
  const writing: WriteOptions = { path, driver: driverName, synchronous, busyTimeout, maxPages };
  let driver: Driver | undefined;
  let writer: Writer | undefined;
  try {
    const open = await loadDriver(options.driver);
    if (!inMemory) mkdirSync(dirname(path), { recursive: true });
    // The thread begins while this one sees to the tables.
    const file = thread && !inMemory ? threadFile() : undefined;
    const beside = (writer = file && threadWriter(file, writing));
    const opened = (driver = openDriver(open, writing));
    await retryWhileBusy(() => opened.prepare("PRAGMA journal_mode = WAL").all(), busyTimeout);
    await retryWhileBusy(() => migrate(opened), busyTimeout);
    const identity = inMemory ? {} : identityOf(path);
    // A thread that has died says so to whoever asks it for something.
    beside?.keepTo(identity).catch(() => undefined);
    const writes = (writer = beside ?? driverWriter(opened, { busyTimeout, identity }));
    const files = new FileWatch(path, identity, logger);
    return driverStore(opened, writes, { durable: !inMemory, busyTimeout, watchInterval, files });
  } catch (thrown) {
    await writer?.close().catch(() => undefined);
    driver?.close();
    const isTold = thrown instanceof UnknownVersion || thrown instanceof MissingDriver;
    throw unavailable(isTold ? thrown.message : "The database cannot be opened", thrown);
  }
}
