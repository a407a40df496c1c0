import type { Command } from "commander";
import { migrate, status, type DatabaseOptions, type MigrateOptions } from "../db.ts";
import type { Program } from "../options.ts";

export function addDb({ io, command, finish }: Program): void {
  const db = command("db", {
    summary: "Create or upgrade the tables of a PostgreSQL database",
    description:
      "Servers do it themselves when they start, unless they are told not to. Run it ahead where they may not change tables.",
    examples: ["parley db status", "parley db migrate --database-url postgres://owner@db.internal/agents"],
  });
  databaseOptions(
    command(
      "migrate",
      {
        summary: "Create the tables, or bring them to the version of this release",
        description:
          "Several may run at once: one does it, and the others wait. Servers of the release before go on with the new tables.",
        examples: ["parley db migrate", "parley db migrate --schema agents", "parley db migrate --dry-run"],
      },
      db,
    ),
  )
    .option("--dry-run", "print the statements that it would run, and change nothing")
    .action(async (options: MigrateOptions) => finish(await migrate(io, options)));
  databaseOptions(
    command(
      "status",
      {
        summary: "Show the version of the tables",
        description:
          "It changes nothing. The exit code is 1 where servers of this release cannot work with them as they are: they are older, or newer by more than one version.",
        examples: ["parley db status", "parley db status --json"],
      },
      db,
    ),
  ).action(async (options: DatabaseOptions) => finish(await status(io, options)));
}

function databaseOptions(command: Command): Command {
  return command
    .option("--database-url <url>", "URL of the database; without it, that in DATABASE_URL")
    .option("--schema <name>", "schema of the tables", "parley")
    .option("--json", "print only JSON to standard output, one document a line")
    .option("--verbose", "show the causes of an error");
}
