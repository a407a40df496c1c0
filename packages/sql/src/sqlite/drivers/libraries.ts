import type { Library, LibraryStatement, Row } from "../driver.ts";

/** The members of `node:sqlite` that are used here, as of Node 22.16. */
export interface NodeSqliteModule {
  readonly DatabaseSync: new (path: string, options: { readonly timeout: number }) => NodeDatabase;
  readonly StatementSync: { readonly prototype: object };
}

interface NodeDatabase {
  readonly isTransaction: boolean;
  prepare(sql: string): NodeStatement;
  exec(sql: string): void;
  close(): void;
}

interface NodeStatement {
  columns(): readonly unknown[];
  setReadBigInts(enabled: boolean): void;
  setReturnArrays(enabled: boolean): void;
  run(...values: readonly unknown[]): {
    readonly changes: number | bigint;
    readonly lastInsertRowid: number | bigint;
  };
  get(...values: readonly unknown[]): unknown;
  all(...values: readonly unknown[]): unknown;
}

/** Before Node 22.16 rows are objects only, and a connection does not say whether a transaction is open. */
export function isUsable(module: NodeSqliteModule): boolean {
  return "setReturnArrays" in module.StatementSync.prototype;
}

/** A connection of `node:sqlite`. */
export function openNode(module: NodeSqliteModule, path: string): Library {
  // SQLite does not wait for a busy file itself: `retryWhileBusy` does, without blocking the thread.
  const database = withCode(() => new module.DatabaseSync(path, { timeout: 0 }));
  return {
    prepare: (sql) => withCode(() => prepareNode(database, sql)),
    exec: (sql) => withCode(() => database.exec(sql)),
    inTransaction: () => database.isTransaction,
    close: () => database.close(),
  };
}

function prepareNode(database: NodeDatabase, sql: string): LibraryStatement {
  const statement = database.prepare(sql);
  statement.setReturnArrays(true);
  // For full text search the last id can exceed the safe integers, for which Node 26 throws.
  if (statement.columns().length === 0) statement.setReadBigInts(true);
  return {
    run(values) {
      const { changes, lastInsertRowid } = withCode(() => statement.run(...values));
      return { changes: Number(changes), lastId: Number(lastInsertRowid) };
    },
    get: (values) => withCode(() => statement.get(...values)) as Row | undefined,
    all: (values) => withCode(() => statement.all(...values)) as readonly Row[],
  };
}

/** SQLite's result codes by number (sqlite.org/rescode.html). The upper bytes of an extended code are details that are not used here. */
const codes =
  `OK ERROR INTERNAL PERM ABORT BUSY LOCKED NOMEM READONLY INTERRUPT IOERR CORRUPT NOTFOUND FULL CANTOPEN PROTOCOL EMPTY
  SCHEMA TOOBIG CONSTRAINT MISMATCH MISUSE NOLFS AUTH FORMAT RANGE NOTADB`.split(/\s+/);

/** Errors of `node:sqlite` have a number. Adds the code by name that errors of the other libraries have. */
function withCode<T>(body: () => T): T {
  try {
    return body();
  } catch (thrown) {
    if (!(thrown instanceof Error) || !("errcode" in thrown) || typeof thrown.errcode !== "number") throw thrown;
    const code = `SQLITE_${codes[thrown.errcode & 0xff] ?? "ERROR"}`;
    throw Object.assign(new Error(thrown.message, { cause: thrown }), { code });
  }
}

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

/** A connection of `bun:sqlite`, which closes only after its statements are finalized. */
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
 * A connection of `libsql`. The driver rejects values of unknown types, which would crash it, and missing parameters, which it would
 * store as NULL.
 */
export function openLibsql(module: LibsqlModule, path: string): Library {
  const database = openLibsqlFile(module, path);
  return {
    prepare(sql) {
      const statement = database.prepare(sql);
      // Makes rows arrays. Statements without rows refuse it.
      if (statement.reader) statement.raw();
      let hasReadAll = false;
      return {
        // The library would collect separate arguments into an array.
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

function openLibsqlFile(module: LibsqlModule, path: string): LibsqlDatabase {
  try {
    // SQLite does not wait for a busy file itself: `retryWhileBusy` does, without blocking the thread.
    return new module.default(path, { timeout: 0 });
  } catch (cause) {
    // The code of this error is empty.
    throw Object.assign(new Error("unable to open database file", { cause }), { code: "SQLITE_CANTOPEN" });
  }
}
