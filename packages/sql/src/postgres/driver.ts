import type { Store } from "@parley/server/internal/store/index";

/**
 * The interface between the store and a PostgreSQL library. `pool.ts` adapts `pg`. Adapters for `postgres` or PGlite are equally
 * small. Every value is passed as a parameter.
 */
export interface PostgresDriver extends Queries {
  /**
   * Lends a connection to `body` until its promise settles. If `body` rejects, the connection is closed and not reused. After
   * `silence` milliseconds without an answer, the connection counts as lost. The default is the driver's limit.
   */
  hold<T>(body: (connection: Connection) => Promise<T>, silence?: number): Promise<T>;
  /** Subscribes once to a NOTIFY channel on a separate connection. Absent if the driver cannot listen; readers then poll. */
  listen?(channel: string, listener: ChannelListener): Promise<Listening>;
  /** The maximum number of connections. If absent, the maximum is unknown, and no connection is kept longer than a call. */
  readonly connections?: number;
  /** How many connections of the pool are in use now. Absent if unknown. */
  readonly use?: Store["connections"];
  /** Called once every connection is known to keep its session, so statements may be prepared and run by name. */
  keepsSessions?(): void;
  /** Closes the connections that the driver has opened itself. A pool of the user stays open. */
  close(): Promise<void>;
}

/** Something that runs statements. */
export interface Queries {
  /**
   * Runs a statement. Without `values`, the text may contain several statements; the result is the result of the last statement.
   *
   * Statements of a held connection are sent in call order, without waiting for earlier answers. In a transaction, all statements after a
   * failed statement fail too.
   *
   * Rejects with the error of the library. If the server sent the error, `code` is the SQLSTATE, such as `40001`.
   */
  query(text: string, values?: readonly Value[]): Promise<Result>;
}

/** A connection that is held. */
export interface Connection extends Queries {
  /**
   * Like `Queries.query`. After `silence` milliseconds without an answer, rejects with a socket error or a message that begins with
   * `timeout expired` or `Query read timeout`. Default: the `silence` of `hold`.
   */
  query(text: string, values?: readonly Value[], silence?: number): Promise<Result>;
  /** The process id from the server's handshake. A pooler sends another id, which reveals the pooler. */
  readonly backend?: number | undefined;
}

/**
 * A value that is passed or stored. Integers of 8 bytes, numerics and counts are safe integers or floats; JSON and times are text;
 * `bytea` is bytes. PostgreSQL stores no NUL in text (SQLSTATE 22021) nor `\u0000` in `jsonb` (22P05).
 */
export type Value = string | number | boolean | null | Uint8Array | readonly Value[];
/** The columns of a row, in the order of the statement. */
export type Row = readonly Value[];

/** The result of a statement. */
export interface Result {
  /** The rows. */
  readonly rows: readonly Row[];
  /** Number of rows that the statement changed or returned. */
  readonly count: number;
}

/** Receives the events of a subscription to a channel. */
export interface ChannelListener {
  /** A notification with its payload. */
  notified(payload: string): void;
  /** The connection has ended. Not called after `close()`. */
  ended(cause: unknown): void;
}

/** A subscription to a channel. Statements run on its connection. */
export interface Listening extends Queries {
  /** Ends the subscription. */
  close(): Promise<void>;
}

/** The SQLSTATE of an error of the server: five letters and digits (PostgreSQL, Appendix A). */
export function sqlState(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown) || typeof thrown.code !== "string") return undefined;
  return /^[0-9A-Z]{5}$/.test(thrown.code) && !/^E[A-Z]{4}$/.test(thrown.code) ? thrown.code : undefined;
}
