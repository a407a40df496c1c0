import { silentLogger, systemClock, type Clock, type Logger } from "@parley/a2a/internal/base/index";
import { WakeupBatch, type Wakeup, type WakeupListener } from "@parley/server/internal/store/wakeup";
import type { Listening, PostgresDriver, Queries } from "./driver.ts";
import { keepsSession } from "./transaction.ts";

export interface NotifyWakeupOptions {
  /** The channel of NOTIFY. Nodes with the same database and channel wake each other. Default `parley`. */
  readonly channel?: string;
  /** The minimum number of milliseconds between two NOTIFY of this node. Default 2. */
  readonly interval?: number;
  /** Milliseconds of silence after which the node sends itself a notification. Default 15000. */
  readonly heartbeat?: number;
  /** Milliseconds within which the node's notification to itself must arrive. Default 5000. */
  readonly echoTimeout?: number;
  readonly clock?: Clock;
  readonly logger?: Logger;
}

/**
 * Wake-ups by LISTEN and NOTIFY. Commits with a notification block each other, so notifications are sent after the append, many in one
 * statement, without waiting for the disk (docs/decisions/wakeups.md).
 *
 * Resolves once the node has received its own message or has failed to (`isConnected`). The node keeps retrying, but rarely behind a pooler.
 * A node that cannot listen still notifies, because NOTIFY works through a pooler.
 */
export async function notifyWakeup(
  driver: PostgresDriver,
  pooled: boolean,
  options: NotifyWakeupOptions = {},
): Promise<Wakeup> {
  const wakeup = new NotifyWakeup(driver, pooled, options);
  await wakeup.open();
  return wakeup;
}

/** Sends no wake-ups, so each node polls. */
export const noWakeup: Wakeup = {
  isConnected: false,
  publish() {},
  subscribe: () => () => undefined,
  async close() {},
};

/** Payloads have less than 8000 bytes (PostgreSQL, NOTIFY). */
const messageBytes = 7900;
const [shortestPause, longestPause] = [100, 10_000];
/** Milliseconds between two attempts behind a pooler that never delivered a notification, but may have been slow or reconfigured. */
const poolerPause = 300_000;

/** Commits with NOTIFY are serialized and hold a lock until their record is on disk, which is not needed here. */
const notify = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, message) FROM unnest($2::text[]) AS message`;

export class NotifyWakeup implements Wakeup {
  readonly #driver: PostgresDriver;
  readonly #pooled: boolean;
  readonly #options: Required<NotifyWakeupOptions>;
  readonly #batch: WakeupBatch;
  readonly #listeners = new Set<{ readonly tell: WakeupListener }>();
  readonly #echoes = new Set<() => void>();
  #listening: Listening | undefined;
  #isConnected = false;
  #isClosed = false;
  #hasWorked = false;
  /** Number of failures to listen since listening last worked. */
  #failures = 0;
  #heard = 0;
  #cancelTimer: (() => void) | undefined;
  #connecting: Promise<void> = Promise.resolve();

  constructor(driver: PostgresDriver, pooled: boolean, options: NotifyWakeupOptions) {
    this.#driver = driver;
    this.#pooled = pooled;
    this.#options = {
      channel: "parley",
      interval: 2,
      heartbeat: 15_000,
      echoTimeout: 5000,
      clock: systemClock,
      logger: silentLogger,
      ...options,
    };
    const { clock, interval, logger } = this.#options;
    this.#batch = new WakeupBatch({
      clock,
      interval,
      messageBytes,
      send: (messages) => this.#notify(this.#listening ?? driver, messages),
      // Readers on other nodes poll a little later.
      onError: (cause) => logger.debug("PostgreSQL: failed to send wake-ups", { cause }),
    });
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** The listening connection, for other short statements. `undefined` while disconnected. */
  get listening(): Queries | undefined {
    return this.#isConnected ? this.#listening : undefined;
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

  open(): Promise<void> {
    this.#connecting = this.#connect();
    return this.#connecting;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    await this.#batch.close();
    this.#isClosed = true;
    this.#isConnected = false;
    this.#cancelTimer?.();
    for (const echo of this.#echoes) echo();
    await this.#connecting;
    await this.#listening?.close();
    this.#listening = undefined;
    this.#listeners.clear();
  }

  /** Listens, and waits for its own notification. Never rejects. */
  async #connect(): Promise<void> {
    const { channel, logger } = this.#options;
    if (this.#driver.listen === undefined) {
      logger.info("PostgreSQL: no connection for LISTEN; readers poll for changes by other nodes");
      return;
    }
    let listening: Listening | undefined;
    let early: { readonly cause: unknown } | undefined;
    try {
      if (this.#pooled && !(await keepsSession(this.#driver))) return this.#giveUp();
      if (this.#isClosed) return;
      listening = await this.#driver.listen(channel, {
        notified: (message) => this.#receive(message),
        ended: (cause) => (listening === undefined ? (early = { cause }) : this.#lose(listening, cause)),
      });
      this.#listening = listening;
      if (early !== undefined) throw early.cause;
      // The connection is usually idle. Not set behind a pooler, which would lend the changed session to other clients.
      if (!this.#pooled) await listening.query("SET idle_session_timeout = 0");
      // The test is sent on another connection, because a pooler could answer on the same connection.
      const arrives = await this.#hearsItself();
      if (this.#listening !== listening) return;
      if (!arrives) return await this.#giveUp(listening);
    } catch (cause) {
      logger.debug("PostgreSQL: LISTEN failed", { cause });
      // The connection has ended meanwhile, and a retry is scheduled.
      if (listening !== undefined && this.#listening !== listening) return;
      this.#listening = undefined;
      await listening?.close();
      return this.#retry(cause);
    }
    if (this.#isClosed) return;
    if (this.#failures > 0) {
      logger.info("PostgreSQL: notifications arrive again", { channel });
      // Wake-ups may have been missed.
      this.#tell(undefined);
    }
    this.#failures = 0;
    this.#hasWorked = true;
    this.#isConnected = true;
    this.#batch.resume();
    this.#beat();
  }

  /** Called when notifications do not arrive. */
  async #giveUp(listening?: Listening): Promise<void> {
    this.#listening = undefined;
    // A pooler lends the session to other clients.
    if (this.#pooled && !this.#isClosed) await listening?.query("UNLISTEN *").catch(() => undefined);
    await listening?.close();
    if (this.#isClosed) return;
    if (!this.#pooled || this.#hasWorked) return this.#retry(new Error("A notification did not arrive"));
    if (this.#failures++ === 0) {
      this.#options.logger.warn(
        "PostgreSQL: notifications do not pass the pooler, as in transaction mode; readers poll for changes by other nodes. " +
          "Connect to the server directly, or use another kind of wake-up",
      );
    }
    this.#after(poolerPause, () => void this.open());
  }

  #lose(listening: Listening | undefined, cause: unknown): void {
    if (listening === undefined || this.#listening !== listening || this.#isClosed) return;
    this.#listening = undefined;
    this.#retry(cause);
  }

  #retry(cause: unknown): void {
    if (this.#isClosed) return;
    if (this.#failures === 0) {
      this.#options.logger.warn("PostgreSQL: notifications do not arrive; readers poll until they do", { cause });
      this.#isConnected = false;
      this.#tell(undefined);
    }
    this.#failures += 1;
    const most = Math.min(longestPause, shortestPause * 2 ** Math.min(this.#failures - 1, 10));
    this.#after(most * (0.5 + Math.random() / 2), () => void this.open());
  }

  /** If no notification has arrived for a while, checks whether notifications still arrive. */
  #beat(): void {
    const before = this.#heard;
    this.#after(this.#options.heartbeat, () => {
      const listening = this.#listening;
      if (listening === undefined) return;
      if (this.#heard !== before) return this.#beat();
      this.#connecting = this.#check(listening);
    });
  }

  async #check(listening: Listening): Promise<void> {
    const arrives = await this.#hearsItself().catch(() => false);
    if (this.#isClosed || this.#listening !== listening) return;
    if (arrives) return this.#beat();
    this.#listening = undefined;
    await listening.close();
    this.#retry(new Error("A notification did not arrive"));
  }

  /** Whether a message of this node arrives soon after it is sent. */
  async #hearsItself(): Promise<boolean> {
    const { clock, echoTimeout } = this.#options;
    let hear: ((arrives: boolean) => void) | undefined;
    const heard = new Promise<boolean>((resolve) => (hear = resolve));
    const echo = (): void => hear?.(!this.#isClosed);
    this.#echoes.add(echo);
    let cancel: (() => void) | undefined;
    try {
      if (this.#isClosed) return false;
      await this.#notify(this.#driver, [this.#batch.ping()]);
      // The timeout starts after sending, because sending may have waited for a connection.
      cancel = clock.after(echoTimeout, () => hear?.(false));
      return await heard;
    } finally {
      cancel?.();
      this.#echoes.delete(echo);
    }
  }

  #after(ms: number, run: () => void): void {
    this.#cancelTimer?.();
    this.#cancelTimer = this.#options.clock.after(ms, () => {
      if (!this.#isClosed) run();
    });
  }

  async #notify(connection: Pick<Listening, "query">, messages: readonly string[]): Promise<void> {
    await connection.query(notify, [this.#options.channel, messages]);
  }

  #receive(message: string): void {
    this.#heard += 1;
    const received = this.#batch.read(message);
    if (received === undefined) return;
    if (received.isOwn) for (const echo of this.#echoes) echo();
    else for (const taskId of received.taskIds) this.#tell(taskId);
  }

  #tell(taskId: string | undefined): void {
    for (const { tell } of this.#listeners) tell(taskId);
  }
}
