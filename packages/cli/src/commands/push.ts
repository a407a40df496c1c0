import { Option, type Command } from "commander";
import { count, type Program } from "../options.ts";
import { change, list, rootAgent, show, type ChangeOptions, type ListOptions, type StoreOptions } from "../push.ts";
import { defaultFile } from "../stored.ts";

export function addPush({ io, command, finish }: Program): void {
  const push = command("push", {
    summary: "See webhooks that wait or failed, and try them again",
    description:
      "For who operates the server: it reads and changes the file with its tasks, whoever registered the webhooks. The server may run; it goes on with what has changed within a second or two.",
    examples: ["parley push list", "parley push show TASK"],
  });
  storeOptions(
    command(
      "list",
      {
        summary: "List webhooks with something to deliver, and those that are parked",
        description: "Those that are due first. A webhook is parked after the last attempt, and sends nothing more.",
        examples: ["parley push list", "parley push list --state parked --json"],
      },
      push,
    )
      .addOption(
        new Option("--state <state>", "only these: due, which is all that are not parked, or parked").choices(states),
      )
      .option("--limit <n>", "largest number of webhooks", count(1, 1000), 100),
    "only webhooks of this agent",
  ).action(async (options: ListOptions) => finish(await list(io, options)));
  storeOptions(
    command("show", { summary: "Show all webhooks of a task", examples: ["parley push show TASK"] }, push).argument(
      ...task,
    ),
  ).action(async (id: string, options: StoreOptions) => finish(await show(io, id, options)));
  const seq = ["--seq <n>", "only the refused event with this number in the task's log", count(1)] as const;
  const audit = ["--audit <file>", "append a record of the change to this file, as a line of JSON"] as const;
  storeOptions(
    command(
      "retry",
      {
        summary: "Try a webhook again, now",
        description: "A parked one goes on with the event at which it stopped.",
        examples: ["parley push retry TASK WEBHOOK", "parley push retry TASK WEBHOOK --seq 7"],
      },
      push,
    )
      .argument(...task)
      .argument(...webhook)
      .option(...seq)
      .option(...audit),
  ).action(async (id: string, config: string, options: ChangeOptions) =>
    finish(await change(io, "retry", { id, config }, options)),
  );
  storeOptions(
    command(
      "drop",
      {
        summary: "Give up on a webhook, and delete it",
        description: "What it has not delivered yet is never delivered.",
        examples: ["parley push drop TASK WEBHOOK --seq 7", "parley push drop TASK WEBHOOK"],
      },
      push,
    )
      .argument(...task)
      .argument(...webhook)
      .option(...seq)
      .option(...audit),
  ).action(async (id: string, config: string, options: ChangeOptions) =>
    finish(await change(io, "drop", { id, config }, options)),
  );
}

const states = ["due", "parked"] as const;
const task = ["<task>", "id of the task"] as const;
const webhook = ["<webhook>", "id of the webhook in its task"] as const;

/** `agent`: what `--agent` means where it has no default. */
function storeOptions(command: Command, agent?: string): Command {
  return command
    .option("--store <path>", "SQLite file of the server", defaultFile)
    .option(
      "--agent <id>",
      agent ?? "the agent: its path, or the id of its mount",
      agent === undefined ? rootAgent : undefined,
    )
    .option("--json", "print only JSON to standard output, one document a line")
    .option("--verbose", "show the causes of an error");
}
