import { utf8Length } from "@parley/a2a/internal/base/index";
import { driverOver, type Driver, type LibraryStatement, type Row, type Value } from "../sqlite/driver.ts";

/** The most parameters of one statement in a Durable Object. */
const maxParameters = 100;

/** Maximum bytes of a text. The platform allows 2 MB for a row; a local workerd allows more. */
const maxBytes = 2_000_000;

/**
 * The driver for the SQLite of a Durable Object. Calls are synchronous and exclusive: reads need no transaction. The platform caches
 * prepared statements, opens and closes the database, and rejects `BEGIN` and most pragmas.
 *
 * @param onWrite - Called in each write transaction, before the commit.
 */
export function objectDriver(storage: ObjectStorage, onWrite: () => void): Driver {
  const { sql } = storage;
  const { prepare, exec } = driverOver({
    prepare: (text) => statementOf(sql, text),
    exec: (text) => void rowsOf(sql, text, []),
    inTransaction: () => false,
    close() {},
  });
  return {
    prepare,
    exec,
    maxParameters,
    isAlone: true,
    transaction(mode, body) {
      if (mode === "read") return body();
      return storage.transactionSync(() => {
        const result = body();
        onWrite();
        return result;
      });
    },
    close() {},
  };
}

/** `changes` and `lastId` are read when they are asked for, which is before the next statement. */
function statementOf(sql: SqlStorage, text: string): LibraryStatement {
  const count = (of: string): number => Number(rowsOf(sql, `SELECT ${of}()`, [])[0]?.[0]);
  return {
    run(values) {
      for (const value of values) checkSize(value);
      rowsOf(sql, text, values);
      return {
        get changes() {
          return count("changes");
        },
        get lastId() {
          return count("last_insert_rowid");
        },
      };
    },
    get: (values) => rowsOf(sql, text, values)[0],
    all: (values) => rowsOf(sql, text, values),
  };
}

function checkSize(value: Value): void {
  // A character has three bytes at most.
  if (typeof value !== "string" || value.length <= maxBytes / 3) return;
  const bytes = utf8Length(value);
  if (bytes > maxBytes) throw new RangeError(`A text has ${bytes} bytes; a Durable Object stores at most ${maxBytes}`);
}

function rowsOf(sql: SqlStorage, text: string, values: readonly Value[]): readonly Row[] {
  try {
    // All rows at once: a cursor that is not exhausted keeps its statement busy.
    return [...sql.exec(text, ...values).raw()] as unknown as readonly Row[];
  } catch (thrown) {
    throw withCode(thrown);
  }
}

/** An error of the platform has the code of SQLite at the end of its message. */
function withCode(thrown: unknown): unknown {
  const code = thrown instanceof Error ? /\bSQLITE_[A-Z_]+/.exec(thrown.message)?.[0] : undefined;
  return code === undefined ? thrown : Object.assign(new Error((thrown as Error).message, { cause: thrown }), { code });
}

/* The members of a Durable Object's `ctx.storage` that are used, as of compatibility date 2025-01-01. */

/** A value of a column. Columns of Parley have no blobs. */
export type SqlValue = string | number | ArrayBuffer | null;

/** The rows of a statement, which has run. */
export interface SqlCursor {
  /** The rows, each as the list of its values. */
  raw(): Iterable<readonly SqlValue[]>;
}

/** `ctx.storage.sql`. */
export interface SqlStorage {
  /** Runs a statement with its parameters, or several statements without any. */
  exec(query: string, ...bindings: (string | number | null)[]): SqlCursor;
}

/** `ctx.storage` of a Durable Object whose class stores its data in SQLite. */
export interface ObjectStorage {
  /** The database. */
  readonly sql: SqlStorage;
  /** Runs `body` in a transaction, which is rolled back when it throws. */
  transactionSync<T>(body: () => T): T;
  /** Resolves when everything that was written is on disk. */
  sync(): Promise<void>;
  /** Sets the alarm of the object, in milliseconds since the Unix epoch. */
  setAlarm(time: number): Promise<void>;
}
