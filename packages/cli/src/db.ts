import { jsonLine } from "@parley/a2a/internal/base/display";
import type { PostgresVersion } from "@parley/sql/postgres";
import { UsageError } from "./errors.ts";
import type { Io } from "./io.ts";

export interface DatabaseOptions {
  readonly databaseUrl?: string;
  readonly schema: string;
  readonly json?: boolean;
  readonly verbose?: boolean;
}

export interface MigrateOptions extends DatabaseOptions {
  readonly dryRun?: boolean;
}

/** Creates the tables of a database, or brings them to the version of this release. */
export async function migrate(io: Io, options: MigrateOptions): Promise<number> {
  if (options.dryRun === true) return plan(io, options);
  const { migratePostgres } = await import("@parley/sql/postgres");
  const { found, newest } = await migratePostgres({ database: urlOf(io, options), schema: options.schema });
  print(io, options, { found, newest }, done(options.schema, { found, newest }));
  return 0;
}

function done(schema: string, { found, newest }: PostgresVersion): string {
  if (found === 0) return `Schema ${schema} was created with version ${newest}.`;
  if (found < newest) return `Schema ${schema} was brought from version ${found} to version ${newest}.`;
  return found === newest ? `Schema ${schema} has version ${newest}.` : ahead(schema, { found, newest });
}

/** Prints the statements that a migration would run. They can be run as they are. */
async function plan(io: Io, options: DatabaseOptions): Promise<number> {
  const { postgresPlan } = await import("@parley/sql/postgres");
  const { found, newest, statements } = await postgresPlan({ database: urlOf(io, options), schema: options.schema });
  const { schema } = options;
  const text = statements.map((each, at) => `-- version ${found + at + 1} of schema ${schema}\n${each.trim()}\n`);
  const nothing = `-- nothing to do: schema ${schema} has version ${found}, and this release version ${newest}`;
  print(io, options, { found, newest, statements }, text.length === 0 ? nothing : text.join("\n").trimEnd());
  return 0;
}

/** Tells the version of the tables. Exit code 1: this release cannot work with them as they are. */
export async function status(io: Io, options: DatabaseOptions): Promise<number> {
  const { postgresPlan } = await import("@parley/sql/postgres");
  const { found, newest, usable } = await postgresPlan({ database: urlOf(io, options), schema: options.schema });
  print(io, options, { found, newest, usable }, sentenceOf(options.schema, { found, newest, usable }));
  return usable ? 0 : 1;
}

function sentenceOf(schema: string, version: PostgresVersion & { readonly usable: boolean }): string {
  const { found, newest, usable } = version;
  if (found === 0) return `There is no schema ${schema} of Parley. parley db migrate creates it.`;
  if (found > newest && usable) return ahead(schema, version);
  if (found > newest) {
    return `Schema ${schema} has version ${found}. This release supports version ${newest + 1} and earlier: upgrade it.`;
  }
  if (found < newest) return `Schema ${schema} has version ${found}. parley db migrate brings it to version ${newest}.`;
  return `Schema ${schema} has version ${found}, which is that of this release.`;
}

function ahead(schema: string, { found, newest }: PostgresVersion): string {
  return `Schema ${schema} has version ${found} of the next release. This one, of version ${newest}, works with it.`;
}

function urlOf(io: Io, { databaseUrl = io.env["DATABASE_URL"] }: DatabaseOptions): string {
  if (databaseUrl !== undefined && databaseUrl !== "") return databaseUrl;
  throw new UsageError("no database: pass --database-url, or set DATABASE_URL");
}

function print(io: Io, { schema, json }: DatabaseOptions, version: object, sentence: string): void {
  io.stdout.write(json === true ? `${jsonLine({ schema, ...version })}\n` : `${sentence}\n`);
}
