import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { unavailable, type Store } from "@parley/a2a/store";
import type { Driver } from "./driver.ts";
import { openLibsql } from "./libsql.ts";
import { migrate, UnknownVersion } from "./migrations.ts";
import { driverStore, patiently } from "./store.ts";

export interface SqliteStoreOptions {
  /** The file, made with its folder where there is none; `:memory:` for one that goes with the store. */
  readonly path: string;
  /**
   * What an acknowledged append survives. `FULL` (the default): also a loss of power, since every commit waits for the
   * disk. `NORMAL`: a crash of the process, but after a crash of the whole machine the last commits may be missing;
   * the file is whole either way.
   */
  readonly synchronous?: "FULL" | "NORMAL";
  /** How long a call waits while another process writes, in milliseconds, before it fails as `Unavailable`. Default 5000. */
  readonly busyTimeout?: number;
  /** Upper limit of the file, in pages of 4096 bytes; beyond it appends fail as `Unavailable`. Default: none. */
  readonly maxPages?: number;
  /** How often `watch` looks for what other processes wrote, in milliseconds. Default 200. */
  readonly watchInterval?: number;
}

/**
 * A durable store in one SQLite file. Several processes may use the file at once, so that one can drain while its successor runs.
 * Rejects with an `A2AError` of code `Unavailable` where the file cannot be opened, was written by a newer release, or is
 * no such database.
 */
export async function sqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { path, synchronous = "FULL", busyTimeout = 5000, maxPages, watchInterval = 200 } = options;
  let driver: Driver | undefined;
  try {
    if (path !== ":memory:") mkdirSync(dirname(path), { recursive: true });
    const opened = (driver = openLibsql(path));
    await patiently(() => opened.prepare("PRAGMA journal_mode = WAL").all(), busyTimeout);
    opened.exec(`PRAGMA synchronous = ${synchronous}`);
    if (maxPages !== undefined) opened.prepare(`PRAGMA max_page_count = ${Math.trunc(maxPages)}`).all();
    await patiently(() => migrate(opened), busyTimeout);
    return driverStore(opened, { busyTimeout, watchInterval });
  } catch (thrown) {
    driver?.close();
    throw unavailable(thrown instanceof UnknownVersion ? thrown.message : "The database cannot be opened", thrown);
  }
}
