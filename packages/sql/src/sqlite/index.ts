import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { unavailable, type Store } from "@parley/a2a/store";
import { patiently } from "./busy.ts";
import type { Driver } from "./driver.ts";
import { migrate, UnknownVersion } from "./migrations.ts";
import { openDriver, type WriteOptions } from "./open.ts";
import { driverStore } from "./store.ts";
import { threadFile, threadWriter } from "./thread-writer.ts";
import { driverWriter, type Writer } from "./writer.ts";

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
  /** How often `watch` looks for what other processes wrote, in milliseconds. Default 200. */
  readonly watchInterval?: number;
  /**
   * Whether a thread of its own writes, so that waiting for the disk holds up nobody who answers requests. Default true;
   * `:memory:` has none, and a program that was bundled into one file has none either.
   */
  readonly thread?: boolean;
}

/**
 * A durable store in one SQLite file. Several processes may use the file at once, so that one can drain while its successor runs.
 * Rejects with an `A2AError` of code `Unavailable` where the file cannot be opened, was written by a newer release, or is
 * no such database.
 */
export async function sqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { path, synchronous = "FULL", busyTimeout = 5000, maxPages, watchInterval = 200, thread = true } = options;
  const writing: WriteOptions = { path, synchronous, busyTimeout, maxPages };
  const inMemory = path === ":memory:";
  let driver: Driver | undefined;
  let writer: Writer | undefined;
  try {
    if (!inMemory) mkdirSync(dirname(path), { recursive: true });
    // The thread begins while this one sees to the tables.
    const file = thread && !inMemory ? threadFile() : undefined;
    const opened = (driver = openDriver(writing));
    const writes = (writer = file === undefined ? driverWriter(opened, { busyTimeout }) : threadWriter(file, writing));
    await patiently(() => opened.prepare("PRAGMA journal_mode = WAL").all(), busyTimeout);
    await patiently(() => migrate(opened), busyTimeout);
    return driverStore(opened, writes, { durable: !inMemory, busyTimeout, watchInterval });
  } catch (thrown) {
    await writer?.close().catch(() => undefined);
    driver?.close();
    throw unavailable(thrown instanceof UnknownVersion ? thrown.message : "The database cannot be opened", thrown);
  }
}
