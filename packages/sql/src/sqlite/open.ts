import type { Driver } from "./driver.ts";
import { openLibsql } from "./libsql.ts";

export interface WriteOptions {
  readonly path: string;
  readonly synchronous: "FULL" | "NORMAL";
  readonly busyTimeout: number;
  readonly maxPages: number | undefined;
}

/** Opens a connection that writes as it is asked to. */
export function openDriver({ path, synchronous, maxPages }: WriteOptions): Driver {
  const driver = openLibsql(path);
  try {
    driver.exec(`PRAGMA synchronous = ${synchronous}`);
    if (maxPages !== undefined) driver.prepare(`PRAGMA max_page_count = ${Math.trunc(maxPages)}`).all();
    return driver;
  } catch (thrown) {
    driver.close();
    throw thrown;
  }
}
