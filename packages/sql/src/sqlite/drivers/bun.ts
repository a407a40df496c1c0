import type { Row } from "../driver.ts";
import type { Library } from "./library.ts";

/** The members of `bun:sqlite` that are used here. Its errors have SQLite's codes by name: `SQLITE_BUSY`. */
export interface BunSqliteModule {
  readonly Database: new (
    path: string,
    options: { readonly create: boolean; readonly readwrite: boolean },
  ) => BunDatabase;
}

interface BunDatabase {
  readonly inTransaction: boolean;
  prepare(sql: string): BunStatement;
  exec(sql: string): unknown;
  close(): void;
}

interface BunStatement {
  run(...values: readonly unknown[]): { readonly changes: number; readonly lastInsertRowid: number | bigint };
  values(...values: readonly unknown[]): unknown;
  finalize(): void;
}

/** A connection of `bun:sqlite`. It closes only after its statements are finalized, so it keeps a list of them. */
export function openBun(module: BunSqliteModule, path: string): Library {
  const database = new module.Database(path, { create: true, readwrite: true });
  const statements: BunStatement[] = [];
  return {
    prepare(sql) {
      const statement = database.prepare(sql);
      statements.push(statement);
      const all = (values: readonly unknown[]): readonly Row[] => statement.values(...values) as readonly Row[];
      return {
        run(values) {
          const { changes, lastInsertRowid } = statement.run(...values);
          return { changes, lastId: Number(lastInsertRowid) };
        },
        get: (values) => all(values)[0],
        all,
      };
    },
    exec: (sql) => void database.exec(sql),
    inTransaction: () => database.inTransaction,
    close() {
      for (const statement of statements.splice(0)) statement.finalize();
      database.close();
    },
  };
}
