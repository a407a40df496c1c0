import { unavailable } from "@parley/server/internal/store/index";
import type { Connection, PostgresDriver, Queries } from "./driver.ts";
import { isAnswer, isDisconnection, isReadOnly } from "./errors.ts";
import type { PatientConnection } from "./patience.ts";

// Transactions on a lent connection, and facts about the server.

/** An unanswered commit. */
export class CommitLost extends Error {
  constructor(cause: unknown) {
    super("The connection was lost during a commit", { cause });
  }
}

/** The outcome of a transaction on a working connection. */
type Settled<T> = { readonly result: T } | { readonly failure: unknown };

/** Runs a transaction. Rejects if the connection is unusable, and with `CommitLost` if the commit may have taken effect. */
export async function settle<T>(
  connection: PatientConnection,
  begin: string,
  body: (transaction: Queries) => Promise<T>,
): Promise<Settled<T>> {
  const failures: unknown[] = [];
  const noteFailure = (thrown: unknown): void => void failures.push(thrown);
  const begun = connection.begin(begin);
  // The first statement is sent together with BEGIN. If BEGIN fails, so does the statement.
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
    // A commit after a failed statement would silently roll back.
    await begun;
    if (failures.length > 0) throw failures[0];
  } catch (thrown) {
    // The first failure is the cause of later ones.
    const failure = failures[0] ?? thrown;
    // A failover or a lost connection requires a new connection.
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
    // Only an answer of the server proves that the transaction did not commit.
    throw isAnswer(thrown) ? thrown : new CommitLost(thrown);
  }
  return { result };
}

/** Facts about a server and the connection to it. */
export interface ServerFacts {
  /** `server_version_num`, such as 150018. */
  readonly version: number;
  /** Whether a pooler is in between, so that each transaction may use a different session of the server. */
  readonly pooled: boolean;
  /** Whether the server is a read-only replica. */
  readonly readOnly: boolean;
}

export async function readFacts(connection: Connection): Promise<ServerFacts> {
  const { rows } = await connection.query(
    `SELECT current_setting('server_version_num')::int, pg_backend_pid(), pg_is_in_recovery(),
       current_setting('server_encoding')`,
  );
  const [version, backend, isReplica, encoding] = rows[0] ?? [];
  if (encoding !== "UTF8") throw unavailable(`The database encoding must be UTF8; got ${String(encoding)}`);
  return {
    version: Number(version),
    pooled: connection.backend !== undefined && connection.backend !== backend,
    readOnly: isReplica === true,
  };
}

/**
 * Whether a connection keeps its session, which LISTEN needs. A pooler in transaction mode lends the session to the next transaction.
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
 * Rows that prove commits: if the connection is lost during a commit, the row reveals its outcome, even after a crash or a failover that
 * lost the commit. Transaction ids cannot prove a commit, because a server reuses the ids of lost transactions. Each open transaction has its own
 * row, so that transactions do not wait for each other.
 */
export class Witnesses {
  readonly #table: string;
  #free: Witness[] = [];

  /** `table` is the name of the table, quoted for SQL. The table has the columns `id`, `token` and `at`. */
  constructor(table: string) {
    this.#table = table;
  }

  take(): Witness {
    return this.#free.pop() ?? new Witness(this.#table);
  }

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

  /** The first statement of a transaction, which also assigns the transaction id, before any sequence value is taken. */
  begin(): string {
    this.#token += 1;
    return `INSERT INTO ${this.#table} AS w (id, token) VALUES ('${this.#id}', ${this.#token})
      ON CONFLICT (id) DO UPDATE SET token = excluded.token, at = excluded.at`;
  }

  /**
   * Whether the last transaction was committed. Waits while the server still runs that transaction, because both write the row. If the row
   * is missing, the transaction can no longer commit.
   */
  async isCommitted(queries: Queries): Promise<boolean> {
    const { rows } = await queries.query(
      `INSERT INTO ${this.#table} AS w (id, token) VALUES ('${this.#id}', 0)
       ON CONFLICT (id) DO UPDATE SET at = excluded.at RETURNING w.token`,
    );
    return rows[0]?.[0] === this.#token;
  }
}
