import type { Queries } from "./driver.ts";
import { count } from "../shared/rows.ts";
import { quoted } from "./pool.ts";
import { isTooNew, tooNew, UnknownVersion } from "../shared/versions.ts";
import type { Schema } from "./schema.ts";
import { versions } from "./versions.ts";

/** The newest version of the tables that this release knows. */
export const newestVersion: number = versions.length;

/** SQLSTATE of a lock that was not there in time. */
export const lockNotAvailable = "55P03";
/**
 * Milliseconds that a migration waits for a table. All who read and write it wait behind a migration that waits, so it gives up soon, and
 * is tried again.
 */
const tableTimeout = 500;

/** Locks of migrations: two numbers, the second from the name of the schema. */
const lockClass = 0x70_61_72_6c;

/**
 * Brings the tables to the newest version, in the transaction of `queries`. Nodes that start together wait for the first one. The lock
 * is one of the transaction, because that of a session is nobody's behind a pooler. Rejects with `lockNotAvailable` where a table is in use
 * for long.
 */
export async function migrate(
  queries: Queries,
  schema: Schema,
  to: number = newestVersion,
  list: readonly string[] = versions,
): Promise<number> {
  const sql = schema.over(queries);
  await sql(`SELECT pg_advisory_xact_lock(${lockClass}, hashtext($1))`, schema.name);
  const found = await versionOf(queries, schema);
  if (isTooNew(found, list.length)) throw tooNew(found, list.length);
  if (found >= to) return found;
  await queries.query(`SET LOCAL lock_timeout = ${tableTimeout}`);
  // A user who owns the schema, and may create none, can make the tables.
  const [exists] = await sql("SELECT (to_regnamespace($1) IS NOT NULL)::int", quoted(schema.name));
  if (count(exists) === 0) await queries.query(`CREATE SCHEMA IF NOT EXISTS ${quoted(schema.name)}`);
  // PostgreSQL makes a sequence of a name that is qualified in the same schema.
  if (found === 0)
    await queries.query(
      schema.text(
        "CREATE TABLE parley.migrations (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())",
      ),
    );
  for (const [index, statements] of list.slice(0, to).entries()) {
    if (index < found) continue;
    await queries.query(schema.text(statements));
    await sql("INSERT INTO parley.migrations (version) VALUES ($1)", index + 1);
  }
  return found;
}

/** The statements of the versions after `found`: those that `migrate` would run. */
export function pending(found: number, schema: Schema): readonly string[] {
  return versions.slice(found).map((statements) => schema.text(statements));
}

/** Refuses tables that `migrate` would change. It changes nothing. Returns their version. */
export async function checkVersion(queries: Queries, schema: Schema): Promise<number> {
  const found = await versionOf(queries, schema);
  if (isTooNew(found, newestVersion)) throw tooNew(found, newestVersion);
  if (found === 0)
    throw new UnknownVersion(
      `There is no schema ${quoted(schema.name)} of Parley in the database: run \`parley db migrate\``,
    );
  if (found < newestVersion) {
    throw new UnknownVersion(
      `The database has version ${found}, and this release needs version ${newestVersion}: run \`parley db migrate\``,
    );
  }
  return found;
}

/** The version of the tables; 0 where there are none. */
export async function versionOf(queries: Queries, schema: Schema): Promise<number> {
  const sql = schema.over(queries);
  const table = `${quoted(schema.name)}.migrations`;
  const [exists] = await sql("SELECT (to_regclass($1) IS NOT NULL)::int", table);
  if (count(exists) === 0) return 0;
  const [row] = await sql("SELECT coalesce(max(version), 0) FROM parley.migrations");
  return count(row);
}

/**
 * Why tables of a version cannot be used by a program that runs, or `undefined`. Those of the next version can: each version works while
 * nodes of the one before are running.
 */
export function conditionOfVersion(found: number): string | undefined {
  if (isTooNew(found, newestVersion)) return tooNew(found, newestVersion).message;
  return found < newestVersion
    ? `The database has version ${found}, and this release has version ${newestVersion}`
    : undefined;
}
