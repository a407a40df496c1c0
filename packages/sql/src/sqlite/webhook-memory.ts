import { mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { unavailable } from "@parley/server/internal/store/index";
import type { HandledDelivery, WebhookMemory } from "@parley/a2a/webhooks";
import { retryWhileBusy, type Driver } from "./driver.ts";
import { defaultDriver, loadDriver, MissingDriver, openConnection, type DriverName } from "./libraries.ts";

/** Options of `sqliteWebhookMemory()`. */
export interface SqliteWebhookMemoryOptions {
  /**
   * The file, created with its folder if missing. Do not use the file of a store. Several processes may share the file.
   * `:memory:` keeps everything in memory.
   */
  readonly path: string;
  /** Milliseconds to remember a delivery. Default 7 days, because senders give up earlier. */
  readonly keep?: number;
  /** Maximum bytes of data. Above it, the oldest deliveries are forgotten. Default 256 MiB. */
  readonly bytes?: number;
  /** How long a call waits while another process writes, in milliseconds, before it fails as `Unavailable`. Default 5000. */
  readonly busyTimeout?: number;
  /** The library that runs SQLite, as for `sqliteStore()`. Default: the runtime's. */
  readonly driver?: DriverName;
}

export type { DriverName };

/** The version of the tables, in `user_version`. */
const version = 1;

const tables = `
  CREATE TABLE handled (receiver TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (receiver, id)) STRICT, WITHOUT ROWID;
  CREATE INDEX handled_at ON handled (at);
  CREATE TABLE streams (receiver TEXT NOT NULL, stream TEXT NOT NULL, last INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (receiver, stream)) STRICT, WITHOUT ROWID;
  CREATE INDEX streams_at ON streams (at);
  PRAGMA user_version = ${version};
`;

/** Deletes old rows after this many new ones. */
const sweepAfter = 256;
/** Number of rows to delete together if the data exceeds its limit. */
const forgotten = 1024;

/**
 * Remembers handled webhooks in a file, so that the next process does not handle them again.
 *
 * Rejects with an `A2AError` of code `Unavailable` if the file cannot be opened or has other tables, or the driver is missing.
 *
 * @example
 * ```ts
 * const memory = await sqliteWebhookMemory({ path: ".parley/webhooks.db" });
 * ```
 */
export async function sqliteWebhookMemory(options: SqliteWebhookMemoryOptions): Promise<WebhookMemory> {
  const { busyTimeout = 5000, driver: name = defaultDriver() } = options;
  const path = options.path === ":memory:" ? options.path : resolve(options.path);
  let opened: Driver | undefined;
  try {
    const open = await loadDriver(options.driver);
    if (path !== ":memory:") mkdirSync(dirname(path), { recursive: true });
    // Commits do not wait for the disk. After power loss, the last deliveries may be handled again, which is harmless.
    const connection = { path, driver: name, synchronous: "NORMAL", busyTimeout, maxPages: undefined } as const;
    const driver = (opened = await openConnection(open, connection));
    await retryWhileBusy(() => driver.prepare("PRAGMA journal_mode = WAL").all(), busyTimeout);
    await retryWhileBusy(() => driver.transaction("write", () => createTables(driver)), busyTimeout);
    return memoryIn(driver, options);
  } catch (thrown) {
    opened?.close();
    throw unavailable(thrown instanceof MissingDriver ? thrown.message : "The webhook file cannot be opened", thrown);
  }
}

function createTables(driver: Driver): void {
  const found = driver.prepare("PRAGMA user_version").get()?.[0];
  if (found === version) return;
  if (found !== 0) throw new Error(`The file has version ${found}; this release supports version ${version}`);
  driver.exec(tables);
}

function memoryIn(
  driver: Driver,
  { keep = 7 * 24 * 3_600_000, bytes = 256 << 20, busyTimeout = 5000 }: SqliteWebhookMemoryOptions,
): WebhookMemory {
  let since = 0;
  const run = async <T>(work: () => T): Promise<T> => {
    try {
      return await retryWhileBusy(work, busyTimeout);
    } catch (thrown) {
      throw unavailable("The webhook file cannot be used now", thrown);
    }
  };
  const size = (): number => {
    const pages = (pragma: string): number => Number(driver.prepare(`PRAGMA ${pragma}`).get()?.[0] ?? 0);
    return (pages("page_count") - pages("freelist_count")) * pages("page_size");
  };
  const sweep = (now: number): void => {
    for (const table of ["handled", "streams"]) driver.prepare(`DELETE FROM ${table} WHERE at < ?`).run(now - keep);
    for (let changes = 1; changes > 0 && size() > bytes;) {
      changes = 0;
      for (const table of ["handled", "streams"]) {
        // Keeps the newest row. Rows with the same time are deleted together.
        const before = driver.prepare(`SELECT at FROM ${table} ORDER BY at LIMIT 1 OFFSET ${forgotten}`).get()?.[0];
        if (before !== undefined) changes += driver.prepare(`DELETE FROM ${table} WHERE at <= ?`).run(before).changes;
      }
    }
  };
  const write = ({ id, stream, sequence, at, ...from }: HandledDelivery): void => {
    const place = placeOf(from);
    driver
      .prepare("INSERT INTO handled VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at")
      .run(place, id, at);
    if (stream !== undefined && sequence !== undefined) {
      driver
        .prepare(
          "INSERT INTO streams VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET last = max(last, excluded.last), at = excluded.at",
        )
        .run(place, stream, sequence, at);
    }
    since += 1;
    if (since < sweepAfter) return;
    since = 0;
    sweep(at);
  };
  return {
    recall: ({ id, stream, ...from }) =>
      run(() => {
        // Earlier releases did not store the sender.
        const [place, before] = [placeOf(from), from.receiver];
        const seen = driver.prepare("SELECT 1 FROM handled WHERE receiver IN (?, ?) AND id = ?").get(place, before, id);
        const last =
          stream === undefined
            ? undefined
            : driver
                .prepare("SELECT max(last) FROM streams WHERE receiver IN (?, ?) AND stream = ?")
                .get(place, before, stream)?.[0];
        return { seen: seen !== undefined, ...(last !== undefined && last !== null && { last: Number(last) }) };
      }),
    remember: (delivery) => run(() => driver.transaction("write", () => write(delivery))),
    close: () => driver.close(),
  };
}

/** Receiver and sender in the column `receiver`, separated by a space, which no URL contains. */
function placeOf({ receiver, sender }: Pick<HandledDelivery, "receiver" | "sender">): string {
  return `${receiver} ${sender}`;
}
