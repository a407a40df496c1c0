import { unavailable } from "@parley/a2a/store";
import type { ServerFacts } from "./database.ts";
import type { Connection, Queries } from "./driver.ts";
import { isDisconnection, isReadOnly } from "./errors.ts";

// Transactions on a connection that is held, and what a server says of itself.

/** A commit whose answer was lost. */
export class CommitLost extends Error {
  readonly transaction: string;

  constructor(transaction: string, cause: unknown) {
    super("The connection was lost during a commit", { cause });
    this.transaction = transaction;
  }
}

/** What became of a transaction on a connection that works. */
type Settled<T> = { readonly result: T } | { readonly failure: unknown };

/** Runs a transaction on a connection. Rejects where the connection is of no use any more. */
export async function settle<T>(
  connection: Connection,
  begin: string,
  body: (transaction: Queries) => Promise<T>,
): Promise<Settled<T>> {
  const failures: unknown[] = [];
  const noteFailure = (thrown: unknown): void => void failures.push(thrown);
  const begun = connection.query(begin);
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
  const transaction = (await begun).rows[0]?.[0];
  try {
    await connection.query("COMMIT");
  } catch (thrown) {
    if (isDisconnection(thrown) && typeof transaction === "string") throw new CommitLost(transaction, thrown);
    throw thrown;
  }
  return { result };
}

/** The number of this transaction. A replica has none, and refuses what writes. */
export const number: string = "SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_xact_id() END";

/** The number of the timeline: each promotion of a replica begins another (PostgreSQL §26.3). NULL on a replica. */
export const timeline: string =
  "CASE WHEN pg_is_in_recovery() THEN '' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END";

export async function readFacts(connection: Connection): Promise<ServerFacts & { readonly timeline: string }> {
  const { rows } = await connection.query(
    `SELECT current_setting('server_version_num')::int, pg_backend_pid(), pg_is_in_recovery(), ${timeline},
       current_setting('server_encoding')`,
  );
  const [version, backend, isReplica, found, encoding] = rows[0] ?? [];
  if (encoding !== "UTF8") throw unavailable(`The database must have the encoding UTF8. It has ${String(encoding)}`);
  return {
    version: Number(version),
    pooled: connection.backend !== undefined && connection.backend !== backend,
    readOnly: isReplica === true,
    timeline: String(found),
  };
}
