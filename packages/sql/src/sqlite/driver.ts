/** The interface between the store and an SQLite library. Every value is passed as a parameter. */
export interface Driver {
  /** Prepares a statement, once per text. */
  prepare(sql: string): Statement;
  /** Runs statements that have no parameters and no result. */
  exec(sql: string): void;
  /**
   * Runs `body` in a transaction, which is rolled back when `body` throws. `write` takes the lock at the start. `read` sees one
   * snapshot.
   */
  transaction<T>(mode: "read" | "write", body: () => T): T;
  /** The maximum number of parameters of a statement. If absent, the limit is higher than any statement needs. */
  readonly maxParameters?: number;
  /** Whether no other connection can change the database. Default false. */
  readonly isAlone?: boolean;
  /** Copies the write-ahead log into the database file and closes the connection. */
  close(): void;
}

/** A value that is stored: a safe integer, text without NUL, or `null`. */
export type Value = string | number | null;
export type Row = readonly Value[];

export interface Statement {
  run(...values: readonly Value[]): { readonly changes: number; readonly lastId: number };
  get(...values: readonly Value[]): Row | undefined;
  all(...values: readonly Value[]): readonly Row[];
}

/** The code of an SQLite error, such as `SQLITE_BUSY`. */
export function sqliteCode(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown) || typeof thrown.code !== "string") return undefined;
  return thrown.code.startsWith("SQLITE_") ? thrown.code : undefined;
}

/** SQLite's code for moved files, which SQLite itself does not detect in WAL mode. */
export const movedCode = "SQLITE_READONLY_DBMOVED";

export function isBusy(code: string | undefined): boolean {
  return code !== undefined && (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED"));
}

/** Retries `attempt` while another process holds the lock, for up to `busyTimeout` milliseconds. */
export async function retryWhileBusy<T>(attempt: () => T, busyTimeout: number): Promise<T> {
  const end = performance.now() + busyTimeout;
  for (let pause = 1; ; pause = Math.min(2 * pause, 25)) {
    try {
      return attempt();
    } catch (thrown) {
      if (!isBusy(sqliteCode(thrown)) || performance.now() >= end) throw thrown;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** A connection of an SQLite library. */
export interface Library {
  prepare(sql: string): LibraryStatement;
  /** Runs one statement or several. */
  exec(sql: string): void;
  inTransaction(): boolean;
  close(): void;
}

/** `values` were checked, and there is one value per parameter. */
export interface LibraryStatement {
  run(values: readonly Value[]): { readonly changes: number; readonly lastId: number };
  get(values: readonly Value[]): Row | undefined;
  all(values: readonly Value[]): readonly Row[];
}

/**
 * A driver over a connection: caches statements, checks values, ends transactions, and rejects calls after `close`, so that all
 * libraries behave alike.
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
        // If the disk is full, SQLite has already rolled the transaction back.
        if (library.inTransaction()) library.exec("ROLLBACK");
        throw thrown;
      }
    },
    close() {
      if (!isOpen) return;
      isOpen = false;
      statements.clear();
      try {
        // Statements of libsql keep the connection and its log open until they are garbage-collected, so empty the log now.
        library.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      } catch {
        // Harmless, because the next connection to the file reads the log.
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

/** Rejects values that a library would convert, or that crash the process (`libsql`). */
function checkValues(sql: string, expected: number, values: readonly Value[]): void {
  if (values.length !== expected) {
    throw new TypeError(`expected ${expected} parameters; got ${values.length}: ${sql}`);
  }
  for (const value of values) {
    const fits =
      value === null ||
      (typeof value === "string" && !value.includes("\0")) ||
      (typeof value === "number" && Number.isSafeInteger(value));
    if (!fits) throw new TypeError(`values must be safe integers, text without NUL, or null: ${sql}`);
  }
}
