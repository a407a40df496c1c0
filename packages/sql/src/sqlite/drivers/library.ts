import type { Driver, Row, Statement, Value } from "../driver.ts";

/** A connection of one SQLite library. `driverOver` adds what is the same for all of them. */
export interface Library {
  prepare(sql: string): LibraryStatement;
  /** Runs one statement or several. */
  exec(sql: string): void;
  inTransaction(): boolean;
  close(): void;
}

/** `values` are checked, and there is one for each parameter. */
export interface LibraryStatement {
  run(values: readonly Value[]): { readonly changes: number; readonly lastId: number };
  get(values: readonly Value[]): Row | undefined;
  all(values: readonly Value[]): readonly Row[];
}

/**
 * A driver over a connection. It keeps prepared statements, checks values, ends transactions and refuses every call
 * after `close`, so that all libraries behave alike.
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
        // When the disk is full SQLite has already rolled the transaction back.
        if (library.inTransaction()) library.exec("ROLLBACK");
        throw thrown;
      }
    },
    close() {
      if (!isOpen) return;
      isOpen = false;
      statements.clear();
      try {
        // Statements of libsql keep the connection and its log open until the garbage collector frees them: empty the log now.
        library.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      } catch {
        // The next connection to the file reads the log.
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

/** Refuses values that a library stores as something else, or that end the process (`libsql`). */
function checkValues(sql: string, expected: number, values: readonly Value[]): void {
  if (values.length !== expected) {
    throw new TypeError(`${expected} parameters expected, ${values.length} given: ${sql}`);
  }
  for (const value of values) {
    const fits =
      value === null ||
      (typeof value === "string" && !value.includes("\0")) ||
      (typeof value === "number" && Number.isSafeInteger(value));
    if (!fits) throw new TypeError(`not a safe integer, text without NUL or null: ${sql}`);
  }
}
