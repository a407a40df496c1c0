import { jsonLine } from "@parley/a2a/display";
import type { PostgresVersion } from "@parley/sql/postgres";
import { UsageError } from "./errors.ts";
import type { Io } from "./io.ts";

export interface DatabaseOptions {
  readonly databaseUrl?: string;
  readonly schema: string;
  readonly json?: boolean;
  readonly verbose?: boolean;
}

/** Creates the tables of a database, or brings them to the version of this release. */
export async function migrate(io: Io, options: DatabaseOptions): Promise<number> {
  const { migratePostgres } = await import("@parley/sql/postgres");
  const version = await migratePostgres({ database: urlOf(io, options), schema: options.schema });
  const { found, newest } = version;
  const done = found === newest ? "has" : found === 0 ? "was created with" : `was brought from version ${found} to`;
  print(io, options, version, `Schema ${options.schema} ${done} version ${newest}.`);
  return 0;
}

/** Tells the version of the tables. Exit code 1: they are not of this release. */
export async function status(io: Io, options: DatabaseOptions): Promise<number> {
  const { postgresVersion } = await import("@parley/sql/postgres");
  const version = await postgresVersion({ database: urlOf(io, options), schema: options.schema });
  const { found, newest } = version;
  const { schema } = options;
  print(io, options, version, sentenceOf(schema, version));
  return found === newest ? 0 : 1;
}

function sentenceOf(schema: string, { found, newest }: PostgresVersion): string {
  if (found === 0) return `There is no schema ${schema} of Parley. parley db migrate creates it.`;
  if (found > newest) {
    return `Schema ${schema} has version ${found}. This release supports version ${newest} and earlier: upgrade it.`;
  }
  if (found < newest) return `Schema ${schema} has version ${found}. parley db migrate brings it to version ${newest}.`;
  return `Schema ${schema} has version ${found}, which is that of this release.`;
}

function urlOf(io: Io, { databaseUrl = io.env["DATABASE_URL"] }: DatabaseOptions): string {
  if (databaseUrl !== undefined && databaseUrl !== "") return databaseUrl;
  throw new UsageError("no database: pass --database-url, or set DATABASE_URL");
}

function print(io: Io, { schema, json }: DatabaseOptions, version: PostgresVersion, sentence: string): void {
  io.stdout.write(json === true ? `${jsonLine({ schema, ...version })}\n` : `${sentence}\n`);
}
