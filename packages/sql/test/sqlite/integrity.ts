import { openDriver } from "./drivers.ts";

/** The result of SQLite's own check of a file, which is `["ok"]` for an intact file. */
export function integrityOf(path: string): readonly unknown[] {
  const driver = openDriver(path);
  const rows = driver.prepare("PRAGMA integrity_check").all();
  driver.close();
  return rows.map(([said]) => said);
}
