import { unavailable, type StoreCondition } from "@parley/server/internal/store/index";
import type { Database } from "./database.ts";
import type { Connection } from "./driver.ts";
import { readable } from "./errors.ts";
import { conditionOfVersion } from "./migrations.ts";
import { hasPartition } from "./partitions.ts";
import { int } from "./rows.ts";
import type { Schema } from "./schema.ts";
import type { Watch } from "./watch.ts";

/** Milliseconds that the server takes for a check at most, and more until its connection counts as lost. */
const limit = 1000;

/** In one message with its time limit, which holds for the implicit transaction of that message. */
const read = `SET LOCAL statement_timeout = ${limit};
  SELECT pg_is_in_recovery()::int, (current_setting('transaction_read_only') = 'on')::int,
    (SELECT coalesce(max(version), 0) FROM parley.migrations),
    (has_table_privilege('parley.tasks', 'INSERT') AND has_table_privilege('parley.tasks', 'UPDATE')
      AND has_table_privilege('parley.log', 'INSERT'))::int`;

/** What can be done with the database now, by a connection of the pool, and without repeats. */
export async function checkDatabase(
  database: Database,
  schema: Schema,
  watch: Watch,
  signal?: AbortSignal,
): Promise<StoreCondition> {
  try {
    const reason = await database.driver.hold(async (connection) => {
      // A pool that was busy for long lends its connection when nobody waits any more.
      if (signal?.aborted === true) throw unavailable("The check has ended");
      return whyReadOnly(connection, schema, database);
    }, 2 * limit);
    return { writable: reason === undefined, ...(reason !== undefined && { reason }), changes: watch.hearing };
  } catch (thrown) {
    throw readable(thrown);
  }
}

/** Why nothing can be stored. */
async function whyReadOnly(connection: Connection, schema: Schema, database: Database): Promise<string | undefined> {
  const [row] = (await connection.query(schema.text(read))).rows;
  if (int(row, 0) === 1) return "The database is read-only: the server is a replica";
  if (int(row, 1) === 1) return "The database is read-only: default_transaction_read_only is on";
  const version = conditionOfVersion(int(row, 2));
  if (version !== undefined) return version;
  if (int(row, 3) === 0) return "The user of the database may not write the tables";
  if (!(await hasPartition(connection, schema))) {
    return "The log has no partition for this week, and the user of the database may not make one: run `parley db migrate`";
  }
  return database.disk.isFull ? "The disk of the database is full" : undefined;
}
