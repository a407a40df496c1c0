import type { Row } from "../driver.ts";
import { withCode } from "./errors.ts";
import type { Library, LibraryStatement } from "./library.ts";

/** What is used of `node:sqlite`, as Node has it since 22.16. */
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
  setReturnArrays(enabled: boolean): void;
  run(...values: readonly unknown[]): {
    readonly changes: number | bigint;
    readonly lastInsertRowid: number | bigint;
  };
  get(...values: readonly unknown[]): unknown;
  all(...values: readonly unknown[]): unknown;
}

/** Before Node 22.16 rows come as objects only, and nobody can ask whether a transaction is open. */
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
    // No waiting inside of SQLite: whoever finds the file busy tries again from the event loop.
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
    return statement;
  } catch (thrown) {
    throw withCode(thrown);
  }
}
