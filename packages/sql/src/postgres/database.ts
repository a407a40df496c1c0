import { setMaxListeners } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { silentLogger, type Logger } from "@parley/a2a/internal/base/index";
import { unavailable } from "@parley/server/internal/store/index";
import { isStale } from "./connection.ts";
import type { PostgresDriver, Queries, Result, Value } from "./driver.ts";
import { isConflict, isFullDisk, isLocked, isOutage, isReadOnly, readable } from "./errors.ts";
import { Patience, type PatientConnection } from "./patience.ts";
import { CommitLost, readFacts, settle, Witnesses, type ServerFacts, type Witness } from "./transaction.ts";

/** The store's database: retries statements and transactions if that is safe, and rejects with errors that clients may see. */
export interface Database {
  /**
   * Runs one statement. A lost connection causes a retry, so the statement must be idempotent; use a transaction for other statements.
   *
   * @throws A2AError `Unavailable` if the database cannot run the statement now. Other server errors, such as a violated constraint, pass
   * through (`sqlState`).
   */
  query(text: string, values?: readonly Value[], options?: QueryOptions): Promise<Result>;
  /**
   * Runs `body` in a transaction. After a serialization failure, a deadlock or a connection lost before the commit, runs `body` again in a
   * new transaction. If the connection is lost during the commit, the witness row reveals the outcome.
   *
   * Statements called in the same turn are sent together. Await all of them, because one failure fails the transaction even if caught.
   *
   * @throws A2AError `Unavailable` like `query()`. The transaction is then not stored, unless the message says that the outcome is unknown.
   */
  transaction<T>(options: TransactionOptions, body: (transaction: Queries) => Promise<T>): Promise<T>;
  /**
   * From now on, write transactions leave a row in this table, which reveals the outcome of an unanswered commit. `table` is quoted for
   * SQL.
   */
  useWitnesses(table: string): void;
  /** The deadline, by `performance.now()`, of a call that starts now. */
  deadline(): number;
  /** Whether recent writes found the disk full. */
  readonly disk: FullDisk;
  /** Facts about the server, from `open`. */
  readonly server: ServerFacts;
  /** The driver underneath, for wake-ups. */
  readonly driver: PostgresDriver;
  /** Rejects further calls, waits for running ones, and closes its own resources. */
  close(): Promise<void>;
}

export interface QueryOptions {
  /** The deadline of its retries during an outage, from `deadline()`. Default: `deadline()` now. */
  readonly until?: number;
  /** Milliseconds without an answer after which the statement is retried on another connection. Default: the deadline. */
  readonly silence?: number;
}

export interface TransactionOptions {
  /** `write` is READ COMMITTED. `read` sees one snapshot of the database (REPEATABLE READ, READ ONLY). */
  readonly mode: "read" | "write";
  /** Milliseconds after which the server stops a statement. 0 means never. Default: the setting of the database. */
  readonly statementTimeout?: number;
  /** Milliseconds that a statement waits for a lock. 0 means no limit. Default: the setting of the database. */
  readonly lockTimeout?: number;
  /** The deadline of its retries during an outage: `deadline()` at the start of its call. Default: `deadline()` now. */
  readonly until?: number;
}

export interface DatabaseOptions {
  readonly statementTimeout: number;
  readonly lockTimeout: number;
  /** Milliseconds that a call waits for a database that cannot be reached. */
  readonly outageTimeout: number;
  readonly logger?: Logger;
}

/** The oldest server that is supported. */
const oldest = 15;
/** Maximum attempts of a transaction that conflicts with other transactions. */
const maxConflicts = 8;
/** Milliseconds that a write transaction may be idle. Short, because a paused process must not keep rows locked that another node needs. */
const idleTimeout = 2000;
/** Milliseconds that a read transaction may be idle: longer, because it locks no rows and may be folding a large task. */
const idleReadTimeout = 60_000;

/** Checks the version of the server. */
export async function openDatabase(driver: PostgresDriver, options: DatabaseOptions): Promise<Database> {
  const database = new RetryingDatabase(driver, options);
  await database.open();
  return database;
}

class RetryingDatabase implements Database {
  readonly driver: PostgresDriver;
  readonly disk: FullDisk = new FullDisk();
  readonly #options: DatabaseOptions;
  readonly #logger: Logger;
  readonly #patience: Patience;
  readonly #calls = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();
  #facts: ServerFacts | undefined;
  #witnesses: Witnesses | undefined;

  constructor(driver: PostgresDriver, options: DatabaseOptions) {
    this.driver = driver;
    this.#options = options;
    this.#patience = new Patience(driver, options.outageTimeout);
    this.#logger = options.logger ?? silentLogger;
    // Each waiting call adds a listener.
    setMaxListeners(0, this.#closing.signal);
  }

  get server(): ServerFacts {
    if (this.#facts === undefined) throw new TypeError("The database is not open");
    return this.#facts;
  }

  async open(): Promise<void> {
    const until = this.deadline();
    const facts = await this.#run(() => this.#hold(until, readFacts), until);
    const major = Math.trunc(facts.version / 10_000);
    if (major < oldest) {
      throw unavailable(`PostgreSQL ${oldest} or newer is required; the server runs PostgreSQL ${major}`);
    }
    this.#facts = facts;
    if (!facts.pooled) this.driver.keepsSessions?.();
  }

  useWitnesses(table: string): void {
    this.#witnesses = new Witnesses(table);
  }

  deadline(): number {
    return performance.now() + this.#options.outageTimeout;
  }

  query(text: string, values?: readonly Value[], options: QueryOptions = {}): Promise<Result> {
    const { until = this.deadline(), silence } = options;
    return this.#run(() => this.#hold(until, ({ ask }) => ask(text, values, silence)), until);
  }

  transaction<T>(options: TransactionOptions, body: (transaction: Queries) => Promise<T>): Promise<T> {
    const until = options.until ?? this.deadline();
    return this.#run(() => this.#attempt({ ...options, until }, body), until);
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(unavailable("The store is closed"));
    await Promise.allSettled(this.#calls);
    await this.driver.close();
  }

  /** Retries `attempt` after conflicts and during an outage, and throws errors that clients may see. */
  #run<T>(attempt: () => Promise<T>, until = this.deadline()): Promise<T> {
    const call = this.#repeat(attempt, until);
    this.#calls.add(call);
    const forget = (): void => void this.#calls.delete(call);
    call.then(forget, forget);
    return call;
  }

  async #repeat<T>(attempt: () => Promise<T>, until: number): Promise<T> {
    for (let conflicts = 0, outages = 0; ;) {
      this.#closing.signal.throwIfAborted();
      try {
        return await attempt();
      } catch (thrown) {
        // A statement that failed because of its name is retried without a name or with another name.
        const mayRepeat =
          isConflict(thrown) || isStale(thrown)
            ? ++conflicts < maxConflicts
            : (isOutage(thrown) || isReadOnly(thrown)) && performance.now() < until && this.#facts !== undefined;
        if (isFullDisk(thrown)) this.disk.note(true);
        if (!mayRepeat) throw readable(thrown);
        if (!isConflict(thrown) && !isStale(thrown)) outages += 1;
        this.#logger.debug("PostgreSQL: retrying call", { cause: thrown, conflicts, outages });
      }
      await this.#pause(conflicts, outages);
    }
  }

  /** Exponential backoff with jitter, at most half a second. Ends early when the database is closed. */
  async #pause(conflicts: number, outages: number): Promise<void> {
    const { signal } = this.#closing;
    const most = outages > 0 ? Math.min(500, 50 * 2 ** Math.min(outages, 8)) : 5 * 2 ** conflicts;
    await pause(most * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => undefined);
  }

  async #attempt<T>(
    options: TransactionOptions & { readonly until: number },
    body: (transaction: Queries) => Promise<T>,
  ): Promise<T> {
    const { mode, statementTimeout = this.#options.statementTimeout, until } = options;
    const witness = mode === "write" ? this.#witnesses?.take() : undefined;
    let result: T | undefined;
    let lost: CommitLost;
    try {
      const settled = await this.#patience.hold(
        (connection) =>
          settle(connection, this.#begin(options, witness), async (transaction) => (result = await body(transaction))),
        { statementTimeout, until },
      );
      if (witness !== undefined) this.#witnesses?.giveBack(witness);
      if ("failure" in settled) throw settled.failure;
      if (mode === "write") this.disk.note(false);
      return settled.result;
    } catch (thrown) {
      if (!(thrown instanceof CommitLost)) throw thrown;
      // Reads can be retried.
      if (mode === "read") throw thrown.cause;
      lost = thrown;
    }
    if (await this.#isCommitted(lost, witness, until)) return result as T;
    // The transaction was rolled back, so it can be retried.
    throw lost.cause;
  }

  #hold<T>(until: number, body: (connection: PatientConnection) => Promise<T>): Promise<T> {
    return this.#patience.hold(body, { statementTimeout: this.#options.statementTimeout, until });
  }

  #begin({ mode, statementTimeout, lockTimeout }: TransactionOptions, witness: Witness | undefined): string {
    const limits =
      `SET LOCAL statement_timeout = ${Math.trunc(statementTimeout ?? this.#options.statementTimeout)};` +
      `SET LOCAL lock_timeout = ${Math.trunc(lockTimeout ?? this.#options.lockTimeout)};` +
      `SET LOCAL idle_in_transaction_session_timeout = ${mode === "read" ? idleReadTimeout : idleTimeout};`;
    return mode === "read"
      ? `BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;${limits}`
      : `BEGIN ISOLATION LEVEL READ COMMITTED;${limits}${witness?.begin() ?? ""}`;
  }

  /** Looks up the outcome of an unanswered commit: at least once, and until the deadline. */
  async #isCommitted(lost: CommitLost, witness: Witness | undefined, until: number): Promise<boolean> {
    for (let outages = 1; witness !== undefined && !this.#closing.signal.aborted; outages += 1) {
      try {
        const isCommitted = await this.#hold(until, (connection) => witness.isCommitted(connection));
        this.#witnesses?.giveBack(witness);
        return isCommitted;
      } catch (thrown) {
        // The server may still be running the transaction, which keeps the row locked.
        if (!isOutage(thrown) && !isReadOnly(thrown) && !isLocked(thrown)) break;
      }
      if (performance.now() >= until) break;
      await this.#pause(0, outages);
    }
    throw unavailable("The connection was lost during a commit; the outcome is unknown", lost);
  }
}

/** Milliseconds for which a failed write counts as proof of a full disk. */
const memory = 10_000;

/** Tracks by its last writes whether a database's disk is full, because nothing else reveals this. */
export class FullDisk {
  #until = -Infinity;

  /** Notes that a write failed for lack of space, or succeeded. */
  note(isFull: boolean): void {
    this.#until = isFull ? performance.now() + memory : -Infinity;
  }

  /** Becomes false some seconds after the last failed write, so the next request tests whether there is space. */
  get isFull(): boolean {
    return performance.now() < this.#until;
  }
}
