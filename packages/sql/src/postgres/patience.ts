import { unavailable } from "@parley/server/internal/store/index";
import { sqlState, type Connection, type PostgresDriver, type Queries, type Result, type Value } from "./driver.ts";

/**
 * The part of the time of a call in which BEGIN is answered, which waits for nobody, and a statement on its own, which reads a few rows. Else
 * the connection counts as lost, and the rest is for another one.
 */
const share = 1 / 2;
/** Milliseconds for that at least. */
const least = 1000;

/** Milliseconds that the server has to say that a statement is too slow, before its connection counts as lost. */
const notice = 500;

/** How long a call waits for BEGIN, or for a statement on its own, on one connection. */
function shortSilence(outageTimeout: number): number {
  return Math.max(least, outageTimeout * share);
}

/** The limit of the server for a statement on its own, in milliseconds: one that is slow and not lost is told by the server. 0: none. */
export function limitAlone(limit: number, outageTimeout: number): number {
  return limit === 0 ? 0 : Math.min(limit, Math.trunc(shortSilence(outageTimeout)) - notice);
}

/** What holds for the statements of a connection that is lent. */
export interface Patient {
  /** Milliseconds after which the server stops a statement. 0: never, and then nothing is given up. */
  readonly statementTimeout: number;
  /** Until when its call waits, by `performance.now()`. */
  readonly until: number;
}

/** A connection that is asked for no longer than its call lasts. */
export interface PatientConnection extends Connection {
  /** Begins a transaction. */
  begin(text: string): Promise<unknown>;
  /** Runs a statement on its own, which can be repeated. */
  ask(text: string, values?: readonly Value[], silence?: number): Promise<Result>;
}

/**
 * Lends connections for as long as the calls have time. A network that loses packets answers nothing and refuses nothing: whoever waits for it waits
 * for a time that was set before. A call ends a second after its time is over, counted anew with each answer of the database, so that a long
 * call to a database that works is not given up.
 */
export class Patience {
  readonly #driver: PostgresDriver;
  readonly #outageTimeout: number;
  /** When the database last answered, on any connection. */
  #heard = -Infinity;

  constructor(driver: PostgresDriver, outageTimeout: number) {
    this.#driver = driver;
    this.#outageTimeout = outageTimeout;
  }

  /** As `PostgresDriver.hold`. Rejects as a connection that was lost where none is lent, or a statement is not answered, in time. */
  async hold<T>(body: (connection: PatientConnection) => Promise<T>, patient: Patient): Promise<T> {
    const most = silenceAfter(patient.statementTimeout);
    if (most === 0) return this.#driver.hold((connection) => body(withoutEnd(connection)), 0);
    return this.#lent((connection) => body(this.#timed(connection, most, patient.until)), most, patient.until);
  }

  /** A connection that comes when nobody waits any more goes back as it is. */
  async #lent<T>(body: (connection: Connection) => Promise<T>, most: number, until: number): Promise<T> {
    let isLate = false;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const giveUp = (): void => {
        isLate = true;
        reject(new Error("timeout expired: there was no connection"));
      };
      timer = setTimeout(giveUp, this.#left(until));
    });
    const lent = this.#driver.hold(async (connection) => {
      clearTimeout(timer);
      return isLate ? undefined : body(connection);
    }, most);
    try {
      // Where it is late, nobody hears what it resolves to.
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

  /** Milliseconds until whoever is not answered is given up. */
  #left(until: number): number {
    const now = performance.now();
    return Math.ceil(Math.max(until, this.#heard + this.#outageTimeout, now) - now) + answerMargin;
  }
}

function withoutEnd(connection: Connection): PatientConnection {
  const query: Connection["query"] = (text, values, silence) => connection.query(text, values, silence);
  return { backend: connection.backend, query, begin: query, ask: query };
}

/** Statements that cost the server nothing: who is not answered soon throws the connection away, and can ask on another one. */
export function quickQueries(driver: PostgresDriver): Queries {
  return {
    query: (text, values) => driver.hold((connection) => connection.query(text, values, quickSilence), quickSilence),
  };
}

/** Milliseconds more than the limit of the server, after which a connection without an answer is lost. */
const silenceMargin = 5000;

/** Milliseconds more than a call has, after which a connection without an answer is lost. */
export const answerMargin = 1000;

/** Milliseconds without an answer to what costs the server nothing, after which it is asked on another connection: a node that beats on it must not seem dead. */
export const quickSilence = 1500;

/** The same for the connection that listens, of which there is one. */
export const listenSilence = 5000;

/** The longest time limit that PostgreSQL takes, in milliseconds. */
const longest = 2 ** 31 - 1;

/** Milliseconds without an answer to a statement, after which its connection counts as lost. 0: never, where the statement has no limit. */
export function silenceAfter(statementTimeout: number): number {
  return statementTimeout === 0 ? 0 : statementTimeout + silenceMargin;
}

/**
 * Checks time limits, which go into statements.
 *
 * @throws A2AError `Unavailable` for what is no number of milliseconds.
 */
export function checkLimits(limits: Readonly<Record<string, number>>): void {
  for (const [name, ms] of Object.entries(limits)) {
    if (!(ms >= 0 && ms <= longest)) {
      throw unavailable(`${name} is ${String(ms)}. It must be milliseconds, at least 0 and at most ${longest}`);
    }
  }
}
