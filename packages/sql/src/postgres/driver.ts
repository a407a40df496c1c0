/**
 * What the store needs from a library that speaks to PostgreSQL. `pool.ts` adapts `pg`; others, such as `postgres` or PGlite,
 * fit with an adapter of the same size. The SQL consists of constants of the source code: every value is passed as a parameter.
 */
export interface PostgresDriver extends Queries {
  /**
   * Lends a connection to `body`, which alone uses it until its promise settles. A connection whose `body` rejected is closed
   * and not used again, since nobody knows what it is in the middle of. `silence`: after how many milliseconds without an answer to a
   * statement the connection counts as lost, where that differs from what the driver was told.
   */
  hold<T>(body: (connection: Connection) => Promise<T>, silence?: number): Promise<T>;
  /**
   * Subscribes to a channel of NOTIFY on a connection of its own, once. Rejects where that cannot be. Absent: there is no such
   * thing here, and readers poll.
   */
  listen?(channel: string, listener: ChannelListener): Promise<Listening>;
  /** How many connections there are at most. Absent: it is not known, and none is kept for longer than a call. */
  readonly connections?: number;
  /**
   * Called once it is known that each connection keeps its session, so that statements may be prepared in it and run again by name. Without
   * it none is.
   */
  keepsSessions?(): void;
  /** Ends what the driver has opened itself. A pool of the user stays open. */
  close(): Promise<void>;
}

/** Something that runs statements. */
export interface Queries {
  /**
   * Runs a statement. Without `values` there may be several, separated by semicolons, and the result is that of the last one.
   *
   * A driver runs the statements of a held connection in the order of the calls. They need not wait for one another: a statement after
   * one that failed fails too where both are in a transaction.
   *
   * Rejects with the error of the library. Where the server sent it, `code` is its SQLSTATE, such as `40001`.
   */
  query(text: string, values?: readonly Value[]): Promise<Result>;
}

/** A connection that is held. */
export interface Connection extends Queries {
  /**
   * As `Queries.query`. `silence`: after how many milliseconds without an answer the connection counts as lost, where that differs from what it
   * was lent with. It then rejects with an error whose message begins with `timeout expired` or `Query read timeout`, or with one of the socket.
   */
  query(text: string, values?: readonly Value[], silence?: number): Promise<Result>;
  /** The process id that the server gave when it connected. A pooler gives one of its own, so it tells the two apart. */
  readonly backend?: number | undefined;
}

/**
 * A value that is passed or stored. Integers of 8 bytes, numbers and counts come back as safe integers or floats; JSON and times
 * come back as text; `bytea` as bytes; arrays of text and integers as arrays.
 *
 * PostgreSQL stores no NUL in text (SQLSTATE 22021), and none in `jsonb` even as `\u0000` (22P05).
 */
export type Value = string | number | boolean | null | Uint8Array | readonly Value[];
/** The columns of a row, in the order of the statement. */
export type Row = readonly Value[];

/** What a statement returns. */
export interface Result {
  /** The rows. */
  readonly rows: readonly Row[];
  /** How many rows the statement changed, or returned. */
  readonly count: number;
}

/** What a subscription to a channel tells. */
export interface ChannelListener {
  /** A notification with its payload. */
  notified(payload: string): void;
  /** The connection has ended, and nothing more comes. Not called after `close()`. */
  ended(cause: unknown): void;
}

/** A subscription to a channel. Statements run on its connection. */
export interface Listening extends Queries {
  /** Ends it. */
  close(): Promise<void>;
}

/** The SQLSTATE of an error of the server: five letters and digits (PostgreSQL, Appendix A). */
export function sqlState(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown) || typeof thrown.code !== "string") return undefined;
  return /^[0-9A-Z]{5}$/.test(thrown.code) && !/^E[A-Z]{4}$/.test(thrown.code) ? thrown.code : undefined;
}
