import type { ChannelListener, Connection, Listening, PostgresDriver, Result, Row } from "./driver.ts";
import { typeParsers, type TypeParsers } from "./values.ts";

/** What of a `pg.Pool` is used. */
export interface PoolLike {
  /** Lends a client. */
  connect(): Promise<PoolClientLike>;
  /** Tells of clients that ended while nobody used them. */
  on(event: "error", listener: (error: Error) => void): unknown;
  /** Stops it. */
  off(event: "error", listener: (error: Error) => void): unknown;
  /** Closes the pool. */
  end(): Promise<void>;
  /** The settings of the pool. `max`: how many connections it opens at most. */
  readonly options?: { readonly max?: number | undefined };
}

/** What of a client of a `pg.Pool` is used. */
export interface PoolClientLike {
  /** Runs a statement. */
  query(config: StatementConfig): Promise<StatementResult | StatementResult[]>;
  /** Tells of the end of the connection, and of notifications. */
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "end", listener: () => void): unknown;
  on(event: "notification", listener: (message: { readonly payload?: string | undefined }) => void): unknown;
  /** Stops to tell of notifications. */
  removeAllListeners(event: "notification"): unknown;
  /** Stops to tell of the end. */
  off(event: "error", listener: (error: Error) => void): unknown;
  off(event: "end", listener: () => void): unknown;
  /** Gives the client back. `destroy`: closes its connection. */
  release(destroy?: boolean): void;
}

interface StatementConfig {
  text: string;
  values?: unknown[];
  rowMode: "array";
  types: TypeParsers;
  query_timeout: number;
}

interface StatementResult {
  readonly rows: unknown[];
  readonly rowCount: number | null;
}

export interface PoolDriverOptions {
  /** Milliseconds without an answer to a statement, after which its connection counts as lost and is closed. */
  readonly silence: number;
  /** Whether `close()` ends the pool. */
  readonly owned: boolean;
  /** Told of connections that ended while nothing used them. */
  readonly onIdleError?: (error: Error) => void;
}

/** A driver over a pool of `pg`. */
export function poolDriver(pool: PoolLike, { silence, owned, onIdleError }: PoolDriverOptions): PostgresDriver {
  // Without a listener, the end of an idle connection would end the process.
  const onError = (error: Error): void => onIdleError?.(error);
  pool.on("error", onError);
  const held = new Set<Promise<unknown>>();
  const listening = new Set<Listening>();

  async function lend<T>(body: (connection: Connection) => Promise<T>, most: number): Promise<T> {
    const client = await pool.connect();
    // The statements reject as well, so the event has nothing to add.
    const ignore = (): void => undefined;
    client.on("error", ignore);
    let destroy = true;
    try {
      const result = await body(connectionOver(client, most));
      destroy = false;
      return result;
    } finally {
      client.off("error", ignore);
      client.release(destroy);
    }
  }

  function hold<T>(body: (connection: Connection) => Promise<T>, most: number = silence): Promise<T> {
    const lent = lend(body, most);
    held.add(lent);
    const forget = (): void => void held.delete(lent);
    lent.then(forget, forget);
    return lent;
  }

  async function listen(channel: string, listener: ChannelListener): Promise<Listening> {
    const subscription = await listenOver(await pool.connect(), silence, channel, listener);
    const entry: Listening = {
      query: (text, values) => subscription.query(text, values),
      async close() {
        if (listening.delete(entry)) await subscription.close();
      },
    };
    listening.add(entry);
    return entry;
  }

  return {
    hold,
    query: (text, values) => hold((connection) => connection.query(text, values)),
    // A subscription keeps its connection, and the statements need another one.
    ...(pool.options?.max === 1 ? {} : { listen }),
    async close() {
      await Promise.all([...listening].map((subscription) => subscription.close()));
      await Promise.allSettled(held);
      if (owned) await pool.end();
      pool.off("error", onError);
    },
  };
}

function connectionOver(client: PoolClientLike, silence: number): Connection {
  return {
    async query(text, values) {
      const config: StatementConfig = { text, rowMode: "array", types: typeParsers, query_timeout: silence };
      if (values !== undefined) config.values = [...values];
      const answer = await client.query(config);
      return resultOf(Array.isArray(answer) ? answer.at(-1) : answer);
    },
    backend: "processID" in client && typeof client.processID === "number" ? client.processID : undefined,
  };
}

function resultOf(result: StatementResult | undefined): Result {
  // The parsers make nothing but values.
  return { rows: (result?.rows ?? []) as Row[], count: result?.rowCount ?? 0 };
}

/** Listens on a client, which is closed afterwards: other users of the pool must not get a connection that listens. */
async function listenOver(
  client: PoolClientLike,
  silence: number,
  channel: string,
  listener: ChannelListener,
): Promise<Listening> {
  let isOpen = true;
  const release = (): boolean => {
    if (!isOpen) return false;
    isOpen = false;
    client.removeAllListeners("notification");
    client.off("end", onEnd);
    client.release(true);
    // Stays: the connection may still report an error while it closes.
    return true;
  };
  let failed: Error | undefined;
  const onError = (error: Error): void => {
    failed = error;
    onEnd();
  };
  const onEnd = (): void => {
    if (release()) listener.ended(failed ?? new Error("The connection ended"));
  };
  client.on("error", onError);
  client.on("end", onEnd);
  client.on("notification", ({ payload }) => listener.notified(payload ?? ""));
  const { query } = connectionOver(client, silence);
  try {
    await query(`LISTEN ${quoted(channel)}`);
  } catch (thrown) {
    release();
    throw thrown;
  }
  return {
    query,
    close: () => {
      release();
      return Promise.resolve();
    },
  };
}

/** An identifier. Without quotes it would be folded to lower case. */
export function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}
