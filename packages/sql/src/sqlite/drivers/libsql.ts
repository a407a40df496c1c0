import type { Row } from "../driver.ts";
import type { Library } from "./library.ts";

/** The members of the package `libsql` that are used here. Its errors have SQLite's codes by name: `SQLITE_BUSY`. */
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

/**
 * A connection of `libsql`. A value of an unknown type ends the process, and a missing parameter is stored as NULL: the
 * driver refuses both.
 */
export function openLibsql(module: LibsqlModule, path: string): Library {
  const database = open(module, path);
  return {
    prepare(sql) {
      const statement = database.prepare(sql);
      // Makes rows arrays. Statements without rows refuse it.
      if (statement.reader) statement.raw();
      let hasReadAll = false;
      return {
        // The library would put separate arguments into an array.
        run(values) {
          const { changes, lastInsertRowid } = statement.run(values);
          return { changes, lastId: Number(lastInsertRowid) };
        },
        get(values) {
          // After `all`, `get` of the library ignores its values, and gives a row for those of `all`.
          if (hasReadAll) return (statement.all(values) as readonly Row[])[0];
          return statement.get(values) as Row | undefined;
        },
        all(values) {
          hasReadAll = true;
          return statement.all(values) as readonly Row[];
        },
      };
    },
    exec: (sql) => database.exec(sql),
    inTransaction: () => database.inTransaction,
    close: () => database.close(),
  };
}

function open(module: LibsqlModule, path: string): LibsqlDatabase {
  try {
    // SQLite does not wait for a busy file itself: `retryWhileBusy` does, without blocking the thread.
    return new module.default(path, { timeout: 0 });
  } catch (cause) {
    // The code of this error is empty.
    throw Object.assign(new Error("unable to open database file", { cause }), { code: "SQLITE_CANTOPEN" });
  }
}
