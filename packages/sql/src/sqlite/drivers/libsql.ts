import type { Row } from "../driver.ts";
import type { Library } from "./library.ts";

/** What is used of the package `libsql`. Its errors carry SQLite's names as they are: `SQLITE_BUSY`. */
export interface LibsqlModule {
  readonly default: new (path: string, options: { readonly timeout: number }) => LibsqlDatabase;
}

interface LibsqlDatabase {
  readonly inTransaction: boolean;
  prepare(sql: string): LibsqlStatement;
  exec(sql: string): void;
  close(): void;
}

interface LibsqlStatement {
  readonly reader: boolean;
  raw(): void;
  run(values: unknown): { readonly changes: number; readonly lastInsertRowid: number | bigint };
  get(values: unknown): unknown;
  all(values: unknown): unknown;
}

/** A connection of `libsql`. Values that it does not know abort the process, and missing parameters are NULL: the driver refuses both. */
export function openLibsql(module: LibsqlModule, path: string): Library {
  const database = open(module, path);
  return {
    prepare(sql) {
      const statement = database.prepare(sql);
      // Rows as arrays; statements without rows refuse the mode.
      if (statement.reader) statement.raw();
      return {
        // One array is what the library makes of its arguments anyway.
        run(values) {
          const { changes, lastInsertRowid } = statement.run(values);
          return { changes, lastId: Number(lastInsertRowid) };
        },
        get: (values) => statement.get(values) as Row | undefined,
        all: (values) => statement.all(values) as readonly Row[],
      };
    },
    exec: (sql) => database.exec(sql),
    inTransaction: () => database.inTransaction,
    close: () => database.close(),
  };
}

function open(module: LibsqlModule, path: string): LibsqlDatabase {
  try {
    // No waiting inside of SQLite: whoever finds the file busy tries again from the event loop.
    return new module.default(path, { timeout: 0 });
  } catch (cause) {
    // Its code is empty here.
    throw Object.assign(new Error("unable to open database file", { cause }), { code: "SQLITE_CANTOPEN" });
  }
}
