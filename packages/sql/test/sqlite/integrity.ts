import Database from "libsql";

/** What SQLite itself says of a file: `["ok"]`. */
export function integrityOf(path: string): readonly string[] {
  const database = new Database(path);
  const rows = database.prepare("PRAGMA integrity_check").all() as readonly { readonly integrity_check: string }[];
  database.close();
  return rows.map((row) => row.integrity_check);
}
