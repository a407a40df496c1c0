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

/* Commands for whoever operates a server: they read and change its database. */

const task = argument("<task>", "id of the task");
const webhook = argument("<webhook>", "id of the webhook in its task");

/** Options of `push` commands. */
const webhookOptions = (agent: Option): readonly Option[] => [
  option("--store <path>", "SQLite file of the server").default(defaultStore),
  agent,
  json,
  verbose,
];
const theAgent = option("--agent <id>", "the agent: its path, or the id of its mount").default(rootAgent);

const changeOptions: readonly Option[] = [
  option("--seq <n>", "only the refused event with this number in the task's log", count(1)),
  option("--audit <file>", "append a record of the change to this file, as a line of JSON"),
  ...webhookOptions(theAgent),
];

export const push: CommandSpec = {
  name: "push",
  summary: "See webhooks that wait or failed, and try them again",
  description:
    "For who operates the server: it reads and changes the file with its tasks, whoever registered the webhooks. The server may run; it goes on with what has changed within a second or two.",
  examples: ["parley push list", "parley push show TASK"],
  commands: [
    {
      name: "list",
      summary: "List webhooks with something to deliver, and those that are parked",
      description: "Those that are due first. A webhook is parked after the last attempt, and sends nothing more.",
      examples: ["parley push list", "parley push list --state parked --json"],
      options: [
        option("--state <state>", "only these: due, which is all that are not parked, or parked").choices([
          "due",
          "parked",
        ]),
        option("--limit <n>", "largest number of webhooks", count(1, 1000)).default(100),
        ...webhookOptions(option("--agent <id>", "only webhooks of this agent")),
      ],
      load: async () => (await import("../push.ts")).list,
    },
    {
      name: "show",
      summary: "Show all webhooks of a task",
      examples: ["parley push show TASK"],
      arguments: [task],
      options: webhookOptions(theAgent),
      load: async () => (await import("../push.ts")).show,
    },
    {
      name: "retry",
      summary: "Try a webhook again, now",
      description: "A parked one goes on with the event at which it stopped.",
      examples: ["parley push retry TASK WEBHOOK", "parley push retry TASK WEBHOOK --seq 7"],
      arguments: [task, webhook],
      options: changeOptions,
      load: async () => (await import("../push.ts")).retry,
    },
    {
      name: "drop",
      summary: "Give up on a webhook, and delete it",
      description: "What it has not delivered yet is never delivered.",
      examples: ["parley push drop TASK WEBHOOK --seq 7", "parley push drop TASK WEBHOOK"],
      arguments: [task, webhook],
      options: changeOptions,
      load: async () => (await import("../push.ts")).drop,
    },
  ],
};

/** Options of commands that open PostgreSQL. */
const databaseOptions: readonly Option[] = [
  option("--database-url <url>", "URL of the database; without it, that in DATABASE_URL"),
  option("--schema <name>", "schema of the tables").default("parley"),
  json,
  verbose,
];
const storeOption = option(
  "--store <path>",
  `SQLite file of the server; without it and without a URL, ${defaultStore}`,
);
const onlyAgent = option("--agent <id>", "only with this agent: its path, or the id of its mount");
const ownerOptions: readonly Option[] = [
  storeOption,
  option("--subject <name>", "the owner, by the subject of its credentials"),
  option("--organization <name>", "with --subject, its organization"),
  option("--owner <name>", "the owner, by the name that it is stored under, where servers have an ownerOf"),
  onlyAgent,
  ...databaseOptions,
];
const files = option(
  "--files <place>",
  "large files of the server that are outside of its database: their folder, or a module that exports a BlobStore",
);
const deletionOptions: readonly Option[] = [option("--dry-run", "only count"), option("--yes", "do not ask")];

function purgedStates(text: string, before: readonly TaskState[] = []): readonly TaskState[] {
  const state = stateOption(text);
  if (state !== "TASK_STATE_WORKING" && state !== "TASK_STATE_SUBMITTED") return [...before, state];
  throw new InvalidArgumentError("An agent works on such tasks. Cancel them first: parley cancel.");
}

export const db: CommandSpec = {
  name: "db",
  summary: "Create the tables of a database, delete old tasks, delete or export what an owner has",
  description:
    "For who operates the server: it reads and changes its database, whoever owns the tasks. Servers may run meanwhile.",
  examples: [
    "parley db migrate --database-url postgres://owner@db.internal/agents",
    "parley db purge --before 90d --dry-run",
  ],
  commands: [
    {
      name: "migrate",
      summary: "Create the tables, or bring them to the version of this release",
      description:
        "Several may run at once: one does it, and the others wait. Servers of the release before go on with the new tables.",
      examples: ["parley db migrate", "parley db migrate --schema agents", "parley db migrate --dry-run"],
      options: [...databaseOptions, option("--dry-run", "print the statements that it would run, and change nothing")],
      load: async () => (await import("../db.ts")).migrate,
    },
    {
      name: "status",
      summary: "Show the version of the tables",
      description:
        "It changes nothing. The exit code is 1 where servers of this release cannot work with them as they are: they are older, or newer by more than one version.",
      examples: ["parley db status", "parley db status --json"],
      options: databaseOptions,
      load: async () => (await import("../db.ts")).status,
    },
    {
      name: "purge",
      summary: "Delete tasks that are over",
      description:
        "With their messages, artifacts, webhooks and keys, in short transactions. Then conversations that have no task and are as old, unless --state leaves out completed. Tasks that an agent works on stay.",
      examples: ["parley db purge --before 90d --dry-run", "parley db purge --before 7d --state failed --yes"],
      options: [
        option("--before <time>", "only tasks with an older status: a time, or an age such as 30d", timeOption),
        option(
          "--state <state>",
          "only tasks in this state: completed, failed, canceled, rejected, input-required or auth-required; repeatable; without it those that are over",
          purgedStates,
        ),
        ...ownerOptions,
        ...deletionOptions,
      ],
      load: async () => (await import("../db.ts")).purge,
    },
    {
      name: "erase",
      summary: "Delete all that an owner has",
      description:
        "Its tasks, after those that are not over were canceled, its conversations, webhooks, keys and its name. Withdraw its access first. Remains are left in the file of SQLite until it is copied: see parley db scrub.",
      examples: ["parley db erase --subject ada --dry-run", "parley db erase --subject ada --organization acme --yes"],
      options: [...ownerOptions, files, option("--scrub", "then do what parley db scrub does"), ...deletionOptions],
      load: async () => (await import("../db.ts")).erase,
    },
    {
      name: "export",
      summary: "Write all that an owner has as lines of JSON",
      description:
        "Conversations, direct replies, and tasks with history, artifacts and files: those outside of the database with --files. The last line has the type end.",
      examples: [
        "parley db export --subject ada --out ada.jsonl",
        "parley db export --subject ada --organization acme",
      ],
      options: [...ownerOptions, files, option("--out <file>", "write to this file, which must not exist")],
      load: async () => (await import("../db.ts")).exportData,
    },
    {
      name: "scrub",
      summary: "Copy the file of SQLite, so that nothing of deleted data is left in it",
      description:
        "For a quiet hour: it takes as long as copying the file, and servers cannot write meanwhile. What waits for more than 5 seconds fails, and runs are given up. PostgreSQL needs none of this: it overwrites deleted rows by itself.",
      examples: ["parley db scrub", "parley db scrub --json"],
      options: [storeOption, ...databaseOptions],
      load: async () => (await import("../db.ts")).scrub,
    },
    {
      name: "suspended",
      summary: "List suspended tasks",
      description: "A server suspends a task whose process died on every attempt. For its user the task still works.",
      examples: ["parley db suspended", "parley db suspended --json"],
      options: [storeOption, onlyAgent, ...databaseOptions],
      load: async () => (await import("../db.ts")).suspended,
    },
    {
      name: "resume",
      summary: "Resume a suspended task",
      description:
        "Its deaths are counted from 0. A running server takes it over at once, or within ten seconds where it gets no notifications.",
      examples: ["parley db resume TASK", "parley db resume TASK --agent /planner"],
      arguments: [task],
      options: [
        storeOption,
        option("--agent <id>", "its agent: its path, or the id of its mount").default(rootAgent),
        ...databaseOptions,
      ],
      load: async () => (await import("../db.ts")).resume,
    },
  ],
};
