/*
 * The members of a Durable Object's `ctx.storage` that are used here, as of compatibility date 2025-01-01. The types of
 * Cloudflare fit, and so does a double.
 */

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
