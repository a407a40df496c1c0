import { checkValues, type Driver, type Row, type Statement, type Value } from "../driver.ts";

/** A connection of one SQLite library. `driverOver` adds what all drivers have in common. */
export interface Library {
  prepare(sql: string): LibraryStatement;
  /** Runs one statement or several. */
  exec(sql: string): void;
  inTransaction(): boolean;
  close(): void;
}

/** `values` are checked before they come here, and there is one for each parameter. */
export interface LibraryStatement {
  run(values: readonly Value[]): { readonly changes: number; readonly lastId: number };
  get(values: readonly Value[]): Row | undefined;
  all(values: readonly Value[]): readonly Row[];
}

/**
 * A driver over a connection: it keeps prepared statements, checks values, ends transactions and refuses everything
 * after `close`, so that no library behaves unlike another.
 */
export function driverOver(library: Library): Driver {
  const statements = new Map<string, Statement>();
  let isOpen = true;

  const checkOpen = (): void => {
    if (!isOpen) throw new TypeError("The database is closed");
  };

  return {
    prepare(sql) {
      checkOpen();
      let statement = statements.get(sql);
      if (statement === undefined) {
        statement = checked(library.prepare(sql), sql, checkOpen);
        statements.set(sql, statement);
      }
      return statement;
    },
    exec(sql) {
      checkOpen();
      library.exec(sql);
    },
    transaction(mode, body) {
      checkOpen();
      library.exec(mode === "write" ? "BEGIN IMMEDIATE" : "BEGIN");
      try {
        const result = body();
        library.exec("COMMIT");
        return result;
      } catch (thrown) {
        // SQLite has ended the transaction already when the disk is full.
        if (library.inTransaction()) library.exec("ROLLBACK");
        throw thrown;
      }
    },
    close() {
      if (!isOpen) return;
      isOpen = false;
      statements.clear();
      try {
        // Statements of libsql keep the connection and its log open until they are collected: empty the log now.
        library.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      } catch {
        // Whoever opens the file next reads the log.
      }
      library.close();
    },
  };
}

function checked(statement: LibraryStatement, sql: string, checkOpen: () => void): Statement {
  const parameters = sql.split("?").length - 1;
  const check = (values: readonly Value[]): readonly Value[] => {
    checkOpen();
    checkValues(sql, parameters, values);
    return values;
  };
  return {
    run: (...values) => statement.run(check(values)),
    get: (...values) => statement.get(check(values)),
    all: (...values) => statement.all(check(values)),
  };
}
