import { unavailable } from "@parley/server/internal/store/index";
import { sqlState, type Connection, type PostgresDriver, type Queries, type Result, type Value } from "./driver.ts";

/**
 * BEGIN and single statements are fast. If a statement is not answered within this share of the call's time, its connection counts as lost,
 * and the call spends the rest of its time on another connection.
 */
const share = 1 / 2;
/** The minimum of that share, in milliseconds. */
const least = 1000;

/** Milliseconds for the server to report a statement timeout before its connection counts as lost. */
const notice = 500;

function shortSilence(outageTimeout: number): number {
  return Math.max(least, outageTimeout * share);
}

/** The server-side timeout of a single statement, in milliseconds. The server reports a slow statement before its connection counts as lost. */
export function limitAlone(limit: number, outageTimeout: number): number {
  return limit === 0 ? 0 : Math.min(limit, Math.trunc(shortSilence(outageTimeout)) - notice);
}

export interface Patient {
  /** Milliseconds after which the server stops a statement. With 0, the server never does, and no connection counts as lost. */
  readonly statementTimeout: number;
  /** The deadline of its call, by `performance.now()`. */
  readonly until: number;
}

/** A connection whose statements time out at the deadline of the call. */
export interface PatientConnection extends Connection {
  /** Begins a transaction. */
  begin(text: string): Promise<unknown>;
  /** Runs a single idempotent statement outside a transaction. */
  ask(text: string, values?: readonly Value[], silence?: number): Promise<Result>;
}

/**
 * Lends connections with a deadline, because a network that drops packets reports no error. A call ends a second after its deadline.
 * Each answer of the database extends the deadline, so a long call to a working database does not time out.
 */
export class Patience {
  readonly #driver: PostgresDriver;
  readonly #outageTimeout: number;
  /** Time of the database's last answer, on any connection. */
  #heard = -Infinity;

  constructor(driver: PostgresDriver, outageTimeout: number) {
    this.#driver = driver;
    this.#outageTimeout = outageTimeout;
  }

  /** Like `PostgresDriver.hold`. If no connection is lent or a statement is not answered in time, rejects as for a lost connection. */
  async hold<T>(body: (connection: PatientConnection) => Promise<T>, patient: Patient): Promise<T> {
    const most = silenceAfter(patient.statementTimeout);
    if (most === 0) return this.#driver.hold((connection) => body(withoutEnd(connection)), 0);
    return this.#lent((connection) => body(this.#timed(connection, most, patient.until)), most, patient.until);
  }

  /** A connection that arrives late is returned unused. */
  async #lent<T>(body: (connection: Connection) => Promise<T>, most: number, until: number): Promise<T> {
    let isLate = false;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const giveUp = (): void => {
        isLate = true;
        reject(new Error("timeout expired: no connection available"));
      };
      timer = setTimeout(giveUp, this.#left(until));
    });
    const lent = this.#driver.hold(async (connection) => {
      clearTimeout(timer);
      return isLate ? undefined : body(connection);
    }, most);
    try {
      return (await Promise.race([lent, late])) as T;
    } finally {
      clearTimeout(timer);
    }
  }

  #timed(connection: Connection, most: number, until: number): PatientConnection {
    const ask = async (text: string, values: readonly Value[] | undefined, limit: number): Promise<Result> => {
      try {
        const result = await connection.query(text, values, Math.min(most, limit, this.#left(until)));
        this.#heard = performance.now();
        return result;
      } catch (thrown) {
        if (sqlState(thrown) !== undefined) this.#heard = performance.now();
        throw thrown;
      }
    };
    const short = shortSilence(this.#outageTimeout);
    return {
      backend: connection.backend,
      query: (text, values, silence = most) => ask(text, values, silence),
      begin: (text) => ask(text, undefined, short),
      ask: (text, values, silence = short) => ask(text, values, silence),
    };
  }

  #left(until: number): number {
    const now = performance.now();
    return Math.ceil(Math.max(until, this.#heard + this.#outageTimeout, now) - now) + answerMargin;
  }
}

function withoutEnd(connection: Connection): PatientConnection {
  const query: Connection["query"] = (text, values, silence) => connection.query(text, values, silence);
  return { backend: connection.backend, query, begin: query, ask: query };
}

/** Runs cheap statements. If a statement is not answered soon, its connection is closed, and another connection may retry the statement. */
export function quickQueries(driver: PostgresDriver): Queries {
  return {
    query: (text, values) => driver.hold((connection) => connection.query(text, values, quickSilence), quickSilence),
  };
}

/** Milliseconds beyond the server's timeout after which a silent connection is lost. */
const silenceMargin = 5000;

/** Milliseconds beyond a call's deadline after which a silent connection is lost. */
export const answerMargin = 1000;

/** Milliseconds after which a connection with a cheap statement is lost. Short, because a node whose heartbeats wait must not seem dead. */
export const quickSilence = 1500;

/** Like `quickSilence`, but longer, because the listening connection has no spare. */
export const listenSilence = 5000;

/** The largest timeout of PostgreSQL, in milliseconds. */
const longest = 2 ** 31 - 1;

/** Milliseconds after which a silent connection is lost. 0 (never) if statements have no timeout. */
export function silenceAfter(statementTimeout: number): number {
  return statementTimeout === 0 ? 0 : statementTimeout + silenceMargin;
}

/**
 * Checks timeouts, which become part of statements.
 *
 * @throws A2AError `Unavailable`.
 */
export function checkLimits(limits: Readonly<Record<string, number>>): void {
  for (const [name, ms] of Object.entries(limits)) {
    if (!(ms >= 0 && ms <= longest)) {
      throw unavailable(`${name} must be milliseconds between 0 and ${longest}; got ${String(ms)}`);
    }
  }
}
