/**
 * Wake-ups between the nodes of a cluster, over NATS.
 * @packageDocumentation
 */

import { connect, type ConnectionOptions } from "@nats-io/transport-node";
import { silentLogger, systemClock, type Clock, type Logger } from "@parley/a2a/internal/base/index";
import { WakeupBatch, type Wakeup, type WakeupListener } from "@parley/server/internal/store/wakeup";
import { unavailable } from "@parley/server/internal/store/index";

/** A connection, as `connect()` of `@nats-io/transport-node` or another NATS transport returns it. */
export interface NatsConnection {
  /** Sends a message. */
  publish(subject: string, payload: string): void;
  /** Calls back for each message of the subject. */
  subscribe(
    subject: string,
    options: { callback(error: Error | null, message: { string(): string }): void },
  ): { unsubscribe(): void };
  /** Resolves when the server has received all messages. */
  flush(): Promise<void>;
  /** Reports when the connection is lost and restored. Ends with the connection. */
  status(): AsyncIterable<{ readonly type: string }>;
  /** Whether it is over. */
  isClosed(): boolean;
  /** Resolves when it is closed, to the error that closed it. */
  closed(): Promise<void | Error>;
  /** Ends it. */
  close(): Promise<void>;
}

/** Options of `connect()` of `@nats-io/transport-node`. These are the usual ones. */
export interface NatsConnectOptions {
  /** Name of a user. */
  readonly user?: string;
  /** The password of the user. */
  readonly pass?: string;
  /** A token, in place of a user. */
  readonly token?: string;
  /** Such as `credsAuthenticator()` or `jwtAuthenticator()` make it. */
  readonly authenticator?: unknown;
  /** Certificates and keys. Default: TLS if the server requires it. */
  readonly tls?: object | null;
  readonly [option: string]: unknown;
}

/** Options of `natsWakeup()`. */
export interface NatsWakeupOptions {
  /** NATS servers, such as `nats://nats-1:4222`. Default: those of `connection`, else `nats://127.0.0.1:4222`. */
  readonly servers?: string | readonly string[];
  /** An open connection, which is not closed with the wake-ups, or options such as credentials and TLS. Default: without credentials. */
  readonly connection?: NatsConnection | NatsConnectOptions;
  /** The subject. Nodes with the same subject wake each other. Default `parley.wakeup`. */
  readonly subject?: string;
  /** Minimum milliseconds between two messages of this node. Default 2. */
  readonly interval?: number;
  /** Milliseconds to connect to each server at the start; then the node continues without it, and connects later. Default 5000. */
  readonly connectTimeout?: number;
  /** Clock. Default: the runtime's. */
  readonly clock?: Clock;
  /** Logs when wake-ups stop and resume. Default: silent. */
  readonly logger?: Logger;
}

/**
 * Wake-ups over NATS core, whose at-most-once delivery is enough. Resolves when it is connected, or cannot connect now (`isConnected`).
 * It then keeps trying, and readers poll meanwhile.
 *
 * Rejects with an `A2AError` of code `Unavailable` for a closed connection, and for a subject with spaces or wildcards.
 *
 * @example
 * ```ts
 * import { natsWakeup } from "@parley/nats";
 *
 * const wakeups = await natsWakeup({ servers: ["nats://nats-1:4222", "nats://nats-2:4222"] });
 * ```
 */
export async function natsWakeup(options: NatsWakeupOptions = {}): Promise<Wakeup> {
  const wakeup = new NatsWakeup(options);
  await wakeup.open();
  return wakeup;
}

/** Far below the default maximum of a server, a megabyte. */
const messageBytes = 65_536;
const longestPause = 10_000;

class NatsWakeup implements Wakeup {
  readonly #options: NatsWakeupOptions;
  readonly #subject: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #batch: WakeupBatch;
  readonly #listeners = new Set<{ readonly tell: WakeupListener }>();
  #connection: NatsConnection | undefined;
  #isConnected = false;
  #isClosed = false;
  /** Whether the connection is or was lost: wake-ups may have been missed. */
  #wasAway = false;
  #cancelTimer: (() => void) | undefined;
  #unsubscribe: (() => void) | undefined;

  constructor(options: NatsWakeupOptions) {
    const { subject = "parley.wakeup", clock = systemClock, logger = silentLogger, interval = 2 } = options;
    this.#options = options;
    this.#subject = subject;
    // Subscriptions would throw later, unnoticed.
    if (!/^[^\s.*>]+(?:\.[^\s.*>]+)*$/.test(subject)) {
      throw unavailable(`The subject ${JSON.stringify(subject)} must be a NATS subject without spaces and wildcards`);
    }
    this.#clock = clock;
    this.#logger = logger;
    this.#batch = new WakeupBatch({
      clock,
      interval,
      messageBytes,
      send: (messages) => this.#send(messages),
      // The readers of other nodes poll a little later.
      onError: (cause) => logger.debug("NATS: failed to send wake-ups", { cause }),
    });
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  publish(taskIds: readonly string[]): void {
    this.#batch.add(taskIds);
  }

  subscribe(listener: WakeupListener): () => void {
    // The same function may be added twice.
    const entry = { tell: listener };
    this.#listeners.add(entry);
    return () => void this.#listeners.delete(entry);
  }

  async open(): Promise<void> {
    const { connection } = this.#options;
    if (!isConnection(connection)) return this.#connect(connection, 0);
    if (connection.isClosed()) throw unavailable("The NATS connection is closed");
    await this.#use(connection);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    await this.#batch.close();
    this.#isClosed = true;
    this.#cancelTimer?.();
    const connection = this.#connection;
    this.#isConnected = false;
    this.#unsubscribe?.();
    this.#listeners.clear();
    if (connection === undefined || connection.isClosed() || connection === this.#options.connection) return;
    await connection.close();
  }

  async #connect(options: NatsConnectOptions | undefined, failures: number): Promise<void> {
    const { servers, connectTimeout = 5000 } = this.#options;
    let connection: NatsConnection | undefined;
    try {
      connection = await connect({
        name: "parley",
        timeout: connectTimeout,
        pingInterval: 15_000,
        reconnectTimeWait: 250,
        ...(options as ConnectionOptions | undefined),
        ...(servers === undefined ? {} : { servers: typeof servers === "string" ? servers : [...servers] }),
        // It reconnects forever, even while credentials are rejected.
        reconnect: true,
        ignoreAuthErrorAbort: true,
        maxReconnectAttempts: -1,
        noEcho: true,
      });
      if (this.#isClosed) return connection.close();
      await this.#use(connection);
    } catch (cause) {
      await connection?.close().catch(() => undefined);
      this.#connectLater(cause, options, failures);
    }
  }

  /** Connects later, with exponential backoff. */
  #connectLater(cause: unknown, options: NatsConnectOptions | undefined, failures: number): void {
    this.#lose(cause);
    if (this.#isClosed) return;
    const pause = Math.min(longestPause, 250 * 2 ** Math.min(failures, 8)) * (0.5 + Math.random() / 2);
    this.#cancelTimer?.();
    this.#cancelTimer = this.#clock.after(pause, () => {
      if (!this.#isClosed) void this.#connect(options, failures + 1);
    });
  }

  /** Resolves when the server has the subscription. */
  async #use(connection: NatsConnection): Promise<void> {
    this.#connection = connection;
    const subscription = connection.subscribe(this.#subject, {
      callback: (error, message) => {
        if (error === null) this.#receive(message.string());
        else this.#logger.warn("NATS: subscription failed", { cause: error });
      },
    });
    this.#unsubscribe = () => subscription.unsubscribe();
    this.#watch(connection).catch((cause: unknown) => this.#lose(cause));
    try {
      await connection.flush();
      this.#gain();
    } catch (cause) {
      this.#lose(cause);
    }
  }

  /** Follows the connection until it is closed. */
  async #watch(connection: NatsConnection): Promise<void> {
    for await (const { type } of connection.status()) {
      if (this.#isClosed) return;
      if (type === "disconnect" || type === "staleConnection") this.#lose(new Error("The connection ended"));
      else if (type === "reconnect") this.#gain();
    }
    // The program closed its connection, or the server rejects this client.
    const reason = await connection.closed();
    if (this.#isClosed || this.#connection !== connection) return;
    const cause = reason instanceof Error ? reason : new Error("The connection was closed");
    const { connection: given } = this.#options;
    // A given connection is not replaced.
    if (isConnection(given)) this.#lose(cause);
    else this.#connectLater(cause, given, 0);
  }

  #gain(): void {
    if (this.#isClosed || this.#isConnected) return;
    this.#isConnected = true;
    if (this.#wasAway) {
      this.#wasAway = false;
      this.#logger.info("NATS: reconnected; wake-ups arrive again");
      this.#tell(undefined);
    }
    this.#batch.resume();
  }

  #lose(cause: unknown): void {
    if (this.#isClosed || this.#wasAway) return;
    this.#isConnected = false;
    this.#wasAway = true;
    this.#logger.warn("NATS: disconnected; readers poll until wake-ups arrive again", { cause });
    this.#tell(undefined);
  }

  async #send(messages: readonly string[]): Promise<void> {
    // The client would buffer without limit.
    if (!this.#isConnected || this.#connection === undefined) throw new Error("Not connected to NATS");
    for (const message of messages) this.#connection.publish(this.#subject, message);
    await this.#connection.flush();
  }

  #receive(message: string): void {
    const received = this.#batch.read(message);
    if (received === undefined || received.isOwn || this.#isClosed) return;
    for (const taskId of received.taskIds) this.#tell(taskId);
  }

  #tell(taskId: string | undefined): void {
    for (const { tell } of this.#listeners) tell(taskId);
  }
}

function isConnection(value: NatsConnection | NatsConnectOptions | undefined): value is NatsConnection {
  return value !== undefined && "publish" in value;
}
