import type { Row } from "../driver.ts";
import type { Library, LibraryStatement } from "./library.ts";

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
  const database = open(module, path);
  return {
    prepare: (sql) => wrap(database, sql),
    exec(sql) {
      try {
        database.exec(sql);
      } catch (thrown) {
        throw withCode(thrown);
      }
    },
    inTransaction: () => database.isTransaction,
    close: () => database.close(),
  };
}

function open(module: NodeSqliteModule, path: string): NodeDatabase {
  try {
    // SQLite does not wait for a busy file itself: `retryWhileBusy` does, without blocking the thread.
    return new module.DatabaseSync(path, { timeout: 0 });
  } catch (thrown) {
    throw withCode(thrown);
  }
}

function wrap(database: NodeDatabase, sql: string): LibraryStatement {
  const statement = prepare(database, sql);
  return {
    run(values) {
      try {
        const { changes, lastInsertRowid } = statement.run(...values);
        return { changes: Number(changes), lastId: Number(lastInsertRowid) };
      } catch (thrown) {
        throw withCode(thrown);
      }
    },
    get(values) {
      try {
        return statement.get(...values) as Row | undefined;
      } catch (thrown) {
        throw withCode(thrown);
      }
    },
    all(values) {
      try {
        return statement.all(...values) as readonly Row[];
      } catch (thrown) {
        throw withCode(thrown);
      }
    },
  };
}

function prepare(database: NodeDatabase, sql: string): NodeStatement {
  try {
    const statement = database.prepare(sql);
    statement.setReturnArrays(true);
    // Without rows there is only what `run` returns. The last id of a statement for full text search can be one of its own tables, and
    // larger than a number can be: Node 26 throws then.
    if (statement.columns().length === 0) statement.setReadBigInts(true);
    return statement;
  } catch (thrown) {
    throw withCode(thrown);
  }
}

/**
 * SQLite's result codes by number (sqlite.org/rescode.html). The upper bytes of an extended code are details that are not
 * used here.
 */
const codes: Readonly<Record<number, string>> = {
  1: "SQLITE_ERROR",
  2: "SQLITE_INTERNAL",
  3: "SQLITE_PERM",
  4: "SQLITE_ABORT",
  5: "SQLITE_BUSY",
  6: "SQLITE_LOCKED",
  7: "SQLITE_NOMEM",
  8: "SQLITE_READONLY",
  9: "SQLITE_INTERRUPT",
  10: "SQLITE_IOERR",
  11: "SQLITE_CORRUPT",
  12: "SQLITE_NOTFOUND",
  13: "SQLITE_FULL",
  14: "SQLITE_CANTOPEN",
  15: "SQLITE_PROTOCOL",
  16: "SQLITE_EMPTY",
  17: "SQLITE_SCHEMA",
  18: "SQLITE_TOOBIG",
  19: "SQLITE_CONSTRAINT",
  20: "SQLITE_MISMATCH",
  21: "SQLITE_MISUSE",
  22: "SQLITE_NOLFS",
  23: "SQLITE_AUTH",
  25: "SQLITE_RANGE",
  26: "SQLITE_NOTADB",
};

/** An error of `node:sqlite`, which has a number, with the code by name that errors of the other libraries have. */
function withCode(thrown: unknown): unknown {
  if (!(thrown instanceof Error) || !("errcode" in thrown) || typeof thrown.errcode !== "number") return thrown;
  const code = codes[thrown.errcode & 0xff] ?? "SQLITE_ERROR";
  return Object.assign(new Error(thrown.message, { cause: thrown }), { code });
}
