import { unavailable } from "@parley/server/internal/store/index";
import type { ServerFacts } from "./database.ts";
import type { Connection, PostgresDriver, Queries } from "./driver.ts";
import { isAnswer, isDisconnection, isReadOnly } from "./errors.ts";
import type { PatientConnection } from "./patience.ts";

// Transactions on a connection that is held, and what a server says of itself.

/** A commit that was not answered. */
export class CommitLost extends Error {
  constructor(cause: unknown) {
    super("The connection was lost during a commit", { cause });
  }
}

/** What became of a transaction on a connection that works. */
type Settled<T> = { readonly result: T } | { readonly failure: unknown };

/** Runs a transaction on a connection. Rejects where the connection is of no use any more: with `CommitLost` where it may have taken effect. */
export async function settle<T>(
  connection: PatientConnection,
  begin: string,
  body: (transaction: Queries) => Promise<T>,
): Promise<Settled<T>> {
  const failures: unknown[] = [];
  const noteFailure = (thrown: unknown): void => void failures.push(thrown);
  const begun = connection.begin(begin);
  // The first statement travels with BEGIN. If that fails, so does this.
  begun.catch(noteFailure);
  let result: T;
  try {
    result = await body({
      query(text, values) {
        const answer = connection.query(text, values);
        answer.catch(noteFailure);
        return answer;
      },
    });
    // A commit after a statement that failed would roll back, and say nothing.
    await begun;
    if (failures.length > 0) throw failures[0];
  } catch (thrown) {
    // The first failure is the reason of those after it.
    const failure = failures[0] ?? thrown;
    // A server that has become a replica, and a connection that is lost, are connected to again.
    if (isReadOnly(failure) || isDisconnection(failure)) throw failure;
    try {
      await connection.query("ROLLBACK");
    } catch {
      throw failure;
    }
    return { failure };
  }
  try {
    await connection.query("COMMIT");
  } catch (thrown) {
    // Only the server itself knows that it did not commit. A pooler says what it likes, and so does a server that ends the session.
    throw isAnswer(thrown) ? thrown : new CommitLost(thrown);
  }
  return { result };
}

export async function readFacts(connection: Connection): Promise<ServerFacts> {
  const { rows } = await connection.query(
    `SELECT current_setting('server_version_num')::int, pg_backend_pid(), pg_is_in_recovery(),
       current_setting('server_encoding')`,
  );
  const [version, backend, isReplica, encoding] = rows[0] ?? [];
  if (encoding !== "UTF8") throw unavailable(`The database must have the encoding UTF8. It has ${String(encoding)}`);
  return {
    version: Number(version),
    pooled: connection.backend !== undefined && connection.backend !== backend,
    readOnly: isReplica === true,
  };
}

/**
 * Whether a connection keeps its session of the server, which LISTEN needs. A pooler in transaction mode gives the session that was just
 * used to the next transaction, unless there is much to do: then the echo shows it.
 */
export async function keepsSession(driver: PostgresDriver): Promise<boolean> {
  return driver.hold(async (one) => {
    const before = await sessionOf(one);
    const after = await driver.hold(async (two) => {
      await two.query("BEGIN");
      await sessionOf(two);
      const now = await sessionOf(one);
      await two.query("ROLLBACK");
      return now;
    });
    return before === after;
  });
}

async function sessionOf(queries: Queries): Promise<unknown> {
  return (await queries.query("SELECT pg_backend_pid()")).rows[0]?.[0];
}

/**
 * Rows that transactions write to be found again. Where the connection is lost during a commit, the row says whether the commit took
 * effect: also after a crash, and after a failover to a replica that did not have it. The numbers of transactions cannot say it, since a
 * server gives them out again whose commit it lost.
 *
 * Each transaction that is open has a row of its own, so that none waits for another one.
 */
export class Witnesses {
  readonly #table: string;
  #free: Witness[] = [];

  /** `table`: its name as it stands in SQL. It has the columns `id`, `token` and `at`. */
  constructor(table: string) {
    this.#table = table;
  }

  /** A row that no other transaction of this process writes now. */
  take(): Witness {
    return this.#free.pop() ?? new Witness(this.#table);
  }

  /** The transaction is over, and what became of it is known. */
  giveBack(witness: Witness): void {
    this.#free.push(witness);
  }
}

/** A row that one transaction at a time writes. */
export class Witness {
  readonly #id = crypto.randomUUID();
  readonly #table: string;
  #token = 0;

  constructor(table: string) {
    this.#table = table;
  }

  /** The statement that a new transaction begins with. It also gives the transaction its number, before any sequence does. */
  begin(): string {
    this.#token += 1;
    return `INSERT INTO ${this.#table} AS w (id, token) VALUES ('${this.#id}', ${this.#token})
      ON CONFLICT (id) DO UPDATE SET token = excluded.token, at = excluded.at`;
  }

  /**
   * Whether the last transaction has taken effect. It waits for that transaction while the server still has it, since both write the
   * row. What it did not find can never take effect later.
   */
  async isCommitted(queries: Queries): Promise<boolean> {
    const { rows } = await queries.query(
      `INSERT INTO ${this.#table} AS w (id, token) VALUES ('${this.#id}', 0)
       ON CONFLICT (id) DO UPDATE SET at = excluded.at RETURNING w.token`,
    );
    return rows[0]?.[0] === this.#token;
  }
}
