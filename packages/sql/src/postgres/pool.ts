import { connectionOver, Liveness, StatementNames, type PoolClientLike } from "./connection.ts";
import { sqlState, type ChannelListener, type Connection, type Listening, type PostgresDriver } from "./driver.ts";
import { isDisconnection } from "./errors.ts";
import { listenSilence, quickSilence } from "./patience.ts";

export type { PoolClientLike } from "./connection.ts";

/** The part of `pg.Pool` that the driver uses. */
export interface PoolLike {
  /** Lends a client. The callback gets it synchronously, before it can emit events. */
  connect(callback: (error: Error | undefined, client: PoolClientLike | undefined) => void): void;
  /** Reports idle clients that ended. */
  on(event: "error", listener: (error: Error) => void): unknown;
  /** Removes the listener. */
  off(event: "error", listener: (error: Error) => void): unknown;
  /** Closes the pool. */
  end(): Promise<void>;
  /** Number of open connections. */
  readonly totalCount?: number;
  /** Number of idle connections. */
  readonly idleCount?: number;
  /** Number of callers that wait for a client. */
  readonly waitingCount?: number;
  /** `max`: the maximum number of connections. `connectionTimeoutMillis`: maximum time to lend a connection; no limit if 0 or absent. */
  readonly options?: { readonly max?: number | undefined; readonly connectionTimeoutMillis?: number | undefined };
}

export interface PoolDriverOptions {
  /** Milliseconds without an answer after which a connection is closed as lost. */
  readonly silence: number;
  /** Whether `close()` ends the pool. */
  readonly owned: boolean;
  /** Maximum milliseconds to lend a connection if the pool has no limit itself. Default: none. */
  readonly connectTimeout?: number;
  /** Called for idle connections that ended. */
  readonly onIdleError?: (error: Error) => void;
}

/** A driver over a pool of `pg`. */
export function poolDriver(pool: PoolLike, options: PoolDriverOptions): PostgresDriver {
  const { silence, owned, onIdleError } = options;
  // Without a listener, the end of an idle connection would end the process.
  const onError = (error: Error): void => onIdleError?.(error);
  pool.on("error", onError);
  const names = new StatementNames();
  const held = new Set<Promise<unknown>>();
  const listening = new Set<Listening>();
  const limit = pool.options?.connectionTimeoutMillis ? 0 : (options.connectTimeout ?? 0);

  const liveness = new Liveness();
  const use = () => ({ total: pool.totalCount ?? 0, idle: pool.idleCount ?? 0, waiting: pool.waitingCount ?? 0 });

  async function lend<T>(body: (connection: Connection) => Promise<T>, most: number): Promise<T> {
    const client = await living(pool, limit, liveness);
    let isLost = true;
    try {
      const result = await body(connectionOver(client, most, { names, liveness }));
      isLost = false;
      return result;
    } finally {
      client.off("error", ignore);
      if (isLost) destroy(client);
      else client.release();
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
    const subscription = await listenOver(await living(pool, limit, liveness), names, channel, listener);
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
    // A subscription keeps its connection, so statements need another connection.
    ...(pool.options?.max === 1 ? {} : { listen }),
    ...(pool.options?.max !== undefined && { connections: pool.options.max }),
    ...("totalCount" in pool && { use }),
    keepsSessions: () => names.use(),
    async close() {
      await Promise.all([...listening].map((subscription) => subscription.close()));
      await Promise.allSettled(held);
      // Connections of the pool end a little later, and may emit errors until then.
      if (owned) await pool.end();
      else pool.off("error", onError);
    },
  };
}

/** Ignores errors of a lent client, because its running statements reject anyway. */
function ignore(): void {}

/** Takes a client, and listens to its errors from the start. `limit` is in milliseconds; 0 means no limit. */
function borrow(pool: PoolLike, limit: number): Promise<PoolClientLike> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const giveUp = (): void => {
      isLate = true;
      reject(new Error("timeout exceeded when trying to connect"));
    };
    const timer = limit === 0 ? undefined : setTimeout(giveUp, limit);
    // A promise would settle some ticks later. An error before that would have no listener and end the process.
    pool.connect((error, client) => {
      clearTimeout(timer);
      if (client === undefined) return reject(error ?? new Error("The pool has no connection"));
      if (isLate) return client.release();
      client.on("error", ignore);
      resolve(client);
    });
  });
}

/** Takes a client that is alive. Checks a client that was idle for a while, because a NAT may have dropped its connection silently. */
async function living(pool: PoolLike, limit: number, liveness: Liveness): Promise<PoolClientLike> {
  for (;;) {
    const client = await borrow(pool, limit);
    if (!liveness.isDoubtful(client) || (await answers(client, liveness))) return client;
    client.off("error", ignore);
    // Otherwise the client would wait for the server to close the connection.
    client.connection?.stream?.destroy();
    destroy(client);
  }
}

async function answers(client: PoolClientLike, liveness: Liveness): Promise<boolean> {
  if (liveness.isLost(client)) return false;
  return connectionOver(client, quickSilence, { liveness })
    .query("SELECT 1")
    .then(
      () => true,
      (thrown: unknown) => sqlState(thrown) !== undefined && !isDisconnection(thrown),
    );
}

/** Closes the connection of a lent client. Errors of its socket are no longer reported to the pool. */
function destroy(client: PoolClientLike): void {
  client.release(true);
  client.removeAllListeners("error");
  client.on("error", ignore);
}

/** Listens on a client. Closes the client afterwards, because other users of the pool must not get it. */
async function listenOver(
  client: PoolClientLike,
  names: StatementNames,
  channel: string,
  listener: ChannelListener,
): Promise<Listening> {
  let isOpen = true;
  const release = (): boolean => {
    if (!isOpen) return false;
    isOpen = false;
    client.removeAllListeners("notification");
    client.off("end", onEnd);
    destroy(client);
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
  client.off("error", ignore);
  client.on("end", onEnd);
  client.on("notification", ({ payload }) => listener.notified(payload ?? ""));
  // A short time limit: these statements are cheap, and the wake-ups of other nodes wait for them.
  const { query } = connectionOver(client, listenSilence, { names });
  try {
    await query(`LISTEN ${quoted(channel)}`);
  } catch (thrown) {
    release();
    throw thrown;
  }
  return {
    query: (text, values) => query(text, values),
    close: () => {
      release();
      return Promise.resolve();
    },
  };
}

/** Quotes an identifier, because PostgreSQL folds unquoted identifiers to lower case. */
export function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}
