import { InvalidArgumentError, type Command } from "commander";
import type { TaskState } from "@parley/a2a/internal/model/index";
import { migrate, status, type DatabaseOptions, type MigrateOptions } from "../db.ts";
import {
  erase,
  exportData,
  purge,
  resume,
  scrub,
  suspended,
  type EraseOptions,
  type ExportOptions,
  type PlaceOptions,
  type PurgeOptions,
  type ResumeOptions,
  type SuspendedOptions,
} from "../operate.ts";
import { rootAgent } from "../push.ts";
import { stateOption, timeOption, type Program } from "../options.ts";
import { defaultFile } from "../stored.ts";

export function addDb({ io, command, finish }: Program): void {
  const db = command("db", {
    summary: "Create the tables of a database, delete old tasks, delete or export what an owner has",
    description:
      "For who operates the server: it reads and changes its database, whoever owns the tasks. Servers may run meanwhile.",
    examples: [
      "parley db migrate --database-url postgres://owner@db.internal/agents",
      "parley db purge --before 90d --dry-run",
    ],
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
  addOwnerCommands({ io, command, finish }, db);
  addScrub({ io, command, finish }, db);
  addSuspended({ io, command, finish }, db);
}

/** Tasks that no server takes over, because their process died on every attempt. */
function addSuspended({ io, command, finish }: Program, db: Command): void {
  databaseOptions(
    storeOption(
      command(
        "suspended",
        {
          summary: "List suspended tasks",
          description:
            "A server suspends a task whose process died on every attempt. For its user the task still works.",
          examples: ["parley db suspended", "parley db suspended --json"],
        },
        db,
      ),
    ).option("--agent <id>", "only with this agent: its path, or the id of its mount"),
  ).action(async (options: SuspendedOptions) => finish(await suspended(io, options)));
  databaseOptions(
    storeOption(
      command(
        "resume",
        {
          summary: "Resume a suspended task",
          description:
            "Its deaths are counted from 0. A running server takes it over at once, or within ten seconds where it gets no notifications.",
          examples: ["parley db resume TASK", "parley db resume TASK --agent /planner"],
        },
        db,
      ).argument("<task>", "id of the task"),
    ).option("--agent <id>", "its agent: its path, or the id of its mount", rootAgent),
  ).action(async (id: string, options: ResumeOptions) => finish(await resume(io, id, options)));
}

function addOwnerCommands({ io, command, finish }: Program, db: Command): void {
  ownerOptions(
    command(
      "purge",
      {
        summary: "Delete tasks that are over",
        description:
          "With their messages, artifacts, webhooks and keys, in short transactions. Then conversations that have no task and are as old, unless --state leaves out completed. Tasks that an agent works on stay.",
        examples: ["parley db purge --before 90d --dry-run", "parley db purge --before 7d --state failed --yes"],
      },
      db,
    )
      .option("--before <time>", "only tasks with an older status: a time, or an age such as 30d", (text) =>
        timeOption(text),
      )
      .option(
        "--state <state>",
        "only tasks in this state: completed, failed, canceled, rejected, input-required or auth-required; repeatable; without it those that are over",
        purgedStates,
      ),
  )
    .option("--dry-run", "only count")
    .option("--yes", "do not ask")
    .action(async (options: PurgeOptions) => finish(await purge(io, options)));
  ownerOptions(
    command(
      "erase",
      {
        summary: "Delete all that an owner has",
        description:
          "Its tasks, after those that are not over were canceled, its conversations, webhooks, keys and its name. Withdraw its access first. Remains are left in the file of SQLite until it is copied: see parley db scrub.",
        examples: [
          "parley db erase --subject ada --dry-run",
          "parley db erase --subject ada --organization acme --yes",
        ],
      },
      db,
    ),
  )
    .option("--files <place>", filesOption)
    .option("--scrub", "then do what parley db scrub does")
    .option("--dry-run", "only count")
    .option("--yes", "do not ask")
    .action(async (options: EraseOptions) => finish(await erase(io, options)));
  ownerOptions(
    command(
      "export",
      {
        summary: "Write all that an owner has as lines of JSON",
        description:
          "Conversations, direct replies, and tasks with history, artifacts and files: those outside of the database with --files. The last line has the type end.",
        examples: [
          "parley db export --subject ada --out ada.jsonl",
          "parley db export --subject ada --organization acme",
        ],
      },
      db,
    ),
  )
    .option("--files <place>", filesOption)
    .option("--out <file>", "write to this file, which must not exist")
    .action(async (options: ExportOptions) => finish(await exportData(io, options)));
}

const filesOption =
  "large files of the server that are outside of its database: their folder, or a module that exports a BlobStore";

/** After deletions. */
function addScrub({ io, command, finish }: Program, db: Command): void {
  const scrubs = storeOption(
    command(
      "scrub",
      {
        summary: "Copy the file of SQLite, so that nothing of deleted data is left in it",
        description:
          "For a quiet hour: it takes as long as copying the file, and servers cannot write meanwhile. What waits for more than 5 seconds fails, and runs are given up. PostgreSQL needs none of this: it overwrites deleted rows by itself.",
        examples: ["parley db scrub", "parley db scrub --json"],
      },
      db,
    ),
  );
  databaseOptions(scrubs).action(async (options: PlaceOptions) => finish(await scrub(io, options)));
}

function purgedStates(text: string, before: readonly TaskState[] = []): readonly TaskState[] {
  const state = stateOption(text);
  if (state !== "TASK_STATE_WORKING" && state !== "TASK_STATE_SUBMITTED") return [...before, state];
  throw new InvalidArgumentError("An agent works on such tasks. Cancel them first: parley cancel.");
}

function ownerOptions(command: Command): Command {
  return databaseOptions(
    storeOption(command)
      .option("--subject <name>", "the owner, by the subject of its credentials")
      .option("--organization <name>", "with --subject, its organization")
      .option("--owner <name>", "the owner, by the name that it is stored under, where servers have an ownerOf")
      .option("--agent <id>", "only with this agent: its path, or the id of its mount"),
  );
}

function storeOption(command: Command): Command {
  return command.option("--store <path>", `SQLite file of the server; without it and without a URL, ${defaultFile}`);
}

function databaseOptions(command: Command): Command {
  return command
    .option("--database-url <url>", "URL of the database; without it, that in DATABASE_URL")
    .option("--schema <name>", "schema of the tables", "parley")
    .option("--json", "print only JSON to standard output, one document a line")
    .option("--verbose", "show the causes of an error");
}
