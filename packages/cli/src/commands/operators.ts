import { InvalidArgumentError, type Option } from "commander";
import type { TaskState } from "@parley/a2a/internal/model/index";
import {
  argument,
  count,
  defaultStore,
  json,
  option,
  rootAgent,
  stateOption,
  timeOption,
  verbose,
  type CommandSpec,
} from "../options.ts";

/* Commands for operators: they read and change the database of a server. */

const task = argument("<task>", "ID of the task");
const webhook = argument("<webhook>", "ID of the webhook in its task");

/** Options of `push` commands. */
const webhookOptions = (agent: Option): readonly Option[] => [
  option("--store <path>", "SQLite file of the server").default(defaultStore),
  agent,
  json,
  verbose,
];
const theAgent = option("--agent <id>", "agent, by its path or mount ID").default(rootAgent);

const changeOptions: readonly Option[] = [
  option("--seq <n>", "only the rejected event with this sequence number", count(1)),
  option("--audit <file>", "append an audit record of the change to this file, as a line of JSON"),
  ...webhookOptions(theAgent),
];

export const push: CommandSpec = {
  name: "push",
  summary: "Inspect and retry pending and failed webhooks",
  description:
    "For operators: works on the SQLite file of a server, for all owners. The server may be running; it picks up changes within two seconds.",
  examples: ["parley push list", "parley push show TASK"],
  commands: [
    {
      name: "list",
      summary: "List pending and parked webhooks",
      description: "Due webhooks first. A webhook is parked after its last attempt and sends nothing more.",
      examples: ["parley push list", "parley push list --state parked --json"],
      options: [
        option("--state <state>", "only webhooks in this state: due (all that are not parked) or parked").choices([
          "due",
          "parked",
        ]),
        option("--limit <n>", "maximum number of webhooks", count(1, 1000)).default(100),
        ...webhookOptions(option("--agent <id>", "only webhooks of this agent")),
      ],
      load: async () => (await import("../push.ts")).list,
    },
    {
      name: "show",
      summary: "Show the webhooks of a task",
      examples: ["parley push show TASK"],
      arguments: [task],
      options: webhookOptions(theAgent),
      load: async () => (await import("../push.ts")).show,
    },
    {
      name: "retry",
      summary: "Retry a webhook now",
      description: "A parked webhook continues with the event at which it stopped.",
      examples: ["parley push retry TASK WEBHOOK", "parley push retry TASK WEBHOOK --seq 7"],
      arguments: [task, webhook],
      options: changeOptions,
      load: async () => (await import("../push.ts")).retry,
    },
    {
      name: "drop",
      summary: "Delete a webhook",
      description: "Its pending events are never delivered.",
      examples: ["parley push drop TASK WEBHOOK --seq 7", "parley push drop TASK WEBHOOK"],
      arguments: [task, webhook],
      options: changeOptions,
      load: async () => (await import("../push.ts")).drop,
    },
  ],
};

/** Options of commands that open PostgreSQL. */
const databaseOptions: readonly Option[] = [
  option("--database-url <url>", "URL of the database; default: DATABASE_URL"),
  option("--schema <name>", "schema of the tables").default("parley"),
  json,
  verbose,
];
const storeOption = option("--store <path>", `SQLite file of the server; default without a URL: ${defaultStore}`);
const onlyAgent = option("--agent <id>", "only this agent, by its path or mount ID");
const ownerOptions: readonly Option[] = [
  storeOption,
  option("--subject <name>", "owner, by the subject of its credentials"),
  option("--organization <name>", "organization of --subject"),
  option("--owner <name>", "owner, by its stored name, for servers with ownerOf"),
  onlyAgent,
  ...databaseOptions,
];
const files = option(
  "--files <place>",
  "large files outside the database: their folder, or a module that exports a BlobStore",
);
const deletionOptions: readonly Option[] = [
  option("--dry-run", "only count"),
  option("--yes", "do not ask for confirmation"),
];

function purgedStates(text: string, before: readonly TaskState[] = []): readonly TaskState[] {
  const state = stateOption(text);
  if (state !== "TASK_STATE_WORKING" && state !== "TASK_STATE_SUBMITTED") return [...before, state];
  throw new InvalidArgumentError("must not be a running state. Cancel such tasks first: parley cancel");
}

export const db: CommandSpec = {
  name: "db",
  summary: "Create tables, delete old tasks, delete or export the data of an owner",
  description: "For operators: works on the database of a server, for all owners. Servers may be running.",
  examples: [
    "parley db migrate --database-url postgres://owner@db.internal/agents",
    "parley db purge --before 90d --dry-run",
  ],
  commands: [
    {
      name: "migrate",
      summary: "Create or upgrade the tables",
      description:
        "Safe to run concurrently: one migrates, the others wait. Servers of the previous release work with the new tables.",
      examples: ["parley db migrate", "parley db migrate --schema agents", "parley db migrate --dry-run"],
      options: [...databaseOptions, option("--dry-run", "print the statements without running them")],
      load: async () => (await import("../db.ts")).migrate,
    },
    {
      name: "status",
      summary: "Show the version of the tables",
      description:
        "Read-only. Exits with 1 if this release cannot use the tables: they are older, or newer by more than one version.",
      examples: ["parley db status", "parley db status --json"],
      options: databaseOptions,
      load: async () => (await import("../db.ts")).status,
    },
    {
      name: "purge",
      summary: "Delete finished tasks",
      description:
        "Deletes tasks with their messages, artifacts, webhooks and keys, in short transactions. Then deletes conversations of the same age that have no tasks, unless --state excludes completed. Keeps running tasks.",
      examples: ["parley db purge --before 90d --dry-run", "parley db purge --before 7d --state failed --yes"],
      options: [
        option(
          "--before <time>",
          "only tasks last updated before this time, or longer ago than an age such as 30d",
          timeOption,
        ),
        option(
          "--state <state>",
          "only tasks in this state: completed, failed, canceled, rejected, input-required or auth-required; repeatable; default: all finished tasks",
          purgedStates,
        ),
        ...ownerOptions,
        ...deletionOptions,
      ],
      load: async () => (await import("../db.ts")).purge,
    },
    {
      name: "erase",
      summary: "Delete all data of an owner",
      description:
        "Cancels its running tasks, then deletes its tasks, conversations, webhooks, keys and name. Revoke its access first. SQLite keeps remains of deleted data in its file until parley db scrub.",
      examples: ["parley db erase --subject ada --dry-run", "parley db erase --subject ada --organization acme --yes"],
      options: [...ownerOptions, files, option("--scrub", "then run parley db scrub"), ...deletionOptions],
      load: async () => (await import("../db.ts")).erase,
    },
    {
      name: "export",
      summary: "Export all data of an owner as JSON lines",
      description:
        "Exports conversations, direct replies, and tasks with history, artifacts and files; files outside the database need --files. The last line has the type end.",
      examples: [
        "parley db export --subject ada --out ada.jsonl",
        "parley db export --subject ada --organization acme",
      ],
      options: [...ownerOptions, files, option("--out <file>", "new file to write; default: standard output")],
      load: async () => (await import("../db.ts")).exportData,
    },
    {
      name: "scrub",
      summary: "Rewrite the SQLite file without remains of deleted data",
      description:
        "Run it at a quiet time: it takes as long as copying the file, and blocks writes. Writes that wait longer than 5 seconds fail, and their runs are abandoned. PostgreSQL does not need it, since it overwrites deleted rows.",
      examples: ["parley db scrub", "parley db scrub --json"],
      options: [storeOption, ...databaseOptions],
      load: async () => (await import("../db.ts")).scrub,
    },
  ],
};
