import type { Driver } from "./driver.ts";
import type { DriverName, OpenDriver } from "./drivers/load.ts";

export interface WriteOptions {
  readonly path: string;
  readonly driver: DriverName;
  readonly synchronous: "FULL" | "NORMAL";
  readonly busyTimeout: number;
  readonly maxPages: number | undefined;
}

/** Opens a connection that writes as it is asked to. */
export function openDriver(open: OpenDriver, { path, synchronous, maxPages }: WriteOptions): Driver {
  const driver = open(path);
  try {
    driver.exec(`PRAGMA synchronous = ${synchronous}`);
    // Pages that a thousand tasks write again and again are copied into the file a quarter as often as by default.
    driver.prepare("PRAGMA wal_autocheckpoint = 4000").all();
    if (maxPages !== undefined) driver.prepare(`PRAGMA max_page_count = ${Math.trunc(maxPages)}`).all();
    return driver;
  } catch (thrown) {
    driver.close();
    throw thrown;
  }
}
